"""How the shares of a rule went: in parts of pages, over versions, bounded, and stored with the state of the judge."""

from __future__ import annotations

import msgspec
import pytest
from nephila.kernel import messages as m
from nephila_control.rule_state import samples
from nephila_rules.fit.health import ITEMS, RuleHealth, decode, encode
from nephila_rules.fit.history import FIELDS, FIRST_PAGES, PARTS, VERSIONS, History


def stats(version: int, pages: int, **filled: float) -> m.RuleStats:
    """Pages of which these shares had a value."""
    fields = [m.FieldStats(name, pages, share * pages) for name, share in filled.items()]
    return m.RuleStats("shop", version, pages, fields)


def note(history: History, counts: m.RuleStats, now: float) -> None:
    history.add(counts, [field.field for field in counts.fields], now)


def test_a_sample_has_the_shares_of_its_own_pages():
    """Not those of all pages so far, and not those of the last few."""
    history = History()
    note(history, stats(1, 5, price=1.0), 10.0)
    note(history, stats(1, 5, price=0.0), 20.0)
    note(history, stats(1, 4, price=0.25, title=1.0), 30.0)
    first, last = history.samples()
    assert (first.at, first.version, first.pages, first.shares) == (20.0, 1, 10, {"price": 0.5})
    assert (last.at, last.pages, last.shares) == (30.0, 4, {"price": 0.25, "title": 1.0})


def test_samples_stay_bounded_and_keep_their_sums():
    history = History()
    for number in range(5000):
        note(history, stats(1, 1, price=float(number >= 2500)), float(number))
        assert len(history.parts) < PARTS
    listed = list(history.samples())
    assert sum(sample.pages for sample in listed) == 5000
    assert len(listed) > PARTS // 4
    assert [sample.at for sample in listed] == sorted(sample.at for sample in listed)
    assert listed[-1].at == 4999.0
    mean = sum(sample.pages * sample.shares["price"] for sample in listed) / 5000
    assert mean == pytest.approx(0.5, abs=0.01)
    shares = [sample.shares["price"] for sample in listed]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)


def test_a_field_that_comes_late_has_no_share_before():
    history = History()
    for number in range(2 * PARTS * FIRST_PAGES):
        late = {"rating": 1.0} if number >= PARTS * FIRST_PAGES else {}
        note(history, stats(1, 1, price=1.0, **late), float(number))
    listed = list(history.samples())
    assert "rating" not in listed[0].shares
    assert listed[-1].shares == {"price": 1.0, "rating": 1.0}
    assert {sample.shares.get("rating", 1.0) for sample in listed} == {1.0}


def test_a_version_that_ended_is_one_sample_and_old_versions_go():
    history = History()
    for version in range(1, VERSIONS + 4):
        note(history, stats(version, 30, price=1.0), float(version))
        note(history, stats(version, 10, title=1.0), float(version) + 0.5)
    listed = list(history.samples())
    assert [sample.version for sample in listed] == [*range(3, VERSIONS + 3), VERSIONS + 3, VERSIONS + 3]
    assert (listed[0].pages, listed[0].at, listed[0].shares) == (40, 3.5, {"price": 1.0, "title": 1.0})


def test_a_rule_with_any_number_of_fields_has_a_bounded_history():
    history = History()
    for number in range(3 * FIELDS):
        note(history, stats(1, 1, **{f"f{number}": 1.0}), 1.0)
    assert len(history.names) == FIELDS


def test_the_history_is_part_of_the_stored_state_and_an_earlier_state_has_none():
    health = RuleHealth()
    health.add(stats(3, 20, price=1.0, **{ITEMS: 0.5, "(links)": 1.0}), 7.0)
    (sample,) = samples(encode(health))
    assert (sample.at, sample.version, sample.pages, sample.items, sample.fields) == (7.0, 3, 20, 0.5, {"price": 1.0})
    earlier = msgspec.msgpack.encode(msgspec.msgpack.decode(encode(health))[:-1])
    assert decode(earlier).pages == 20
    assert samples(earlier) == []
    assert samples(b"") == samples(b"\xff") == []


def test_pages_of_a_replaced_version_are_not_counted():
    health = RuleHealth()
    health.add(stats(1, 20, price=1.0), 1.0)
    health.add(stats(2, 20, price=0.0), 2.0)
    health.add(stats(1, 20, price=1.0), 3.0)
    assert [(sample.version, sample.pages) for sample in health.history.samples()] == [(1, 20), (2, 20)]
