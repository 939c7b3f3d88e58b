"""The screen of the system answers what each member does, and which messages could not be processed. It changes live
settings."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila_control import event_types, requests, system_types
from starlette.responses import Response

from nephila_console.messages import translate as _
from nephila_console.screens.attention import optional
from nephila_console.view import View, go
from nephila_console.words import path

EVENTS: Final = 50
"""Events on the screen."""
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
    status, members, settings, letters, topics, events = await asyncio.gather(
        view.control.status(empty),
        optional(view.control.list_members(empty)),
        optional(view.control.get_settings(empty)),
        optional(view.control.list_dead_letters(system_types.ListDeadLetters(limit=50))),
        optional(view.control.list_topics(empty)),
        optional(view.control.list_events(event_types.ListEvents(limit=EVENTS))),
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
        event_words={kind: _(words) for kind, words in EVENT_WORDS.items()},
    )


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
