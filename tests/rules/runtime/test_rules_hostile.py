"""Pages and rules that were made to cost time or memory: no crash, no hang, and a reason."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from nephila.native import PassOptions, page_pass
from nephila.parser.page.html_tree import MAX_BYTES, MAX_DEPTH
from nephila_rules.run_rule import RuleRunner
from nephila_rules.runtime.bounds import MAX_STEPS, fits, steps
from nephila_rules.runtime.extract import TimeLimitError, extract
from nephila_rules.runtime.selectors import is_bounded
from nephila_rules.runtime.task import RULES
from nephila_rules.stored_pages import StoredPage

from tests.rules.execution.rule_rig import URL, document, ran, rule, value

LONGEST_S = 2 * RULES.wall_s + 20
"""Two tries in the child and their starts: far above, as a test of a hang and not of speed."""


@pytest.fixture(scope="module")
def runner() -> Iterator[RuleRunner]:
    """A process for rules."""
    with RuleRunner(scripts=True) as made:
        yield made


def page(body: bytes) -> StoredPage:
    """A page of these bytes."""
    return StoredPage(URL, "text/html", "utf-8", body, "page")


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


def test_a_field_of_a_million_elements_is_cut(runner: RuleRunner) -> None:
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
    with RuleRunner(wall_s=1.0) as runner:
        for field in ("{css: 'p'}", "{css: 'i div div div div'}", "{xpath: '//div//div//div//i'}", "{css: div}"):
            found = runner.run(rule(f"fields: {{f: {field}}}"), page(body))
            assert found.items or any("rules: " in problem for problem in found.problems), field


def test_formatting_elements_that_multiply(runner: RuleRunner) -> None:
    """A tree builder opens each of them anew in every block: n tags make n*n elements, out of the loop's sight."""
    body = b"".join(b"<p><b a=%d>" % n for n in range(3_000))
    depth = page_pass(body, URL, "utf-8", PassOptions(max_links=1, max_text_bytes=1)).depth
    assert depth > MAX_DEPTH
    found = runner.run(rule("fields: {f: {css: p, all: true}}"), page(body))
    assert found.items or found.problems


def test_depth_is_never_below_that_of_the_tree() -> None:
    """What decides where a rule runs holds for pages that nest in all the ways there are."""
    from nephila_rules.runtime.document import Document

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
        assert page_pass(body, URL, "utf-8", PassOptions(max_links=1, max_text_bytes=1)).depth + 4 >= depth, unit


def test_an_attribute_of_a_megabyte(runner: RuleRunner) -> None:
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
    with RuleRunner(wall_s=1.0) as runner:
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
def test_scripts_are_bounded(runner: RuleRunner, script: str, says: str) -> None:
    """Time, memory, stack; and there is nothing to reach for."""
    found = runner.run(rule(f"fields: {{f: {{js: {json.dumps(script)}}}}}"), page(b"<p>"))
    assert found.missing == ["f"] or found.problems
    assert says.lower() in " ".join(found.problems).lower()


def test_a_regular_expression_of_a_script_that_never_ends_is_killed() -> None:
    """QuickJS does not look at its clock there: the process ends."""
    with RuleRunner(scripts=True, wall_s=1.0) as runner:
        spec = "fields: {f: {js: \"() => /^(a|a?)+$/.test('a'.repeat(40) + '!')\"}}"
        assert runner.run(rule(spec), page(b"<p>")).problems


def test_scripts_make_values(runner: RuleRunner) -> None:
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
    with RuleRunner() as runner:
        found = runner.run(rule("fields: {a: h1, f: {js: '() => 1'}}"), page(b"<h1>x"))
    assert found.items == [b'{"a":"x","f":null}']
    (problem,) = found.problems
    assert problem.startswith("f: scripts are switched off")


@pytest.mark.parametrize(
    ("language", "text", "bounded"),
    [
        ("css", "article p > b", True),
        ("css", "a.b[href*='x y z w v']", True),
        ("css", "a:not(b c)", False),
        ("css", "p:has(b)", False),
        ("css", "a ~ b", False),
        ("jsonpath", "$.a[*].b[0]", True),
        ("jsonpath", "$..a", False),
        ("jsonpath", "$[?@.a]", False),
        ("jsonpath", "$[*,*][*,*]", False),
        ("xpath", "//a", False),
        ("jmespath", "a", False),
        ("regex", "(a+)+$", True),
    ],
)
def test_what_may_run_beside_everything_else(language: str, text: str, bounded: bool) -> None:
    """Only what costs a page's size times a little."""
    assert is_bounded(language, text) is bounded


