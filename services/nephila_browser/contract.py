"""The contract of the gateway: the forwarding proxy through which all traffic of a browser passes.

A browser process gets the gateway as its only proxy, and each page a browser context with credentials of its own. So
the gateway knows the fetch that each sub-request belongs to. Every implementation guarantees:

- A connection without valid credentials gets 407 and reaches no server.
- The egress guard checks every address, of HTTP, CONNECT and WebSocket, before it is dialled. TLS is ended in the
  gateway, so the limits hold inside it as well.
- A redirect of the document (3xx on `document_url`) is not followed: the browser receives 204, and the result has the
  response with its Location. The scheduler decides about the target.
- A document that is no HTML (text/html, application/xhtml+xml, or no type) is not passed to the browser either: it
  receives 204, and the result has the response with its body, decoded from its content coding.
- Where the page uses a proxy (`route`), each of its requests does, except for hosts that never use one.
- Requests of one host, over all pages, keep a rate; the document itself does not wait.
- Other documents (frames, navigations by script) are subject to robots.txt if `obey_robots` is set; scripts, styles and
  XHR are not.
- After `result()` the credentials are invalid and the connections of the fetch are closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import msgspec
from nephila.downloader.http.contract import Exchange
from nephila.downloader.http.route import NO_ROUTE, Route
from nephila.kernel.reasons.table import AnyReason, Reason


class GatewayAddress(NamedTuple):
    """Where the gateway listens, and how a browser recognises its certificates."""

    host: str
    port: int
    ca_spki_hash: str
    """Base64 of the SHA-256 of the SubjectPublicKeyInfo of all certificates of hosts: the value of Chromium's
    --ignore-certificate-errors-spki-list (`gateway/chromium_flags.py`)."""
    ca_pem: str
    """The certificate of the CA, for clients that read a file."""


class Credentials(NamedTuple):
    """User name and password for the proxy, valid for one fetch."""

    username: str
    password: str


class FetchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one rendered page may do. Durations in seconds, sizes in bytes."""

    document_url: str
    """The URL of the page without its fragment, as parsed by the project. The first GET of it is the document."""
    job: str = ""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Headers that the gateway adds to requests for the origin of the document; archives leave them out. A Cookie is
    sent after those of the browser."""
    user_agent: str = ""
    obey_robots: bool = True
    follow_document: bool = False
    """The browser follows a redirect of the document, as it does those of other requests."""
    keep_body: bool = False
    """Keep the body of an HTML document too, for WARC."""
    keep_exchanges: bool = False
    """Keep the responses to other GET requests too, `max_bytes` of bodies at most, and return them."""
    total_s: float = 60.0
    """Time after the registration at which every connection of the fetch is closed."""
    max_bytes: int = 64 << 20
    """Bytes of all responses together, on the wire; further responses are cut off."""
    max_document_bytes: int = 0
    """Of the document, on the wire and decoded; 0: as of any response."""
    max_parallel: int = 6
    """Requests at once."""
    route: Route = NO_ROUTE
    """The route of the page. Sub-requests use its proxy, if it has one."""
    max_requests: int = 500
    """Requests of the page, the document included; further ones get 429 and reach no server."""
    refuse_media: bool = False
    """Refuse images, fonts, audio and video: by the request where it shows its use, else after the response headers."""


class DocumentResponse(msgspec.Struct, kw_only=True):
    """The response of the document as the server sent it."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    request_head: bytes = b""
    response_head: bytes = b""
    body: bytes = b""
    """Of a document that is no HTML, and with `keep_body`: the body, decoded from transfer and content coding."""
    wire_body: bytes = b""
    """With `keep_body`: the body with its content coding, if it has one."""
    address: str = ""
    wire_bytes: int = 0


class GatewayResult(msgspec.Struct, kw_only=True):
    """What happened on the network during one fetch."""

    document: DocumentResponse | None = None
    """None: no response of the document arrived; see `reason`."""
    reason: AnyReason = Reason.NONE
    """Why the document failed: dns, connect, tls, timeout, address, too_large, robots."""
    detail: str = ""
    cause: str = ""
    """The cause of `reason`, if it has causes: tls_expired."""
    requests: int = 0
    wire_bytes: int = 0
    unauthorized: int = 0
    """401 or 403, if the site of the document gave one to scripts of the page; 401 if both."""
    exchanges: list[Exchange] = msgspec.field(default_factory=list)
    """With `keep_exchanges`, in the order in which they ended."""
    not_kept: int = 0
    """Responses that `max_bytes` left no room to keep."""
    blocked: dict[str, int] = msgspec.field(default_factory=dict)
    """Requests without a response by reason. Refused: address, dns, robots, requests, bytes, time, method, upgrade,
    media, pace, prefetch, service_worker. Failed: the words of a fetcher."""


class Gateway(Protocol):
    """The forwarding proxy; the module docstring is its contract."""

    async def start(self) -> GatewayAddress:
        """Listen on a port of the loopback interface. Called once."""

    def register(self, fetch_id: str, limits: FetchLimits) -> Credentials:
        """Accept requests of one fetch. Raises `ValueError` when the id is registered."""

    def result(self, fetch_id: str) -> GatewayResult:
        """End the fetch and return what happened. A second call raises `KeyError`."""

    async def close(self) -> None:
        """Close the listener and every connection."""
