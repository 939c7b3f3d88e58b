"""A page that is too much for the studio's child costs its time once, and not with each click."""

from __future__ import annotations

import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UserError
from nephila.parser.sandbox import ChildError
from nephila.rulekit.studio.draft import Draft
from nephila.rulekit.studio.work import SLOW_S, Answer, PageBody, StudioProcess, Work


class Sandbox:
    """A child that ends by its time limit on nested pages."""

    def __init__(self):
        self.calls = 0

    def call(self, task, payload, attempts):
        self.calls += 1
        if b"nested" in payload:
            raise ChildError("studio", "time", "20 s")
        return Answer()

    def close(self):
        pass


def work(text: bytes, kind="view") -> Work:
    return Work(kind, Draft("http://a.test/"), [PageBody("http://a.test/", "utf-8", "text/html", text, {})])


def test_a_page_that_has_ended_by_a_limit_is_refused_for_a_while():
    """Any call for it; another page, or a new copy of this one, is worked on."""
    sandbox, clock = Sandbox(), ManualClock()
    process = StudioProcess(sandbox, clock.monotonic)
    for kind in ("frame", "view", "step"):
        with pytest.raises(UserError, match="the page could not be worked on: studio: time"):
            process.call(work(b"nested", kind))
    assert sandbox.calls == 1
    process.call(work(b"plain"))
    clock.advance(SLOW_S)
    with pytest.raises(UserError):
        process.call(work(b"nested"))
    assert sandbox.calls == 3
