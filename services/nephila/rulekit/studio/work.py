"""What is sent to the studio's child process and what it answers, and the process itself."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final, Literal

import msgspec

from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.parser.rules import task
from nephila.parser.sandbox import BlockingSandbox, ChildError, Task
from nephila.rulekit.stored_pages import StoredPage
from nephila.rulekit.studio.draft import Draft, Step
from nephila.rulekit.studio.seen import Offer, Row

WALL_S: Final = 20.0
"""Seconds of one call."""
SLOW_S: Final = 300.0
"""Seconds for which a page is refused after its work has ended by the limits."""
MAX_SLOW: Final = 100
MAX_PAYLOAD: Final = 64 << 20
"""Bytes of the pages of one call; further pages are left out."""
Job = Literal["step", "frame", "links", "view", "moved"]


class PageBody(msgspec.Struct, array_like=True):
    """A page for the child."""

    url: str
    encoding: str
    content_type: str
    body: bytes
    facts: dict[str, str]


class Work(msgspec.Struct, array_like=True):
    """One call."""

    kind: Job
    draft: Draft
    pages: list[PageBody]
    """The page that is shown, then the others, those with picks first. moved: the page as it is now, and as it was."""
    step: Step = "new"
    node: int = 0
    notes: dict[int, tuple[str, bool]] = msgspec.field(default_factory=dict)
    """Number of a link → (why it is followed or not, whether it is)."""


class FoundLink(msgspec.Struct, array_like=True, frozen=True):
    """A link of the page."""

    node: int
    url: str
    """Empty: no address that can be crawled."""


class FieldView(msgspec.Struct, array_like=True, frozen=True):
    """A field on the page that is shown."""

    here: int
    """Its values there."""


class View(msgspec.Struct, array_like=True, frozen=True):
    """What the studio shows beside the frame."""

    title: str
    offers: list[Offer]
    """Selectors of the active field."""
    fields: list[FieldView]
    rows: list[Row]
    boxes: int
    """Items on the page where the rule has each."""


class Answer(msgspec.Struct, array_like=True):
    """The result of a call; what its kind does not give is None or empty."""

    problem: str = ""
    """Why the step was not taken, in one line."""
    draft: Draft | None = None
    view: View | None = None
    html: str = ""
    whole: bool = True
    links: list[FoundLink] = msgspec.field(default_factory=list)


STUDIO: Final[Task[Answer]] = Task(
    "studio",
    "nephila.rulekit.studio.child",
    msgspec.msgpack.Decoder(Answer).decode,
    wall_s=WALL_S,
    memory_bytes=task.MEMORY_BYTES,
    max_result_bytes=16 << 20,
)


def body_of(page: StoredPage) -> PageBody:
    """A stored page for the child."""
    document = page.document
    return PageBody(document.url, document.encoding, document.content_type, document.body, document.facts)


class StudioProcess:
    """The child process; it is started by the first call and used again. Thread-safe: one call at a time.

    A page whose work has ended by the limits of the child is refused for `SLOW_S`: it costs its 20 s once, and not with
    each click.
    """

    def __init__(self, sandbox: BlockingSandbox | None = None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._sandbox = sandbox or BlockingSandbox()
        self._monotonic = monotonic
        # Its owners, the operations of the API, have no end of their own.
        self._end = weakref.finalize(self, self._sandbox.close)
        self._lock = threading.Lock()
        self._slow: dict[tuple[str, bytes], tuple[float, str]] = {}
        """URL and digest of a page → when its work ended by a limit, and by which."""

    def call(self, work: Work) -> Answer:
        """Raises `UserError` when the child exceeds its limits, `UsageError` for a step that cannot be taken."""
        work.pages = _bounded(work.pages)
        page = (work.pages[0].url, sha256(work.pages[0].body).digest()) if work.pages else ("", b"")
        with self._lock:
            ended_at, limit = self._slow.get(page, (-SLOW_S, ""))
            if self._monotonic() - ended_at < SLOW_S:
                raise UserError(f"the page could not be worked on: {limit}; choose another page of the site")
            try:
                found = self._sandbox.call(STUDIO, msgspec.msgpack.encode(work), attempts=1)
            except ChildError as error:
                self._slow.pop(page, None)
                if len(self._slow) >= MAX_SLOW:
                    del self._slow[next(iter(self._slow))]
                self._slow[page] = self._monotonic(), str(error)
                raise UserError(f"the page could not be worked on: {error}") from None
        if found.problem:
            raise UsageError(found.problem)
        return found

    def close(self) -> None:
        """Stop the process."""
        with self._lock:
            self._end()


def _bounded(pages: Sequence[PageBody]) -> list[PageBody]:
    left = MAX_PAYLOAD
    kept: list[PageBody] = []
    for one in pages:
        left -= len(one.body)
        if left >= 0 or not kept:
            kept.append(one)
    return kept
