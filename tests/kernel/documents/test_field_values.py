"""Values of single fields: what is taken, at its bounds, and the reason of what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from nephila.kernel.documents import browser_schema, scheme_schema
from nephila.kernel.documents.cron import MAX_CHARS, Schedule
from nephila.kernel.documents.field_types import (
    check_duration,
    check_expression,
    instant_s,
    instant_text,
    parse_count,
    parse_rate,
    parse_seconds,
    parse_size,
)
from nephila.kernel.documents.struct_reader import read
from nephila.kernel.documents.yaml import MAX_DEPTH, from_builtins, parse
from nephila.kernel.runtime.errors import UsageError

Read = Callable[[str], object]


@pytest.mark.parametrize(
    ("read_value", "text", "value"),
    [
        (parse_seconds, " 500ms ", 0.5),
        (parse_seconds, "1d1h1m1s1ms", 90_061.001),
        (parse_seconds, ".5", 0.5),
        (parse_seconds, "1.25", 1.25),
        (parse_seconds, "3650d", 315_360_000),
        (parse_count, "1.5k", 1500),
        (parse_count, "1e6", 1_000_000),
        (parse_count, "2M", 2_000_000),
        (parse_count, "3 G", 3 * 10**9),
        (parse_count, "-1", -1),
        (parse_size, "2MiB", 2 << 20),
        (parse_size, "2MB", 2_000_000),
        (parse_size, "1KiB", 1024),
        (parse_size, "1K", 1000),
        (parse_size, "1kB", 1000),
        (parse_size, "0.5GiB", 1 << 29),
        (parse_size, "7B", 7),
        (parse_rate, "2", 2.0),
        (parse_rate, "2/s", 2.0),
        (parse_rate, " 30/min ", 0.5),
        (parse_rate, "36/h", 0.01),
        (check_duration, "0", "0"),
        (check_duration, "3650d", "3650d"),
        (check_expression, "a+", "a+"),
        (scheme_schema._day, "2026-01-31", "2026-01-31"),
        (scheme_schema._encoding, "UTF8", "utf-8"),
        (scheme_schema._date_format, "%d.%m.", "%d.%m."),
        (scheme_schema.parameters_of, "{{x}}{keyword}{page}", ["keyword", "page"]),
        (scheme_schema._template, "https://a.test", "https://a.test"),
        (scheme_schema._template, "http://a.test/{from}", "http://a.test/{from}"),
        (scheme_schema._form_value, "{keyword}", "{keyword}"),
        (browser_schema._short, "60s", "60s"),
        (browser_schema.check_selector, "a > b", "a > b"),
    ],
)
def test_a_value_is_taken(read_value: Read, text: str, value: object) -> None:
    assert read_value(text) == (pytest.approx(value) if isinstance(value, float) else value)


@pytest.mark.parametrize(
    ("read_value", "text", "reason"),
    [
        (parse_seconds, "3650d1ms", "is longer than ten years"),
        (parse_seconds, "x" * 100, f"'{'x' * 59}\\u2026' is no duration"),
        (parse_seconds, "x" * 60, f"'{'x' * 60}' is no duration"),
        (parse_count, "1.5", "'1.5' is no whole number like 250"),
        (parse_count, "1kB", "is no whole number"),
        (parse_size, "1T", "is no size like"),
        (parse_size, "1 000", "is no size like"),
        (parse_rate, "0", "is no rate like"),
        (parse_rate, "0.000000001/h", "is no rate like"),
        (parse_rate, "2/d", "is no rate like"),
        (check_duration, "3650d1ms", "is not within 0s and ten years"),
        (check_duration, "5", "; write 5s for seconds"),
        (check_expression, "(", "is not a valid RE2 expression: missing )"),
        (scheme_schema._day, "31.01.2026", "is no date like 2026-01-31"),
        (scheme_schema._encoding, "klingon", "is no encoding like"),
        (scheme_schema._date_format, "100%", "has no part of a date"),
        (scheme_schema.parameters_of, "{", "is no template: "),
        (scheme_schema.parameters_of, "{keywords}", r"has {keywords}, which is none of {keyword}, {page}"),
        (scheme_schema.parameters_of, "{page:3}", "has {page}, which is none of"),
        (scheme_schema.parameters_of, "{page!r}", "has {page}, which is none of"),
        (scheme_schema._template, "http://{keyword}.test/", "does not begin with http"),
        (scheme_schema._template, "ftp://a.test/{keyword}", "does not begin with http"),
        (scheme_schema._form_value, "{x}", "has {x}"),
        (browser_schema._short, "60001ms", "is longer than 60s"),
        (browser_schema.check_selector, "a[[", "is no CSS selector"),
    ],
)
def test_a_value_is_refused_with_its_reason(read_value: Read, text: str, reason: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_value(text)
    assert reason in str(caught.value)


def test_an_instant_is_the_same_in_both_directions() -> None:
    """Fractions included."""
    for text in ("2026-11-22T06:00:00Z", "2026-11-22T06:00:00.250000Z"):
        assert instant_text(instant_s(text)) == text
    assert instant_s("2026-11-22T06:00:00+01:00") == instant_s("2026-11-22T05:00:00Z") == 1_795_323_600


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("0 6 * *", "is not five fields of cron"),
        ("0 6 * * * *", "is not five fields of cron"),
        (f"0 6 * * {'1,' * MAX_CHARS}1", "is not five fields of cron"),
        ("0 6 31 2 *", "is no schedule: "),
        ("99 6 * * *", "is no schedule: bad minute"),
    ],
)
def test_what_is_no_schedule_is_refused(expression: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Schedule(expression)


def test_a_schedule_is_the_same_for_instants_in_any_order() -> None:
    """Its memory of the last answer changes no answer; the next run of a run's own instant is the one after it."""
    hour = 3600.0
    for instant in (0.0, hour - 1, hour, 5 * hour + 1, hour, 0.0, 100 * hour):
        once = Schedule("0 * * * *").after(instant)
        assert once == (instant // hour + 1) * hour
    schedule = Schedule("  0  *\t* * * ")
    assert schedule.expression == "0 * * * *"
    assert [schedule.after(at) for at in (0.0, hour - 1, hour, 5 * hour + 1, hour, 0.0)] == [
        hour, hour, 2 * hour, 6 * hour, 2 * hour, hour,
    ]  # fmt: skip


SEARCH: dict[str, Any] = {"url": "http://a.test/?q={keyword}"}
SCHEME: dict[str, Any] = {
    "platforms": ["news", {"name": "shop", "groups": ["all"]}],
    "groups": {"all": {"event": {"any": "fire"}, "region": {"any": ["Paris", "Lyon"], "optional": True}}},
    "exclude": ["sport"],
    "dates": {"from": "2026-01-01", "to": "2026-01-01", "step": "7d"},
}


def test_a_search_and_a_scheme_have_their_short_forms_and_defaults() -> None:
    """A platform may be its name, keywords may be one text."""
    search = read(from_builtins(SEARCH, "search"), scheme_schema.Search)
    assert (search.method, search.encoding, search.joiner, search.date_format) == ("GET", "utf-8", " ", "%Y-%m-%d")
    assert (search.first_page, search.step, search.size, search.limit) == (1, 1, 20, 0)
    scheme = read(from_builtins(SCHEME, "spec"), scheme_schema.SchemeSpec)
    assert [(use.name, use.groups) for use in scheme.platforms] == [("news", []), ("shop", ["all"])]
    assert [(name, part.any, part.optional) for name, part in scheme.groups["all"].items()] == [
        ("event", ["fire"], False),
        ("region", ["Paris", "Lyon"], True),
    ]
    assert scheme.dates == scheme_schema.Dates("2026-01-01", "2026-01-01", "7d")
    assert scheme_schema.Dates("2026-01-01").step == "1d"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"url": "http://a.test/"}, "url: it has no {keyword}: every search would be the same"),
        ({"form": {"q": "{keyword}"}}, "form: a form needs method: POST"),
        ({"url": "http://a.test/{keyword}/{page}"}, "url: it has {page} and no limit"),
        ({"url": "http://a.test/{keyword}?o={order}"}, "url: it has {order} and no order"),
        ({"form": {}, "size": 0}, "size: 0 is not within 1 and 10000"),
        ({"form": {"": "x"}, "method": "POST"}, "is empty; it has to be the name of a field"),
    ],
)
def test_a_search_that_cannot_work_is_refused(change: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(from_builtins({**SEARCH, **change}, "search"), scheme_schema.Search)
    assert error in " ".join(map(str, (caught.value, *caught.value.others)))


@pytest.mark.parametrize(
    "change",
    [
        {"url": "http://a.test/", "method": "POST", "form": {"q": "{keyword}"}},
        {"url": "http://a.test/{keyword}/{page}", "limit": 1},
        {"url": "http://a.test/{keyword}?o={order}", "order": "new"},
    ],
)
def test_a_search_with_what_its_template_needs_is_taken(change: dict[str, Any]) -> None:
    found = read(from_builtins({**SEARCH, **change}, "search"), scheme_schema.Search)
    assert (found.url, found.limit, found.order) == (change["url"], change.get("limit", 0), change.get("order", ""))


MANY = {f"g{number}": SCHEME["groups"]["all"] for number in range(11)}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"groups": {}}, "groups has to be a map from names to what each of them is"),
        ({"groups": []}, "groups has to be a map from names"),
        ({"groups": {"A b": SCHEME["groups"]["all"]}}, "'A b' is not a name of lower-case letters"),
        ({"groups": {"other": SCHEME["groups"]["all"]}}, "shop names the group 'all', which is none of other"),
        ({"groups": MANY}, "which is none of g0, g1, g2, g3, g4, g5, g6, g7, g8, g9 …"),
        ({"groups": dict(list(MANY.items())[:10])}, "which is none of g0, g1, g2, g3, g4, g5, g6, g7, g8, g9"),
        ({"groups": {"all": {f"p{n}": {"any": "x"} for n in range(21)}}}, "groups.all has 21 names; at most 20"),
        ({"groups": {"all": {"event": {"any": []}}}}, "groups.all.event.any has 0 values; it may have 1 to 10,000"),
        ({"groups": {"all": {"event": {"any": {"a": "b"}}}}}, "groups.all.event.any is a map; it has to be a text"),
        ({"platforms": []}, "platforms has 0 values; it may have 1 to 1,000"),
        ({"platforms": [["x"]]}, "platforms[0] has to be a map with the keys name, groups"),
        ({"dates": {"from": "2026-01-02", "to": "2026-01-01"}}, "dates.to: it ends on 2026-01-01, before 2026-01-02"),
        ({"dates": {"from": "2026-01-02", "step": "36h"}}, "dates.step: 36h is no number of days like 1d or 7d"),
        ({"exclude": "sport"}, "exclude has to be a list; write [a, b]"),
    ],
)
def test_a_scheme_that_cannot_work_is_refused(change: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(from_builtins({**SCHEME, **change}, "spec"), scheme_schema.SchemeSpec)
    lines = [str(one) for one in (caught.value, *caught.value.others)]
    assert any(error in line and line.count(" …") == error.count(" …") for line in lines), lines


def test_twenty_parts_are_a_group() -> None:
    """The bound itself is taken."""
    group = {f"p{number}": {"any": "x"} for number in range(20)}
    found = read(from_builtins({**SCHEME, "groups": {"all": group}}, "spec"), scheme_schema.SchemeSpec)
    assert len(found.groups["all"]) == 20


def test_the_deepest_document_is_read() -> None:
    """One level more is refused, in YAML and in JSON."""
    deepest: Any = "x"
    for _ in range(MAX_DEPTH):
        deepest = [deepest]
    from_builtins(deepest, "j")
    parse(b"[" * MAX_DEPTH + b"x" + b"]" * MAX_DEPTH, "j")
    with pytest.raises(UsageError, match="too deep"):
        from_builtins([deepest], "j")
    with pytest.raises(UsageError, match="nested more than"):
        parse(b"[" * (MAX_DEPTH + 1) + b"x" + b"]" * (MAX_DEPTH + 1), "j")
