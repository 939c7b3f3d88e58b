"""Rules in the parser's service: which page is read by which rule, here or in the child, and what becomes of it."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.documents.job_schema import Parse
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import JOBS, PAGES, RULES
from nephila.parser.page.html_tree import MAX_BYTES
from nephila_rules.runtime.extract import Extraction, RuleLink
from nephila_rules.runtime.task import RULES as RULES_TASK
from nephila_rules.runtime.task import RuleAnswer

from tests.jobs import crawl_job
from tests.parser.parser_room import FakePass, Room, with_links
from tests.rules.execution.rule_rig import rule

HTML = b"<h1>One</h1><a class=n href=/n>n</a><a href=/o>o</a>"
CSS = "match: {url: '^http://a'}\nfields: {t: {css: h1, required: true}}"
XPATH = "match: {url: '^http://a'}\nfields: {t: {xpath: //h1}}"


def message(spec: str, name: str = "r", **more: Any) -> m.ParseRule:
    """A rule as it travels."""
    document = rule(spec, name)
    return m.ParseRule(name, document.text, document.rule.version, **more)


@pytest.fixture
async def rooms() -> AsyncIterator[Any]:
    """Parsers with rules, closed at the end."""
    made: list[Room] = []

    async def make(*specs: str, found: Any = None, names: tuple[str, ...] = ("r",), **settings: Any) -> Room:
        room = Room(found, **settings)
        made.append(room)
        await room.start(crawl_job(uid="j", rules=list(names)))
        for name, spec in zip(names, specs, strict=True):
            room.bus.publish(RULES, 0, message(spec, name))
        return room

    yield make
    for room in made:
        await room.parser.close()


def items(record: Any) -> list[Any]:
    """Its items as values."""
    return [json.loads(item) for item in record.items]


async def later(room: Room, count: int) -> None:
    """Once so many messages came out."""
    await room.parser.drain(60.0)
    assert len(room.log) == count


async def test_a_page_is_read_by_the_rule_that_matches(rooms: Any) -> None:
    """Rule, version and items are in its record; other pages and jobs have none."""
    room = await rooms(CSS)
    record = room.record(HTML)
    assert (record.rule, record.rule_version, items(record)) == ("r", rule(CSS).rule.version, [{"t": "One"}])
    for page in ({"url": "http://b.test/"}, {"job": "other"}):
        record = room.record(HTML, **page)
        assert (record.rule, record.rule_version, record.items) == ("", 0, [])


async def test_what_is_missing_is_said_in_the_row(rooms: Any) -> None:
    """A required field without a value: no item, and why; text and links stay."""
    room = await rooms(CSS, found=with_links("http://a.test/1"))
    links, record = room.send(b"<p>")
    assert (record.rule, record.items) == ("r", [])
    assert "t: required" in json.loads(record.meta)["rule_problems"]
    assert links.urls == b"http://a.test/1"


async def test_the_rule_says_which_links_go_on(rooms: Any) -> None:
    """In place of the page's own; --links keeps all of these."""
    room = await rooms(f"{CSS}\noutlinks: a.n", found=with_links("http://a.test/n", "http://a.test/o"))
    room.bus.publish(JOBS, 0, crawl_job(uid="j", rules=["r"], links=True))
    links, record = room.send(HTML, depth=2)
    assert (links.urls, links.depth) == (b"http://a.test/n", 3)
    assert record.links.urls == b"http://a.test/nhttp://a.test/o"


