"""A rule on a stored page for commands: here when it is bounded, else in the rules' child process; never for ever."""

from __future__ import annotations

from types import TracebackType

from nephila.parser.document import Document
from nephila.parser.rules.bounds import MAX_DEPTH, fits
from nephila.parser.rules.extract import Extraction, extract
from nephila.parser.rules.load import RuleDocument
from nephila.parser.rules.pages import Stored
from nephila.parser.sandbox import BlockingSandbox, Broken


class Runner:
    """See the module; a context manager, since a child may be begun."""

    def __init__(self, *, scripts: bool = False, wall_s: float = 0.0) -> None:
        """`wall_s`: what a page may take in the child; 0 is what it may take in a service."""
        self._wall_s = wall_s
        self._scripts = scripts
        self._sandbox = BlockingSandbox()
        self.broken = ""
        """Why the last run came to nothing; "" when it did not."""

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._sandbox.close()

    @property
    def pids(self) -> list[int]:
        """Process ids of the children there are."""
        return self._sandbox.pids

    def run(self, rule: RuleDocument, page: Stored) -> Extraction:
        """What the rule gives; a page that broke the child gives nothing, and says why among the problems."""
        self.broken = ""
        document = page.document
        if rule.rule.bounded and fits(rule.rule, page.body, depth_of(document)):
            return extract(rule.rule, document)
        from nephila.parser.rules.task import RULES, ask_of

        try:
            payload = ask_of({rule.name: rule.text}, document, scripts=self._scripts, chosen=True)
            return self._sandbox.call(RULES, payload, wall_s=self._wall_s).found
        except Broken as error:
            self.broken = str(error)
            return Extraction(problems=[self.broken])


def depth_of(document: Document) -> int:
    """How deep a page is nested at most."""
    from nephila.native import page_pass

    # JSON and the like may hold markup, and a rule may ask for a tree of it; most hold none.
    if (tags := document.body.count(b"<")) <= MAX_DEPTH:
        return tags
    return page_pass(
        document.body, document.url or "http://a.invalid/", document.encoding, max_links=0, max_text_bytes=0
    ).depth
