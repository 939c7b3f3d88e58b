"""What a fetch changed, compared with the stored copy. Pure.

new: the first copy of a page · changed: another text than the copy's · same: the same text, or a 304 · gone: 404 or 410
where there is a copy · empty: no statement. A copy stays until a newer copy replaces it: a page that is gone, or could
not be fetched, keeps its text, and if it comes back with this text it is the same.
"""

from __future__ import annotations

from typing import NamedTuple

from nephila.kernel import messages as m

NEW, CHANGED, SAME, GONE = "new", "changed", "same", "gone"
HASH_BYTES = 8
_GONE_STATUS = (404, 410)


class StoredVersion(NamedTuple):
    """What the table holds of a URL."""

    fetch_no: int
    outcome: m.Outcome
    copy: bool
    """Whether there is a copy: an earlier fetch brought a body."""
    copy_hash: bytes
    """Hash of the copy."""
    first_at: str
    changed_at: str
    is_dead_letter: bool = False
    """It ended as a dead letter: a replayed record of the same fetch replaces the row."""


DEAD_LETTER = "dead_letter"
"""Reason of a row whose record became a dead letter."""


def copy_hash_of(record: m.Record) -> bytes:
    """The hash by which two copies are compared: of the text, or of the body if there is no text; empty without a
    body."""
    return record.text_hash or record.sha256[:HASH_BYTES]


def is_durable(record: m.Record, stored: StoredVersion) -> bool:
    """Whether the table already holds the result of this record's fetch."""
    if stored.fetch_no == record.fetch_no and stored.is_dead_letter:
        return record.reason == DEAD_LETTER
    return stored.fetch_no >= record.fetch_no


def change_of(record: m.Record, stored: StoredVersion | None) -> str:
    """The change of a record: new, changed, same, gone or empty."""
    held = stored is not None and stored.copy
    if record.outcome is m.Outcome.STORED:
        if record.not_modified:
            return SAME if held else ""
        if not held:
            return NEW
        return SAME if stored is not None and copy_hash_of(record) == stored.copy_hash else CHANGED
    return GONE if held and record.status in _GONE_STATUS else ""
