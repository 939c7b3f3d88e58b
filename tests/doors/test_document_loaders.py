"""LangChain's loader, by its base class: pages of a crawl now, of a directory that runs or has ended, of a server."""

from __future__ import annotations

import asyncio
import threading

import nephila
import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila_control.access.authority import Authority, administrator
from nephila_control.http.application import application
from nephila_control.http.server import tcp_server
from nephila_doors.langchain import NephilaLoader

from tests.doors.adapter_rig import running, shop
from tests.e2e.web import serve

TOKEN = "x" * 16
TITLES = {"Teas", "Green tea", "Black tea"}


def options(web):
    return {"allow_private": True, "host_map": [web.host_map], "delay": 0.0}


def test_a_crawl_is_loaded_page_by_page(tmp_path):
    with serve(shop) as web:
        loader = NephilaLoader("http://a.test/", **options(web))
        assert isinstance(loader, BaseLoader)
        pages = loader.lazy_load()
        first = next(pages)
        assert isinstance(first, Document)
        assert first.metadata["source"] == "http://a.test/"
        assert first.page_content.startswith("# Teas")
        assert first.metadata["language"] == "en"
        assert len(first.id) == 32
        pages.close()
        assert {one.metadata["title"] for one in loader.load()} == TITLES


async def test_a_finished_directory_is_loaded_in_a_running_loop_and_searched(tmp_path):
    with serve(shop) as web:
        for _ in nephila.crawl("http://a.test/", out=tmp_path / "o", keep_raw=True, **options(web)):
            pass
    loader = NephilaLoader(directory=tmp_path / "o")
    assert {one.metadata["title"] for one in loader.lazy_load()} == TITLES
    begun = loader.lazy_load()
    next(begun)
    begun.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("nephila-documents")]
    found = [one async for one in loader.alazy_load()]
    assert {one.page_content.splitlines()[0] for one in found} == {f"# {title}" for title in TITLES}
    assert {
        one.metadata["source"] for one in NephilaLoader(directory=tmp_path / "o", search="oxidised").lazy_load()
    } == {"http://a.test/black"}


async def test_a_server_is_loaded_with_its_token(tmp_path):
    async with running(tmp_path) as rig:
        http = tcp_server(
            application(rig.control, authority=Authority(rig.control, administrator(TOKEN))), "127.0.0.1", 0, "--api"
        )
        await http.open()
        try:
            from nephila.kernel.runtime.clock import SystemClock
            from nephila_doors.scrapes import Scrapes

            pages = Scrapes(rig.control, SystemClock())
            for path in ("/green", "/black"):
                await pages.page(f"http://a.test{path}")
            await pages.close()
            place = f"http://127.0.0.1:{http.port}"
            found = await NephilaLoader(server=place, token=TOKEN, job="scrapes").aload()
            assert {one.metadata["title"] for one in found} == {"Green tea", "Black tea"}
            with pytest.raises(UserError, match="token"):
                await NephilaLoader(server=place, token=TOKEN + "x").aload()
        finally:
            await http.close()


def test_the_place_of_the_pages_has_to_be_clear(tmp_path):
    for wrong in ({}, {"directory": tmp_path, "server": "http://a.test"}, {"directory": tmp_path, "max_pages": 3}):
        with pytest.raises(UsageError):
            NephilaLoader(**wrong)
    with pytest.raises(UserError, match="no crawl"):
        asyncio.run(NephilaLoader(directory=tmp_path).aload())
