"""A little web for crawls from Python."""

from __future__ import annotations

import pytest

from tests.e2e.web import Reply, page, serve

PAGES = 12


@pytest.fixture
def web():
    """A start page that links to eleven others, and to one that is forbidden."""

    def answer(request):
        if request.path == "/robots.txt":
            return Reply("User-agent: *\nDisallow: /private\n", type="text/plain")
        if request.path == "/":
            return page(*(f"/{number}" for number in range(1, PAGES)), "/private/x")
        return page("/") if request.path.strip("/") in map(str, range(1, PAGES)) else None

    with serve(answer) as running:
        yield running


@pytest.fixture
def options(web):
    """How that web is reached."""
    return {"allow_private": True, "host_map": [web.host_map], "delay": 0}
