"""The author of a CrawlJob, for the log of changes. Pure.

Kubernetes tells nobody but admission which user has written an object. So a name is taken from the annotation
`nephila.dev/author` only where the admission policy of the chart holds it equal to that user. Else the author is the
client that the API server notes in `managedFields`: a program, as kubectl or argocd-controller, and no person.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

ANNOTATION: Final = "nephila.dev/author"
MAX_CHARS: Final = 253
ENTRIES: Final = 100
"""Entries of `managedFields` that are read."""


def author_of(body: Mapping[str, Any], *, by_annotation: bool) -> str:
    """For whom the operator applies the spec; empty where the resource does not tell. `by_annotation`: the admission
    policy checks the annotation."""
    metadata = body["metadata"]
    name = str((metadata.get("annotations") or {}).get(ANNOTATION, "")) if by_annotation else ""
    return _one_line(name) or _manager(metadata.get("managedFields") or [])


def _manager(entries: list[Mapping[str, Any]]) -> str:
    """The client that wrote the spec last."""
    writers = [
        (str(entry.get("time", "")), str(entry.get("manager", "")))
        for entry in entries[:ENTRIES]
        if not entry.get("subresource") and "f:spec" in (entry.get("fieldsV1") or {})
    ]
    manager = _one_line(max(writers, default=("", ""))[1])
    return f"client {manager}" if manager else ""


def _one_line(text: str) -> str:
    return "".join(char for char in text if char.isprintable())[: MAX_CHARS - len("client ")].strip()
