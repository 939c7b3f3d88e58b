"""The screen of sites: all lists in one table, the broken ones first, in a bounded number."""

from __future__ import annotations

from types import SimpleNamespace

from nephila_console.screens.sites import SHOWN, rows_of
from nephila_control import site_types

from tests.console.console_rig import console


def directory(name, *faults, new_pages=1, why=""):
    """A site with lists."""
    words = dict.fromkeys(("reason", "target", "since", "words", "proposal"), "")
    lists = [
        site_types.ListState(url=f"http://{name}.test/{at}", verdict="x", fault=fault, status=200, links=7, **words)
        for at, fault in enumerate(faults)
    ]
    return site_types.Directory(name=name, last_run="", ended="", why=why, new_pages=new_pages, lists=lists)


def test_broken_lists_are_first_and_then_those_without_news():
    """A site whose job was refused is broken, too; cost is fetches for each stored page."""
    silent, refused = directory("b", False, new_pages=0), directory("d", why="x")
    job = SimpleNamespace(name="a", stored=10, denied=5, failed=4, dropped=1)
    found = rows_of([directory("a", False), silent, directory("c", False, True), refused], [job])
    rows = sorted(found, key=lambda row: row.order)
    assert [row.site.name for row in rows] == ["c", "d", "b", "a", "c"]
    assert [row.broken for row in rows] == [True, True, False, False, False]
    assert [row.cost for row in rows if row.site.name == "a"] == [2.0]


async def test_two_hundred_sites_are_a_table_with_pages(tmp_path, monkeypatch):
    """A filter by name, and one for what is broken."""
    sites = [directory(f"site{number:03}", number % 40 == 7, False) for number in range(200)]

    async def list_directories(self, request):
        return site_types.DirectoryList(directories=sites)

    monkeypatch.setattr("nephila_control.operations.Operations.list_directories", list_directories)
    async with console(tmp_path) as rig:
        browser = await rig.opened()
        first = (await browser.get("/console/sites")).text
        assert first.count("<tr>") == SHOWN + 1
        assert first.index("site007") < first.index("site000")
        assert "skip=100" in first
        assert (await browser.get("/console/sites?skip=300")).text.count("<tr>") == SHOWN + 1
        assert (await browser.get("/console/sites?broken=1")).text.count("<tr>") == 5 + 1
        one = (await browser.get("/console/sites?q=SITE011")).text
        assert one.count("<tr>") == 2 + 1
        assert (await browser.get("/console/")).text.count("cannot be fetched") == 5
