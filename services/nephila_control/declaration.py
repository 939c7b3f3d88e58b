"""How an operation of the control API is declared: once, with everything that the programs read of it.

An operation that stood in several tables of names could be open in one and unknown to another. Here method, path, role,
tenants, log, types and words stand in one declaration, and server, client, document, guard and console read it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, NamedTuple, TypeVar, cast, get_type_hints

import msgspec

from nephila_control.access.roles import Role

PREFIX: Final = "/api/v1"
_FIELD = re.compile(r"\{(\w+)\}")
M = TypeVar("M", bound=Callable[..., Any])


class Logged(NamedTuple):
    """What the log of changes says about an operation."""

    subject: Callable[[Any], str]
    """The object of a request."""
    state: Callable[[Any, Any], Awaitable[Any]] | None = None
    """Reads the object of a request from a `Control`, before and after the change; None: the answer says what changed.
    """
    result: Callable[[Any], str] = lambda answer: ""
    """The change in the words of the answer; used without a state."""
    author: Callable[[Any], str] = lambda request: ""
    """For whom the caller makes the change, as the request says."""
    batches: bool = False
    """One change comes as many requests: those of one caller within a minute are one entry of the log."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the control API."""

    name: str
    """The method of `Control`."""
    method: str
    path: str
    """Below PREFIX. A field of the request that the path names is part of the path; of a GET and a DELETE the others
    are query parameters, of a POST and a PATCH they are the JSON body."""
    role: Role
    """The least role that may use the operation."""
    part: str
    """The class that implements the operation, as "module:name"; the first request loads it."""
    tenants: bool
    """Whether callers limited to tenants may use the operation: it shows and changes nothing of others."""
    log: Logged | None
    """None: the operation changes nothing."""
    request: type[msgspec.Struct]
    answer: type[msgspec.Struct]
    summary: str
    """One line about the operation."""

    @property
    def path_fields(self) -> list[str]:
        """Fields of the request that are parts of the path."""
        return _FIELD.findall(self.path)

    @property
    def has_body(self) -> bool:
        """Whether fields of the request are a JSON body."""
        return self.method in ("POST", "PATCH") and len(self.request.__struct_fields__) > len(self.path_fields)

    async def of(self, control: Any, request: Any) -> Any:
        """The answer of a `Control`."""
        return await getattr(control, self.name)(request)


class Operated:
    """A class whose operations are declared: each of them that a subclass does not write is a call of `call`."""

    async def call(self, operation: Operation, request: Any) -> Any:
        """Answer a request."""
        raise NotImplementedError


def operation(
    method: str, path: str, role: Role, part: str, *, tenants: bool = False, log: Logged | None = None
) -> Callable[[M], M]:
    """Declare an operation by the signature and the docstring of a method. See `Operation` for the arguments."""

    def declare(signature: M) -> M:
        types, summary = get_type_hints(signature), str(signature.__doc__)
        name = signature.__name__
        declared = Operation(name, method, path, role, part, tenants, log, types["request"], types["return"], summary)

        @wraps(signature)
        async def call(self: Operated, request: Any) -> Any:
            return await self.call(declared, request)

        call.declared = declared  # type: ignore[attr-defined]
        return cast(M, call)

    return declare