@pytest.mark.parametrize("source", ["css: a", "xpath: //a"])
async def test_links_of_a_rule_keep_routes_where_the_job_does(rooms: Any, source: str) -> None:
    """Here and in the child, of outlinks, pagination and second pages; `include` sees them. In other jobs they are
    dropped as ever."""
    kind = source.partition(":")[0]
    next_page = "a.next" if kind == "css" else "//a[@class]"
    spec = f"""
        match: {{url: '^http://a'}}
        fields: {{t: {{{source}}}}}
        outlinks: {{{source}, include: '/item'}}
        pagination: {{{kind}: '{next_page}'}}
        followUps: {{more: {{{source}, url: '/item', fields: {{u: {{css: h2}}}}}}}}
    """
    body = (
        b"<a href='#/item/1'>1</a><a class=next href='/list#!/2'>2</a><a href='/item#top'>3</a><a href='#/about'>4</a>"
    )
    kept = {
        "http://a.test/list#!/2": 2,
        "http://a.test/item": 3,
        "http://a.test/#/item/1": 3,
    }
    for follow, expected in ((["route"], kept), (["next"], {"http://a.test/list": 2, "http://a.test/item": 3})):
        room = await rooms(spec)
        room.bus.publish(JOBS, 0, crawl_job(uid="j", rules=["r"], parse=Parse(follow=follow)))
        found = room.send(body, url="http://a.test/", depth=2)
        await room.parser.drain(60.0)
        found = found or room.log
        depths: dict[str, int] = {}
        for one in found[:-1]:
            ends, hosts = memoryview(one.url_ends).cast("I"), memoryview(one.host_spans).cast("I")
            assert {one.urls[a:b] for a, b in zip(hosts[::2], hosts[1::2], strict=True)} == {b"a.test"}
            for start, end in itertools.pairwise((0, *ends)):
                depths.setdefault(one.urls[start:end].decode(), one.depth)
        assert depths == expected
        (item,) = items(found[-1])
        if follow == ["route"]:
            assert item["_incomplete"]["more"]["url"] == "http://a.test/#/item/1"


async def test_nofollow_is_above_the_rule(rooms: Any) -> None:
    """Links that may not go on do not, whoever selects them."""
    room = await rooms(f"{CSS}\noutlinks: a", found=with_links("http://a.test/n", robots="nofollow"))
    (record,) = room.send(HTML)
    assert items(record) == [{"t": "One"}]
    (record,) = room.send(HTML, robots_tag="nofollow")
    assert items(record) == [{"t": "One"}]


async def test_rules_change_while_pages_come(rooms: Any) -> None:
    """The next page is read by the new one; a deleted rule leaves generic extraction; what cannot be read changes
    nothing."""
    room = await rooms(CSS)
    first = room.record(HTML).rule_version
    room.bus.publish(RULES, 0, message("match: {url: '^http://a'}\nfields: {u: h1}"))
    record = room.record(HTML)
    assert (items(record), record.rule_version != first) == ([{"u": "One"}], True)
    room.bus.publish(RULES, 0, m.ParseRule("r", "{}", 1))
    assert items(room.record(HTML)) == [{"u": "One"}]
    room.bus.publish(RULES, 0, m.ParseRule("r", deleted=True))
    assert room.record(HTML).rule == ""


async def test_a_job_chooses_its_rules(rooms: Any) -> None:
    """Rules that it does not name are not asked, and a job that changes is read by others."""
    other = "match: {url: '^http://a'}\npriority: 9\nfields: {other: h1}"
    room = await rooms(CSS, names=("r",))
    room.bus.publish(RULES, 0, message(other, "s"))
    assert room.record(HTML).rule == "r"
    room.bus.publish(JOBS, 0, crawl_job(uid="j", rules=["r", "s", "unknown"]))
    assert room.record(HTML).rule == "s"
    room.bus.publish(JOBS, 0, crawl_job(uid="j"))
    assert room.record(HTML).rule == ""


async def test_xpath_is_read_in_the_child(rooms: Any) -> None:
    """The page waits there, unacked, and ends like every other."""
    room = await rooms(f"{XPATH}\noutlinks: a.n", found=with_links("http://a.test/n", "http://a.test/o"))
    assert room.send(HTML) == []
    assert room.bus.unacked == 1
    await later(room, 2)
    links, record = room.log
    assert isinstance(links, m.Outlinks)
    assert (links.urls, items(record)) == (b"http://a.test/n", [{"t": "One"}])
    assert room.bus.unacked == 0


@pytest.mark.parametrize("how", ["large", "deep"])
async def test_a_page_that_is_not_bounded_is_read_in_the_child(rooms: Any, how: str) -> None:
    """The same items come of it; the loop has not waited for them."""
    room = await rooms(CSS, found=FakePass(depth=10_000) if how == "deep" else None)
    body = HTML + b" " * (MAX_BYTES if how == "large" else 0)
    assert room.send(body) == []
    await later(room, 1)
    assert items(room.log[0]) == [{"t": "One"}]


async def test_content_is_asked_there_as_well(rooms: Any) -> None:
    """The first rule whose content is there; none: generic extraction."""
    room = await rooms(
        "match: {url: '^http', content: {css: .x}}\nfields: {a: {xpath: //h1}}",
        "match: {url: '^http', content: {css: h1}}\nfields: {b: {xpath: //h1}}",
        names=("a", "b"),
    )
    room.send(HTML)
    room.send(b"<p>")
    await later(room, 2)
    assert [(record.rule, items(record)) for record in room.log] == [("b", [{"b": "One"}]), ("", [])]


