"""Writes the files of the chart nephila-crds, generated from the structs of job and rule documents and of their status.

    python -m tools.crds [--check]

The schemas are structural: every field has a type. A value that may be written in two ways (a URL or a map, one value
or a list) and a type that contains itself have none; such a field is kept as it is, and the operator checks it.

Releases of several versions share the CRDs, so a schema adds nothing to a document and refuses no status: a default is
a sentence of the description, since the API server would write the key into documents that an earlier operator reads,
and words of a status are no enum, since a later operator may have more (docs/adr/0244).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import inspect
from nephila.kernel.documents import field_types, job_schema
from nephila.kernel.documents.struct_reader import Section, type_of, unwrapped
from nephila_cluster.operator.status import Condition, CrawlJobStatus, ParseRuleStatus
from nephila_control.http.json_schema import field_texts
from nephila_rules.runtime import rule_schema

TARGET = Path(__file__).parents[1] / "charts" / "nephila" / "charts" / "nephila-crds" / "files"
STATUS = CrawlJobStatus.__module__
"""The structs of what the operator writes."""
GROUP, VERSION = "nephila.dev", "v1"
OPAQUE = {"x-kubernetes-preserve-unknown-fields": True}
READY = '.status.conditions[?(@.type=="Ready")].status'
MESSAGE = '.status.conditions[?(@.type=="Accepted")].message'
CRON_FIELD = r"[0-9A-Za-z*,/#?-]+"
SECRET_NAME = "(?i)(pass|pwd|secret|token|pin$)"  # noqa: S105 - a pattern

KINDS: dict[str, dict[str, Any]] = {
    "CrawlJob": {
        "document": job_schema.CrawlJob,
        "status": CrawlJobStatus,
        "plural": "crawljobs",
        "short": ["crawl"],
        "columns": [
            ("State", "string", ".status.state", 0),
            ("Ready", "string", READY, 0),
            ("Stored", "integer", ".status.counts.stored", 0),
            ("Queued", "integer", ".status.counts.queued", 0),
            ("Failed", "integer", ".status.counts.failed", 0),
            ("Rate", "number", ".status.rate", 0),
            ("Message", "string", MESSAGE, 1),
            ("Age", "date", ".metadata.creationTimestamp", 0),
        ],
    },
    "ParseRule": {
        "document": rule_schema.ParseRule,
        "status": ParseRuleStatus,
        "plural": "parserules",
        "short": ["prule"],
        "columns": [
            ("Ready", "string", READY, 0),
            ("Version", "integer", ".status.version", 0),
            ("Pages", "integer", ".status.pages", 0),
            ("Fill", "number", ".status.fillRate", 0),
            ("Accepted", "string", '.status.conditions[?(@.type=="Accepted")].reason', 0),
            ("Message", "string", MESSAGE, 1),
            ("Age", "date", ".metadata.creationTimestamp", 0),
        ],
    },
}
"""Kind → its structs, names and printer columns (name, type, path, priority: 1 is shown with -o wide)."""

RULES: dict[str, list[tuple[str, str]]] = {
    "Recrawl": [
        ("has(self.min) == has(self.max)", "min and max belong together"),
        ("!(has(self.every) && has(self.min))", "every and min and max exclude each other"),
    ],
    "JobSpec": [
        (
            "!has(self.recrawl) || !has(self.recrawl.every) || !has(self.schedule)",
            "recrawl.every and schedule exclude each other",
        ),
        (
            "!has(self.recrawl) || has(self.recrawl.every) || has(self.recrawl.min) || has(self.schedule)",
            "recrawl has no frequency; give min and max, every, or spec.schedule",
        ),
    ],
    "LoginField": [
        (
            "(has(self.value) ? 1 : 0) + (has(self.env) ? 1 : 0) + (has(self.file) ? 1 : 0) == 1",
            "a field needs one of value, env and file",
        ),
        (
            f"!has(self.value) || !self.name.matches('{SECRET_NAME}')",
            "this looks like a secret, which would be stored with the job; give it by env or file",
        ),
    ],
}
"""Struct → its CEL rules: what `__post_init__` of the struct checks."""
ONE_OF = {"RuleSpec": ("fields", "outlinks", "pagination")}
"""Struct → keys of which it needs at least one. CEL does not see fields without a type."""


def crd(kind: str) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind."""
    facts = KINDS[kind]
    document: type[Section] = facts["document"]
    spec = next(one for one in type_of(document).fields if one.name == "spec")
    assert document.__doc__ is not None
    root = {
        "description": document.__doc__.partition(" Generated")[0],
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {"description": "The whole desired state.", **schema_of(spec.type, ())},
            "status": {"description": _line(facts["status"]), **schema_of(type_of(facts["status"]), ())},
        },
    }
    columns = [
        {"name": name, "type": type_, "jsonPath": path} | ({"priority": priority} if priority else {})
        for name, type_, path, priority in facts["columns"]
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{facts['plural']}.{GROUP}",
            "annotations": {"helm.sh/resource-policy": "keep"},
            "labels": {"app.kubernetes.io/name": "nephila", "app.kubernetes.io/part-of": "nephila"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": facts["plural"],
                "singular": kind.lower(),
                "shortNames": facts["short"],
                "categories": ["nephila"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": columns,
                    "schema": {"openAPIV3Schema": root},
                }
            ],
        },
    }


