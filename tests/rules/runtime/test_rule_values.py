"""Values of fields: numbers, prices, dates and the rest as people write them; what is none is left out, not guessed."""

from __future__ import annotations

from typing import Any

import pytest
from nephila.kernel.page_facts.iso_dates import iso_date
from nephila.kernel.runtime.errors import UsageError
from nephila_rules.runtime.numbers import number, price

from tests.rules.execution.rule_rig import URL, items, ran, rule, value

JSON = "application/json"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,234.50", 1234.5),
        ("1.234,50", 1234.5),
        ("1 234,50", 1234.5),
        ("1\u202f234,50", 1234.5),
        ("1'234.50", 1234.5),
        ("1.234.567", 1234567),
        ("1,234", 1234),
        ("1.234", 1234),
        ("0,125", 0.125),
        ("12,5", 12.5),
        ("1234,567", 1234.567),
        ("-12", -12),
        ("\u221212", -12),
        ("12 pieces", 12),
        ("about 3.4e3", 3400.0),
        ("٣", 3),
        ("19,-", 19),
        ("1,23,456", 123456),
        ("1’234’567.89", 1234567.89),
        ("12,34,56,789.5", 123456789.5),
        ("(1 234 567,8)", 1234567.8),
    ],
)
def test_numbers(text: str, expected: float) -> None:
    """Both ways of writing thousands and decimals; a whole number stays one."""
    found = number(text)
    assert found == expected
    assert isinstance(found, int) == isinstance(expected, int)


def test_the_decimal_sign_may_be_said() -> None:
    """Then nothing is left to the look of it."""
    assert (number("1.234", "."), number("1,234", ",")) == (1.234, 1.234)


@pytest.mark.parametrize(
    "text",
    [
        *("", "none", "3 of 5", "1-2", "9" * 300, "10:30"),
        *("4 12", "3,5 120", "1,5,6", "1.000.00", "v1.2.3", "+49 30 1234567", "192.168.0.1", "12 34 567", "1,23,45"),
    ],
)
def test_no_numbers(text: str) -> None:
    """No digit, or more than one number: digits apart from each other that are no thousands are two."""
    with pytest.raises(ValueError, match="number"):
        number(text)


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("€ 1.049,50", 1049.5, "EUR"),
        ("£38.40", 38.4, "GBP"),
        ("US$ 5", 5, "USD"),
        ("5 zł", 5, "PLN"),
        ("1 200 Kč", 1200, "CZK"),
        ("CHF 12.80", 12.8, "CHF"),
        ("12.000 Ft", 12000, "HUF"),
        ("¥5,000", 5000, "JPY"),
        ("from 12 EUR", 12, "EUR"),
        ("12", 12, ""),
        ("-$5", -5, "USD"),
        ("− € 12,50", -12.5, "EUR"),
        ("Rabatt: -£1,000.00", -1000.0, "GBP"),
        ("off-$5", 5, "USD"),
    ],
)
def test_prices(text: str, amount: float, currency: str) -> None:
    """Amount and currency, by sign or code."""
    assert price(text) == {"amount": amount, "currency": currency}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-21", "2026-11-21"),
        ("2026-11-21T10:00:00+01:00", "2026-11-21T09:00:00Z"),
        ("2026-11-21 10:00", "2026-11-21T10:00:00"),
        ("on 2026-11-21T10:00:00.123Z it was", "2026-11-21T10:00:00Z"),
        ("Sat, 21 Nov 2026 10:00:00 GMT", "2026-11-21T10:00:00Z"),
        ("21 November 2026", "2026-11-21"),
        ("Nov 21st, 2026", "2026-11-21"),
        ("November 21, 2026, 7:30 pm", "2026-11-21T19:30:00"),
        ("21. listopada 2026", "2026-11-21"),
        ("3 de marzo de 2026", "2026-03-03"),
        ("1er août 2026", "2026-08-01"),
        ("21.11.2026", "2026-11-21"),
        ("21/11/2026", "2026-11-21"),
        ("11/21/2026 12:05 a.m.", "2026-11-21T00:05:00"),
        ("2026年11月21日", "2026-11-21"),
        ("2026/11/21", "2026-11-21"),
        ("20261121", "2026-11-21"),
        ("1795255200", "2026-11-21T10:00:00Z"),
        ("2026-11-21 10:00 by Ann", "2026-11-21T10:00:00"),
        ("2026-11-21 10:00:30 | 5 comments", "2026-11-21T10:00:30"),
        ("2026-11-21 10:00 PM", "2026-11-21T22:00:00"),
        ("2026-11-21 1:05 am", "2026-11-21T01:05:00"),
        ("2026-11-21 10:00 UTC", "2026-11-21T10:00:00Z"),
        ("2026-11-21T10:00:00,5Z", "2026-11-21T10:00:00Z"),
        ("20261121T101500Z", "2026-11-21T10:15:00Z"),
        ("20261121T1015+0100", "2026-11-21T09:15:00Z"),
        ("Nov 21, 2026 10:00 GMT", "2026-11-21T10:00:00Z"),
        ("21 November 2026, 10:00 +02:00", "2026-11-21T08:00:00Z"),
        ("21 November 2026, 10:00-12:00", "2026-11-21T10:00:00"),
        ("Thursday, 5th of March, 2026", "2026-03-05"),
        ("March the 5th, 2026", "2026-03-05"),
    ],
)
def test_dates(text: str, expected: str) -> None:
    """ISO 8601 of what machines and people write."""
    assert iso_date(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("03/04/2026", "may be two days"),
        ("31.02.2026", "day"),
        ("yesterday", "no date"),
        ("2026", "no date"),
        ("21 Nov 2026 25:00", "no time of a day"),
        ("x" * 500, "too long"),
        ("", "no date"),
    ],
)
def test_no_dates(text: str, says: str) -> None:
    """What could be two days is none, and neither is a day that no calendar has."""
    with pytest.raises(ValueError, match=says):
        iso_date(text)


