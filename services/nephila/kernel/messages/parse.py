"""Generated from proto/nephila/v1/parse.proto by tools/protogen.py; do not edit."""

from enum import IntEnum

import msgspec

from nephila.kernel.messages.context import Context
from nephila.kernel.messages.jobs import NearCopies


class Outcome(IntEnum):
    """Terminal state of a URL."""

    UNSPECIFIED = 0
    STORED = 1
    DENIED = 2
    FAILED = 3
    DROPPED = 4


class LinkSource(IntEnum):
    """Where links were found."""

    UNSPECIFIED = 0
    SITEMAP = 1
    FEED = 2
    REQUISITE = 3


class Capture(msgspec.Struct, array_like=True, gc=False):
    """What a browser captured of a page beside its document."""

    # xhr, screenshot or pdf.
    kind: str = ""
    # Of an xhr: what was requested; else the URL of the page.
    url: str = ""
    content_type: str = ""
    body: bytes = b""


class Outlinks(msgspec.Struct, array_like=True, gc=False):
    """The links of one page, packed: n links in document order, each fingerprint once. Topic `outlinks`; over a
    broker the links of a page travel apart, each on its own partition.
    """

    job: str = ""
    parent_key: bytes = b""
    parent_url: str = ""
    # Depth of the links themselves: the parent's + 1; of a sitemap or feed the parent's own.
    depth: int = 0
    # 16 n bytes.
    fingerprints: bytes = b""
    # URLs one after the other, UTF-8.
    urls: bytes = b""
    # n little-endian uint32: end of each URL in urls.
    url_ends: bytes = b""
    # 2 n little-endian uint32: start and end of each host key within urls.
    host_spans: bytes = b""
    # Anchor texts one after the other, UTF-8.
    anchors: bytes = b""
    # n little-endian uint32: end of each anchor in anchors.
    anchor_ends: bytes = b""
    # n bytes: bit 0 nofollow, bits 1-3 the kind of link; kind 6 is a sitemap that a sitemap index names; bit
    # 4 in the page's main text, bit 5 only in nav, header, footer or aside; neither: elsewhere, or not known.
    flags: bytes = b""
    # n little-endian float64: when each target changed last, seconds since 1970 UTC, 0 = not said; empty:
    # none was said.
    lastmods: bytes = b""
    # n bytes: relevance of each link for the job's keywords, 0-255; empty: nothing was judged.
    priorities: bytes = b""
    # What kind of document the links stand in.
    source: LinkSource = LinkSource.UNSPECIFIED
    # Priority that the parent had in its queue, 0-255.
    parent_priority: int = 0
    # Of the page: all its links inherit it.
    context: Context | None = None
    # Links to further pages of the list, which are followed only if one of the links above is new.
    next_pages: "Outlinks | None" = None
    # The further pages are followed in any case.
    next_always: bool = False


class Receipt(msgspec.Struct, array_like=True, gc=False):
    """One URL whose effects are durable."""

    url_key: bytes = b""
    fetch_no: int = 0
    outcome: Outcome = Outcome.UNSPECIFIED
    # What the fetch brought, for the scheduler's view of the URL: see Record. Of a body without a text, the
    # first 8 bytes of its SHA-256.
    text_hash: bytes = b""
    not_modified: bool = False
    etag: str = ""
    last_modified: str = ""
    size_bytes: int = 0
    status: int = 0


class DeadLetter(msgspec.Struct, array_like=True, gc=False):
    """A message no service could digest. Topic `dead`."""

    topic: str = ""
    service: str = ""
    error: str = ""
    attempts: int = 0
    job: str = ""
    url_key: bytes = b""
    url: str = ""
    # Where it was read, and the message itself, over a broker; empty within one program.
    partition: int = 0
    message: bytes = b""
    # Format number of the message.
    format: int = 0