def schema_of(wanted: inspect.Type, above: tuple[type, ...]) -> dict[str, Any]:
    """The structural schema of a type. `above`: the structs that contain it."""
    kind, notes = unwrapped(wanted)
    if isinstance(kind, inspect.StructType):
        return _struct(kind, above)
    if "oneOrMore" in notes:
        return dict(OPAQUE)
    match kind:
        case inspect.ListType():
            found = {"type": "array", "items": schema_of(kind.item_type, above)}
            if isinstance(kind.item_type, inspect.StructType) and kind.item_type.cls is Condition:
                found |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
            return found | _given(minItems=kind.min_length, maxItems=kind.max_length or notes.get("maxItems"))
        case inspect.DictType():
            found = {"type": "object", "additionalProperties": schema_of(kind.value_type, above)}
            return found | _given(minProperties=kind.min_length, maxProperties=kind.max_length)
        case inspect.LiteralType():
            return {"type": "string", "enum": _in_order(wanted)}
        case inspect.StrType():
            return _text(kind, notes)
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType():
            return {"type": "integer", "format": "int64"} | _given(minimum=kind.ge, maximum=kind.le)
        case inspect.FloatType():
            return {"type": "number", "minimum": kind.gt, "exclusiveMinimum": True, "maximum": kind.le}
    raise TypeError(f"no structural schema of {kind}")


def _struct(kind: inspect.StructType, above: tuple[type, ...]) -> dict[str, Any]:
    cls: Any = kind.cls
    if cls.SHORT:
        only = {"minProperties": 1, "maxProperties": 1} if cls.ONLY_ONE else {}
        first, notes = unwrapped(kind.fields[0].type)
        assert isinstance(first, inspect.StrType)
        pattern = first.pattern or notes.get("pattern")
        return OPAQUE | only | _given(maxLength=first.max_length, pattern=pattern)
    if cls in above:
        return dict(OPAQUE)
    texts = field_texts(cls)
    properties = {}
    for field in kind.fields:
        schema = schema_of(field.type, (*above, cls))
        text = texts[field.encode_name]
        if cls.__module__ == STATUS:
            schema.pop("enum", None)
        elif (default := _default(field)) is not None:
            text = f"{text} Default: {_written(default)}."
        properties[field.encode_name] = {"description": text, **schema}
    found: dict[str, Any] = {"type": "object", "properties": properties}
    if required := [field.encode_name for field in kind.fields if field.required]:
        found["required"] = required
    if keys := ONE_OF.get(cls.__name__):
        found["anyOf"] = [{"required": [key]} for key in keys]
    if rules := RULES.get(cls.__name__):
        found["x-kubernetes-validations"] = [{"rule": rule, "message": message} for rule, message in rules]
    return found


def _text(kind: inspect.StrType, notes: dict[str, Any]) -> dict[str, Any]:
    pattern = kind.pattern or notes.get("pattern")
    if notes.get("orZero"):
        # The bounds are those of a number, the pattern that of a text.
        return {"x-kubernetes-int-or-string": True, "minimum": 0, "maximum": 0, "maxLength": 100, "pattern": pattern}
    found = {"type": "string"} | _given(minLength=kind.min_length, maxLength=kind.max_length, pattern=pattern)
    if notes.get("check") is field_types.check_expression:
        # `matches` fails for an expression that RE2 cannot compile, and a rule that fails refuses the value.
        found["x-kubernetes-validations"] = [
            {"rule": "''.matches(self) ? true : true", "message": "this is not a valid RE2 expression"}
        ]
    if notes.get("check") is job_schema._schedule:
        rule = rf"self.matches('^\\s*({CRON_FIELD}\\s+){{4}}{CRON_FIELD}\\s*$')"
        found["x-kubernetes-validations"] = [{"rule": rule, "message": "a schedule has five fields of cron"}]
    return found


def _default(field: inspect.Field) -> Any:
    """The default of a document; None where it is empty, "not given" or a section of its own."""
    if field.required:
        return None
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return None if value in (None, "", [], {}) or isinstance(value, Section) else value


def _written(value: Any) -> str:
    """A default as a document has it."""
    return value if isinstance(value, str) and value.strip() else json.dumps(value)


def _in_order(wanted: inspect.Type) -> list[str]:
    kind, _ = unwrapped(wanted)
    assert isinstance(kind, inspect.LiteralType)
    return sorted(map(str, kind.values))


def _given(**keywords: Any) -> dict[str, Any]:
    return {key: value for key, value in keywords.items() if value is not None}


def _line(cls: type[Section]) -> str:
    assert cls.__doc__ is not None
    return cls.__doc__


def generate() -> dict[Path, str]:
    """Path of each file → its content."""
    head = "# Generated by tools/crds.py from the structs of the documents; do not edit.\n"
    return {
        TARGET / f"{facts['plural']}.yaml": head + yaml.safe_dump(crd(kind), sort_keys=False, width=140)
        for kind, facts in KINDS.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when a file differs")
    check = parser.parse_args().check
    found = generate()
    stale = [path.name for path, text in found.items() if not path.exists() or path.read_text() != text]
    if check and stale:
        sys.exit(f"{TARGET}: {', '.join(stale)} differ from the structs: run `make chart`")
    TARGET.mkdir(parents=True, exist_ok=True)
    for path, text in found.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
