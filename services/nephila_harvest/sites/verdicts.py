"""The verdict on one list in one run of its directory: fetched with new pages, fetched and the same, or a fault. Pure.

A list is a seed of the directory. The table of reasons (`kernel/reasons/`) has the verdict on the end of its fetch;
`EFFECTS` has everything that follows from a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from nephila.kernel.reasons.row import ListVerdict
from nephila.kernel.reasons.table import verdict_of
from nephila.storage.sinks.jsonl import json_object


class Effect(NamedTuple):
    """What follows from a verdict."""

    fault: bool
    """The list was not fetched: it counts for the metric and the alert, and the run as failed."""
    words: str
    proposal: str = ""
    """What to do; {target} is the URL to which the list redirects."""


EFFECTS: Final[Mapping[ListVerdict, Effect]] = {
    ListVerdict.NEW: Effect(False, "fetched, with new pages in the run"),
    ListVerdict.SAME: Effect(False, "fetched, no new page in the run"),
    ListVerdict.WAITING: Effect(
        True, "not fetched in the run", "see nephila explain URL; the host is paused or the run ended too early"
    ),
    ListVerdict.MOVED: Effect(True, "it redirects out of its directory", "set the url of the directory to {target}"),
    ListVerdict.NOT_FOUND: Effect(
        True, "the server answers that it is not there", "look for its new address on the site"
    ),
    ListVerdict.HTTP_ERROR: Effect(
        True, "the server refuses it", "open it in a browser; a login or cookies may be needed"
    ),
    ListVerdict.SERVER_ERROR: Effect(True, "the server fails", "wait; the next run tries again"),
    ListVerdict.UNKNOWN_HOST: Effect(True, "the name of its host is unknown", "check the host name in the url"),
    ListVerdict.REFUSED: Effect(
        True, "its server refuses connections", "check host and port; wait if the site is down"
    ),
    ListVerdict.TLS: Effect(True, "no safe connection (certificate or handshake)", "check the certificate of the site"),
    ListVerdict.TIMEOUT: Effect(True, "its server takes too long", "wait; a longer politeness.delay may help"),
    ListVerdict.ROBOTS: Effect(
        True, "robots.txt forbids it", "ask the site, or set politeness.respectRobots: false where it is yours"
    ),
    ListVerdict.ADDRESS: Effect(
        True, "its host has only addresses that are not public", "--allow-private where the network is yours"
    ),
    ListVerdict.BLOCKED: Effect(
        True, "a challenge, a captcha or a ban instead of the list", "a longer politeness.delay, a login or a proxy"
    ),
    ListVerdict.LOGIN: Effect(True, "the login is not accepted", "check login and its secrets"),
    ListVerdict.NO_BROWSER: Effect(True, "it needs a browser, and no program has one", "render: never, or a browser"),
    ListVerdict.BROWSER: Effect(
        True, "the browser could not read it", "open it in a browser; check the steps of the job"
    ),
    ListVerdict.PROXY: Effect(True, "no proxy of its class works", "check the proxies"),
    ListVerdict.NOT_WANTED: Effect(True, "its content type or size is not wanted", "check the url; maxPageBytes"),
    ListVerdict.SCOPE: Effect(True, "the scope or the trap detection excludes it", "check scope; traps: {off: true}"),
    ListVerdict.FAILED: Effect(True, "it failed", "see nephila explain URL and the log of the program"),
    ListVerdict.NOT_STARTED: Effect(
        True, "the job of the directory was refused", "correct the settings of the directory"
    ),
    ListVerdict.UNKNOWN: Effect(
        True, "not fetched, and its row cannot be read here", "give the rows with --rows DIR|URL"
    ),
}


class ListState(NamedTuple):
    """One list after one run of its directory."""

    url: str
    verdict: ListVerdict
    reason: str = ""
    """Of its row, as http_404."""
    status: int = 0
    target: str = ""
    """The URL to which it redirects."""
    links: int = 0
    """Links of the list, where it was fetched."""
    since: float = 0.0
    """Of a fault: begin of the first run in a row that ended with one."""

    @property
    def is_fault(self) -> bool:
        """Whether the list was not fetched."""
        return EFFECTS[self.verdict].fault

    @property
    def proposal(self) -> str:
        """What to do."""
        return EFFECTS[self.verdict].proposal.format(target=self.target)


def of_row(url: str, row: Mapping[str, Any]) -> ListState:
    """The state of a list by its row; one that was fetched is `SAME` until its run is known to have new pages."""
    reason, status = str(row["reason"]), int(row["status"])
    verdict = verdict_of(str(row["outcome"]), reason)
    target = str(row["final_url"]) if verdict is ListVerdict.MOVED else ""
    return ListState(url, verdict, reason, status, target, _links(row))


def worst(states: Iterable[ListState]) -> ListState | None:
    """The state that is shown for a directory: its first fault, or else its first list."""
    all_states = list(states)
    return next((state for state in all_states if state.is_fault), all_states[0] if all_states else None)


def _links(row: Mapping[str, Any]) -> int:
    meta = json_object(row["meta"]) if row.get("meta") else {}
    links = str(meta.get("links", "")) if isinstance(meta, dict) else ""
    return int(links) if links.isdecimal() else 0
