"""Reasons: one row for each, with everything that follows from it. Pure.

A reason says why a fetch or a URL ended as it did, in one word. A member of `Reason` is the word and its row in one, so
there is no reason without a row. Messages, logs and databases hold the word: a word never changes. Two families have a
row for each status instead of a member: `http_404` and `tunnel_403` (`status_words.py`).

An unknown word comes from a newer version: it ends its URL as a failure that is not tried again, pauses no host, and is
shown as it is.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from nephila.kernel.messages import FetchOutcome, Outcome
from nephila.kernel.reasons import tls
from nephila.kernel.reasons.row import ListVerdict, Pause, Retry, Row, RowKind
from nephila.kernel.reasons.status_words import StatusReason, row_of_status_word, status_of, tunnel_status_of

_STORED, _DENIED, _FAILED, _DROPPED = Outcome.STORED, Outcome.DENIED, Outcome.FAILED, Outcome.DROPPED


class Reason(StrEnum):
    """The words, each with its `row`."""

    row: Row

    def __new__(cls, word: str, row: Row) -> Reason:
        """A member is its word."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.row = row
        return member

    @property
    def ended(self) -> str:
        """A URL that ended with this reason, as "denied(robots)" in summaries."""
        return f"{self.row.ends.name.lower()}({self})" if self.row.ends is not None else str(self)

    NONE = "", Row(_STORED, "a copy was stored", kind="stored", verdict=ListVerdict.SAME)
    NOT_MODIFIED = (
        "not_modified",
        Row(_STORED, "the server says that the copy is still the page (304)", kind="stored", verdict=ListVerdict.SAME),
    )

    # ---- the scheduler ends the URL before a fetch

    ROBOTS = "robots", Row(_DENIED, "robots.txt forbade it", kind="robots", verdict=ListVerdict.ROBOTS)
    ADDRESS = (
        "address",
        Row(
            _DENIED,
            "its host has only addresses that are not public; --allow-private allows them",
            kind="address",
            verdict=ListVerdict.ADDRESS,
            unreachable=True,
        ),
    )
    EXCLUDED = (
        "excluded",
        Row(_DROPPED, "the scope no longer admitted it when its turn came", kind="excluded", verdict=ListVerdict.SCOPE),
    )
    SITEMAP_CHAIN = (
        "sitemap_chain",
        Row(
            _DROPPED,
            "it is the end of a chain of more than ten sitemap indexes and redirects",
            kind="sitemaps",
            verdict=ListVerdict.SCOPE,
        ),
    )
    SITEMAP_LIMIT = (
        "sitemap_limit",
        Row(
            _DROPPED,
            "sitemap indexes list more than 50,000 sitemaps of its host",
            kind="sitemaps",
            verdict=ListVerdict.SCOPE,
        ),
    )
    LINK_RECORDED = (
        "link_recorded",
        Row(_DROPPED, "the link was recorded with its text, as recordLinks of the job says", kind="link"),
    )
    TOP_OF_PAGE = (
        "top_of_page",
        Row(
            _DROPPED,
            "its page has more new links than are taken of one page; scope.linksPerPage takes more",
            kind="link",
            verdict=ListVerdict.SCOPE,
        ),
    )
    TOP_OF_LEVEL = (
        "top_of_level",
        Row(
            _DROPPED,
            "its level has more new links than are taken in a run; scope.linksPerLevel takes more",
            kind="link",
            verdict=ListVerdict.SCOPE,
        ),
    )
    TRAP = (
        "trap",
        Row(_DROPPED, "it was found to be part of a trap when its turn came", kind="trap", verdict=ListVerdict.SCOPE),
    )

    # ---- name, connection, response

    BAD_URL = "bad_url", Row(_FAILED, "no request can be made of it")
    DNS = (
        "dns",
        Row(
            _FAILED,
            "the name of its host could not be resolved",
            verdict=ListVerdict.UNKNOWN_HOST,
            retry=Retry.TRIES,
            unreachable=True,
        ),
    )
    CONNECT = (
        "connect",
        Row(
            _FAILED,
            "its server could not be connected to",
            verdict=ListVerdict.REFUSED,
            retry=Retry.TRIES,
            unreachable=True,
        ),
    )
    TLS = "tls", tls.UNKNOWN_CAUSE
    TLS_SELF_SIGNED = "tls_self_signed", tls.SELF_SIGNED
    TLS_ISSUER = "tls_issuer", tls.ISSUER
    TLS_EXPIRED = "tls_expired", tls.EXPIRED
    TLS_NOT_YET_VALID = "tls_not_yet_valid", tls.NOT_YET_VALID
    TLS_NAME = "tls_name", tls.NAME
    TLS_PROTOCOL = "tls_protocol", tls.PROTOCOL
    TLS_CLIENT_CERTIFICATE = "tls_client_certificate", tls.CLIENT_CERTIFICATE
    TIMEOUT = (
        "timeout",
        Row(
            _FAILED,
            "its server took too long",
            verdict=ListVerdict.TIMEOUT,
            retry=Retry.TRIES,
            pause=Pause.PASSING,
            behind=True,
        ),
    )
    DISCONNECTED = (
        "disconnected",
        Row(
            _FAILED,
            "its server broke the connection off before the answer was whole",
            verdict=ListVerdict.SERVER_ERROR,
            retry=Retry.TRIES,
        ),
    )
    PROTOCOL = (
        "protocol",
        Row(_FAILED, "its server answered something that is not HTTP", verdict=ListVerdict.SERVER_ERROR),
    )
    ENCODING = (
        "encoding",
        Row(_FAILED, "the compressed answer could not be decoded", verdict=ListVerdict.SERVER_ERROR),
    )
    TOO_LARGE = (
        "too_large",
        Row(_FAILED, "the answer is larger than a page may be", verdict=ListVerdict.NOT_WANTED),
    )
    REDIRECT = "redirect", Row(_DROPPED, "it redirects", kind="redirect", verdict=ListVerdict.MOVED)
    BAD_REDIRECT = (
        "bad_redirect",
        Row(_FAILED, "it redirects to something that is not a URL", verdict=ListVerdict.SERVER_ERROR),
    )
    TOO_MANY_REDIRECTS = (
        "too_many_redirects",
        Row(_FAILED, "it is one redirect too many in a chain of them", verdict=ListVerdict.SERVER_ERROR),
    )
    CONTENT_TYPE = (
        "content_type",
        Row(_DROPPED, "its content type is not wanted", kind="content_type", verdict=ListVerdict.NOT_WANTED),
    )
    BLOCKED = (
        "blocked",
        Row(
            _FAILED,
            "the site sent a challenge, a captcha, a ban text or a login page instead of it",
            verdict=ListVerdict.BLOCKED,
            retry=Retry.TRIES,
            pause=Pause.REFUSAL,
        ),
    )
    LOGIN_PAGE = (
        "login_page",
        # Concerns one URL and not the pace of its host; another try brings the same page.
        Row(
            _FAILED,
            "the site sent a login page instead of it",
            verdict=ListVerdict.BLOCKED,
            reported_as="blocked",
        ),
    )

    # ---- what this installation puts between crawler and server

    PROXY = (
        "proxy",
        Row(
            _FAILED,
            "no proxy of its class works",
            verdict=ListVerdict.PROXY,
            retry=Retry.TRIES,
            unreachable=True,
            given_back="its proxy failed or was blocked, or none works",
        ),
    )
    NO_TUNNEL = (
        "no_tunnel",
        Row(
            _FAILED,
            "its proxies refuse CONNECT to the port of its server; see the log of the downloader",
            verdict=ListVerdict.PROXY,
            unreachable=True,
            given_back="its proxies refuse CONNECT to the port of its server, others are not checked yet",
        ),
    )
    PROXY_AUTH = "proxy_auth", Row(_FAILED, "the proxy does not accept the credentials", verdict=ListVerdict.PROXY)
    LOGIN = (
        "login",
        Row(
            _FAILED,
            "the login that its job describes was not accepted (spec.login)",
            verdict=ListVerdict.LOGIN,
            given_back="the login of its site fails or could not be renewed: the site pauses",
        ),
    )
    MIDDLEWARE = (
        "middleware",
        Row(_FAILED, "a middleware of this installation failed; see the log of the downloader"),
    )
    INTERNAL = "internal", Row(_FAILED, "the downloader had an internal error; see its log")

    # ---- the browser

    NO_BROWSER = (
        "no_browser",
        Row(_FAILED, "it needs a browser, and this program has none", verdict=ListVerdict.NO_BROWSER),
    )
    BROWSER = (
        "browser",
        Row(
            _FAILED,
            "the browser did not start, crashed, or lost the page",
            verdict=ListVerdict.BROWSER,
            retry=Retry.TRIES,
        ),
    )
    RENDER_TIMEOUT = (
        "render_timeout",
        Row(
            _FAILED,
            "its document came, and the browser did not finish the page in time",
            verdict=ListVerdict.TIMEOUT,
            retry=Retry.TRIES,
            behind=True,
            reported_as="timeout",
        ),
    )
    BROWSER_MEMORY = (
        "browser_memory",
        Row(
            _FAILED,
            "it took more memory than its browser may have (browser.memory_bytes)",
            verdict=ListVerdict.BROWSER,
        ),
    )
    BROWSER_BUDGET = (
        "browser_budget",
        Row(_FAILED, "the browser-seconds of its job or host are spent", verdict=ListVerdict.BROWSER),
    )
    STEP = (
        "step",
        Row(_FAILED, "a step of its job or rule did not find its element in the browser", verdict=ListVerdict.BROWSER),
    )
    NAVIGATION = "navigation", Row(_FAILED, "the browser could not open it", verdict=ListVerdict.BROWSER)

    # ---- no outcome, page, record or row came

    LEASE_EXPIRED = (
        "lease_expired",
        Row(
            _FAILED,
            "its requests were handed out, and no outcome came back",
            retry=Retry.TRIES,
            no_outcome=True,
            behind=True,
        ),
    )
    DOWNLOADER_GONE = (
        "downloader_gone",
        Row(
            _FAILED,
            "its requests were handed out, and their downloaders ended",
            retry=Retry.LONGER,
            no_outcome=True,
            reported_as="lease_expired",
        ),
    )
    NOT_CONSUMED = (
        "not_consumed",
        Row(
            None,
            "no downloader has consumed its request: it is handed out again",
            retry=Retry.ALWAYS,
            no_outcome=True,
        ),
    )
    LOST = (
        "lost",
        Row(_FAILED, "its page or record was lost on the message bus each time it was fetched"),
    )
    DEAD_LETTER = "dead_letter", Row(_FAILED, "the page came, but could not be parsed or stored")

    # ---- parser and storage drop the page

    NEAR_COPY = (
        "near_copy",
        Row(
            _DROPPED,
            "its text is nearly that of another page, and its job skips near-copies",
            kind="near_copy",
            verdict=ListVerdict.NOT_WANTED,
        ),
    )
    REQUISITE = (
        "requisite",
        Row(
            _DROPPED,
            "it is a requisite of a page: its answer is in the archive alone",
            kind="requisite",
            verdict=ListVerdict.NOT_WANTED,
        ),
    )

    # ---- the request is given back: no try is counted

    NOT_RESOLVED = "not_resolved", Row(None, "too many DNS look-ups")
    BUSY = "busy", Row(None, "its server address had no room")
    STALE = "stale", Row(None, "a kept connection broke before any answer")
    SECOND_FETCH = (
        "second_fetch",
        Row(None, "it is fetched once more, through another proxy, to compare both"),
    )
    THROTTLE = "throttle", Row(None, "the rate of its resource is reached: its host waits")
    SLOW = "slow", Row(None, "its host answers slowly, and other hosts need the slot: its host pauses", behind=True)
    MEMORY = "memory", Row(None, "there was no memory for its body", behind=True)
    EXPIRED = "expired", Row(None, "it was not started in time")


