"""The OpenAPI 3.1 document of the control API, made of the declared operations."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec
from nephila import __version__
from nephila.kernel.documents.job_schema import CrawlJob
from nephila.kernel.documents.struct_reader import Section
from nephila_harvest.sites.site_schema import Site
from nephila_rules.runtime.rule_schema import ParseRule

from nephila_control.api import OPERATIONS
from nephila_control.declaration import PREFIX, Operation
from nephila_control.http.change_feeds import FORMATS
from nephila_control.http.errors import CODES, ErrorAnswer
from nephila_control.http.json_schema import describe, json_schema

DOCUMENTS: dict[type[Section], tuple[tuple[str, str, str], ...]] = {
    CrawlJob: (("ApplyJob", "job", "Document"), ("JobDetail", "document", "Document")),
    ParseRule: (("ApplyRules", "rules", "Document"), ("Rule", "document", "Document")),
    Site: (
        ("ApplySites", "sites", "Document"),
        ("Site", "document", "Document"),
        ("ApplyDirectory", "directory", "Directory"),
    ),
}
"""Kind of a document → the requests and answers that contain it, their fields, and the part that these hold."""
REF = "#/components/schemas/{name}"


@cache
def document_bytes() -> bytes:
    """The first call costs some 100 ms for the schemas of documents."""
    return msgspec.json.encode(document())


def document() -> dict[str, Any]:
    types = [*dict.fromkeys(operation.answer for operation in OPERATIONS.values()), ErrorAnswer]
    bodies = [operation.request for operation in OPERATIONS.values() if operation.has_body]
    _, schemas = msgspec.json.schema_components([*types, *bodies], ref_template=REF)
    components = msgspec.json.decode(msgspec.json.encode(schemas))  # a default may be a tuple, which JSON does not have
    paths: dict[str, Any] = {}
    for operation in OPERATIONS.values():
        paths.setdefault(PREFIX + operation.path, {})[operation.method.lower()] = _operation(operation, components)
    for name in FORMATS:
        paths[f"{PREFIX}/changes/feed/{name}"] = {"get": _feed(name)}
    for schema in components.values():
        describe(schema)
        for member in schema.get("properties", {}).values():
            refuses_empty = member.get("minLength") or not re.search(member.get("pattern", ""), "")
            if member.get("default") == "" and refuses_empty:
                del member["default"]  # a key that is left out, not a text that could be given
    for kind, uses in DOCUMENTS.items():
        components |= _document_schemas(kind)
        for name, field, part in uses:
            whole = components[name]["properties"][field]
            free = whole.get("items", whole)
            free.clear()
            free["$ref"] = REF.format(name=f"{kind.__name__}{part}")
    # A body is the request without the fields that its path names.
    for operation in OPERATIONS.values():
        if operation.has_body:
            schema = components[operation.request.__name__]
            for name in operation.path_fields:
                schema["properties"].pop(name, None)
                schema["required"] = [key for key in schema.get("required", ()) if key != name]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Nephila control API",
            "version": __version__,
            "description": "Jobs, sites, rules and answers of a crawler: one program, or a system over Kafka.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": {name: components[name] for name in sorted(components)},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "On a TCP port. A Unix socket needs none: only its owner may connect.",
                }
            },
        },
    }


def _document_schemas(kind: type[Section]) -> dict[str, Any]:
    """Makes components of the JSON Schema of a document; each part gets the name of the document as its prefix."""
    schema = json_schema(kind)
    parts = schema.pop("$defs")
    del schema["$schema"]

    def renamed(node: Any) -> Any:
        if isinstance(node, list):
            return [renamed(item) for item in node]
        if not isinstance(node, dict):
            return node
        return {
            key: REF.format(name=kind.__name__ + value.rpartition("/")[2]) if key == "$ref" else renamed(value)
            for key, value in node.items()
        }

    named = {f"{kind.__name__}{name}": renamed(part) for name, part in parts.items()}
    return named | {f"{kind.__name__}Document": renamed(schema)}


def _operation(operation: Operation, components: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {"operationId": operation.name, "summary": operation.summary.rstrip(".")}
    if parameters := _parameters(operation):
        content["parameters"] = parameters
    if operation.has_body:
        content["requestBody"] = {
            # An absent body is an empty object.
            "required": bool(
                set(components[operation.request.__name__].get("required", ())) - set(operation.path_fields)
            ),
            "content": {"application/json": {"schema": {"$ref": REF.format(name=operation.request.__name__)}}},
        }
    content["responses"] = {
        "200": {
            "description": (operation.answer.__doc__ or "").split("\n")[0].rstrip("."),
            "content": {"application/json": {"schema": {"$ref": REF.format(name=operation.answer.__name__)}}},
        },
        **_errors(),
    }
    return content


def _feed(name: str) -> dict[str, Any]:
    """The parameters of a feed are those of list_changes."""
    listing = OPERATIONS["list_changes"]
    kind = FORMATS[name][1].partition(";")[0]
    return {
        "operationId": f"{name}_feed",
        "summary": f"The newest changes, for feed readers ({name})",
        "parameters": _parameters(listing),
        "responses": {
            "200": {"description": "A feed", "content": {kind: {"schema": {"type": _type_of(kind)}}}},
            **_errors(),
        },
    }


def _type_of(kind: str) -> str:
    return "object" if kind.endswith("json") else "string"


def _errors() -> dict[str, Any]:
    codes: dict[int, list[str]] = {}
    for code, status in CODES.items():
        codes.setdefault(status, []).append(code)
    return {str(status): _error(" or ".join(words)) for status, words in codes.items() if "internal" not in words}


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    (schema,), components = msgspec.json.schema_components([operation.request], ref_template=REF)
    properties = components[operation.request.__name__]["properties"] if "$ref" in schema else schema["properties"]
    required = components[operation.request.__name__].get("required", ())
    parameters = []
    for name, kind in properties.items():
        if name in operation.path_fields:
            parameters.append({"name": name, "in": "path", "required": True, "schema": kind})
        elif not operation.has_body:
            parameters.append({"name": name, "in": "query", "required": name in required, "schema": kind})
    return parameters


def _error(code: str) -> dict[str, Any]:
    return {
        "description": code.replace("_", " "),
        "content": {"application/json": {"schema": {"$ref": REF.format(name=ErrorAnswer.__name__)}}},
    }
