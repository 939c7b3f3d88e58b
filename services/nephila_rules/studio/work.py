"""What is sent to the studio's child processes and what they answer, and the processes themselves."""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Final, Literal, NamedTuple

import msgspec
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.parser.sandbox import BlockingSandbox, ChildError, Task
from nephila.parser.sandbox.task import MEMORY, RESULT, TIMEOUT

from nephila_rules.runtime import task
from nephila_rules.stored_pages import StoredPage
from nephila_rules.studio.draft import Draft, Step
from nephila_rules.studio.seen import Offer, Row, Suggestion
from nephila_rules.studio.styled.pieces import Pieces

WALL_S: Final = 2.0
"""Seconds of one call. A page with 5000 elements takes some 0.6 s."""
CHILDREN: Final = 2
"""Child processes at most: clicks on other pages do not wait for a page that takes long."""
SLOW_S: Final = 300.0
"""Seconds for which a page is refused after its work has ended by the limits."""
REMEDY: Final = "choose another page of the site, or write the selectors into the rule file by hand"
_WHY: Final = {
    TIMEOUT: f"its work takes more than {WALL_S:g} s, as with very deep nesting or thousands of siblings",
    MEMORY: f"its work takes more than {task.MEMORY_BYTES >> 20} MB of memory",
    RESULT: "its result is too large",
}
MAX_SLOW: Final = 100
MAX_PAYLOAD: Final = 64 << 20
"""Bytes of the pages of one call; further pages are left out."""
Job = Literal["step", "frame", "links", "view", "moved", "styled", "sheet", "vector"]
"""sheet: the page is a style sheet. vector: it is an SVG file."""


class Page(NamedTuple):
    """Identity of a page."""

    url: str
    digest: bytes
    """SHA-256 of its body."""


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
    suggestion: Suggestion | None = None
    """Of a draft without fields."""


class Answer(msgspec.Struct, array_like=True):
    """The result of a call; what its kind does not give is None or empty."""

    problem: str = ""
    """Why the step was not taken, in one line."""
    draft: Draft | None = None
    view: View | None = None
    html: str = ""
    whole: bool = True
    links: list[FoundLink] = msgspec.field(default_factory=list)
    pieces: Pieces | None = None
    """A page, style sheet or SVG file whose addresses are still open; None for what is no SVG."""


STUDIO: Final[Task[Answer]] = Task(
    "studio",
    "nephila_rules.studio.child",
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
    """Child processes for the work on pages, started when they are needed and used again. Thread-safe.

    Calls for one page follow each other, at the child that has the page's tree if it is free. A page whose work has
    ended by the limits of the child is refused for `SLOW_S`: it costs `WALL_S` once, and not with each click.
    """

    def __init__(
        self,
        sandbox: Callable[[], BlockingSandbox] = BlockingSandbox,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sandbox = sandbox
        self._monotonic = monotonic
        self._changed = threading.Condition()
        self._sandboxes: list[BlockingSandbox] = []
        self._idle: list[tuple[BlockingSandbox, Page]] = []
        """Each with its last page; the one that was used last is at the end."""
        self._busy: set[Page] = set()
        # Its owners, the operations of the API, have no end of their own.
        self._end = weakref.finalize(self, _close_all, self._sandboxes)
        self._slow: dict[Page, tuple[float, str]] = {}
        """When the work on a page ended by a limit, and by which."""

    def call(self, work: Work) -> Answer:
        """Raises `UserError` when the child exceeds its limits, `UsageError` for a step that cannot be taken."""
        work.pages = _bounded(work.pages)
        page = Page(work.pages[0].url, sha256(work.pages[0].body).digest()) if work.pages else Page("", b"")
        with self._lease(page) as sandbox:
            try:
                answer = sandbox.call(STUDIO, msgspec.msgpack.encode(work), attempts=1)
            except ChildError as error:
                why = f"{page.url[:200]} cannot be worked on here: {_WHY.get(error.reason, str(error))}; {REMEDY}"
                self._note_slow(page, why)
                raise UserError(why) from None
        if answer.problem:
            raise UsageError(answer.problem)
        return answer

    @contextmanager
    def _lease(self, page: Page) -> Iterator[BlockingSandbox]:
        """A child that no other call uses, while no other call is for this page."""
        with self._changed:
            self._changed.wait_for(
                lambda: page not in self._busy and (bool(self._idle) or len(self._sandboxes) < CHILDREN)
            )
            ended_at, why = self._slow.get(page, (-math.inf, ""))
            if self._monotonic() - ended_at < SLOW_S:
                raise UserError(why)
            index = next((i for i, (_, last) in enumerate(self._idle) if last == page), -1)
            if self._idle:
                sandbox, _ = self._idle.pop(index)
            else:
                sandbox = self._sandbox()
                self._sandboxes.append(sandbox)
            self._busy.add(page)
        try:
            yield sandbox
        finally:
            with self._changed:
                self._busy.remove(page)
                self._idle.append((sandbox, page))
                self._changed.notify_all()

    def _note_slow(self, page: Page, why: str) -> None:
        with self._changed:
            self._slow.pop(page, None)
            if len(self._slow) >= MAX_SLOW:
                del self._slow[next(iter(self._slow))]
            self._slow[page] = self._monotonic(), why

    def close(self) -> None:
        """Stop the processes when the present calls have ended."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy)
            self._end()


def _close_all(sandboxes: Sequence[BlockingSandbox]) -> None:
    for sandbox in sandboxes:
        sandbox.close()


def _bounded(pages: Sequence[PageBody]) -> list[PageBody]:
    left = MAX_PAYLOAD
    bounded: list[PageBody] = []
    for page in pages:
        left -= len(page.body)
        if left >= 0 or not bounded:
            bounded.append(page)
    return bounded
