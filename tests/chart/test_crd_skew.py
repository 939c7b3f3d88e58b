"""Releases of several versions share the CRDs: a later schema takes what an earlier operator has, and the reverse.

`Server` is what the API server does with a document: it fills in defaults, refuses or drops unknown keys, validates.
"""

from __future__ import annotations

import copy
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from nephila.kernel.documents import job_document
from nephila.kernel.runtime.errors import UsageError
from nephila_cluster.operator.status import Condition

from tools.crd_changes import FILES, ROOT, narrower, schema_of, since

SCHEMAS = {path.stem: schema_of(yaml.safe_load(path.read_text())) for path in sorted(FILES.glob("*.yaml"))}
FENCE = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").rglob("*.yaml"))]


class CoreLoader(yaml.SafeLoader):
    """YAML whose only truths are true and false: `off` is a key of a job."""


CoreLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if not tag.endswith(":bool") or first in "tTfF"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def documents() -> Iterator[dict[str, Any]]:
    """Each CrawlJob and ParseRule of the documentation and the examples."""
    for path in PAGES:
        text = path.read_text()
        for block in FENCE.findall(text) if path.suffix == ".md" else [text]:
            try:
                parts = list(yaml.load_all(block, CoreLoader))
            except yaml.YAMLError:
                continue
            for part in parts:
                if isinstance(part, dict) and part.get("kind") in ("CrawlJob", "ParseRule") and "spec" in part:
                    yield part


DOCUMENTS = list(documents())


class Refused(Exception):
    """The API server does not take the document."""


def defaulted(schema: dict[str, Any], value: Any) -> Any:
    """The document with the defaults of the schema."""
    if isinstance(value, dict):
        for name, below in schema.get("properties", {}).items():
            if name not in value and "default" in below:
                value[name] = copy.deepcopy(below["default"])
            if name in value:
                defaulted(below, value[name])
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for item in value:
            defaulted(schema["items"], item)
    return value


def pruned(schema: dict[str, Any], value: Any, path: str = "") -> Iterator[str]:
    """Take unknown keys away; their paths."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if isinstance(value, dict):
        more = schema.get("additionalProperties")
        for name in list(value):
            below = schema.get("properties", {}).get(name, more)
            if not isinstance(below, dict):
                del value[name]
                yield f"{path}.{name}"
            elif path or name != "metadata":
                yield from pruned(below, value[name], f"{path}.{name}")
    if isinstance(value, list):
        for item in value:
            yield from pruned(schema.get("items", {}), item, f"{path}[]")


def admitted(schema: Any, document: dict[str, Any], strict: bool = True) -> dict[str, Any]:
    """The document as it is stored; `strict`: as kubectl sends it. Raises `Refused`."""
    stored = defaulted(schema, copy.deepcopy(document))
    if (unknown := list(pruned(schema, stored))) and strict:
        raise Refused(f"unknown field {unknown[0]}")
    errors = [error.message for error in jsonschema.Draft7Validator(plain(schema)).iter_errors(stored)]
    if errors:
        raise Refused(errors[0])
    return stored


def plain(schema: Any) -> Any:
    """As JSON Schema of draft 7: a bound is exclusive by its number, a pattern is of texts alone."""
    if isinstance(schema, list):
        return [plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: plain(value) for key, value in schema.items() if key != "format"}
    if found.pop("exclusiveMinimum", False) is True:
        found["exclusiveMinimum"] = found.pop("minimum")
    return found


def optional(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of all optional keys below maps of a spec."""
    for name, below in schema.get("properties", {}).items():
        if name not in schema.get("required", ()):
            yield (*path, name)
        yield from optional(below, (*path, name))


def without(schema: Any, path: tuple[str, ...]) -> Any:
    """The schema of a version that did not have this key yet."""
    earlier = copy.deepcopy(schema)
    here = earlier["properties"]["spec"]
    for name in path[:-1]:
        here = here["properties"][name]
    del here["properties"][path[-1]]
    return earlier


def test_documents_are_enough_to_judge_by() -> None:
    assert {one["kind"] for one in DOCUMENTS} == {"CrawlJob", "ParseRule"}
    assert len(DOCUMENTS) > 5


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_the_api_server_adds_nothing_to_a_document(number: int) -> None:
    """An earlier operator refuses a key that it does not know, so the schema of a later one must not write it."""
    document = DOCUMENTS[number]
    schema = SCHEMAS[document["kind"].lower() + "s"]
    assert admitted(schema, document) == document


