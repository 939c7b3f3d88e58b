"""Generated from proto/nephila/v1/fetch.proto by tools/protogen.py; do not edit."""

from enum import IntEnum

import msgspec

from nephila.kernel.messages.context import Context, Render


class FetchKind(IntEnum):
    """What a request is for."""

    UNSPECIFIED = 0
    ROBOTS = 1


class FetchResult(IntEnum):
    """How one fetch ended, as the downloader saw it."""

    UNSPECIFIED = 0
    FETCHED = 1
    NOT_MODIFIED = 2
    REDIRECT = 3
    FAILED = 4
    DENIED = 5
    CONTENT_TYPE = 6
    EXPIRED = 7
    LOST = 8
    RETRACTED = 9


class FetchRequest(msgspec.Struct, array_like=True, gc=False):
    """One attempt to fetch one URL. Topic `requests`."""

    job: str = ""
    # Fingerprint: MD5(host key)[0:4] followed by MD5(canonical URL)[0:12].
    url_key: bytes = b""
    # The URL as found; this is what is fetched.
    url: str = ""
    # Host key of the URL.
    host: str = ""
    kind: FetchKind = FetchKind.UNSPECIFIED
    # Per URL, rising; 1 for the first fetch.
    fetch_no: int = 0
    # Tries of this fetch, from 1.
    attempt: int = 0
    epoch: int = 0
    # Seconds since 1970 UTC; no dial begins after it.
    start_by: float = 0.0
    # Seconds since 1970 UTC; the scheduler takes the URL back then.
    lease_until: float = 0.0
    depth: int = 0
    # Redirects already followed to get here.
    hops: int = 0
    priority: float = 0.0
    # Validators of the stored copy; empty when there is none.
    etag: str = ""
    last_modified: str = ""
    # A seed is fetched with any content type.
    seed: bool = False
    # Server address on which the scheduler has counted this fetch; empty: none was known, or the job is not
    # paced.
    address: str = ""
    context: Context | None = None
    # Whether a browser renders the page; never UNSPECIFIED for a page of a job.
    render: Render = Render.UNSPECIFIED
    # When to dial, in seconds since 1970 UTC: starts on one server address are planned over all downloaders.
    # 0 = at once.
    dial_at: float = 0.0
    # Only where a request is published before the instant of its dial; else these are 0. End of the fetch of
    # the host that this one follows, seconds since 1970 UTC by the clock of its downloader, as its outcome
    # says; 0: another pause.
    after: float = 0.0
    # Seconds between the end of that fetch and this dial, for the downloader that made it.
    gap_s: float = 0.0
    # Seconds between the receipt of this request and its dial, for any other downloader.
    wait_s: float = 0.0


class FetchOutcome(msgspec.Struct, array_like=True, gc=False):
    """The end of one attempt. Topic `outcomes`; it frees the host."""

    job: str = ""
    url_key: bytes = b""
    host: str = ""
    kind: FetchKind = FetchKind.UNSPECIFIED
    fetch_no: int = 0
    attempt: int = 0
    epoch: int = 0
    result: FetchResult = FetchResult.UNSPECIFIED
    # One word of the table of reasons (http_404, timeout, dns, ...); empty when fetched.
    reason: str = ""
    # HTTP status, 0 when none came.
    status: int = 0
    # Seconds since 1970 UTC; 0 when nothing was dialled.
    started_at: float = 0.0
    ended_at: float = 0.0
    # Server address that was dialled.
    address: str = ""
    # Seconds of the server's Retry-After; 0 without one.
    retry_after_s: float = 0.0
    # Absolute target of a redirect.
    location: str = ""
    # Body of a robots.txt, at most 500 KiB, decoded from its transfer and content encodings.
    body: bytes = b""
    # Bytes read from the wire.
    wire_bytes: int = 0
    content_type: str = ""
    # One line for people: what exactly went wrong.
    detail: str = ""
    # Time spent in a browser, seconds.
    browser_s: float = 0.0
    # The request of a retracted page; the scheduler may know no more of the URL than its fingerprint.
    request: FetchRequest | None = None
    # `lease_until` of the request: the lease that this outcome ends.
    lease_until: float = 0.0
    # The finer reason where there is one (login_page of blocked, downloader_gone of lease_expired); else
    # empty.
    cause: str = ""
