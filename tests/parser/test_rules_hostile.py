"""Pages and rules that were made to cost time or memory: no crash, no hang, and a reason."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from nephila.native import page_pass
from nephila.parser.rules.apply import INLINE_BYTES, INLINE_DEPTH
from nephila.parser.rules.pages import Stored
from nephila.parser.rules.running import Runner
from nephila.parser.rules.selectors import is_bounded
from nephila.parser.rules.task import RULES
from rule_rig import URL, ran, rule, value

LONGEST_S = 2 * RULES.wall_s + 20
"""Two tries in the child and their starts: far above, as a test of a hang and not of speed."""


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    """A process for rules."""
    with Runner(scripts=True) as made:
        yield made


def page(body: bytes) -> Stored:
    """A page of these bytes."""
    return Stored(URL, "text/html", "utf-8", body, "page")


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|aa)+$", "(.*a){20}", "([a-z]+)*!", "(a{1,30}){1,30}b"], ids=lambda text: text
)
def test_regular_expressions_of_users_do_not_backtrack(pattern: str) -> None:
    """RE2: linear time in fields, links, replacements and JSONPath."""
    began = time.monotonic()
    html = f"<p>{'a' * 50_000}!</p><a href=/{'a' * 5000}!>"
    spec = f"""
        fields:
          a: {{css: p, regex: '{pattern}'}}
          b: {{css: p, replace: {{pattern: '{pattern}', with: x}}}}
          c: {{regex: '{pattern}'}}
        outlinks: {{exclude: '{pattern}'}}
    """
    assert len(ran(spec, html).items) == 1
    path = f'$[?search(@, "{pattern}")]'.replace("'", "")
    assert value(f"{{jsonpath: '{path}', all: true}}", json.dumps(["a" * 50_000]), content_type="application/json") != 0
    assert time.monotonic() - began < LONGEST_S


def test_a_field_of_a_million_elements_is_cut(runner: Runner) -> None:
    """The first ten thousand; items and links likewise, and it is said."""
    body = b"<b>y</b>" * 1_000_000
    found = runner.run(rule("fields: {b: {css: b, all: true}}"), page(body))
    (item,) = found.items
    assert len(json.loads(item)["b"]) == 10_000
    found = runner.run(rule("each: b\nfields: {t: {}}"), page(body))
    assert len(found.items) == 10_000
    assert "more than 10,000 items" in found.problems[0]


def test_a_tree_of_twenty_thousand_levels() -> None:
    """Selectors whose cost is a power of the depth, XPath and text: each ends, with values or with a reason."""
    body = b"<div class=a>" * 20_000 + b"<p>deep"
    with Runner(wall_s=1.0) as runner:
        for field in ("{css: 'p'}", "{css: 'i div div div div'}", "{xpath: '//div//div//div//i'}", "{css: div}"):
            found = runner.run(rule(f"fields: {{f: {field}}}"), page(body))
            assert found.items or any("rules: " in problem for problem in found.problems), field


def test_formatting_elements_that_multiply(runner: Runner) -> None:
    """A tree builder opens each of them anew in every block: n tags make n*n elements, out of the loop's sight."""
    body = b"".join(b"<p><b a=%d>" % n for n in range(3_000))
    depth = page_pass(body, URL, "utf-8", max_links=1, max_text_bytes=1).depth
    assert depth > INLINE_DEPTH
    found = runner.run(rule("fields: {f: {css: p, all: true}}"), page(body))
    assert found.items or found.problems