AnyReason = Reason | StatusReason
UNKNOWN: Final = Row(_FAILED, "")
"""The row of a word of a newer version."""
_ROWS: Final[dict[str, Row]] = {reason.value: reason.row for reason in Reason}
"""Word → row; rows of statuses are added at their first use, at most a thousand for each family."""


def row_of(word: str) -> Row:
    """The row of a reason, `UNKNOWN` for an unknown word. O(1): one look-up."""
    return _ROWS.get(word) or _row_of_family(word)


def row_of_outcome(outcome: FetchOutcome) -> Row:
    """The row of the cause of an outcome, or of its reason where a newer version names an unknown cause."""
    row = _ROWS.get(outcome.cause or outcome.reason)
    return row or row_of(outcome.reason)


def set_reason(outcome: FetchOutcome, reason: AnyReason) -> None:
    coarse = row_of(reason).reported_as
    outcome.reason, outcome.cause = (coarse, reason) if coarse else (reason, "")


def words(outcome: str, reason: str) -> str:
    """The words of a reason for people. An unknown pair is shown as it is: "failed (reason)"."""
    row = row_of(reason)
    if _is_status(reason) or (row is not UNKNOWN and _ends(row, outcome)):
        return row.words
    return f"{outcome} ({reason})" if reason else outcome


def kind_of(outcome: str, reason: str) -> RowKind:
    """The kind of the verdict; that of a failure for an unknown pair."""
    row = row_of(reason)
    return row.kind if _ends(row, outcome) else "failed"


def verdict_of(outcome: str, reason: str) -> ListVerdict:
    """The verdict on a list of a directory that ended so; that of a failure for an unknown pair."""
    row = row_of(reason)
    return row.verdict if _is_status(reason) or _ends(row, outcome) else ListVerdict.FAILED


def _ends(row: Row, outcome: str) -> bool:
    return row.ends is not None and row.ends.name.lower() == outcome


def _is_status(word: str) -> bool:
    return bool(status_of(word) or tunnel_status_of(word))


def _row_of_family(word: str) -> Row:
    row = row_of_status_word(word)
    if row is None:
        return UNKNOWN
    _ROWS[word] = row
    return row
