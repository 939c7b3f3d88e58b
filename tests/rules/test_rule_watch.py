"""Rules of a directory are told at the start and again when a file changes."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.messages import ParseRule
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import RULES
from nephila_rules.files import read_all
from nephila_rules.runtime.load import RuleDocument
from nephila_rules.watch import CHECK_S, RuleWatcher


class Rig:
    """A directory, a clock, and what was told."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.clock = ManualClock()
        self.bus = LocalBus(self.clock)
        self.result: list[tuple[str, bool]] = []
        self.rules: dict[str, ParseRule] = {}
        self.bus.subscribe(RULES, "test", self._on_rule, credits=1000)
        self._changes = 0

    def _on_rule(self, delivery: Delivery) -> None:
        rule: ParseRule = delivery.message
        self.result.append((rule.name, rule.deleted))
        self.rules[rule.name] = rule
        delivery.ack()

    def write(self, name: str, selector: str = "h1", file: str = "") -> Path:
        """A rule of this name; its time of change is another one each time."""
        path = self.place / (file or name) / "rule.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f"apiVersion: nephila.dev/v1\nkind: ParseRule\nmetadata: {{name: {name}}}\n"
            f"spec: {{match: {{url: x}}, fields: {{a: '{selector}'}}}}\n"
        )
        self._changes += 1
        os.utime(path, (self._changes, self._changes))
        return path

    def look(self) -> list[tuple[str, bool]]:
        """What is told when the files are looked at next."""
        before = len(self.result)
        self.clock.advance(CHECK_S)
        return self.result[before:]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """With one rule."""
    made = Rig(tmp_path)
    made.write("one")
    return made


def test_all_rules_are_told_at_the_start(rig: Rig) -> None:
    """And nothing more while no file changes."""
    rig.write("two")
    watch = RuleWatcher(rig.place, rig.bus, rig.clock)
    watch.start()
    assert rig.result == [("one", False), ("two", False)]
    assert (rig.look(), rig.look()) == ([], [])
    assert watch.names == ("one", "two")


def test_what_has_changed_is_told(rig: Rig) -> None:
    """A changed rule, a new one, one that is gone; one that only looks changed is not."""
    watch = RuleWatcher(rig.place, rig.bus, rig.clock)
    changes: list[tuple[str, ...]] = []
    watch.on_change = lambda: changes.append(watch.names)
    watch.start()
    first = rig.rules["one"].version
    rig.write("one", "h2")
    assert rig.look() == [("one", False)]
    assert rig.rules["one"].version != first
    rig.write("one", "h2")
    assert rig.look() == []
    rig.write("two")
    assert rig.look() == [("two", False)]
    (rig.place / "one" / "rule.yaml").unlink()
    assert rig.look() == [("one", True)]
    assert changes == [("one", "two"), ("two",)]


def test_a_mistake_leaves_the_rules_as_they_were(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """Told once, in one line with its place; put right, the rule is told."""
    RuleWatcher(rig.place, rig.bus, rig.clock).start()
    caplog.set_level(logging.WARNING)
    path = rig.write("one", "h1[")
    assert (rig.look(), rig.look()) == ([], [])
    (record,) = caplog.records
    assert f"{path}:4:" in record.getMessage()
    rig.write("one", "h3")
    assert rig.look() == [("one", False)]


def test_a_directory_that_is_emptied_changes_nothing(rig: Rig) -> None:
    """A file that is replaced may be gone for a moment."""
    RuleWatcher(rig.place, rig.bus, rig.clock).start()
    (rig.place / "one" / "rule.yaml").unlink()
    assert rig.look() == []
    rig.write("one", "h4")
    assert rig.look() == [("one", False)]


def test_a_directory_that_stays_empty_is_told_once(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """And again when it is emptied again, not at every look."""
    RuleWatcher(rig.place, rig.bus, rig.clock).start()
    caplog.set_level(logging.WARNING)
    for _ in range(2):
        (rig.place / "one" / "rule.yaml").unlink()
        for _ in range(5):
            assert rig.look() == []
        rig.write("one")
        rig.look()
    assert len([one for one in caplog.records if "the rules are unchanged" in one.getMessage()]) == 2


def test_what_is_mended_while_the_mistake_is_read_is_not_missed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor writes in two steps, and the first look comes between them."""
    RuleWatcher(rig.place, rig.bus, rig.clock).start()
    rig.write("one", "h1[")

    def read_then_mended(places: list[Path]) -> list[RuleDocument]:
        try:
            return read_all(places)
        finally:
            rig.write("one", "h6")

    with monkeypatch.context() as patch:
        patch.setattr("nephila_rules.watch.read_all", read_then_mended)
        assert rig.look() == []
    assert rig.look() == [("one", False)]


def test_two_rules_of_one_name_are_refused(rig: Rig) -> None:
    """At the start with both places."""
    rig.write("one", file="again")
    with pytest.raises(UserError, match="the rule 'one' comes twice"):
        RuleWatcher(rig.place, rig.bus, rig.clock)


def test_nothing_is_looked_at_after_the_end(rig: Rig) -> None:
    """The timer is gone."""
    watch = RuleWatcher(rig.place, rig.bus, rig.clock)
    watch.start()
    watch.close()
    rig.write("one", "h5")
    assert rig.look() == []
