"""Stored content pages are evaluated again when the schemes of their job change: later equals at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nephila.kernel import messages as m
from nephila.kernel.documents.scheme_schema import NamedScheme, Part, PlatformUse, Schemes, SchemeSpec
from nephila.kernel.fragment_routes import parse_routed
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import JOBS, RULES
from nephila.storage.config import StorageConfig
from nephila.storage.faults import StoreLost
from nephila.storage.ledgers import scheme_pages
from nephila.storage.ledgers.read_connection import open_for_reading
from nephila.storage.ledgers.sqlite import Sqlite
from nephila.storage.writer import Writer
from nephila_harvest.schemes.evaluation import Doubt, EvaluationReport, combined
from nephila_harvest.schemes.scheme_records import SchemeRecords

from tests.jobs import crawl_job
from tests.storage.storage_rig import JOB, key, record, rows, running

WORDS = ("flood", "quake", "storm")
PAGES = 30


def schemes(**groups: Any) -> list[NamedScheme]:
    """Schemes by name: each a keyword or several, or (keywords, platforms)."""
    made = []
    for name, given in groups.items():
        words, platforms = given if isinstance(given, tuple) else (given, "ab")
        uses = [PlatformUse(platform) for platform in platforms]
        made.append(NamedScheme(name, SchemeSpec(uses, {"g": {"event": Part(words.split())}}, ["drill"])))
    return made


def job(generation: int, wanted: list[NamedScheme], **fields: Any) -> m.CrawlJob:
    return crawl_job(uid=JOB, name=JOB, generation=generation, schemes=Schemes(wanted), **fields)


def page(number: int, by: m.CrawlJob, fetch_no: int = 1, text: str = "") -> m.Record:
    """A content page as a parser with the schemes of a job publishes it; every third has fields of a rule."""
    words = f"{WORDS[number % 3]} {WORDS[number // 3 % 3]}" + (" drill" if number % 10 == 0 else "")
    fields = {"content": f"field {text or words}", "author": f"A {number}"} if number % 3 == 0 else None
    found = record(
        number,
        fetch_no,
        text=(text or words).encode(),
        context=m.Context(stage="content", scheme="one", platform="ab"[number % 2], group="g"),
        items=[json.dumps(fields).encode()] if fields else [],
        rule="ab"[number % 2],
        rule_version=7,
    )
    records = SchemeRecords()
    records.update_job(by)
    records.complete(found)
    return found


async def settled(rig: Any) -> None:
    """Everything received is durable and evaluated."""
    for _ in range(1000):
        await rig.storage.flush()
        if not rig.storage._writer.evaluation.due and rig.storage._task is None:
            return
        if rig.storage._task is not None:
            await rig.storage._task
    raise AssertionError("the evaluation does not end")


async def run(directory: Any, *steps: list[m.CrawlJob | m.Record | m.ParseRule], **config: Any) -> None:
    """A storage that receives the messages of each step at once, and settles after it."""
    async with running(directory, **config) as rig:
        for step in steps:
            for message in step:
                if isinstance(message, m.Record):
                    rig.send(message)
                else:
                    rig.bus.publish(JOBS if isinstance(message, m.CrawlJob) else RULES, 0, message)
            await settled(rig)
        assert rig.fatal == []


def state(directory: Any) -> Any:
    """All rows and items, as a fresh directory has to have them."""
    items = [{**one, "data": json.loads(one["data"])} for one in rows(directory, "items", "url_key")]
    pages = [{**one, "meta": json.loads(one["meta"])} for one in rows(directory)]
    return pages, items


def report(directory: Any) -> EvaluationReport:
    """The report of all writers."""
    with open_for_reading(directory) as database:
        texts = scheme_pages.reports(database, JOB)
        found = combined([msgspec.json.decode(one, type=EvaluationReport) for one in texts])
    assert found is not None
    return found


def counts(found: EvaluationReport) -> tuple[int, ...]:
    return found.pages, found.evaluated, found.added, found.removed, found.changed


ONE = schemes(one="flood")
CHANGES = {
    "a scheme more": schemes(one="flood", two="quake"),
    "a keyword more": schemes(one="flood storm"),
    "another keyword": schemes(one="quake"),
    "a platform less": schemes(one=("flood", "a")),
    "nothing matches": schemes(one="tsunami"),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_applied_later_equals_applied_at_once(tmp_path, name):
    """Rows and items, for pages with and without fields of a rule; and back again."""
    old, new = job(1, ONE), job(2, CHANGES[name])
    await run(tmp_path / "old", [old], [page(n, old) for n in range(PAGES)])
    await run(tmp_path / "fresh", [new], [page(n, new) for n in range(PAGES)])
    await run(tmp_path / "later", [old], [page(n, old) for n in range(PAGES)], [new])
    assert state(tmp_path / "later") == state(tmp_path / "fresh")
    found = report(tmp_path / "later")
    assert found.ended
    assert (found.pages, found.evaluated) == (PAGES, PAGES)
    before, after = ({one["url_key"] for one in rows(tmp_path / of, "items", "url_key")} for of in ("old", "fresh"))
    assert (found.added, found.removed) == (len(after - before), len(before - after))
    await run(tmp_path / "later", [job(3, ONE)])
    assert state(tmp_path / "later") == state(tmp_path / "old")


async def test_a_page_that_a_late_parser_evaluated_is_evaluated_after_it(tmp_path):
    """Over a broker a parser may know a change later than storage."""
    old, new = job(1, ONE), job(2, CHANGES["a scheme more"])
    await run(tmp_path / "fresh", [new], [page(n, new) for n in range(PAGES)])
    await run(tmp_path / "mid", [old], [page(n, old) for n in range(9)], [new], [page(n, old) for n in range(9, PAGES)])
    assert state(tmp_path / "mid") == state(tmp_path / "fresh")
    assert counts(report(tmp_path / "mid"))[:2] == (PAGES, PAGES)


async def test_a_restart_continues_and_an_unchanged_scheme_evaluates_nothing(tmp_path):
    old, new = job(1, ONE), job(2, CHANGES["a scheme more"])
    await run(tmp_path / "o", [old], [page(n, old) for n in range(PAGES)])
    # A storage that has the change and ends before the evaluation is over.
    async with running(tmp_path / "o") as rig:
        rig.storage._closing.set()
        rig.bus.publish(JOBS, 0, new)
    await run(tmp_path / "fresh", [new], [page(n, new) for n in range(PAGES)])
    await run(tmp_path / "o", [new])
    assert state(tmp_path / "o") == state(tmp_path / "fresh")
    found = report(tmp_path / "o")
    await run(tmp_path / "o", [job(3, CHANGES["a scheme more"])])
    assert report(tmp_path / "o") == found


async def test_a_changed_rule_is_reported_for_the_pages_that_have_its_old_fields(tmp_path):
    by = job(1, ONE)
    rules = [m.ParseRule("a", "{}", 7), m.ParseRule("b", "{}", 7)]
    await run(tmp_path, rules, [by], [page(n, by) for n in range(PAGES)], [m.ParseRule("a", "{}", 8)])
    # Without an evaluation before it, nothing is compared: the next change of the schemes reports it.
    await run(tmp_path, [m.ParseRule("a", "{}", 8), rules[1]], [job(2, CHANGES["another keyword"])])
    found = report(tmp_path)
    assert found.doubts == {Doubt.OLDER_RULE: PAGES // 2}
    assert found.evaluated == PAGES


async def test_files_have_a_line_for_each_change(tmp_path):
    old, new = job(1, ONE), job(2, CHANGES["another keyword"])
    await run(tmp_path, [old], [page(n, old) for n in range(PAGES)], [new], formats=("sqlite", "items"))
    last: dict[str, Any] = {}
    for path in tmp_path.glob("items.*.jsonl"):
        for line in path.read_text().splitlines():
            one = json.loads(line)
            last[one["id"]] = one
    valid = {one["id"] for one in last.values() if not one.get("removed")}
    assert valid == {one["url_key"] for one in rows(tmp_path, "items", "url_key")}
    assert len(last) > len(valid)


async def test_two_writers_of_a_database_count_each_page_once(tmp_path, store):
    """In PostgreSQL, where each member of the service scans all rows."""
    old, new = job(1, ONE), job(2, CHANGES["another keyword"])
    fresh = tmp_path / "fresh"
    await run(fresh, [new], [page(n, new) for n in range(PAGES)])
    await run(tmp_path / "a", [old], [page(n, old) for n in range(PAGES)], store=store, writer="a")
    async with (
        running(tmp_path / "a", store=store, writer="a") as one,
        running(tmp_path / "b", store=store, writer="b") as two,
    ):
        for rig in (one, two):
            rig.bus.publish(JOBS, 0, new)
        await settled(one)
        await settled(two)
    found = report(store)
    assert counts(found)[:2] == (PAGES, PAGES)
    with open_for_reading(store) as database:
        items = database.execute("SELECT url_key, data FROM items ORDER BY url_key", {}).fetchall()
        metas = database.execute("SELECT url_key, meta FROM pages ORDER BY url_key", {}).fetchall()
    assert items == [(one["url_key"], one["data"]) for one in rows(fresh, "items", "url_key")]
    assert [json.loads(meta) for _, meta in metas] == [
        json.loads(one["meta"]) for one in rows(fresh, "pages", "url_key")
    ]
    assert found.ended


def results(number: int, by: m.CrawlJob, platform: str, *leads: int) -> m.Record:
    """A page of results of a platform that leads to content pages."""
    context = m.Context(stage="navigation", scheme="one", platform=platform, group="g", page=1)
    found = record(number, text=b"results", context=context)
    links = m.Outlinks(JOB, fingerprints=b"".join(map(key, leads)), context=m.Context(stage="content"))
    records = SchemeRecords()
    records.update_job(by)
    records.complete(found, [links])
    return found


def redirect(number: int, platform: str, target: m.Record) -> m.Record:
    """A link of results that redirects to a content page."""
    return record(
        number,
        outcome=m.Outcome.DROPPED,
        reason="redirect",
        status=301,
        sha256=b"",
        text=b"",
        meta="",
        final_url=target.url,
        context=m.Context(stage="content", platform=platform),
    )


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("order", ["page first", "page last"])
@pytest.mark.parametrize("through", ["link", "redirect", "redirect of the first platform"])
async def test_a_page_belongs_to_the_schemes_of_all_platforms_that_lead_to_it(tmp_path, together, order, through):
    """Whichever comes first: the page, or the results of the second platform. A restart loses no platform."""
    by = job(1, schemes(second=("flood", "b")))
    content = page(0, by, text="flood")
    content.url_key = parse_routed(content.url).fingerprint
    by_a = results(100, by, "a", 0)
    if through == "link":
        by_b: list[Any] = [results(101, by, "b")]
        by_b[0].leads = content.url_key
    else:
        by_b = [redirect(50, "b" if through == "redirect" else "a", content), results(101, by, "b", 50)]
    messages = [content, by_a, *by_b] if order == "page first" else [by_a, *by_b, content]
    if together:
        await run(tmp_path, [by], messages)
    else:
        await run(tmp_path, [by], *([one] for one in messages[:2]))
        await run(tmp_path, [by], *([one] for one in messages[2:]))
    (item,) = rows(tmp_path, "items", "url_key")
    data = json.loads(item["data"])
    assert (data["resource"], data["schemes"]) == ("a", {"second": ["g"]})
    (meta,) = [json.loads(one["meta"])["search"] for one in rows(tmp_path) if one["url"] == content.url]
    assert meta["also"] == ["b"]


async def test_a_page_of_one_platform_has_no_record_of_a_scheme_of_another(tmp_path):
    by = job(1, schemes(second=("flood", "b")))
    await run(tmp_path, [by], [results(100, by, "a", 0), page(0, by, text="flood")])
    assert rows(tmp_path, "items", "url_key") == []


def evaluated(directory: Path, formats: tuple[str, ...], lose: Callable[[], Any] | None = None) -> Any:
    """Rows, lines of items and counts after a change of schemes; `lose` patches the ledger during the first slice."""
    writer = Writer(StorageConfig(directory=directory, formats=formats, fsync=False), ManualClock())
    writer.open()
    writer.evaluation.update_job(job(1, ONE))
    writer.commit([page(number, job(1, ONE)) for number in range(PAGES)], [None] * PAGES, [])
    writer.evaluation.update_job(job(2, CHANGES["another keyword"]))
    while writer.evaluation.due:
        part = writer.next_evaluation()
        if part is None:
            continue
        if lose is not None:
            with lose(), pytest.raises(StoreLost):
                writer.commit_evaluation(part)
            lose = None
        writer.commit_evaluation(part)
        writer.after_commit()
    assert writer.next_evaluation() is None
    writer.close()
    files = {path.name: sorted(path.read_bytes().splitlines()) for path in directory.glob("items.*.jsonl")}
    return state(directory), files, counts(report(directory))


@pytest.mark.parametrize("formats", [("sqlite",), ("sqlite", "items")], ids="+".join)
@pytest.mark.parametrize("end", ["committed", "not committed", "not begun"])
def test_a_slice_that_was_lost_with_the_database_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, formats: tuple[str, ...]
) -> None:
    """The same slice comes again when the database is back."""
    commit = Sqlite.commit

    def lost(self: Sqlite, *arguments: Any) -> None:
        if end == "committed":
            commit(self, *arguments)
        raise StoreLost("the database is gone")

    @contextmanager
    def lose() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(Sqlite, "stage" if end == "not begun" else "commit", lost)
            yield

    expected = evaluated(tmp_path / "undisturbed", formats)
    assert evaluated(tmp_path / "lost", formats, lose) == expected
    assert expected[2][2] > 0


def test_the_database_is_opened_again_after_a_loss_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look for outdated pages that finds none costs no connection."""
    writer = Writer(StorageConfig(directory=tmp_path, fsync=False))
    writer.open()
    opened: list[int] = []
    connect = Sqlite.open

    def counted(self: Sqlite) -> None:
        opened.append(1)
        connect(self)

    def lost(self: Sqlite, *arguments: Any) -> None:
        raise StoreLost("the database is gone")

    monkeypatch.setattr(Sqlite, "open", counted)
    assert writer.next_evaluation() is None
    with monkeypatch.context() as patch:
        patch.setattr(Sqlite, "stage", lost)
        with pytest.raises(StoreLost):
            writer.commit([record(1)], [None], [])
    assert opened == []
    for _ in range(2):
        assert writer.next_evaluation() is None
    assert opened == [1]
    writer.close()
