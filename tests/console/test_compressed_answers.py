"""Pages are compressed where the browser takes it; the length of an answer gives no secret away."""

from __future__ import annotations

import asyncio
import gzip

import pytest
from nephila_control.http.server import tcp_server

from tests.console.console_rig import HOST, console
from tests.control.http.asgi import AsgiClient


async def asked(rig, path, cookies, accepted):
    cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    headers = {"host": HOST, "cookie": cookie, **({"accept-encoding": accepted} if accepted else {})}
    return await AsgiClient(rig.application)._request("GET", path, b"", headers)


@pytest.mark.parametrize("accepted", ["gzip", "br, gzip;q=0.5", "GZIP"])
async def test_a_page_is_compressed(tmp_path, accepted):
    async with console(tmp_path) as rig:
        cookies = (await rig.opened()).cookies
        plain = await asked(rig, "/console/rules", cookies, "")
        packed = await asked(rig, "/console/rules", cookies, accepted)
        assert packed.headers["content-encoding"] == "gzip"
        assert packed.headers["vary"].lower() == "accept-encoding"
        assert int(packed.headers["content-length"]) == len(packed.content) < len(plain.content) / 2
        assert gzip.decompress(packed.content).startswith(b"<!doctype html>")
        assert packed.headers["content-security-policy"] == plain.headers["content-security-policy"]


@pytest.mark.parametrize("accepted", ["", "br", "gzip;q=0", "gzipped"])
async def test_a_browser_that_takes_no_gzip_gets_the_page_as_it_is(tmp_path, accepted):
    async with console(tmp_path) as rig:
        answer = await asked(rig, "/console/rules", (await rig.opened()).cookies, accepted)
        assert "content-encoding" not in answer.headers
        assert answer.content.startswith(b"<!doctype html>")


async def test_the_length_of_equal_pages_differs(tmp_path):
    async with console(tmp_path) as rig:
        cookies = (await rig.opened()).cookies
        lengths = {len((await asked(rig, "/console/rules", cookies, "gzip")).content) for _ in range(12)}
        assert len(lengths) > 3


async def test_files_stay_as_they_are(tmp_path):
    async with console(tmp_path) as rig:
        answer = await asked(rig, "/console/sites.csv", (await rig.opened()).cookies, "gzip")
        assert "content-encoding" not in answer.headers


async def test_scripts_and_styles_are_compressed(tmp_path):
    async with console(tmp_path) as rig:
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        head = f"Host: {HOST}\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"
        writer.write(f"GET /console/static/console.css HTTP/1.1\r\n{head}".encode())
        answer = await reader.read()
        writer.close()
        await server.close()
        assert b"content-encoding: gzip" in answer.partition(b"\r\n\r\n")[0].lower()
