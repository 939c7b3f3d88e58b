"""A public single-page application, the demo of Vue with Vue Router built from npm, crawled through Chromium."""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.web import Reply, Request, rows, run, serve
from tools.install import Missing
from tools.vue_demo import find

TEXTS = {"http://demo.test/": "official documentation", "http://demo.test/about": "This is an about page"}
"""The routes, each with words that no other one has."""


@pytest.fixture(scope="module")
def demo() -> Path:
    """The folder of the built application. Where it is missing: a failure on CI, a skip elsewhere."""
    try:
        return find()
    except Missing as missing:
        if os.environ.get("CI") or os.environ.get("NEPHILA_REQUIRE_ALL"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))


def answers(folder: Path) -> Callable[[Request], Reply | None]:
    """The files of the application; every other path is its shell, as its server has to be set up."""

    def answer(request: Request) -> Reply | None:
        if request.path == "/robots.txt":
            return None
        file = folder / request.path.partition("?")[0].lstrip("/")
        if not file.is_file():
            file = folder / "index.html"
        return Reply(file.read_bytes(), type=mimetypes.guess_type(file.name)[0] or "application/octet-stream")

    return answer


@pytest.mark.usefixtures("chromium")
def test_every_route_of_the_demo_is_stored_with_its_content(tmp_path: Path, demo: Path) -> None:
    """Its routes are found and have their texts; without a browser there is one page without text."""
    with serve(answers(demo)) as web:
        words = ("crawl", "http://demo.test/", "--allow-private", "--host-map", web.host_map, "--delay", "0")
        done = run(*words, "--out", "o", "--render", "always", cwd=tmp_path, timeout=200)
        assert done.returncode == 0, done.stderr
        found = {url: text for url, outcome, text in rows(tmp_path, "url, outcome, text") if outcome == "stored"}
        assert run(*words, "--out", "o", "--fresh", cwd=tmp_path).returncode == 0
        plain = [(url, text) for url, outcome, text in rows(tmp_path, "url, outcome, text") if outcome == "stored"]
    pages = {url: text for url, text in found.items() if "/assets/" not in url}
    assert set(pages) == set(TEXTS)
    for url, words_of_it in TEXTS.items():
        assert words_of_it in pages[url]
        assert sum(words_of_it in text for text in pages.values()) == 1
    assert [(url, text) for url, text in plain if "/assets/" not in url] == [("http://demo.test/", "")]
