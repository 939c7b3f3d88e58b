"""Requests and answers about what happened to a program or system."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from nephila_control.requests import Request

EventKind = Literal[
    "program_started",
    "member_joined",
    "member_restarted",
    "member_draining",
    "member_left",
    "member_silent",
    "member_not_ready",
    "member_ready",
    "takeover",
    "store_away",
    "store_back",
    "job_failed",
]
"""program_started: the program that answers. member_left: it ended on its own. takeover: a member has partitions that
another one had. job_failed: a job ended with nothing stored."""
MAX_EVENTS = 500
"""Events that are remembered."""


class ListEvents(Request):
    """Events, the newest first."""

    kind: Literal["", "program", "member", "takeover", "store", "job"] = ""
    """Events whose kind begins so; empty: all."""
    limit: Annotated[int, Meta(ge=1, le=MAX_EVENTS)] = 100


class Event(msgspec.Struct, kw_only=True):
    """Something that happened to the program or system."""

    at: float
    """Seconds since 1970 UTC."""
    kind: EventKind
    subject: str
    """Name of the job, SERVICE/NAME of the member, or the store."""
    text: str = ""
    """Cause or figures, in one line."""


class EventList(msgspec.Struct, kw_only=True):
    """Some events. They are those since the start of the program that answers; the last 500 at most."""

    events: list[Event]
