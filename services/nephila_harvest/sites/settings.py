"""Settings as leaves: a flat map from the path of a key, like scope.maxDepth, to its value and its place in a file.

A leaf is the unit of inheritance: a directory that gives scope.maxDepth keeps the scope.mode of its site. Lists and the
sections login and browser are one leaf each. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from nephila.kernel.documents.struct_reader import Section, type_of, unwrapped
from nephila.kernel.documents.yaml import Node

from nephila_harvest.sites.site_schema import SiteSettings

_OWN = ("name", "url", "inherits", "directories")
"""Keys of a site or directory that are no settings."""
_NESTED = ("scope", "politeness", "hostBudget", "domains", "traps", "parse")
"""Sections whose keys are inherited one by one."""


class Leaf(NamedTuple):
    """A value that a document gives."""

    value: Any
    """As JSON has it."""
    location: str
    """file:line:column of its key."""


Leaves = dict[str, Leaf]


def leaves(node: Node, section: Section) -> Leaves:
    """The settings that a site or directory gives. `node` was read as `section`."""
    return dict(_leaves(node, section, ""))


def _leaves(node: Node, section: Section, prefix: str) -> Iterator[tuple[str, Leaf]]:
    assert isinstance(node.value, dict)
    names = {field.encode_name: field.name for field in msgspec.structs.fields(section)}
    for key, entry in node.value.items():
        if not prefix and key in _OWN:
            continue
        value = getattr(section, names[key])
        if key in _NESTED and not prefix:
            yield from _leaves(entry.value, value, f"{key}.")
        else:
            yield prefix + key, Leaf(msgspec.to_builtins(value), entry.key.location)


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The document's maps of flat values."""
    document: dict[str, Any] = {}
    for path, value in values.items():
        section, _, key = path.rpartition(".")
        (document.setdefault(section, {}) if section else document)[key] = value
    return document


def paths() -> list[str]:
    """The paths of all settings, in the order of the document."""
    names = []
    for field in type_of(SiteSettings).fields:
        kind, _ = unwrapped(field.type)
        if field.encode_name in _NESTED:
            names += [f"{field.encode_name}.{inner.encode_name}" for inner in kind.fields]  # type: ignore[attr-defined]
        else:
            names.append(field.encode_name)
    return names
