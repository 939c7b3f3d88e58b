"""`nephila.crawl`: the pages of a crawl, one by one, by the engine of the command line."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import nephila
import pytest

from tests.api.conftest import PAGES
from tests.e2e.web import Reply, page, run, serve

START = "http://a.test/"


def paths(pages):
    return sorted(one.url.removeprefix("http://a.test") for one in pages)


def test_every_page_with_its_facts_and_selectors(web, options):
    """Pages come with the facts of their rows; CSS and XPath are parsel's; the end says what became of all URLs."""
    crawl = nephila.crawl(START, **options)
    pages = list(crawl)
    assert len(pages) == PAGES
    first = pages[0]
    assert (first.url, first.status, first.title, first.depth) == (START, 200, "A page", 0)
    assert first.content_type == "text/html"
    assert first.fetched_at.tzinfo is not None
    assert "Some words." in first.text
    assert first.css("title::text").get() == "A page"
    assert first.xpath("count(//a)").get() == f"{PAGES}.0"
    assert first.html.startswith("<")
    assert first.links[0].url == "http://a.test/1"
    assert "[to /1](http://a.test/1)" in first.markdown
    assert crawl.end.reason == "done"
    assert crawl.end.outcomes == {"stored": PAGES, "denied": 1}
    assert "/private/x" not in web.paths()


def test_max_pages(options):
    """A limit of the command line is a limit here."""
    crawl = nephila.crawl(START, max_pages=5, **options)
    assert len(list(crawl)) == 5
    assert crawl.end.reason == "max_pages"


def test_leaving_early_stops_the_crawl_and_resume_goes_on(web, options, tmp_path):
    """What is stored was taken; the page in hand when the iteration was left comes again."""
    for number, _ in enumerate(nephila.crawl(START, out=tmp_path, ahead=2, **options)):
        if number == 3:
            break
    asked = len(web.requests)
    run = json.loads((tmp_path / "run.json").read_text())
    assert (run["state"], run["reason"], run["rows"]) == ("stopped", "interrupted", 3)
    assert asked <= 1 + 4 + 2
    rest = list(nephila.crawl(out=tmp_path, resume=True, **options))
    assert len(rest) == PAGES - 3
    assert len(web.requests) > asked


def test_an_exception_in_the_loop_stops_the_crawl(options, tmp_path):
    """The exception is the caller's; the directory is free again."""

    def work():
        with nephila.crawl(START, out=tmp_path, **options) as crawl:
            return [1 / (one.depth - 1) for one in crawl]

    with pytest.raises(ZeroDivisionError):
        work()
    assert len(list(nephila.crawl(out=tmp_path, resume=True, **options))) == PAGES - 1


def test_a_slow_consumer_slows_the_crawl(web, options):
    """No more is fetched ahead than `ahead`; robots.txt is one request more."""
    with nephila.crawl(START, ahead=3, **options) as crawl:
        for number, _ in enumerate(crawl, 1):
            assert len(web.requests) <= 1 + number + 3


async def test_async_for_in_a_running_loop(options):
    """Two crawls at once in one loop."""

    async def count():
        return len([page async for page in nephila.crawl(START, **options)])

    assert await asyncio.gather(count(), count()) == [PAGES, PAGES]


async def test_a_plain_loop_within_a_running_loop(options):
    """As in a notebook."""
    assert len(list(nephila.crawl(START, **options))) == PAGES


async def test_leaving_async_for_early(web, options, tmp_path):
    """As with `for`; the crawl has ended when the block ends."""
    async with nephila.crawl(START, out=tmp_path, ahead=2, **options) as crawl:
        async for _ in crawl:
            break
    assert json.loads((tmp_path / "run.json").read_text())["state"] == "stopped"


