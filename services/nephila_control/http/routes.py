"""The HTTP routes of the methods of `Control`, read by server, client and OpenAPI document; and the codes of errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_type_hints

import msgspec

from nephila_control import api

PREFIX = "/api/v1"
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """One operation over HTTP."""

    method: str
    path: str
    """Below PREFIX."""
    operation: str
    """The method of `Control`."""
    request: type[msgspec.Struct]
    answer: type[msgspec.Struct]

    @property
    def path_fields(self) -> list[str]:
        """Fields of the request that are parts of the path."""
        return _FIELD.findall(self.path)

    @property
    def has_body(self) -> bool:
        """Whether fields of the request are a JSON body."""
        return self.method in ("POST", "PATCH") and len(self.request.__struct_fields__) > len(self.path_fields)

    @property
    def summary(self) -> str:
        """One line about the operation."""
        return str(getattr(api.Control, self.operation).__doc__)


def _routes() -> Iterator[ApiRoute]:
    for operation, method in vars(api.Control).items():
        if hasattr(method, "http"):
            verb, path = method.http
            types = get_type_hints(method)
            yield ApiRoute(verb, path, operation, types["request"], types["return"])


ROUTES = tuple(_routes())
"""Every operation once."""


class ErrorBody(msgspec.Struct, kw_only=True):
    """Why a request was refused."""

    code: str
    """One of CODES."""
    message: str
    """One line for people, which names the remedy where there is one."""
    where: str = ""
    """The part of the request that is wrong, as $.urls[3]."""


class ErrorAnswer(msgspec.Struct, kw_only=True):
    """The one shape of all errors."""

    error: ErrorBody


CODES: dict[str, int] = {
    "invalid": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "timeout": 408,
    "wrong_value": 409,
    "refused": 409,
    "too_large": 413,
    "too_many_tries": 429,
    "internal": 500,
    "unavailable": 503,
}
"""Code of an error → status of the HTTP answer. invalid: the request does not have the form that the OpenAPI document
states. wrong_value: it has, and a value in it cannot be used, as an expression that RE2 cannot read."""


def error_json(code: str, message: str, where: str = "") -> bytes:
    """The body of an error."""
    return msgspec.json.encode(ErrorAnswer(error=ErrorBody(code=code, message=message, where=where)))


def to_http(route: ApiRoute, request: msgspec.Struct) -> tuple[dict[str, str], dict[str, Any]]:
    """The request as (fields of the path, other fields)."""
    fields: dict[str, Any] = msgspec.to_builtins(request)
    return {name: str(fields.pop(name)) for name in route.path_fields}, fields
