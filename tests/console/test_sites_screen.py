"""The screen of sites: all directories in one table, the broken ones first, in a bounded number."""

from __future__ import annotations

from types import SimpleNamespace

from lxml import html as parser
from nephila_console.screens.sites import EDITED, ORDERS, SHOWN, VIEWS, rows_of
from nephila_control import site_types
from nephila_control.job_types import ListJobs

from tests.console.console_rig import console


def directory(name, *faults, new_pages=1, why="", **values):
    """A directory with lists."""
    words = dict.fromkeys(("reason", "target", "since", "words", "proposal"), "")
    lists = [
        site_types.ListState(url=f"http://{name}.test/{at}", verdict="x", fault=fault, status=200, links=7, **words)
        for at, fault in enumerate(faults)
    ]
    last_run = values.pop("last_run", "2026-11-20T00:00:00Z")
    return site_types.Directory(
        name=name, last_run=last_run, ended="", why=why, new_pages=new_pages, lists=lists, **values
    )


def test_broken_directories_are_first_and_then_those_without_news():
    """A directory whose job was refused is broken, too; cost is fetches for each stored page."""
    silent, refused = directory("b", False, new_pages=0), directory("d", why="x")
    job = SimpleNamespace(name="a", stored=10, denied=5, failed=4, dropped=1)
    rows = rows_of([directory("a", False), silent, directory("c", False, True), refused], [job])
    rows.sort(key=lambda row: (ORDERS[""](row), row.name))
    assert [row.name for row in rows] == ["c", "d", "b", "a"]
    assert [row.broken for row in rows] == [True, True, False, False]
    assert [row.cost for row in rows if row.name == "a"] == [2.0]


def test_each_order_and_view_is_that_of_its_words():
    job = SimpleNamespace(name="b", stored=1, denied=0, failed=9, dropped=0)
    rows = rows_of(
        [
            directory("a", new_pages=2, days=[0, 9], score=1.0, frequency="6h", next_run="paused", paused=True),
            directory("b", new_pages=7, days=[1, 1], score=5.0, news_at="2026-11-21T00:00:00Z", frequency="1h"),
            directory("c", new_pages=0, last_run="", next_run="2026-12-01T00:00:00Z", frequency="2h"),
        ],
        [job],
    )

    def ordered(name):
        return "".join(row.name for row in sorted(rows, key=lambda row: (ORDERS[name](row), row.name)))

    orders = {name: ordered(name) for name in ORDERS if name}
    assert orders == {
        "name": "abc",
        "news": "bac",
        "days": "abc",
        "changed": "bac",
        "last": "abc",
        "next": "cab",
        "cost": "bac",
        "frequency": "bca",
        "score": "bac",
    }
    chosen = {name: "".join(row.name for row in rows if belongs(row)) for name, belongs in VIEWS.items()}
    assert (chosen["paused"], chosen["costly"], chosen["silent"], chosen["broken"]) == ("a", "b", "", "")


async def test_two_hundred_directories_are_a_table_with_pages(tmp_path, monkeypatch):
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
        assert (await browser.get("/console/sites?only=broken")).text.count("<tr>") == 5 + 1
        filtered = (await browser.get("/console/sites?q=SITE011")).text
        assert filtered.count("<tr>") == 1 + 1
        assert (await browser.get("/console/")).text.count("cannot be fetched") == 5
        assert (await browser.get("/console/sites?edit=1")).text.count("<tr>") == EDITED + 1


async def test_the_head_of_a_column_sorts_by_it_and_keeps_the_filter(tmp_path, monkeypatch):
    async def list_directories(self, request):
        return site_types.DirectoryList(directories=[directory("a", score=1.0), directory("b", score=3.0)])

    monkeypatch.setattr("nephila_control.operations.Operations.list_directories", list_directories)
    async with console(tmp_path) as rig:
        assert (await rig.control.list_jobs(ListJobs())).jobs
        browser = await rig.opened()
        page = parser.fromstring((await browser.get("/console/sites?q=B")).text)
        (link,) = page.xpath("//thead//a[text()='Score']/@href")
        assert link == "/console/sites?q=B&sort=score"
        page = parser.fromstring((await browser.get("/console/sites?sort=score")).text)
        assert page.xpath("//th[@aria-sort='descending']/a/text()") == ["Score ↓"]
        assert page.xpath("//tbody/tr/th/a//text()") == ["b", "a"]
