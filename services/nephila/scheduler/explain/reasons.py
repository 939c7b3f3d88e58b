"""Reasons: of each that a row of `pages` or `fetches` can have, the kind of its verdict and its words. Pure.

Invariant: every reason that scheduler, downloader, parser and storage write is here, or is a status such as http_404; a
test reads their sources. An unknown reason of a newer version is shown as it is.
"""

from __future__ import annotations

import http
import re
from typing import Final, Literal, NamedTuple

Kind = Literal[
    "stored", "watched", "gone", "copy_kept",
    "robots", "address", "failed", "redirect", "content_type", "excluded", "trap_shape", "trap_quarantine", "trap",
    "sitemaps", "near_copy", "requisite", "seen",
    "leased", "fetched", "ending", "interrupted",
    "paused", "budget_job", "budget_host", "quota", "window", "queue_full",
    "retry", "backing_off", "delay", "pause", "robots_retry", "address_line", "robots_first", "behind", "next",
    "out_of_scope", "copy", "unknown",
]  # fmt: skip
"""The verdict in one word. A kind is never removed, because programs compare it."""


class Reason(NamedTuple):
    """One row of the table."""

    kind: Kind
    words: str
    """The end of "Not crawled: …"."""


REASONS: Final[dict[tuple[str, str], Reason]] = {
    ("stored", ""): Reason("stored", "a copy was stored"),
    ("stored", "not_modified"): Reason("stored", "the server says that the copy is still the page (304)"),
    ("denied", "robots"): Reason("robots", "robots.txt forbade it"),
    ("denied", "address"): Reason(
        "address", "its host has only addresses that are not public; --allow-private allows them"
    ),
    ("failed", "dns"): Reason("failed", "the name of its host could not be resolved"),
    ("failed", "connect"): Reason("failed", "its server could not be connected to"),
    ("failed", "tls"): Reason(
        "failed", "no safe connection to its server could be made (TLS: certificate or handshake)"
    ),
    ("failed", "timeout"): Reason("failed", "its server took too long"),
    ("failed", "disconnected"): Reason("failed", "its server broke the connection off before the answer was whole"),
    ("failed", "protocol"): Reason("failed", "its server answered something that is not HTTP"),
    ("failed", "encoding"): Reason("failed", "the compressed answer could not be decoded"),
    ("failed", "too_large"): Reason("failed", "the answer is larger than a page may be"),
    ("failed", "proxy"): Reason("failed", "no proxy of its class works"),
    ("failed", "no_tunnel"): Reason(
        "failed", "its proxies refuse CONNECT to the port of its server; see the log of the downloader"
    ),
    ("failed", "proxy_auth"): Reason("failed", "the proxy does not accept the credentials"),
    ("failed", "login"): Reason("failed", "the login that its job describes was not accepted (spec.login)"),
    ("failed", "blocked"): Reason(
        "failed", "the site sent a challenge, a captcha, a ban text or a login page instead of it"
    ),
    ("failed", "middleware"): Reason(
        "failed", "a middleware of this installation failed; see the log of the downloader"
    ),
    ("failed", "browser"): Reason("failed", "the browser did not start, crashed, or lost the page"),
    ("failed", "browser_memory"): Reason(
        "failed", "it took more memory than its browser may have (browser_memory_bytes)"
    ),
    ("failed", "step"): Reason("failed", "a step of its job or rule did not find its element in the browser"),
    ("failed", "navigation"): Reason("failed", "the browser could not open it"),
    ("failed", "browser_budget"): Reason("failed", "the browser-seconds of its job or host are spent"),
    ("failed", "no_browser"): Reason("failed", "it needs a browser, and this program has none"),
    ("failed", "bad_redirect"): Reason("failed", "it redirects to something that is not a URL"),
    ("failed", "too_many_redirects"): Reason("failed", "it is one redirect too many in a chain of them"),
    ("failed", "bad_url"): Reason("failed", "no request can be made of it"),
    ("failed", "internal"): Reason("failed", "the downloader had an internal error; see its log"),
    ("failed", "lease_expired"): Reason("failed", "its requests were handed out, and no outcome came back"),
    ("failed", "lost"): Reason("failed", "its page or record was lost on the message bus each time it was fetched"),
    ("failed", "dead_letter"): Reason("failed", "the page came, but could not be parsed or stored"),
    ("dropped", "redirect"): Reason("redirect", "it redirects"),
    ("dropped", "content_type"): Reason("content_type", "its content type is not wanted"),
    ("dropped", "excluded"): Reason("excluded", "the scope no longer admitted it when its turn came"),
    ("dropped", "sitemap_chain"): Reason(
        "sitemaps", "it is the end of a chain of more than ten sitemap indexes and redirects"
    ),
    ("dropped", "sitemap_limit"): Reason("sitemaps", "sitemap indexes list more than 50,000 sitemaps of its host"),
    ("dropped", "near_copy"): Reason(
        "near_copy", "its text is nearly that of another page, and its job skips near-copies"
    ),
    ("dropped", "requisite"): Reason("requisite", "it is a requisite of a page: its answer is in the archive alone"),
    ("dropped", "trap"): Reason("trap", "it was found to be part of a trap when its turn came"),
}
"""(outcome, reason) → kind and words."""

NO_END: Final[dict[str, str]] = {
    "not_resolved": "too many DNS look-ups: given back, no try is counted",
    "busy": "its server address had no room: given back, no try is counted",
    "stale": "a kept connection broke before any answer: given back, no try is counted",
    "proxy": "its proxy failed or was blocked, or none works: given back, no try is counted",
    "no_tunnel": "its proxies refuse CONNECT to the port of its server, others are not checked yet: no try is counted",
    "second_fetch": "it is fetched once more, through another proxy, to compare both: no try is counted",
    "login": "the login of its site fails or could not be renewed: the site pauses, no try is counted",
    "throttle": "the rate of its resource is reached: its host waits, no try is counted",
    "slow": "its host answers slowly, and other hosts need the slot: its host pauses, no try is counted",
    "memory": "there was no memory for its body: given back, no try is counted",
    "expired": "it was not started in time: given back, no try is counted",
    "not_consumed": "no downloader has consumed its request: it is handed out again",
}
"""Reasons after which a URL goes back into its queue; no row has them."""

_STATUS: Final = re.compile(r"http_(\d{3})")
_TUNNEL: Final = re.compile(r"tunnel_(\d{3})")


def words(outcome: str, reason: str) -> str:
    """The words of a reason. An unknown pair is shown as it is: "failed (reason)"."""
    status = _STATUS.fullmatch(reason)
    if status is not None:
        return f"the server answered {status[1]}{_phrase(int(status[1]))}"
    if tunnel := _TUNNEL.fullmatch(reason):
        return f"its proxy refuses CONNECT by status {tunnel[1]}"
    known = REASONS.get((outcome, reason))
    return known.words if known is not None else f"{outcome} ({reason})" if reason else outcome


def kind_of(outcome: str, reason: str) -> Kind:
    """The kind of the verdict; that of a failure for an unknown reason."""
    known = REASONS.get((outcome, reason))
    return known.kind if known is not None else "failed"


def is_known(outcome: str, reason: str) -> bool:
    """Whether a reason has words; an empty outcome stands for any."""
    if _STATUS.fullmatch(reason) or _TUNNEL.fullmatch(reason) or reason in NO_END:
        return True
    return any(reason == known and outcome in ("", end) for end, known in REASONS)


def _phrase(status: int) -> str:
    try:
        return f" ({http.HTTPStatus(status).phrase.lower()})"
    except ValueError:
        return ""
