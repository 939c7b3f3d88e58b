"""Errors of the API have one shape, so that a client needs one way to read them."""

from __future__ import annotations

import msgspec


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
    return msgspec.json.encode(ErrorAnswer(error=ErrorBody(code=code, message=message, where=where)))
