"""A rule's document is read strictly: every mistake is one line with its place, and scalars stay what they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from nephila.kernel.runtime.errors import UsageError
from nephila_control.http.json_schema import json_schema
from nephila_rules.runtime.load import HASHED, distinct, from_json, from_text, load
from nephila_rules.runtime.rule_schema import ParseRule

from tests.rules.execution.rule_rig import HEAD, rule


def refused(text: str | bytes) -> str:
    """The line that a file is refused with."""
    with pytest.raises(UsageError) as error:
        load(text if isinstance(text, bytes) else text.encode(), "r.yaml")
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_rule_says_everything_the_format_knows() -> None:
    """The example of the documentation, and what comes of it."""
    found = rule(
        r"""
        match: {url: '^https://news\.example/\d{4}/.+'}
        fields:
          title: {css: "h1"}
          body: {xpath: "//article//p", all: true, join: "\n"}
          price: {css: ".price", regex: '([\d.,]+)', type: number}
        outlinks: {css: "a.next, article a", include: ['/20']}
        """
    ).rule
    assert [field.name for field in found.fields] == ["title", "body", "price"]
    assert found.outlinks is not None
    assert found.outlinks[0].include == ("/20",)
    assert found.matches("https://news.example/2026/x")
    assert not found.matches("https://news.example/about")
    assert not found.bounded


def test_scalars_stay_text() -> None:
    """`no` and 1.10 are what was written, whatever YAML makes of them elsewhere."""
    found = rule("fields: {a: {constant: no}, b: {constant: 1.10}, c: {constant: 0x10}, d: {constant: 12:30}}")
    assert [field.selection.expression for field in found.rule.fields] == ["no", "1.10", "0x10", "12:30"]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("fields: {a: h1}\n  prority: 1", "7:3: unknown key 'prority' in spec; did you mean 'priority'?"),
        ("fields: {a: {cs: h1}}", "6:16: unknown key 'cs' in spec.fields.a; did you mean 'css'?"),
        ("fields: {a: h1, a: h2}", "6:19: the key 'a' comes twice, first at r.yaml:6:12"),
        ("fields: {a b: h1}", "spec.fields: 'a b' is not a name of letters, digits and '_'"),
        ("fields: {}", "spec.fields has to be a map from names"),
        ("fields: {a: 'h1['}", "spec.fields.a: 'h1[' cannot be used: not a CSS selector"),
        ("fields: {a: {css: 'a::text'}}", "use attr: for attributes and a text is taken by itself"),
        ("fields: {a: {xpath: '//a['}}", "not XPath 1.0: Invalid expression"),
        ("fields: {a: {xpath: 're:test(., \"x\")'}}", "not XPath 1.0"),
        ("fields: {a: {xpath: 'nope(1)'}}", "not XPath 1.0: Unregistered function"),
        ("fields: {a: {jsonpath: 'a.b'}}", "not JSONPath (RFC 9535)"),
        ("fields: {a: {jmespath: '['}}", "not JMESPath"),
        ("fields: {a: {css: p, regex: '('}}", "is not a valid RE2 expression: missing )"),
        ("fields: {a: {css: p, regex: '(?=x)'}}", "is not a valid RE2 expression: invalid perl operator"),
        ("fields: {a: {css: p, xpath: //p}}", "give only one of 'css' and 'xpath'"),
        ("fields: {a: {css: p, attr: x, html: inner}}", "give only one of 'attr' and 'html'"),
        ("fields: {a: {meta: x, attr: x}}", "'attr' and 'html' are of an element, and 'meta' selects none"),
        ("fields: {a: {css: p, type: nmber}}", "spec.fields.a.type: 'nmber' is unknown; did you mean 'number'?"),
        ("fields: {a: {css: p, decimal: ','}}", "'decimal' needs type number, integer or price"),
        ("fields: {a: {css: p, all: yes}}", "spec.fields.a.all: 'yes' is neither true nor false"),
        ("fields: {a: {css: p, fields: {b: i}, type: date}}", "'type' is for a field with a value"),
        (
            "fields:\n    a:\n      css: p\n      fields: {b: {xpath: //i}}",
            "9:19: spec.fields.a.b: 'xpath' cannot be used inside elements selected by css; use css here as well",
        ),
        (
            "fields: {a: p}\n  followUps:\n    r: {css: a, url: x, fields: {a: p}}",
            "8:33: spec.followUps.r.fields: 'a' is",
        ),
        ("fields: {a: {jsonpath: $.x, fields: {b: {css: i}}}}", "inside values, not elements; use jsonpath"),
        ("fields: {a: {py: 'x'}}", "'x' is not a file and a function in it, like prices:euros"),
        ("fields: {a: {py: 'os.path:join'}}", "is not a file and a function in it"),
        ("fields: {a: {py: '../x:f'}}", "is not a file and a function in it"),
        ("fields: {a: {py: 'prices:f.g'}}", "is not a file and a function in it"),
        ("fields: {a: {py: 'prices:__import__'}}", "is not a file and a function in it"),
        ("fields: {a: {py: 'a:b', js: 'v => v'}}", "give only one of 'js' and 'py'"),
        ("fields: {a: {py: 'a:b', fields: {b: i}}}", "'py' is for a field with a value"),
        ("fields: {a: h1}\n  steps: [{clik: a}]", "unknown key 'clik' in spec.steps[0]; did you mean 'click'?"),
        ("fields: {a: h1}\n  steps: [{more: a, max: 1001}]", "1001 is not within 1 and 1000"),
        ("fields: {a: h1}\n  outlinks: {css: a, render: auto}", "'auto' is not built yet; this version has never"),
        ("fields: {a: h1}\n  pagination: {max: 3}", "give exactly one of css, xpath, jsonpath, param"),
        ("fields: {a: h1}\n  pagination: {css: a, max: 3}", "'max' needs 'param'"),
        ("priority: 1", "the rule would do nothing"),
        ("fields: {a: h1}\n  version: 0", "0 is not within 1 and 2147483647"),
    ],
)
def test_mistakes_name_place_key_and_remedy(spec: str, says: str) -> None:
    """One line each."""
    result = refused(f"{HEAD.replace('NAME', 'r')}  match: {{url: x}}\n  {spec}\n")
    assert re.match(r"r\.yaml:\d+:\d+: ", result)
    assert says in result


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no rule in it"),
        ("a: &x [1]\nb: *x", "anchors (&x) are not supported"),
        ("a: !!python/object:os.system x", "tags"),
        ("[" * 40, "nested more than"),
        ("kind: CrawlJob", "is unknown; known are ParseRule"),
        (b"\xff\xfe", "not UTF-8"),
        ("a: [" + "x, " * 200_000 + "]", "values"),
    ],
)
def test_what_is_no_rule_at_all(text: str | bytes, says: str) -> None:
    """Bombs and other documents; nothing is built of them."""
    result = refused(text)
    assert says in result or "unknown key" in result


def test_versions_are_hashes_of_what_a_rule_says() -> None:
    """However it is written; and a version that is said stays it."""
    first = rule("fields: {a: h1}\npriority: 3").rule.version
    assert first == rule("priority: 3\nfields:\n  a: {css: 'h1'}").rule.version >= HASHED
    assert first != rule("fields: {a: h2}\npriority: 3").rule.version
    assert rule("fields: {a: h1}\nversion: 7").rule.version == 7


def test_a_document_travels_as_json() -> None:
    """What comes back is the same rule with its fields in their order."""
    document = rule("fields: {z: {constant: no}, a: {css: p, all: true, join: ''}}\noutlinks: []")
    again = from_text(document.text)
    assert again.rule == document.rule
    assert [field.name for field in again.rule.fields] == ["z", "a"]
    assert from_json(json.loads(document.text)).content == document.content
    with pytest.raises(UsageError, match="not JSON"):
        from_text("{")


def test_a_name_comes_once() -> None:
    """Two rules of one name are told with both places."""
    with pytest.raises(UsageError, match=r"rule 'r' comes twice, first at rule\.yaml:1:1"):
        distinct([rule("fields: {a: h1}"), rule("fields: {a: h2}")])


def test_the_published_schema_is_that_of_the_structs() -> None:
    """docs/parserule.schema.json is made, never edited."""
    path = Path(__file__).parents[3] / "docs" / "parserule.schema.json"
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(json.dumps(json_schema(ParseRule)))
