"""Reads files of job and rule documents. A function given by the caller builds each document.

Invariants: each error is one line with file:line:column; a file holds at least one document; no two documents that are
loaded together have the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from nephila.kernel.documents.field_types import API_VERSION
from nephila.kernel.documents.yaml import Node, parse
from nephila.kernel.runtime.errors import UsageError, UsageErrors


class Named(Protocol):
    """A valid document."""

    @property
    def name(self) -> str:
        """Unique among the documents of its kind."""

    @property
    def location(self) -> str:
        """file:line:column of the document."""


D = TypeVar("D", bound=Named)


def load(data: bytes, name: str, build: Callable[[Node], D], what: str, kind: str) -> list[D]:
    """The documents of a file, at least one. `what` names one in error lines, `kind` is its value of the key kind.
    Raises `UsageError` in one line that begins with file:line:column; its `others` are the further errors."""
    errors, documents = UsageErrors(), []
    for node in parse(data, name):
        with errors:
            documents.append(build(node))
    errors.raise_all()
    if not documents:
        raise UsageError(f"{name}: there is no {what} in it; it begins with apiVersion: {API_VERSION}, kind: {kind}")
    return documents


def distinct(documents: Iterable[D], what: str) -> list[D]:
    """The documents as a list. Raises `UsageError` if two of them have the same name."""
    by_name: dict[str, D] = {}
    for document in documents:
        first = by_name.setdefault(document.name, document)
        if first is not document:
            raise UsageError(
                f"{document.location}: the {what} {document.name!r} comes twice, first at {first.location}"
            )
    return list(by_name.values())