@pytest.mark.parametrize(
    ("selector", "up", "counts"),
    [
        ("p", 0, False),
        ("a > b+c", 0, False),
        ("a b  c", 2, False),
        ("a > b c, d", 1, False),
        ("tr td:nth-child(2n + 1)", 1, True),
        ("a[title='x y z'] b", 1, False),
    ],
)
def test_the_shape_of_a_selector(selector: str, up: int, counts: bool) -> None:
    """Which of its steps go up, and whether it counts."""
    shape = rule(f'fields: {{f: {{css: "{selector}"}}}}').rule.shape
    assert (shape.up, shape.counts) == (up, counts)


def test_groups_multiply() -> None:
    """Elements are gone through again for each that they stand in."""
    assert rule("each: div\nfields: {f: {css: 'p', fields: {g: 'i b'}}}").rule.shape.up == 3


@pytest.mark.parametrize(
    ("selector", "body"),
    [
        ("b div div i", b"<div>" * 100 + b"<i></i>" * 30_000),
        ("b div div div i", (b"<div>" * 60 + b"<i></i>" * 100 + b"</div>" * 60) * 150),
        ("li:nth-child(2)", b"<ul>" + b"<li>" * 50_000),
        ("p b i", b"<p><b a=1><b a=2><b a=3><b a=4><b a=5><b a=6><b a=7><b a=8><b a=9>" + b"<p>" * 50_000),
    ],
)
def test_what_does_not_fit_is_sent_away(selector: str, body: bytes) -> None:
    """Within the limits of bytes and depth there are pages on which a selector of three steps takes half a minute."""
    depth = page_pass(body, URL, "utf-8", PassOptions(max_links=1, max_text_bytes=1)).depth
    assert len(body) <= MAX_BYTES
    assert not fits(rule(f"fields: {{f: {{css: '{selector}'}}}}").rule, body, depth)


@pytest.mark.parametrize("selector", ["b div div i", "b div i", "i:nth-child(2)", "b > div i"])
def test_the_worst_page_that_fits_ends_soon(selector: str) -> None:
    """The loop is not held up for long, and the rule goes to the child from then on."""
    one = rule(f"fields: {{f: {{css: '{selector}'}}}}").rule
    for levels in (2, 10, 30, 60, 110):
        count = 10
        while steps(one, 2 * levels + 2 * count, levels + 3) <= MAX_STEPS and count * 7 + levels * 11 < MAX_BYTES:
            count = count * 5 // 4
        body = b"<div>" * levels + b"<i></i>" * (count * 4 // 5) + b"</div>" * levels
        began = time.monotonic()
        ran(f"fields: {{f: {{css: '{selector}'}}}}", body)
        assert time.monotonic() - began < LONGEST_S


def test_ordinary_pages_fit() -> None:
    """A page of a shop or paper with the selectors that people write stays where it is."""
    body = b"<div><ul>" + b"<li><a href=/><b>x</b></a>" * 400 + b"</ul></div>"
    for selector in ("h1", ".a .b", "main article p", "ul > li a b", "td:nth-child(2)", "[itemprop=name]"):
        assert fits(rule(f"fields: {{f: {{css: '{selector}'}}}}").rule, body, 25)


@pytest.mark.parametrize(
    ("spec", "body"),
    [
        ("fields: {f: {regex: '(?s)x.*y|x', all: true}}", b"x" * 200_000),
        ("each: {regex: '(?s)x.*y|x'}\nfields: {f: {page: url}}", b"x" * 200_000),
        ("fields: {f: {css: p, replace: {pattern: '(?s)x.*y|x'}}}", b"<p>" + b"x" * 200_000),
        ("each: li\nfields: {f: {itemprop: a, fields: {g: {itemprop: b}}}}", b"<li><a itemprop=a href=/>" * 9_000),
    ],
)
def test_what_takes_too_long_all_the_same_is_given_up(spec: str, body: bytes) -> None:
    """Matches that each look at all that follows, values that each look at all of the page: no shape tells them."""
    asked = 0

    def check_time() -> None:
        nonlocal asked
        asked += 1
        if asked > 100:
            raise TimeLimitError

    assert fits(rule(spec).rule, body, 100)
    with pytest.raises(TimeLimitError):
        extract(rule(spec).rule, document(body), check_time=check_time)


@pytest.mark.parametrize("content_type", ["application/json", "application/xml", "text/html"])
def test_commands_send_deep_documents_away_as_well(content_type: str) -> None:
    """Of a kind that has no elements a rule may ask for a tree all the same."""
    body = b"<div>" * 200 + b"<i></i>" * 20
    with RuleRunner() as runner:
        found = runner.run(rule("fields: {f: b div div i}"), StoredPage(URL, content_type, "utf-8", body, "page"))
        assert runner.pids
    assert found.items == [b'{"f":null}']


def test_a_meta_element_is_looked_for_once_a_page() -> None:
    """However many items ask for it."""
    page_ = document(b"<meta name=a content=1>" + b"<li>" * 3)
    assert page_.metas("a") is page_.metas("a")