def test_depth_is_never_below_that_of_the_tree() -> None:
    """What decides where a rule runs holds for pages that nest in all the ways there are."""
    from nephila.parser.document import Document

    for unit in (
        b"<div>",
        b"<p><b x=%d>",
        b"<table><tr><td>",
        b"<ul><li>",
        b"<svg><g>",
        b"<a><div>",
        b"<font a=%d><p>",
    ):
        body = b"".join(unit % n if b"%d" in unit else unit for n in range(60))
        depth, nodes = 0, Document(body, URL).tree.css("*")
        for node in nodes[-1:] + nodes[: len(nodes) // 2]:
            count = 0
            while node is not None:
                node, count = node.parent, count + 1
            depth = max(depth, count)
        assert page_pass(body, URL, "utf-8", max_links=1, max_text_bytes=1).depth + 4 >= depth, unit


def test_an_attribute_of_a_megabyte(runner: Runner) -> None:
    """It is a value like another, up to what a value may have."""
    body = b"<p x='" + b"v" * 3_000_000 + b"'>a</p>"
    found = runner.run(rule("fields: {t: {css: p}, x: {css: p, attr: x, regex: '^v{3}'}}"), page(body))
    assert found.items == [b'{"t":"a","x":"vvv"}']
    (item,) = runner.run(rule("fields: {x: {css: p, attr: x}}"), page(body)).items
    assert len(json.loads(item)["x"]) == 1_000_000
    found = runner.run(rule("fields: {x: {css: p, attr: x}, y: {css: p, attr: x}}"), page(body))
    assert "larger than 1 MiB" in found.problems[0]


def test_an_xpath_that_never_ends_is_killed() -> None:
    """With its reason; the next rule goes on in a new process."""
    body = b"<i>" + b"<b></b>" * 3000
    with Runner(wall_s=1.0) as runner:
        slow = rule("fields: {f: {xpath: 'count(//b[count(//b[count(//b) > 0]) > 0])'}}")
        found = runner.run(slow, page(body))
        assert found.items == []
        assert "rules: timeout" in found.problems[0]
        assert runner.run(rule("fields: {f: {xpath: 'count(//b)'}}"), page(body)).items == [b'{"f":3000.0}']


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("() => { const a = []; for (;;) a.push(new Array(1e5).fill(1)); }", "js: "),
        ("() => { const f = () => f(); f(); }", "js: "),
        ("() => ({}).x.y", "cannot read property"),
        ("() => { throw new Error('no\\nlines'); }", "no lines"),
        ("1 +", "SyntaxError"),
        ("() => 'x'.repeat(1e8)", ""),
        ("() => { const a = {}; a.a = a; return a; }", "js: "),
        ("() => require('fs')", "'require' is not defined"),
    ],
)
def test_scripts_are_bounded(runner: Runner, script: str, says: str) -> None:
    """Time, memory, stack; and there is nothing to reach for."""
    found = runner.run(rule(f"fields: {{f: {{js: {json.dumps(script)}}}}}"), page(b"<p>"))
    assert found.missing == ["f"] or found.problems
    assert says.lower() in " ".join(found.problems).lower()


def test_a_regular_expression_of_a_script_that_never_ends_is_killed() -> None:
    """QuickJS does not look at its clock there: the process ends."""
    with Runner(scripts=True, wall_s=1.0) as runner:
        spec = "fields: {f: {js: \"() => /^(a|a?)+$/.test('a'.repeat(40) + '!')\"}}"
        assert runner.run(rule(spec), page(b"<p>")).problems


def test_scripts_make_values(runner: Runner) -> None:
    """JSON in and out: the value that was selected, and the page."""
    spec = r"""
        fields:
          tags: {css: p, js: "v => v.split(',').map(t => t.trim())"}
          url: {js: "(v, page) => page.url.length"}
          none: {css: q, js: "v => v"}
    """
    found = runner.run(rule(spec), page(b"<p>a, b</p>"))
    assert found.items == [b'{"tags":["a","b"],"url":23,"none":null}']


def test_scripts_are_off_unless_asked_for() -> None:
    """The rest of the item stays."""
    with Runner() as runner:
        found = runner.run(rule("fields: {a: h1, f: {js: '() => 1'}}"), page(b"<h1>x"))
    assert found.items == [b'{"a":"x","f":null}']
    assert found.problems == ["f: scripts are switched off"]


@pytest.mark.parametrize(
    ("language", "text", "bounded"),
    [
        ("css", "article p > b", True),
        ("css", "a.b[href*='x y z w v']", True),
        ("css", "a b c d e", False),
        ("css", "p:has(b)", False),
        ("css", "a ~ b", False),
        ("jsonpath", "$.a[*].b[0]", True),
        ("jsonpath", "$..a", False),
        ("jsonpath", "$[?@.a]", False),
        ("xpath", "//a", False),
        ("jmespath", "a", False),
        ("regex", "(a+)+$", True),
    ],
)
def test_what_may_run_beside_everything_else(language: str, text: str, bounded: bool) -> None:
    """Only what costs a page's size times a little."""
    assert is_bounded(language, text) is bounded


def test_the_slowest_bounded_selector_on_the_worst_page_that_is_not_sent_away() -> None:
    """Some tenths of a second, once: the loop is not held up for long, and the rule goes to the child from then on."""
    levels = INLINE_DEPTH - 10
    block = b"<div>" * levels + b"<i></i>" + b"</div>" * levels
    body = block * (INLINE_BYTES // len(block))
    assert page_pass(body, URL, "utf-8", max_links=1, max_text_bytes=1).depth <= INLINE_DEPTH
    began = time.monotonic()
    ran("fields: {f: {css: 'b div div i'}}", body)
    assert time.monotonic() - began < LONGEST_S
