"""Rules on a stored page for commands: here when they are bounded, else in the rules' child process; never for ever.

Which of some rules is for the page, what it gives, and what nearly matched: each may need a tree of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from nephila.parser.page.html_tree import MAX_DEPTH
from nephila.parser.rules.bounds import fits
from nephila.parser.rules.document import Document
from nephila.parser.rules.extract import Extraction, extract
from nephila.parser.rules.load import RuleDocument
from nephila.parser.rules.match import holds
from nephila.parser.sandbox import BlockingSandbox, ChildError
from nephila.rulekit.stored_pages import StoredPage


class RuleRunner:
    """See the module; a context manager, since a child may be begun."""

    def __init__(self, *, scripts: bool = False, wall_s: float = 0.0) -> None:
        """`wall_s`: what a page may take in the child; 0 is what it may take in a service."""
        self._wall_s = wall_s
        self._scripts = scripts
        self._sandbox = BlockingSandbox()
        self.broken = ""
        """Why the last run came to nothing; "" when it did not."""

    def __enter__(self) -> RuleRunner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._sandbox.close()

    @property
    def pids(self) -> list[int]:
        """Process ids of the children there are."""
        return self._sandbox.pids

    def run(self, rule: RuleDocument, page: StoredPage) -> Extraction:
        """What the rule gives; a page that broke the child gives nothing, and says why among the problems."""
        return self._read([rule], page, chosen=True)[1]

    def run_first(self, rules: Sequence[RuleDocument], page: StoredPage) -> tuple[RuleDocument | None, Extraction]:
        """The first of some rules that is for the page by its content, and what that gives."""
        number, found = self._read(rules, page, chosen=not rules[0].rule.content) if rules else (-1, Extraction())
        return (rules[number] if number >= 0 else None), found

    def _read(self, rules: Sequence[RuleDocument], page: StoredPage, *, chosen: bool) -> tuple[int, Extraction]:
        """Number of the rule, -1 for none, and what it gives. `chosen`: it is the first, whatever it asks for."""
        self.broken = ""
        document = page.document
        depth = depth_of(document)
        asked = rules[:1] if chosen else rules
        if all(one.rule.bounded and fits(one.rule, page.body, depth) for one in asked):
            for number, one in enumerate(asked):
                if chosen or holds(one.rule, document):
                    return number, extract(one.rule, document)
            return -1, Extraction()
        from nephila.parser.rules.task import RULES, request_of

        try:
            payload = request_of({one.name: one.text for one in asked}, document, scripts=self._scripts, chosen=chosen)
            answer = self._sandbox.call(RULES, payload, wall_s=self._wall_s)
        except ChildError as error:
            self.broken = str(error)
            return 0, Extraction(problems=[self.broken])
        return (answer.number if answer.number < len(asked) else -1), answer.found

    def hints(self, rule: RuleDocument, page: StoredPage, missing: list[str]) -> dict[str, list[str]]:
        """What nearly matched where a field is empty, by its path; nothing where looking takes too long."""
        if not missing or self.broken:
            return {}
        from nephila.rulekit.near_matches_child import NEAR_MATCHES, payload_of

        try:
            return self._sandbox.call(
                NEAR_MATCHES, payload_of(rule, page.document, missing), wall_s=self._wall_s, attempts=1
            )
        except ChildError:
            return {}


def depth_of(document: Document) -> int:
    """How deep a page is nested at most."""
    from nephila.native import page_pass

    # JSON and the like may hold markup, and a rule may ask for a tree of it; most hold none.
    if (tags := document.body.count(b"<")) <= MAX_DEPTH:
        return tags
    return page_pass(
        document.body, document.url or "http://a.invalid/", document.encoding, max_links=0, max_text_bytes=0
    ).depth
