"""Requests of all subjects refuse unknown fields. The types of a subject have a file of their own."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Name = Annotated[
    str, Meta(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f]+$", description="Name of a job or of a rule.")
]
Url = Annotated[str, Meta(max_length=100_000)]
"""A seed in the characters of any language, percent-encoded at most this long."""


class Request(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a client sends; an unknown field is an error."""


class Empty(Request):
    """A request without fields."""
