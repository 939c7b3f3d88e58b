"""The table of steps: printed into the README; a page that waits for children in several steps ends once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nephila.parser
import pytest
from nephila.kernel import messages as m
from nephila.kernel.documents.job_schema import Parse
from nephila.kernel.runtime.errors import PermanentError
from nephila.kernel.topics import JOBS, RECORDS, RULES
from nephila.parser.in_progress import PageKind
from nephila.parser.page import trafilatura_text
from nephila.parser.page.html_tree import MAX_DEPTH
from nephila.parser.steps import STEPS, StepRow

from tests.jobs import crawl_job
from tests.parser.parser_room import FakePass, Room
from tests.rules.execution.rule_rig import rule

README = Path(nephila.parser.__file__).with_name("README.md")
XPATH = rule("match: {url: '^http://a'}\nfields: {t: {xpath: //h1}}")


def pages_of(step: StepRow) -> str:
    """Kinds of pages, as few words as possible."""
    missing = [kind.value for kind in PageKind if kind not in step.kinds]
    if len(missing) > 2:
        return ", ".join(kind.value for kind in PageKind if kind in step.kinds)
    return f"all but {', '.join(missing)}"


def table() -> str:
    """The steps for a reader."""
    rows = [("step", "what it adds", "pages", "only with", "in a child", "if the child fails"), ("---",) * 6]
    for step in STEPS:
        failure = (f"`meta.{step.problem}`" if step.problem else "dead letter") if step.child else ""
        name, added = step.run.__name__.replace("_", " "), (step.run.__doc__ or "").rstrip(".")
        rows.append((name, added, pages_of(step), step.only, step.child, failure))
    return "\n".join(" ".join(("|", *(f"{cell} |".lstrip() for cell in row))) for row in rows)


def test_the_readme_has_the_table() -> None:
    """If this fails, paste the printed table between the marks."""
    text = README.read_text(encoding="utf-8")
    written = text.partition("<!-- steps -->\n")[2].partition("\n<!-- end of steps -->")[0]
    assert written == table(), f"\n{table()}"


def test_every_kind_of_page_has_a_step_that_fills_its_row() -> None:
    """None ends as an empty row; only steps without a problem are for pages that need them."""
    for kind in PageKind:
        assert any(kind in step.kinds and step.wanted is None for step in STEPS)


async def test_a_changed_job_changes_the_steps_of_its_next_page() -> None:
    """The steps are selected once for each kind of page, until a job changes."""
    room = await Room().start(crawl_job(uid="j", site="s"))
    noted = []
    for job in (crawl_job(uid="j"), crawl_job(uid="j", site="s")):
        noted.append("links" in json.loads(room.record().meta))
        room.bus.publish(JOBS, 0, job)
    noted.append("links" in json.loads(room.record().meta))
    assert noted == [True, False, True]


@pytest.fixture
async def room(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A parser whose job has extra links, main text and rules; the tree of its pages is too deep for this process."""
    monkeypatch.setattr(trafilatura_text, "is_installed", lambda: True)
    made = Room(FakePass(main_text=b"own", text=b"own", depth=MAX_DEPTH + 1))
    job = crawl_job(uid="j", rules=["r"], parse=Parse(follow=["next"], main_text="trafilatura"))
    await made.start(job)
    made.bus.publish(RULES, 0, m.ParseRule("r", XPATH.text, XPATH.rule.version))
    yield made
    await made.parser.close()


BODY = b"<h1>One</h1>"


async def test_a_drain_waits_for_all_children_of_a_page(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, in the order of the table, each with the whole body."""
    asked: list[tuple[str, bool]] = []

    async def fail(task: Any, spooled: Any, payload: Any) -> Any:
        asked.append((task.name, BODY in payload(spooled.take())))
        raise ValueError(task.name)

    monkeypatch.setattr(room.parser._child_queue, "run", fail)
    assert room.send(BODY) == []
    assert room.parser.in_children == 1
    await room.parser.drain(30.0)
    assert asked == [("links", True), ("trafilatura", True), ("rules", True)]
    (record,) = room.log
    assert isinstance(record, m.Record)
    problems = {name: text for name, text in json.loads(record.meta).items() if name.endswith("problem")}
    assert problems == {"links_problem": "links", "text_problem": "trafilatura"}
    assert (record.text, json.loads(record.meta)["rule_problems"], room.bus.unacked) == (b"own", "rules", 0)


async def test_a_record_that_cannot_be_published_after_a_child_is_a_dead_letter(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the delivery call; the page does not stay unacked."""
    publish = room.bus.publish

    def refuse(topic: Any, partition: int, message: Any) -> Any:
        if topic is RECORDS and message.outcome is m.Outcome.STORED:
            raise PermanentError("too large")
        return publish(topic, partition, message)

    async def fail(*_: Any) -> Any:
        raise ValueError("no child")

    monkeypatch.setattr(room.parser._child_queue, "run", fail)
    monkeypatch.setattr(room.bus, "publish", refuse)
    room.send(BODY)
    await room.parser.drain(30.0)
    (record,) = room.log
    assert isinstance(record, m.Record)
    assert (record.outcome, record.reason, len(room.dead)) == (m.Outcome.FAILED, "dead_letter", 1)
    assert (room.parser.failed, room.bus.unacked) == (1, 0)
