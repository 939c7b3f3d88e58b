"""The JSON Schema of items: the samples are valid by it, and it refuses other items."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from nephila.cli.main import main
from nephila_rules.files import read, read_all
from nephila_rules.item_schema import item_schema
from nephila_rules.runtime.spec import Rule

SAMPLES = sorted(path.parent for path in Path("rules").glob("*/items.json"))


@pytest.mark.parametrize("directory", SAMPLES, ids=lambda path: path.name)
def test_the_items_of_each_sample_are_valid(directory):
    """All rules of the file give valid schemas, and each item is valid by one of them."""
    schemas = [item_schema(document.rule) for document in read(directory / "rule.yaml")]
    for schema in schemas:
        Draft202012Validator.check_schema(schema)
    for item in json.loads((directory / "items.json").read_text()):
        assert any(Draft202012Validator(schema).is_valid(item) for schema in schemas)


def rule(tmp_path: Path, fields: str) -> Rule:
    """A rule with these fields."""
    path = tmp_path / "rule.yaml"
    head = "apiVersion: nephila.dev/v1\nkind: ParseRule\nmetadata: {name: shop}\nspec:\n  version: 7\n"
    path.write_text(f"{head}  match: {{url: x}}\n  fields: {{{fields}}}\n")
    return read(path)[0].rule


def test_each_type_has_its_schema(tmp_path):
    """Null for what may be missing, lists, groups, joined texts and facts."""
    found = item_schema(
        rule(
            tmp_path,
            "a: {css: a, required: true}, b: {css: b, type: price}, c: {css: c, all: true, type: url},"
            " d: {css: d, fields: {e: {css: e, type: integer}}}, f: {css: f, exists: true},"
            " g: {css: g, all: true, join: ', '}, h: {css: h, type: json}",
        )
    )
    assert (found["$id"], found["required"]) == ("urn:nephila:rule:shop:7", ["a"])
    valid = {
        "a": "x",
        "b": {"amount": 3.5, "currency": ""},
        "c": ["http://x/"],
        "d": [{"e": 1}],
        "f": False,
        "g": None,
        "h": [1],
    }
    validator = Draft202012Validator(found)
    assert validator.is_valid({**valid, "more": 1})
    for wrong in (
        {"a": None},
        {"b": 3.5},
        {"c": None},
        {"d": {"e": 1}},
        {"d": [{"e": 1.5}]},
        {"f": None},
        {"g": ["x"]},
    ):
        assert not validator.is_valid({**valid, **wrong}), wrong


def test_the_command_prints_a_schema_per_rule(capsys):
    """As JSON lines; a name selects one, and an unknown one is refused."""
    assert main(["rules", "item-schema", "rules"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {one["$id"] for one in printed} == {
        f"urn:nephila:rule:{one.name}:{one.rule.version}" for one in read_all([Path("rules")]) if one.rule.fields
    }
    assert main(["rules", "item-schema", "--rule", "ajax"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "items of the rule ajax"
    assert main(["rules", "item-schema", "--rule", "none"]) == 2
    assert "no rule 'none' with fields below rules" in capsys.readouterr().err