async def test_a_drain_waits_for_the_child(rooms: Any) -> None:
    """As long as it is given; what is left stays unacked."""
    room = await rooms(XPATH)
    room.send(HTML)
    await room.parser.drain(30.0)
    assert len(room.log) == 1


async def test_json_documents_are_read_by_rules(rooms: Any) -> None:
    """An API's answers have no page pass."""
    room = await rooms("match: {url: '^http'}\neach: {jsonpath: '$[*]'}\nfields: {n: {jsonpath: $.n}}")
    record = room.record(b'[{"n": 1}, {"n": "no"}]', content_type="application/json")
    assert items(record) == [{"n": 1}, {"n": "no"}]


@pytest.mark.parametrize("content_type", ["application/xml", "text/plain", "application/json", "text/csv"])
async def test_a_document_may_be_as_deep_as_a_page(rooms: Any, content_type: str) -> None:
    """Rules see a tree of it, whatever it is called: a selector of three steps would take minutes beside everything."""
    room = await rooms("match: {url: '^http://a'}\nfields: {t: b div div i}", found=FakePass(depth=3000))
    room.send(b"<a>" + b"<div>" * 200 + b"<i></i>" * 20, content_type=content_type)
    assert room.parser.rules.pages_in_child == 1
    await later(room, 1)


PYTHON = "match: {url: '^http://a'}\nfields: {t: h1, f: {css: h1, py: 'words:upper'}}"


async def test_functions_are_those_of_the_configured_directory(rooms: Any, tmp_path: Path, caplog: Any) -> None:
    """A changed file reads the next pages; a fault costs the field, and the row has the reason."""
    words = tmp_path / "words.py"
    words.write_text("def upper(value):\n    return value.upper()\n")
    room = await rooms(PYTHON, rule_functions_dir=str(tmp_path))
    room.send(HTML)
    await later(room, 1)
    assert items(room.log[0]) == [{"t": "One", "f": "ONE"}]
    words.write_text("def upper(value):\n    raise OSError('none')\n")
    room.clock.advance(1.0)
    room.send(HTML)
    await later(room, 2)
    assert items(room.log[1]) == [{"t": "One", "f": None}]
    assert json.loads(room.log[1].meta)["rule_problems"] == "f: py: words.py:2: OSError: none"
    assert not caplog.records


async def test_without_a_directory_no_function_is_called(rooms: Any, caplog: Any) -> None:
    """The log says it once for a rule, and each row; no rule can name a directory."""
    room = await rooms(PYTHON)
    (line,) = caplog.messages
    assert line.startswith("rule r: its Python functions are not called")
    assert "--rule-functions DIR" in line
    room.send(HTML)
    await later(room, 1)
    assert items(room.log[0]) == [{"t": "One", "f": None}]
    assert "there is no directory of Python functions" in json.loads(room.log[0].meta)["rule_problems"]


async def test_a_directory_that_does_not_exist_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"rule functions .*nowhere does not exist"):
        Room(rule_functions_dir=str(tmp_path / "nowhere"))


async def test_a_document_with_few_tags_is_read_in_place(rooms: Any) -> None:
    """JSON and the like cost no pass."""
    room = await rooms("match: {url: '^http://a'}\nfields: {t: {jsonpath: $.t}}")
    assert items(room.record(b'{"t": "<b>1"}', content_type="application/json")) == [{"t": "<b>1"}]
    assert not room.calls


async def test_whoever_else_reads_a_page_finds_its_body(rooms: Any) -> None:
    """What keeps bodies looks at them when the page's record has come."""
    room = await rooms(XPATH)
    kept: list[m.Page] = []

    def on_page(delivery: Delivery) -> None:
        kept.append(delivery.message)
        delivery.ack()

    room.bus.subscribe(PAGES, "raw", on_page, credits=10)
    room.send(HTML)
    await later(room, 1)
    assert [page.body for page in kept] == [HTML]


@pytest.mark.parametrize(
    "found",
    [
        Extraction(items=[b"{"]),
        Extraction(items=[b"\xff"]),
        Extraction(next_pages=[RuleLink("http://a.test/x", 1, 300, "")]),
        Extraction(links=[RuleLink("http://a.test/x", -9, 0, "")]),
    ],
    ids=["no JSON", "no text", "priority", "depth"],
)
def test_what_a_child_says_is_looked_at(found: Extraction) -> None:
    """It has read hostile bytes, and may answer anything."""
    answer = msgspec.msgpack.encode(RuleAnswer(0, found))
    with pytest.raises((ValueError, msgspec.MsgspecError)):
        RULES_TASK.decode(answer)
    assert RULES_TASK.decode(msgspec.msgpack.encode(RuleAnswer(0, Extraction(items=[b"{}"])))).found.items == [b"{}"]