async def test_a_cancelled_wait_loses_no_page(options):
    """Whoever is cancelled while it waits for a page leaves the crawl."""
    crawl = nephila.crawl(START, **options)

    async def take():
        return [page async for page in crawl]

    task = asyncio.ensure_future(take())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert crawl.end is None or crawl.end.reason == "interrupted"


def test_links_of_a_callback_are_followed(options):
    """Only those, where links that were found are not wanted."""

    def follow(page):
        return ["/1", "/2", "http://other.test/"] if page.url == START else None

    pages = list(nephila.crawl(START, on_page=follow, found_links=False, **options))
    assert paths(pages) == ["/", "/1", "/2"]
    assert [page.depth for page in pages] == [0, 1, 1]


async def test_links_of_a_coroutine_are_followed(options):
    """The callback of `async for` may wait."""

    async def follow(page):
        await asyncio.sleep(0)
        return ["/3"]

    pages = [page async for page in nephila.crawl(START, on_page=follow, found_links=False, **options)]
    assert paths(pages) == ["/", "/3"]


def test_links_added_in_the_loop_are_followed(options):
    """`page.follow` until the next page is asked for: the crawl does not end before."""
    seen = []
    for one in nephila.crawl(START, found_links=False, **options):
        seen.append(one)
        number = len(seen)
        if number < 4:
            one.follow(str(number))
    assert paths(seen) == ["/", "/1", "/2", "/3"]
    with pytest.raises(nephila.UsageError, match="has ended"):
        seen[0].follow("/4")


@pytest.mark.parametrize(("found_links", "expected"), [(True, ["1", "2", "3", "90", "91"]), (False, ["1", "90"])])
def test_a_directory_of_worker_processes_goes_on(tmp_path, found_links, expected):
    """Pages have their bodies and links, and links of the consumer are followed, as in a directory of this program."""

    def chain(request):
        if request.path == "/robots.txt":
            return None
        number = int(request.path[1:])
        return page(f"/{number + 1}") if number not in (3, 91) else page()

    with serve(chain) as web:
        words = ("--out", "o", "--max-pages", "1", "--workers", "2", "--delay", "0", "--quiet", "--allow-private")
        assert run("crawl", f"{START}0", *words, "--host-map", web.host_map, cwd=tmp_path).returncode == 0
        assert (tmp_path / "o/frontier/15").is_dir()
        crawl = nephila.crawl(
            out=tmp_path / "o",
            resume=True,
            max_pages=0,
            found_links=found_links,
            allow_private=True,
            delay=0,
            host_map=[web.host_map],
        )
        pages = []
        for one in crawl:
            assert one.css("title::text").get() == one.title
            pages.append(one)
            if one.url == f"{START}1":
                one.follow("/90")
    assert paths(pages) == [f"/{number}" for number in expected]
    assert len(pages[0].links) == 1


def test_an_exception_of_a_callback_reaches_the_caller(options):
    """And the crawl ends."""

    def fail(page):
        raise LookupError(page.url)

    with pytest.raises(LookupError, match="test"):
        list(nephila.crawl(START, on_page=fail, **options))


@pytest.mark.whole
def test_rules_as_mappings_make_items(options):
    """A mapping is a rule, or the spec of one."""
    rule = {"match": {"url": "."}, "fields": {"name": {"css": "h1"}, "first": {"css": "a", "attr": "href"}}}
    (page,) = nephila.crawl(START, max_pages=1, rules=rule, **options)
    assert page.items == [{"name": "A page", "first": "/1"}]
    assert page.rule == "rule-1"


def test_what_ended_otherwise_is_handed_over_when_asked(options):
    """Denied, failed and dropped URLs, too."""
    pages = list(nephila.crawl(START, "http://a.test/none", all_outcomes=True, **options))
    assert {page.outcome for page in pages} == {"stored", "denied", "failed"}
    (denied,) = (page for page in pages if page.outcome == "denied")
    assert (denied.reason, denied.body, denied.links, denied.markdown) == ("robots", b"", [], "")