@pytest.mark.parametrize("kind", SCHEMAS)
def test_no_schema_has_a_default(kind: str) -> None:
    assert "'default':" not in repr(SCHEMAS[kind])


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_with_one_key_less_is_an_earlier_one(kind: str) -> None:
    """For each optional key: a later schema that adds it is wider, and takes the documents of the earlier one."""
    later = SCHEMAS[kind]
    keys = list(optional(later["properties"]["spec"]))
    assert len(keys) > 10
    for key in keys:
        earlier = without(later, key)
        assert list(narrower(earlier, later)) == [], key
        assert list(narrower(later, earlier)) == [f".spec.{'.'.join(key)}: is gone"], key


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_a_document_of_an_earlier_schema_is_one_of_the_later(number: int) -> None:
    """A document is stored by the earlier schema without its newest key; the later one takes it as it is."""
    document = DOCUMENTS[number]
    later = SCHEMAS[document["kind"].lower() + "s"]
    for key in [(name,) for name in document["spec"] if (name,) in set(optional(later["properties"]["spec"]))]:
        earlier = without(later, key)
        with pytest.raises(Refused, match=rf"unknown field \.spec\.{key[0]}"):
            admitted(earlier, document)  # kubectl says so, at once
        try:
            stored = admitted(earlier, document, strict=False)  # another client is not told
        except Refused:
            continue  # the rest alone is no document
        assert key[0] not in stored["spec"]
        assert admitted(later, stored) == stored


def test_an_earlier_operator_refuses_the_key_and_keeps_the_rest() -> None:
    """Why nothing may be filled in: the reader of a document knows its own keys only."""
    document = next(one for one in DOCUMENTS if one["kind"] == "CrawlJob")
    newer = copy.deepcopy(document)
    newer["spec"]["keyOfALaterVersion"] = True
    with pytest.raises(UsageError, match="unknown key"):
        job_document.from_json(newer)


def test_the_status_of_a_later_operator_is_taken() -> None:
    """With a condition, a state and a key that this schema does not know: the key alone is dropped."""
    document = next(one for one in DOCUMENTS if one["kind"] == "CrawlJob")
    condition = {"type": "Throttled", "status": "Perhaps", "reason": "New", "message": ""}
    status = {"state": "sleeping", "conditions": [condition], "keyOfALaterVersion": 1}
    stored = admitted(SCHEMAS["crawljobs"], {**document, "status": status}, strict=False)
    assert stored["status"] == {"state": "sleeping", "conditions": [condition]}
    assert "Throttled" not in repr(Condition)


@pytest.mark.parametrize(
    ("earlier", "later", "lines"),
    [
        ({"type": "string"}, {"type": "integer"}, [".a: type was string, is integer"]),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, [".a: without b"]),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, []),
        ({"enum": ["a"]}, {}, []),
        ({}, {"enum": ["a"]}, [".a: without other words"]),
        ({"maxLength": 9}, {"maxLength": 8}, [".a: maxLength was 9, is 8"]),
        ({"maxLength": 9}, {"maxLength": 10}, []),
        ({"minimum": 1}, {"minimum": 0}, []),
        ({}, {"minItems": 1}, [".a: minItems was None, is 1"]),
        ({}, {"pattern": "a"}, [".a: pattern was None, is a"]),
        ({}, {"default": 1}, [".a: 1 is filled in"]),
        ({}, {"properties": {"b": {"default": 1}}}, [".a.b: 1 is filled in"]),
        ({}, {"properties": {"b": {"items": {"properties": {"c": {"default": 1}}}}}}, [".a.b[].c: 1 is filled in"]),
        ({"properties": {"b": {}}}, {"properties": {}}, [".a.b: is gone"]),
        ({}, {"properties": {"b": {}}, "required": ["b"]}, [".a: b is required"]),
        ({}, {"x-kubernetes-validations": [{"rule": "r", "message": "m"}]}, [".a: a new condition, m"]),
        ({"items": {"type": "string"}}, {"items": {"type": "object"}}, [".a[]: type was string, is object"]),
        ({"x-kubernetes-preserve-unknown-fields": True}, {"type": "object"}, [".a: no longer kept as it is"]),
    ],
)
def test_a_change_is_wider_or_has_a_line(earlier: Any, later: Any, lines: list[str]) -> None:
    found = list(narrower({"properties": {"a": earlier}}, {"properties": {"a": later}}))
    assert set(lines) <= set(found)
    assert bool(lines) == bool(found)


def test_the_schemas_are_wider_than_those_of_the_last_release() -> None:
    """Within one X, and within one Y while X is 0 (docs/versions.md)."""
    command = ["git", "tag", "--list", "v*", "--sort=-version:refname"]
    tags = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    now = yaml.safe_load((ROOT / "charts" / "nephila" / "Chart.yaml").read_text())["version"].split(".")
    kept = 2 if now[0] == "0" else 1
    # Before the first release there is none to compare with.
    compared = [tag for tag in tags[:1] if tag.removeprefix("v").split(".")[:kept] == now[:kept]]
    assert {tag: since(tag) for tag in compared} == {tag: [] for tag in compared}


def test_every_file_of_the_chart_is_compared() -> None:
    assert {path.stem for path in Path(FILES).iterdir()} == set(SCHEMAS)