@pytest.mark.parametrize("spec", [CSS, XPATH], ids=["here", "in the child"])
async def test_a_page_whose_rule_ends_in_an_error_of_ours_ends_as_well(rooms: Any, monkeypatch: Any, spec: str) -> None:
    """Nobody foresaw it: the page has no items, or is a dead letter, and the next goes on."""

    def fail(*args: Any) -> None:
        raise RuntimeError("nobody foresaw it")

    monkeypatch.setattr("nephila_rules.execution.executor.put_items", fail)
    room = await rooms(spec)
    room.send(HTML)
    await later(room, 1)
    (record,) = room.log
    assert "nobody foresaw it" in record.meta


async def test_a_machine_that_stands_still_makes_no_rule_slow(rooms: Any, monkeypatch: Any) -> None:
    """The page may go to the child; the rule stays where it is. Only what computes for long is slow."""
    room = await rooms(CSS)
    ticks = iter(range(1000))
    monkeypatch.setattr(room.clock, "monotonic", lambda: float(next(ticks)))
    room.send(HTML)
    assert room.parser.rules.pages_in_child == 1
    await later(room, 1)
    monkeypatch.undo()
    assert items(room.record(HTML)) == [{"t": "One"}]
    assert room.parser.rules.pages_in_child == 1


async def test_a_page_that_takes_too_long_goes_to_the_child_at_once(rooms: Any, monkeypatch: Any) -> None:
    """After a second slow page the rule stays there; nothing of a page is lost."""
    room = await rooms(CSS)
    ticks = iter(range(1000))
    monkeypatch.setattr(room.clock, "monotonic", lambda: float(next(ticks)))
    room.parser.rules.cpu_s = room.clock.monotonic
    for number in range(1, 4):
        room.send(HTML)
        assert room.parser.rules.pages_in_child == number
    await later(room, 3)
    assert [items(record) for record in room.log] == [[{"t": "One"}]] * 3


def slow_runs(room: Any, pattern: str) -> None:
    """Deliver a page for each sign; "s": reading it takes a second of CPU, "f": none."""
    for sign in pattern:
        cpu = iter((0.0, 1.0 if sign == "s" else 0.0))
        room.parser.rules.cpu_s = lambda cpu=cpu: next(cpu)
        room.send(HTML)


@pytest.mark.parametrize("pattern", ["s", "sff", "sffsff", "fsf", "sffs"])
async def test_a_rule_that_is_slow_once_stays_with_the_loop(rooms: Any, pattern: str) -> None:
    """One slow page of three may be a pause of the garbage collector."""
    room = await rooms(CSS)
    slow_runs(room, pattern)
    slow_runs(room, "f")
    assert room.parser.rules.pages_in_child == 0


@pytest.mark.parametrize("pattern", ["ss", "sfs", "fsfs", "sffss"])
async def test_a_rule_that_is_slow_on_two_of_three_pages_goes_to_the_child(rooms: Any, pattern: str) -> None:
    """Every later page of it is read there."""
    room = await rooms(CSS)
    slow_runs(room, pattern)
    assert room.parser.rules.pages_in_child == 0
    slow_runs(room, "ff")
    assert room.parser.rules.pages_in_child == 2
    await later(room, len(pattern) + 2)
    assert [items(record) for record in room.log] == [[{"t": "One"}]] * (len(pattern) + 2)


async def test_a_long_page_whose_rule_ends_in_an_error_of_ours_is_a_dead_letter(rooms: Any, monkeypatch: Any) -> None:
    """It was read in a child process, and is with the rules in a turn where no bus takes an error."""

    def fail(*args: Any) -> None:
        raise RuntimeError("nobody foresaw it")

    monkeypatch.setattr("nephila_rules.execution.executor.put_items", fail)
    room = await rooms(CSS, max_inline_bytes=16)
    room.send(HTML)
    await later(room, 1)
    (record,) = room.log
    assert (record.outcome, record.reason) == (m.Outcome.FAILED, "dead_letter")
    assert "nobody foresaw it" in record.meta
    assert len(room.dead) == 1
