"""The last versions of a rule: bounded, without repetitions, and there after a new start."""

from __future__ import annotations

import msgspec
from nephila.kernel.messages import FieldStats, ParseRule, RuleStats
from nephila_control.local.rule_store import FILE, RuleStore
from nephila_control.rule_state import fills
from nephila_control.rule_versions import VERSIONS, RuleVersions
from nephila_rules.fit import health


class Bus:
    """Takes what is published."""

    def publish(self, *message):
        pass


def test_the_newest_versions_stay():
    versions = RuleVersions()
    for number in range(VERSIONS + 3):
        versions.take(ParseRule("a", f"document {number}", number), float(number))
        versions.take(ParseRule("a", f"document {number}", number), 99.0)
    assert [version.version for version in versions.of("a")] == list(range(3, VERSIONS + 3))
    assert versions.of("a")[-1].at == VERSIONS + 2


def test_a_deleted_rule_has_no_versions():
    versions = RuleVersions()
    versions.take(ParseRule("a", "x", 1))
    versions.take(ParseRule("a", deleted=True))
    assert versions.of("a") == ()


def test_versions_are_there_after_a_new_start(tmp_path):
    store = RuleStore(tmp_path, Bus())
    store.put([ParseRule("a", "one", 1), ParseRule("b", "other", 7)], 10.0)
    store.put([ParseRule("a", "two", 2)], 20.0)
    again = RuleStore(tmp_path, Bus())
    assert again.versions.of("a") == [("one", 1, 10.0), ("two", 2, 20.0)]
    assert again.rules["a"].document == "two"
    assert again.versions.of("b") == [("other", 7, 10.0)]


def test_a_file_without_versions_is_read(tmp_path):
    entry = {"name": "a", "document": "one", "version": 1}
    (tmp_path / FILE).write_bytes(msgspec.json.encode([entry]))
    assert RuleStore(tmp_path, Bus()).versions.of("a") == [("one", 1, 0.0)]


def test_fields_have_their_present_share_and_the_usual_one():
    """A field that falls from nearly always to never: the usual share stays."""
    rule = health.RuleHealth()
    for filled in [1.0] * 60 + [0.0] * 40:
        rule.add(RuleStats("shop", 1, 10, [FieldStats("price", 10, 10 * filled), FieldStats("(items)", 10, 10)]), 0.0)
    (field,) = fills(health.encode(rule))
    assert field.name == "price"
    assert field.now < 0.05
    assert field.usual > 0.9


def test_a_state_of_another_version_has_no_fields():
    assert fills(b"\xc1") == []
