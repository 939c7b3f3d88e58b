"""Rules in the child process beside what hangs: a PDF, and a rule that breaks its child on every page."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import nephila.parser.steps as parser_steps
import nephila_rules.runtime.task as rules_task
import pytest
from nephila.kernel import messages as m
from nephila.kernel.topics import RULES
from nephila.parser.documents.pdf_task import PDF

from tests.jobs import crawl_job
from tests.parser.parser_room import Room
from tests.rules.execution.rule_rig import rule
from tests.waits import until

GOOD = "match: {url: '^http://good'}\nfields: {t: {xpath: //h1}}"
BAD = "match: {url: '^http://bad'}\nfields: {t: {xpath: 'WORK'}}".replace(
    "WORK", "count(//*[count(//*[count(//*[count(//*[count(//*) > 1]) > 1]) > 1]) > 1])"
)
HEAVY = b"<h1>x</h1>" * 2000


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    """A parser with a rule that does well and one that never ends on long pages."""
    made = Room()
    await made.start(crawl_job(uid="j", rules=["bad", "good"]))
    for name, spec in (("bad", BAD), ("good", GOOD)):
        document = rule(spec, name)
        made.bus.publish(RULES, 0, m.ParseRule(name, document.text, document.rule.version))
    yield made
    await made.parser.close()


def done(room: Room) -> dict[str, m.Record]:
    """Records so far, by URL."""
    return {one.url: one for one in room.log if isinstance(one, m.Record)}


async def test_pdfs_that_hang_keep_no_rule_waiting(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty PDFs whose child sleeps: every page of a rule that needs a child is done, and none of the PDFs."""
    monkeypatch.setattr(parser_steps, "PDF", replace(PDF, module="tests.parser.sandbox_tasks"))
    monkeypatch.setattr(parser_steps, "pdf_payload", lambda body, *limits: b"sleep 600")
    for number in range(20):
        room.send(b"%PDF-", content_type="application/pdf", url=f"http://good.test/{number}.pdf")
    for number in range(20):
        room.send(b"<h1>%d</h1>" % number, url=f"http://good.test/{number}")
    await until(lambda: len(done(room)) == 20)
    assert [json.loads(done(room)[f"http://good.test/{number}"].items[0])["t"] for number in range(20)] == [
        str(number) for number in range(20)
    ]
    await until(lambda: room.parser.in_children == 20)


async def test_a_rule_that_never_ends_keeps_the_others_waiting_once(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its page is tried twice and says why; from then on it has a child of its own, and pages of others pass by."""
    for name in ("RULES", "ISOLATED_RULES"):
        monkeypatch.setattr(rules_task, name, replace(getattr(rules_task, name), wall_s=1.0))
    room.send(HEAVY, url="http://bad.test/0")
    await until(lambda: "http://bad.test/0" in done(room))
    bad = done(room)["http://bad.test/0"]
    assert (bad.rule, bad.items) == ("bad", [])
    assert json.loads(bad.meta)["rule_problems"] == "rules: timeout (after 1 s), tried 2 times"
    monkeypatch.setattr(rules_task, "ISOLATED_RULES", replace(rules_task.ISOLATED_RULES, wall_s=600.0))
    for number in range(1, 4):
        room.send(HEAVY, url=f"http://bad.test/{number}")
    for number in range(10):
        room.send(b"<h1>x</h1>", url=f"http://good.test/{number}")
    await until(lambda: len(done(room)) == 11)
    await until(lambda: room.parser.in_children == 3)


async def test_a_rule_that_does_well_again_is_with_the_others(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """After twenty short pages it needs no child of its own any more."""
    monkeypatch.setattr(rules_task, "RULES", replace(rules_task.RULES, wall_s=1.0))
    room.send(HEAVY, url="http://bad.test/0")
    await until(lambda: len(done(room)) == 1)
    before: Any = room.parser.rules._isolated
    assert len(before) == 1
    for number in range(1, 21):
        room.send(b"<h1>x</h1>", url=f"http://bad.test/{number}")
    await until(lambda: len(done(room)) == 21)
    assert room.parser.rules._isolated == {}
