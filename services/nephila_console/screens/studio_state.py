"""A draft of a rule is a part of an address. This module encodes it, and makes the changes of it that need no page.
Pure.

The whole state of the studio is in the address: the back button takes a step back, and a link shows what was seen.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace
from nephila.kernel.runtime.errors import UsageError
from nephila_rules.studio.browser_steps import with_step
from nephila_rules.studio.draft import Draft, DraftField, Source

ADDED: Final = ("click", "more", "wait", "scroll", "pause")
"""Steps of the browser that a form adds."""
MAX_CHARS: Final = 24_000
"""Of a state; browsers and servers take addresses of this length."""
_MAX_BYTES: Final = 1 << 20
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Draft).decode
_json: Final = msgspec.json.Decoder(Source).decode


def state_of(draft: Draft) -> str:
    """Encodes the draft as letters, digits, - and _. Raises `UsageError` for one that is too large."""
    packed = zlib.compress(_encode(draft), 9)
    text = base64.urlsafe_b64encode(packed).rstrip(b"=").decode()
    if len(text) > MAX_CHARS:
        raise UsageError("this rule is too large for the studio; save it and edit its file")
    return text


def draft_of(state: str) -> Draft:
    """Raises `UsageError` for a damaged state."""
    try:
        if len(state) > MAX_CHARS:
            raise ValueError("too long")
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.urlsafe_b64decode(state + "=" * (-len(state) % 4)), _MAX_BYTES)
        return _decode(data)
    except (ValueError, zlib.error, binascii.Error, msgspec.MsgspecError):
        raise UsageError("this link to the studio is damaged; begin with a page") from None


def changed(draft: Draft, query: Mapping[str, str]) -> Draft:
    """Applies the fields of a form or link to the draft. Raises `UsageError`."""
    number = query.get("active", "")
    if number.isdecimal():
        draft = replace(draft, active=min(int(number), len(draft.fields) - 1), mode="new")
    if query.get("remove") and draft.field is not None:
        fields = tuple(field for field in draft.fields if field is not draft.field)
        draft = replace(draft, fields=fields, active=-1, mode="new")
    if "page" in query:
        draft = replace(draft, url=query["page"])
    if "plain" in query:
        draft = replace(draft, plain=query["plain"] == "1")
    if "mode" in query:
        draft = replace(draft, mode=query["mode"])
    if "pattern" in query:
        draft = replace(draft, pattern=query["pattern"].strip())
    if query.get("rule"):
        draft = replace(draft, name=query["rule"].strip())
    if query.get("forget") == "next":
        draft = replace(draft, next_page=Source())
    draft = _with_steps(draft, query)
    if draft.field is not None:
        draft = draft.with_field(draft.active, _changed_field(draft.field, query))
    return _checked(draft)


def _with_steps(draft: Draft, query: Mapping[str, str]) -> Draft:
    dropped = query.get("drop", "")
    if dropped.isascii() and dropped.isdecimal():
        at = int(dropped[:6])
        draft = replace(draft, steps=(*draft.steps[:at], *draft.steps[at + 1 :]))
    action, what = query.get("add", ""), query.get("what", "").strip()
    if not action:
        return draft
    if action not in ADDED:
        raise UsageError(f"a step here is one of {', '.join(ADDED)}")
    if action == "scroll" and not (what.isascii() and what.isdecimal() and len(what) < 9):
        raise UsageError("scroll: write how many times, as 5")
    value = int(what) if action == "scroll" else what
    return with_step(draft, action, value, optional=query.get("optional") == "1")


def _changed_field(field: DraftField, query: Mapping[str, str]) -> DraftField:
    if "take" in query:
        try:
            field = replace(field, take=_json(query["take"]))
        except (msgspec.MsgspecError, UnicodeError):
            raise UsageError("this selector cannot be read") from None
    if "name" in query:
        required = query.get("required") == "1"
        kind = query.get("type", field.type)
        field = replace(field, name=query["name"].strip(), type=kind, required=required)
    return field


def _checked(draft: Draft) -> Draft:
    """Checks the types of the draft, because a change in place does not."""
    names = [field.name for field in draft.fields]
    if len(set(names)) < len(names):
        raise UsageError("two fields have the same name")
    try:
        return _decode(_encode(draft))
    except msgspec.ValidationError as error:
        raise UsageError(f"this cannot be used: {error}") from None
