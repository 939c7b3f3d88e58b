"""What a fetch changed, compared with the stored copy, and the change feed made of it. Pure.

new: the first copy of a page, or the record of a link that is not fetched · changed: another text than the copy's ·
same: the same text, or a 304 · moved: a redirect where there is a copy · gone: 404 or 410 where there is a copy, as
often in a row as the job requires · empty: no statement. A copy stays until a newer copy replaces it: a page that has
moved, is gone or could not be fetched keeps its text, and if it comes back with this text it is the same.

The feed has one row for each change that a subscriber has to know: new, changed, moved and gone (once, not at each
answer), and returned: a page that had moved or was gone and has its old text again.
"""

import hashlib
from typing import NamedTuple

from nephila.kernel import messages as m
from nephila.kernel.reasons.table import Reason

NEW, CHANGED, SAME, MOVED, GONE = "new", "changed", "same", "moved", "gone"
AWAY = (GONE, MOVED)
"""Changes after which the URL has no page, until a fetch brings one. As text it is a list of SQL."""
RETURNED = "returned"
FEED_CHANGES = (NEW, CHANGED, MOVED, GONE, RETURNED)
"""The changes that the table `changes` has."""
HASH_BYTES = 8
_GONE_STATUS = (404, 410)


class StoredVersion(NamedTuple):
    """The state of a URL in the table."""

    fetch_no: int
    outcome: m.Outcome
    copy: bool
    """Whether there is a copy: an earlier fetch brought a body."""
    copy_hash: bytes
    """Hash of the copy."""
    first_at: str
    changed_at: str
    is_away: bool = False
    """It had moved or was gone, and no later fetch brought the page."""
    is_dead_letter: bool = False
    """It ended as a dead letter: a replayed record of the same fetch replaces the row."""


# Names of the module: in Python 3.11 an attribute of an enum class costs ten times as much.
STORED = m.Outcome.STORED
REDIRECT = Reason.REDIRECT
"""Reason of a row whose URL redirects."""
LINK_RECORDED = Reason.LINK_RECORDED
"""Reason of the row of a link that was recorded and not fetched."""
DEAD_LETTER = Reason.DEAD_LETTER
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
    """The change of a record: new, changed, same, moved, gone or empty."""
    held = stored is not None and stored.copy
    if record.outcome is STORED:
        if record.not_modified:
            return SAME if held else ""
        if not held:
            return NEW
        return SAME if stored is not None and copy_hash_of(record) == stored.copy_hash else CHANGED
    if not held:
        return NEW if stored is None and record.reason == LINK_RECORDED else ""
    if record.outcome is m.Outcome.DROPPED and record.reason == REDIRECT:
        return MOVED
    return GONE if record.status in _GONE_STATUS and not record.gone_pending else ""


class ChangeRow(NamedTuple):
    """A row of the table `changes`, without its sequence number, which the database assigns."""

    id: str
    at: str
    """When the row was written, ISO 8601; rises with the sequence number while the clock is not set back."""
    job: str
    url_key: str
    fetch_no: int
    change: str
    url: str
    title: str
    """Of the text at this change; of a page that has moved or is gone, its last one."""
    fetched_at: str
    old_hash: str
    text_hash: str
    diff: str
    """Of a changed text: removed lines after "-", added lines after "+". Of a page that moved: the target after "+"."""


def change_id(job: str, url_key: str, fetch_no: int) -> str:
    """The stable id: 32 hex digits that depend on the fetch alone, so that two writers of one fetch agree."""
    return hashlib.blake2b(f"{job}\0{url_key}\0{fetch_no}".encode(), digest_size=16).hexdigest()


def feed_change(change: str, stored: StoredVersion | None) -> str:
    """The change that the feed shows for a fetch; empty if none."""
    was_away = stored is not None and stored.is_away
    if change in AWAY:
        return "" if was_away else change
    if change == SAME:
        return RETURNED if was_away else ""
    return change


def page_change(change: ChangeRow) -> m.PageChange:
    """The row as a message of the topic `changes`."""
    return m.PageChange(
        id=change.id,
        at=change.at,
        job=change.job,
        url_key=bytes.fromhex(change.url_key),
        fetch_no=change.fetch_no,
        change=change.change,
        url=change.url,
        title=change.title,
        fetched_at=change.fetched_at,
        old_hash=bytes.fromhex(change.old_hash),
        text_hash=bytes.fromhex(change.text_hash),
        diff=change.diff,
    )
