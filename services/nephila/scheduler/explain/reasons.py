"""Reasons in words: every reason that a row of `pages` or `fetches` can have. Pure.

Invariant: every reason that scheduler, downloader, parser and storage write is here, or is a status such as http_404; a
test reads their sources. An unknown reason of a newer version is shown as it is.
"""

from __future__ import annotations

import http
import re
from typing import Final

WORDS: Final[dict[tuple[str, str], str]] = {
    ("stored", ""): "a copy was stored",
    ("stored", "not_modified"): "the server says that the copy is still the page (304)",
    ("denied", "robots"): "robots.txt forbade it",
    ("denied", "address"): "its host has only addresses that are not public; --allow-private allows them",
    ("failed", "dns"): "the name of its host could not be resolved",
    ("failed", "connect"): "its server could not be connected to",
    ("failed", "tls"): "no safe connection to its server could be made (TLS: certificate or handshake)",
    ("failed", "timeout"): "its server took too long",
    ("failed", "disconnected"): "its server broke the connection off before the answer was whole",
    ("failed", "protocol"): "its server answered something that is not HTTP",
    ("failed", "encoding"): "the compressed answer could not be decoded",
    ("failed", "too_large"): "the answer is larger than a page may be",
    ("failed", "proxy"): "no proxy of its class works",
    ("failed", "no_tunnel"): "its proxies refuse CONNECT to the port of its server; see the log of the downloader",
    ("failed", "proxy_auth"): "the proxy does not accept the credentials",
    ("failed", "login"): "the login that its job describes was not accepted (spec.login)",
    ("failed", "blocked"): "the site sent a challenge, a captcha, a ban text or a login page instead of it",
    ("failed", "middleware"): "a middleware of this installation failed; see the log of the downloader",
    ("failed", "browser"): "the browser did not start, crashed, or lost the page",
    ("failed", "browser_memory"): "it took more memory than its browser may have (browser_memory_bytes)",
    ("failed", "step"): "a step of its job or rule did not find its element in the browser",
    ("failed", "navigation"): "the browser could not open it",
    ("failed", "browser_budget"): "the browser-seconds of its job or host are spent",
    ("failed", "no_browser"): "it needs a browser, and this program has none",
    ("failed", "bad_redirect"): "it redirects to something that is not a URL",
    ("failed", "too_many_redirects"): "it is one redirect too many in a chain of them",
    ("failed", "bad_url"): "no request can be made of it",
    ("failed", "internal"): "the downloader had an internal error; see its log",
    ("failed", "lease_expired"): "its requests were handed out, and no outcome came back",
    ("failed", "lost"): "its page or record was lost on the message bus each time it was fetched",
    ("failed", "dead_letter"): "the page came, but could not be parsed or stored",
    ("dropped", "redirect"): "it redirects",
    ("dropped", "content_type"): "its content type is not wanted",
    ("dropped", "excluded"): "the scope no longer admitted it when its turn came",
    ("dropped", "sitemap_chain"): "it is the end of a chain of more than ten sitemap indexes and redirects",
    ("dropped", "sitemap_limit"): "sitemap indexes list more than 50,000 sitemaps of its host",
    ("dropped", "trap"): "it was found to be part of a trap when its turn came",
}
"""(outcome, reason) → words, as the end of "Not crawled: …"."""

NO_END: Final[dict[str, str]] = {
    "not_resolved": "too many DNS look-ups: given back, no try is counted",
    "busy": "its server address had no room: given back, no try is counted",
    "stale": "a kept connection broke before any answer: given back, no try is counted",
    "proxy": "its proxy failed or was blocked, or none works: given back, no try is counted",
    "no_tunnel": "its proxies refuse CONNECT to the port of its server, others are not checked yet: no try is counted",
    "second_fetch": "it is fetched once more, through another proxy, to compare both: no try is counted",
    "login": "the login of its site fails or could not be renewed: the site pauses, no try is counted",
    "throttle": "the rate of its resource is reached: its host waits, no try is counted",
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
    known = WORDS.get((outcome, reason))
    return known if known is not None else f"{outcome} ({reason})" if reason else outcome


def is_known(reason: str) -> bool:
    """Whether a reason has words, for any outcome."""
    return (
        bool(_STATUS.fullmatch(reason) or _TUNNEL.fullmatch(reason))
        or reason in NO_END
        or any(reason == known for _, known in WORDS)
    )


def _phrase(status: int) -> str:
    try:
        return f" ({http.HTTPStatus(status).phrase.lower()})"
    except ValueError:
        return ""