@pytest.mark.parametrize("text", ["1" + "0" * 400, "-1" + "0" * 5000, "1e400"])
@pytest.mark.parametrize("type_", ["number", "integer", "price"])
def test_numbers_that_no_machine_holds(text: str, type_: str) -> None:
    """A page whose JSON has one is a page with a field that is empty."""
    found = ran(
        f"fields: {{n: {{jsonpath: $.n, type: {type_}}}, m: {{jsonpath: $.m}}}}", f'{{"n": {text}, "m": 1}}', URL, JSON
    )
    assert found.items == ([b'{"n":null,"m":1}'] if len(text) < 4000 else [b'{"n":null,"m":null}'])


@pytest.mark.parametrize(
    ("instead", "says"), [(r"\3", "no group 3.*it has 2"), (r"\g<x>", "no group 'x'"), (r"\g<12>", "no group 12")]
)
def test_groups_that_a_pattern_has_not(instead: str, says: str) -> None:
    """They are told when the rule is read."""
    with pytest.raises(UsageError, match=rf"rule.yaml:6:.*{says}"):
        rule(f"fields: {{d: {{css: p, replace: {{pattern: '(a)(?P<y>b)', with: '{instead}'}}}}}}")


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ("'%d.%d.%Y'", "twice"),
        ("'%d.%m.%Y %'", "strptime"),
        ("'%d.%m.%Q %Y'", "strptime"),
        ("dd.mm.yyyy", "%d.%m.%Y"),
        ("'%d.%m.'", "year"),
    ],
)
def test_formats_that_fit_no_date(form: str, says: str) -> None:
    """They are told when the rule is read, with their place."""
    with pytest.raises(UsageError, match=rf"rule.yaml:6:.*{says}"):
        rule(f"fields: {{d: {{css: p, type: date, format: {form}}}}}")


