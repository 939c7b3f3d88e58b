"""Files of documents - jobs, rules - read strictly: each document is built by its own kind, whatever the file holds.

Invariants: every mistake is one line with its place; a file holds one document at least; of documents that are told
together no two have one name. What a document says is for its builder to know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from nephila.kernel.documents.field_types import API_VERSION
from nephila.kernel.documents.yaml import Node, parse
from nephila.kernel.runtime.errors import UsageError, UsageErrors


class Named(Protocol):
    """A document that was read and found good."""

    @property
    def name(self) -> str:
        """Its own among all of its kind."""

    @property
    def place(self) -> str:
        """Where it stands: file:line:column."""


D = TypeVar("D", bound=Named)


def load(data: bytes, name: str, build: Callable[[Node], D], what: str, kind: str) -> list[D]:
    """The documents of a file, at least one. `what` is the word for one, `kind` its name in the document. Raises
    `UsageError` in one line that begins with file:line:column, with all other mistakes of the file as its `others`."""
    errors, documents = UsageErrors(), []
    for node in parse(data, name):
        with errors:
            documents.append(build(node))
    errors.raise_all()
    if not documents:
        raise UsageError(f"{name}: there is no {what} in it; it begins with apiVersion: {API_VERSION}, kind: {kind}")
    return documents


def distinct(documents: Iterable[D], what: str) -> list[D]:
    """The same, unless two of them have one name."""
    found: dict[str, D] = {}
    for document in documents:
        first = found.setdefault(document.name, document)
        if first is not document:
            raise UsageError(f"{document.place}: the {what} {document.name!r} comes twice, first at {first.place}")
    return list(found.values())
