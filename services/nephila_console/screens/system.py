"""The screen of the system answers what each member does, what happened, and which messages could not be processed. It
changes live settings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple, get_args, get_type_hints

import msgspec
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila_control import event_types, requests, system_types
from nephila_control.screen_types import GetSeries, Sample, SeriesRange
from starlette.responses import Response

from nephila_console.messages import translate as _
from nephila_console.screens.attention import optional
from nephila_console.view import View, go
from nephila_console.words import path

EVENTS: Final = 50
"""Events on the screen, unless all are asked for."""
KINDS: Final = get_args(get_type_hints(event_types.ListEvents)["kind"])
"""Filters of events; the empty one shows all."""
LEAST_STEP_S: Final = 1.0
"""The present sample is left out of rates if it is nearer to the one before: it says nothing yet."""
HISTORY: Final[SeriesRange] = "1h"
"""Time of the curves in the tiles, unless another one is chosen."""
EVENT_WORDS: Final[dict[event_types.EventKind, str]] = {
    "program_started": "this program started",
    "member_joined": "a member joined",
    "member_restarted": "a member was restarted",
    "member_draining": "a member drains",
    "member_left": "a member ended",
    "member_silent": "a member became silent",
    "member_not_ready": "a member cannot work",
    "member_ready": "a member works again",
    "takeover": "partitions were taken over",
    "store_away": "the store cannot be reached",
    "store_back": "the store is back",
    "job_failed": "a job failed",
}


async def system(view: View) -> Response:
    """GET /console/system"""
    empty = requests.Empty()
    kind = view.field("events") if view.field("events") in KINDS else ""
    listed = event_types.ListEvents(
        kind=kind,  # type: ignore[arg-type]
        limit=event_types.MAX_EVENTS if view.field("all") else EVENTS,
    )
    status, members, settings, letters, topics, events, series = await asyncio.gather(
        view.control.status(empty),
        optional(view.control.list_members(empty)),
        optional(view.control.get_settings(empty)),
        optional(view.control.list_dead_letters(system_types.ListDeadLetters(limit=50))),
        optional(view.control.list_topics(empty)),
        optional(view.control.list_events(listed)),
        view.control.get_series(GetSeries(range=view.range or HISTORY)),
    )
    return view.render(
        "system.html",
        live=True,
        status=status,
        members=members.members if members is not None else [],
        settings=settings.settings if settings is not None else {},
        letters=letters.dead_letters if letters is not None else [],
        topics=topics.topics if topics is not None else None,
        events=events.events if events is not None else [],
        kind=kind,
        kinds=KINDS,
        cut=events is not None and len(events.events) == listed.limit < event_types.MAX_EVENTS,
        series=series,
        history=history(series.samples),
        history_range=view.range or HISTORY,
        event_words={kind: _(words) for kind, words in EVENT_WORDS.items()},
    )


class History(NamedTuple):
    """How the figures of the tiles went, the oldest first."""

    ended: list[float]
    """Ends per second."""
    failed: list[float]
    """Failed fetches per second."""
    queued: list[float]
    in_flight: list[float]
    failed_share: float
    """Share of the ends in this time that failed."""


def history(samples: Sequence[Sample]) -> History:
    """A rate is that between two samples; a job that was deleted takes its counts away, which is no negative rate."""
    steps = [(before, after) for before, after in pairwise(samples) if after.at - before.at > LEAST_STEP_S]
    ended = [max(_ended(after) - _ended(before), 0) for before, after in steps]
    failed = [max(after.failed - before.failed, 0) for before, after in steps]
    lengths = [after.at - before.at for before, after in steps]
    return History(
        [number / length for number, length in zip(ended, lengths, strict=True)],
        [number / length for number, length in zip(failed, lengths, strict=True)],
        [float(sample.queued) for sample in samples],
        [float(sample.in_flight) for sample in samples],
        sum(failed) / sum(ended) if sum(ended) else 0.0,
    )


def _ended(sample: Sample) -> int:
    return sample.stored + sample.denied + sample.failed + sample.dropped


async def change_setting(view: View) -> Response:
    """POST /console/system/settings"""
    name, text, member = (view.form.get(field, "").strip() for field in ("name", "value", "member"))
    if not name:
        raise UsageError("name a setting")
    try:
        value = msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        value = text
    try:
        request = msgspec.convert({"settings": {name: value}, "member": member}, system_types.ChangeSettings)
    except msgspec.ValidationError as error:
        raise UsageError(str(error)) from None
    await view.control.change_settings(request)
    return go(path("system", notice="changed"))


async def replay(view: View) -> Response:
    """POST /console/system/replay: one dead letter, or all."""
    letter = view.form.get("id", "")
    request = system_types.ReplayDeadLetters(ids=[letter]) if letter else system_types.ReplayDeadLetters(all=True)
    answer = await view.control.replay_dead_letters(request)
    if refused := [entry.refused for entry in answer.dead_letters if not entry.replayed]:
        raise UserError(f"{len(refused):,} of {len(answer.dead_letters):,} were not published again: {refused[0]}")
    return go(path("system", notice="replayed"))
