"""The columns of the table of reasons: everything that follows from a reason. Pure."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Literal

import msgspec

from nephila.kernel.messages import Outcome

RowKind = Literal[
    "stored", "robots", "address", "failed", "redirect", "content_type", "excluded", "trap", "sitemaps", "near_copy",
    "requisite", "link",
]  # fmt: skip
"""The kind of the verdict of `nephila explain` on a row. A kind is never removed, because programs compare it."""


class ListVerdict(StrEnum):
    """How a list of a directory stands after a run. The first four follow from no reason."""

    NEW = "new"
    WAITING = "waiting"
    NOT_STARTED = "not_started"
    UNKNOWN = "unknown"
    SAME = "same"
    MOVED = "moved"
    NOT_FOUND = "not_found"
    HTTP_ERROR = "http_error"
    SERVER_ERROR = "server_error"
    UNKNOWN_HOST = "unknown_host"
    REFUSED = "refused"
    TLS = "tls"
    TIMEOUT = "timeout"
    ROBOTS = "robots"
    ADDRESS = "address"
    BLOCKED = "blocked"
    LOGIN = "login"
    NO_BROWSER = "no_browser"
    BROWSER = "browser"
    PROXY = "proxy"
    NOT_WANTED = "not_wanted"
    SCOPE = "scope"
    FAILED = "failed"


class Retry(Enum):
    """How often a failed fetch is tried."""

    NEVER = "never"
    """The URL ends at the first failure."""
    TRIES = "tries"
    """`SchedulerConfig.tries` times."""
    LONGER = "longer"
    """Some times more: the URL is rarely the cause."""
    ALWAYS = "always"
    """The failure does not count as a try."""


class Pause(Enum):
    """The effect of a reason on the pace of its host, beyond the ordinary delay."""

    NONE = "none"
    REFUSAL = "refusal"
    """The host refused: it pauses, twice as long with each further refusal."""
    PASSING = "passing"
    """As a refusal, but it may concern one page or one moment: right after an answer the back-off begins again."""


class Row(msgspec.Struct, frozen=True):
    """One row of the table of reasons."""

    ends: Outcome | None
    """How a URL ends with this reason. None: it never ends a URL, and no row of `pages` has it."""
    words: str
    """The end of "Not crawled: …". Of a reason that ends no URL: why the URL goes back into its queue."""
    kind: RowKind = "failed"
    verdict: ListVerdict = ListVerdict.FAILED
    """On a list of a directory that ended so."""
    retry: Retry = Retry.NEVER
    pause: Pause = Pause.NONE
    unreachable: bool = False
    """Every URL of the host would fail so: a robots.txt with this reason ends them all."""
    no_outcome: bool = False
    """The scheduler set the reason itself: no downloader reported how the fetch ended."""
    behind: bool = False
    """The next fetch of the URL comes behind the other URLs of its host: it took its host's time, and may again."""
    given_back: str = ""
    """Of a reason that also ends URLs: why a URL goes back into its queue with it; no try is counted then."""
    reported_as: str = ""
    """The coarser reason in rows, metrics and `FetchOutcome.reason`; the reason itself is `FetchOutcome.cause`."""
