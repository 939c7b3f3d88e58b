"""The JSON Schema (draft 2020-12) of the items of a rule, for readers of items: exports, topics `items.<rule>`.

The id names the rule and its version, which each item carries. A field without a value is null unless it is required;
an item may have further fields, such as those of keyword schemes.
"""

from __future__ import annotations

from typing import Any, Final

from nephila_rules.runtime.spec import ItemField, Rule

_TYPES: Final[dict[str, dict[str, Any]]] = {
    "text": {"type": "string"},
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "price": {
        "type": "object",
        "properties": {"amount": {"type": "number"}, "currency": {"type": "string"}},
        "required": ["amount", "currency"],
    },
    "date": {"type": "string", "description": "a date or time, ISO 8601"},
    "url": {"type": "string", "description": "an absolute URL"},
    "bool": {"type": "boolean"},
    "json": {},
}


def schema_id(name: str, version: int) -> str:
    """The id of the schema of a version of a rule."""
    return f"urn:nephila:rule:{name}:{version}"


def item_schema(rule: Rule) -> dict[str, Any]:
    """The schema of the items of a rule, with the fields of its second pages."""
    second = {
        field.name: _of_field(field, optional=True) for follow_up in rule.follow_ups for field in follow_up.rule.fields
    }
    schema = _object(rule.fields)
    schema["properties"] = {**second, **schema["properties"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": schema_id(rule.name, rule.version),
        "title": f"items of the rule {rule.name}",
        **schema,
    }


def _object(fields: tuple[ItemField, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {field.name: _of_field(field) for field in fields},
        "required": [field.name for field in fields if field.required],
    }


def _of_field(field: ItemField, *, optional: bool = False) -> dict[str, Any]:
    if field.exists:
        return {"type": "boolean"}
    if field.join is not None:
        schema: dict[str, Any] = {"type": "string"}
    else:
        schema = _object(field.fields) if field.fields else _TYPES[field.type]
        if field.many:
            return {"type": "array", "items": schema}
    if not schema or (field.required and not optional):
        return schema
    return {**schema, "type": [schema["type"], "null"]}