class Page(msgspec.Struct, array_like=True, gc=False):
    """A fetched document. Topic `pages`."""

    job: str = ""
    url_key: bytes = b""
    url: str = ""
    host: str = ""
    fetch_no: int = 0
    attempt: int = 0
    depth: int = 0
    status: int = 0
    # Media type in lower case without parameters; empty when the server sent none.
    content_type: str = ""
    # charset parameter of Content-Type in lower case; empty when there is none.
    charset: str = ""
    # Content decoded by the downloader; in one program it may be any bytes-like object.
    body: bytes = b""
    # Start of the fetch, seconds since 1970 UTC.
    fetched_at: float = 0.0
    address: str = ""
    etag: str = ""
    last_modified: str = ""
    # Request line and headers as sent, CRLF lines; empty unless raw capture is on.
    request_head: bytes = b""
    # Status line and headers as received, CRLF lines; empty unless raw capture is on.
    response_head: bytes = b""
    # Body as received (transfer encoding removed, content encoding kept); empty when it equals body or raw
    # capture is off.
    wire_body: bytes = b""
    wire_bytes: int = 0
    # True for the answer 304: no body, the stored copy stays.
    not_modified: bool = False
    # X-Robots-Tag header in lower case; empty when there is none.
    robots_tag: str = ""
    # Priority that the URL had in its queue, 0-255.
    priority: int = 0
    # Seconds from the start of the fetch to the end of the answer; 0 when it was not measured.
    took_s: float = 0.0
    # Why the body is not whole, as WARC-Truncated has it: length, time, disconnect, unspecified; empty: it is
    # whole.
    truncated: str = ""
    # Of the request.
    context: Context | None = None
    # The body is the document of a browser, after its scripts.
    rendered: bool = False
    # Their bodies are empty without raw capture; then they are only files of the downloader.
    captures: list[Capture] = msgspec.field(default_factory=list)
    # Refresh header; empty when there is none.
    refresh: str = ""
    # URL of a rendered page at the end, where its scripts have changed it within the host; else empty.
    final_url: str = ""


class Record(msgspec.Struct, array_like=True, gc=False):
    """What the parser makes of a page, or the terminal row of a URL without one. Topic `records`."""

    job: str = ""
    url_key: bytes = b""
    url: str = ""
    fetch_no: int = 0
    attempt: int = 0
    outcome: Outcome = Outcome.UNSPECIFIED
    # Why, in one word; empty when stored from a fetched page.
    reason: str = ""
    status: int = 0
    # Target of a redirect, or empty.
    final_url: str = ""
    depth: int = 0
    content_type: str = ""
    # Length of the decoded body in bytes.
    size_bytes: int = 0
    # SHA-256 of the decoded body, 32 bytes; empty without a body.
    sha256: bytes = b""
    title: str = ""
    # Visible text, UTF-8, blocks separated by newlines; in one program it may be any bytes-like object.
    text: bytes = b""
    lang: str = ""
    # Seconds since 1970 UTC; for a row without a page, the time it was decided.
    fetched_at: float = 0.0
    # Name and version of the rule that the page was read by; empty and 0 for generic extraction.
    rule: str = ""
    rule_version: int = 0
    # JSON object with description, canonical, encoding and OpenGraph metadata; empty when there is none.
    meta: str = ""
    # Links to be kept with the record (--links); null when they are not wanted.
    links: Outlinks | None = None
    etag: str = ""
    last_modified: str = ""
    # True when the row of an earlier fetch stays and only fetched_at and status change (304).
    not_modified: bool = False
    # First 8 bytes of the SHA-256 of the main text (of the visible text until there is one); empty without a
    # text. Of a sitemap or feed: of its links and their dates.
    text_hash: bytes = b""
    # What the rule makes of the page: a JSON object each, UTF-8.
    items: list[bytes] = msgspec.field(default_factory=list)
    # Neither written nor read any more: Markdown is derived from the structure.
    markdown: bytes = b""
    # A browser rendered the page.
    rendered: bool = False
    # Kinds of the captures of the page, each once.
    captures: list[str] = msgspec.field(default_factory=list)
    # Of the page.
    context: Context | None = None
    # Simhash of the text that text_hash is of, 8 bytes big-endian; empty for a short text. Definition:
    # docs/adr/0089.
    simhash: bytes = b""
    # Of the job: what happens to a near-copy of another page.
    near_copies: NearCopies = NearCopies.UNSPECIFIED
    # Answered 404 or 410 fewer times in a row than the job's goneAfter: the page is fetched again and not
    # gone yet.
    gone_pending: bool = False
    # Of a page of search results: fingerprints of the content pages that it leads to, 16 bytes each.
    leads: bytes = b""
    # The structure of the page beside the text (services/nephila/native/README.md); empty where there is
    # none.
    structure: bytes = b""


class Receipts(msgspec.Struct, array_like=True, gc=False):
    """Topic `receipts`: these URLs have ended."""

    job: str = ""
    receipts: list[Receipt] = msgspec.field(default_factory=list)