@pytest.mark.parametrize(
    ("field", "html", "expected"),
    [
        ("{css: p, type: date, dayFirst: true}", "<p>03/04/2026", "2026-04-03"),
        ("{css: p, type: date, dayFirst: false}", "<p>03/04/2026", "2026-03-04"),
        ("{css: p, type: date, format: ['%d/%m/%y', '%Y']}", "<p>03/04/26", "2026-04-03"),
        ("{css: p, type: integer}", "<p>1,204 likes", 1204),
        ("{css: p, type: price, currency: EUR}", "<p>12,50", {"amount": 12.5, "currency": "EUR"}),
        ("{css: p, type: bool}", "<p>Yes", True),
        ("{css: link, attr: href, type: bool}", "<link href=https://schema.org/OutOfStock>", False),
        ("{css: a, attr: href, type: url}", "<base href=/b/><a href='c?d#e'>", "https://a.test/b/c?d"),
        ("{css: p, replace: [{pattern: '(\\w+) (\\w+)', with: '\\2 \\1'}]}", "<p>a b", "b a"),
        ("{css: p, replace: {pattern: 'x+'}}", "<p>axxb", "ab"),
        ("{css: p, replace: {pattern: 'ae', with: 'ä – 漢😀'}}", "<p>Maerz", "Mä – 漢😀rz"),
        (
            "{css: p, replace: {pattern: '(?P<n>ü)(z)?', with: '[\\0\\g<n>\\2]\\\\\\n'}, trim: false}",
            "<p>ü",
            "[üü]\\\n",
        ),
        ("{css: p, trim: false}", "<p> a  b ", " a  b "),
        ("{css: p}", "<p> a \n b\u00a0c ", "a b c"),
        ("{css: q, default: none}", "<p>", "none"),
        ("{css: q, default: '12', type: number}", "<p>", 12),
        ("{css: q, all: true}", "<p>", []),
        ("{css: p, all: true, join: ' / '}", "<p>a<p>b", "a / b"),
        ("{css: p, all: true, type: number}", "<p>1<p>x<p>3", [1, 3]),
        ("{css: p, type: number}", "<p>x<p>3", 3),
        ("{css: p, exists: true}", "<p>", True),
        ("{css: q, exists: true}", "<p>", False),
        ("{constant: 'no'}", "", "no"),
    ],
)
def test_what_is_done_to_a_value(field: str, html: str, expected: Any) -> None:
    """Type, trim, replace, default, join."""
    assert value(field, html) == expected


def test_a_value_of_another_type_is_left_out_with_a_reason() -> None:
    """Nothing is guessed; the first value that is of the type counts."""
    found = ran("fields: {n: {css: p, type: number}}", "<p>many<p>few")
    assert found.items == [b'{"n":null}']
    assert found.problems == ["n: 'many': no number in it", "n: 'few': no number in it"]
    assert found.missing == ["n"]


def test_an_item_without_a_required_field_is_none() -> None:
    """It is said; an item beside it stays."""
    spec = "each: li\nfields: {n: {css: b, required: true}, t: {css: i}}"
    assert items(spec, "<li><b>1</b><i>a</i><li><i>b</i>") == [{"n": "1", "t": "a"}]
    assert "required" in ran(spec, "<li><i>b</i>").problems[0]


def test_text_values_have_the_one_form_of_text() -> None:
    """Soft hyphens leave, letters and marks are one; the characters of a URL stay."""
    html = "<p id=a>Mit&shy;tel&nbsp;al&shy;ter Cafe&#769;</p><p id=b>Cafe&#769;</p><a href='/cafe\u0301'>x</a>"
    for field in ("{css: '#a'}", "{xpath: '//*[@id=\"a\"]'}"):
        assert value(field, html) == "Mittel alter Café"
    assert value("{css: p, all: true}", html) == ["Mittel alter Café", "Café"]
    assert value("{css: a, attr: href, type: url}", html).endswith("/cafe%CC%81")
