"""A page between its delivery and its ack: one object, which the steps of `steps.py` fill in.

Invariant: while a child process has the body, or a request made of it, `body` and `page.body` are empty.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Delivery, Receipt
from nephila.kernel.documents.job_schema import JobSpec
from nephila.native import PagePass
from nephila.parser.lists.detection import ListForm
from nephila.parser.page.body_kind import BodyKind

if TYPE_CHECKING:
    from nephila.native._core import ReadPage

Links = Sequence[m.Outlinks]
PageCall = Callable[..., PagePass]
"""`nephila.native.page_pass`, or a fake with the same attributes."""
Work = Callable[[], Awaitable[None]]
"""What a page waits for."""
NO_PASS: Final = cast("PagePass", None)


class PageKind(StrEnum):
    """What decides which steps a page takes. The values are for people. Its hash is that of a text: a page looks its
    steps up, and the hash of an `Enum` is Python code."""

    REQUISITE = "requisites"
    NOT_MODIFIED = "304"
    LIST = "sitemaps and feeds"
    HTML = "HTML"
    LONG_HTML = "long HTML"
    """Above `max_inline_bytes`."""
    PDF = "PDF"
    TEXT = "text"
    """JSON, XML, CSV and other text."""
    OFFICE = "office files"
    FILE = "files"
    """Pictures, archives: no text is read."""


# Names of the module: in Python 3.11 an attribute of an enum class costs ten times as much.
HTML, TEXT = PageKind.HTML, PageKind.TEXT


class PageInProgress(msgspec.Struct, eq=False):
    """A page, what is known of it, and the messages that it becomes."""

    delivery: Delivery
    page: m.Page
    job: JobSpec
    body: bytes
    record: m.Record
    read: ReadPage | None = None
    """What a page thread has made of the body."""
    kind: PageKind = PageKind.FILE
    body_kind: BodyKind = BodyKind.BINARY
    sniffed: str = ""
    """Media type that the bytes show, if it differs from the server's."""
    form: ListForm | None = None
    """Set for a sitemap or feed."""
    encoding: str = ""
    """WHATWG name; empty: not text, or not determined."""
    found: PagePass = NO_PASS
    """The page pass, up to the last step that reads it."""
    main_text: bool = True
    """Whether the page pass reads the main text."""
    depth: int = 0
    """Greatest nesting depth of the elements, an upper bound."""
    follow: bool = False
    """Whether the links may be followed."""
    links: Links = ()
    """What is published before the record."""
    receipts: list[Receipt] = []
    """Of messages that are published already."""
    steps: Sequence[Any] = ()
    """`steps.Step`: those of this kind of page and this job."""
    at: int = 0
    """Index of the step that runs, or that the page waits in."""

    def take_body(self) -> bytes:
        """The body, for a child process. The page keeps none."""
        body, self.body = self.body, b""
        if self.page.body:
            # Replaced by a copy: a raw sink may still read the original page object.
            self.delivery.message = self.page = msgspec.structs.replace(self.page, body=b"")
        return body
