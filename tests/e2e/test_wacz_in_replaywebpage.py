"""A WACZ package opens in ReplayWeb.page, and each page of its list shows what the server had sent."""

from __future__ import annotations

import asyncio
import gzip
import json
import mimetypes
import zipfile
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.console.test_console_in_chromium import chromium_page
from tests.e2e.web import Reply, Request, Web, crawl, run, serve
from tests.required import required
from tools.install import Missing
from tools.replaywebpage import PACKAGE

pytestmark = pytest.mark.full
PATHS = (
    *(
        "/",
        "/plain",
        "/folder/",
        "/folder",
        "/Upper/Case",
        "/query?b=2&a=1&c=%C3%A4",
        "/caf%C3%A9",
        "/a%20b",
        "/~tilde",
    ),
    *("/a-x", "/a/x", "/packed", "/image", "/target", "/1;jsessionid=0123456789abcdef0123456789abcdef"),
)


def answer(request: Request) -> Reply | None:
    """A page with words of its own for each path, and all links on the first one."""
    if request.path == "/robots.txt":
        return None
    if request.path == "/moved":
        return Reply("", 302, headers={"Location": "/target"})
    if request.path not in PATHS:
        return None
    links = "".join(f'<a href="{path}">to</a> ' for path in (*PATHS, "/moved")) if request.path == "/" else ""
    number = PATHS.index(request.path)
    body = f"<!doctype html><title>Title {number}</title><h1>words of page {number}.</h1><p>żółć 数字 {links}"
    if request.path == "/packed":
        return Reply(gzip.compress(body.encode()), headers={"Content-Encoding": "gzip"})
    return Reply(body, type="text/html; charset=utf-8")


def viewer(package: Path, player: Path) -> Web:
    """A site with the package and ReplayWeb.page, and a page that shows one URL of the package."""

    def files(request: Request) -> Reply | None:
        path = request.path.partition("?")[0]
        if path == "/view":
            return Reply(
                "<!doctype html><script src=/replay/ui.js></script><script>"
                "const attributes = new URL(location).searchParams;"
                "const element = document.createElement('replay-web-page');"
                "for (const [name, value] of attributes) element.setAttribute(name, value);"
                "addEventListener('load', () => document.body.append(element));</script><body>"
            )
        file = package if path == "/export.wacz" else player / path.rpartition("/")[2]
        if not file.is_file():
            return None
        data = file.read_bytes()
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        names = {name.lower(): value for name, value in request.headers.items()}
        part = names.get("range", "").removeprefix("bytes=")
        headers = {"Accept-Ranges": "bytes"}
        if not part:
            return Reply(data, type=kind, headers=headers)
        first, _, last = part.partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        return Reply(data[start:end], 206, type=kind, headers=headers | {
            "Content-Range": f"bytes {start}-{end - 1}/{len(data)}"
        })  # fmt: skip

    return serve(files)


async def expect_page(page, base: str, url: str, time: str, words: str) -> None:
    """Wait until a frame of the viewer shows these words."""
    await page.goto(
        f"{base}/view?source=/export.wacz&replayBase=/replay/&embed=replayonly&url={quote(url, safe='')}&ts={time}"
    )
    for _ in range(600):
        for frame in page.frames:
            if "mp_/" in frame.url and words in (await frame.evaluate("document.body?.innerText ?? ''")):
                return
        await page.wait_for_timeout(100)
    raise AssertionError(f"{url} is not shown; frames: {[frame.url for frame in page.frames]}")


def test_every_page_of_the_list_is_shown(tmp_path: Path, chromium: str) -> None:
    """Queries, capitals, escapes, paths with and without a slash at the end, packed answers, and the end of a
    redirect."""
    with required(Missing):
        player = PACKAGE.find()
    with serve(answer) as web:
        done = crawl(web, "http://www.a.test/", "--format", "sqlite,warc", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert run("export", "--out", "o", "--format", "wacz", cwd=tmp_path).returncode == 0
    package = tmp_path / "o" / "export.wacz"
    with zipfile.ZipFile(package) as members:
        _, *pages = map(json.loads, members.read("pages/pages.jsonl").splitlines())
    assert len(pages) == len(PATHS)

    async def look() -> None:
        async with chromium_page(chromium) as page:
            for entry in pages:
                time = "".join(filter(str.isdigit, entry["ts"]))[:14]
                words = f"words of page {entry['title'].removeprefix('Title ')}."
                await expect_page(page, f"http://127.0.0.1:{site.port}", entry["url"], time, words)

    with viewer(package, player) as site:
        asyncio.run(look())