def test_bodies_beyond_the_limit_wait_in_files(monkeypatch, options):
    """And read the same."""
    monkeypatch.setattr("nephila.api.handover.HELD_BYTES", 100)
    assert all("Some words." in page.html for page in nephila.crawl(START, **options))


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        ((), {}, "nothing to crawl"),
        (("nonsense",), {}, "not a URL"),
        ((START,), {"max_page": 3}, "max_page"),
        ((START,), {"scope": "planet"}, "planet"),
        ((START,), {"resume": True}, "out"),
        ((START,), {"ahead": 0}, "ahead"),
        pytest.param((START,), {"rules": "no/such/place"}, "no/such/place", marks=pytest.mark.whole),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(words, given, said):
    """In one line, before a thread is begun."""
    with pytest.raises(nephila.UsageError, match=said):
        nephila.crawl(*words, **given)


def test_again_in_a_directory(web, options, tmp_path):
    """A crawl that stored nothing is begun anew, a finished one is refused, moved aside, or fetched again where due."""
    assert list(nephila.crawl("http://a.test/none", out=tmp_path, **options)) == []
    assert len(list(nephila.crawl(START, out=tmp_path, max_pages=2, **options))) == 2
    with pytest.raises(nephila.UsageError, match="holds"):
        nephila.crawl(START, out=tmp_path, **options)
    assert len(list(nephila.crawl(START, out=tmp_path, fresh=True, **options))) == PAGES
    assert (tmp_path / "old").is_dir()
    asked = len(web.requests)
    assert len(list(nephila.crawl(out=tmp_path, refresh=True, **options))) == PAGES
    assert len(web.requests) > asked


def test_a_crawl_is_iterated_over_once(options):
    """The second time would be another crawl."""
    crawl = nephila.crawl(START, max_pages=1, **options)
    list(crawl)
    with pytest.raises(nephila.UsageError, match="once"):
        list(crawl)


def test_a_fault_of_the_crawl_reaches_the_caller(options, tmp_path):
    """A directory that another crawl holds is told when its pages are asked for."""
    with nephila.crawl(START, out=tmp_path, **options) as first:
        iterator = iter(first)
        next(iterator)
        with pytest.raises(nephila.UserError, match=r"in use|unfinished"):
            list(nephila.crawl(START, out=tmp_path, **options))


def test_a_crawl_of_nothing_says_why(options, caplog):
    """No page is no exception, since a crawl of many seeds may have some that are gone; the log has the reason."""
    assert list(nephila.crawl("http://a.test/none", **options)) == []
    assert "no page was stored: failed(http_404)" in caplog.text


def test_a_page_that_no_tree_should_be_built_of():
    """Deep nesting costs neither markdown nor links their bounds."""
    page = nephila.extract("<div>" * 100_000 + "words", "http://a.test/")
    assert isinstance(page.markdown, str)
    assert page.css("p").getall() == []


def test_options_are_those_of_the_command():
    """Every option here is one there, by the same name."""
    from nephila.api.options import Options, defaults

    assert set(Options.__annotations__) - {"store"} <= set(defaults())


def test_a_program_that_ends_amid_an_iteration(tmp_path):
    """The crawl is stopped, resumable, and nothing is said."""
    with serve(lambda request: Reply("") if request.path == "/robots.txt" else page("/a", "/b")) as web:
        words = f"allow_private=True, host_map=[{web.host_map!r}], delay=0"
        program = f"import nephila; pages = iter(nephila.crawl('{START}', out='o', {words})); print(next(pages).url)"
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ},
        )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, START, "")
    assert json.loads((tmp_path / "o/run.json").read_text())["state"] == "stopped"


def test_importing_the_package_loads_nothing_of_it():
    """What `import nephila` costs is paid by every worker process and every script that only may crawl."""
    program = "import sys, nephila; print([n for n in sys.modules if n.startswith('nephila') or n == 'asyncio'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "['nephila']"
