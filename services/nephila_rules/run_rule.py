"""Rules on one stored page, for commands: bounded rules in this process, all others in a child with a time limit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import msgspec
from nephila.kernel.runtime.errors import UserError
from nephila.parser.page.html_tree import MAX_DEPTH
from nephila.parser.sandbox import BlockingSandbox, ChildError
from nephila.parser.sandbox.task import ATTEMPTS, TIMEOUT, Out, Task

from nephila_rules.runtime.bounds import fits
from nephila_rules.runtime.document import Document
from nephila_rules.runtime.extract import Extraction, extract
from nephila_rules.runtime.function_directory import FunctionDirectory
from nephila_rules.runtime.load import RuleDocument
from nephila_rules.runtime.match import holds
from nephila_rules.stored_pages import StoredPage
from nephila_rules.time_limit import TimeLimit


class RuleRunner:
    """Runs rules on stored pages. A context manager: it owns the child process."""

    def __init__(
        self, *, scripts: bool = False, functions: str = "", wall_s: float = 0.0, limit: TimeLimit | None = None
    ) -> None:
        """`wall_s`: seconds that a page may take in the child; 0: as many as in a service. `limit`: of all runs
        together; every rule runs in the child then, once, and a run that exceeds it raises `UserError`. `functions`:
        the directory of Python functions; empty: none are called."""
        self._wall_s = wall_s
        self._limit = limit
        self._scripts = scripts
        self._functions = FunctionDirectory(functions, time.monotonic) if functions else None
        self._sandbox = BlockingSandbox()
        self.failure = ""
        """Why the last run failed; "" if it did not."""

    def __enter__(self) -> RuleRunner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._sandbox.close()

    @property
    def pids(self) -> list[int]:
        """Process ids of the running children."""
        return self._sandbox.pids

    def run(self, rule: RuleDocument, page: StoredPage) -> Extraction:
        """Run a rule on a page. If the child fails on the page, the extraction is empty and its problems name the
        failure."""
        return self._extract([rule], page, chosen=True)[1]

    def run_first(self, rules: Sequence[RuleDocument], page: StoredPage) -> tuple[RuleDocument | None, Extraction]:
        """The first rule whose conditions on content the page meets, and its extraction."""
        number, extraction = (
            self._extract(rules, page, chosen=not rules[0].rule.content) if rules else (-1, Extraction())
        )
        return (rules[number] if number >= 0 else None), extraction

    def _extract(self, rules: Sequence[RuleDocument], page: StoredPage, *, chosen: bool) -> tuple[int, Extraction]:
        """Index of the matching rule (-1: none) and its extraction. `chosen`: use the first rule without checking its
        conditions on content."""
        self.failure = ""
        document = page.document
        candidates = rules[:1] if chosen else rules
        depth = depth_of(document) if self._limit is None else 0
        if self._limit is None and all(
            candidate.rule.bounded and fits(candidate.rule, page.body, depth) for candidate in candidates
        ):
            for number, candidate in enumerate(candidates):
                if chosen or holds(candidate.rule, document):
                    return number, extract(candidate.rule, document)
            return -1, Extraction()
        from nephila_rules.runtime.task import RULES, request_of

        try:
            payload = request_of(
                {candidate.name: candidate.text for candidate in candidates},
                document,
                scripts=self._scripts,
                chosen=chosen,
            )
            calls = self._functions if any(candidate.rule.functions for candidate in candidates) else None
            answer = self._call(calls.task(RULES) if calls else RULES, payload, "the rule", ATTEMPTS)
        except ChildError as error:
            self.failure = str(error)
            return 0, Extraction(problems=[self.failure])
        return (answer.number if answer.number < len(candidates) else -1), answer.found

    def hints(self, rule: RuleDocument, page: StoredPage, missing: list[str]) -> dict[str, list[str]]:
        """Near matches for empty fields, by path; empty if the search exceeds its time limit."""
        if not missing or self.failure:
            return {}
        from nephila_rules.near_matches_child import NEAR_MATCHES, payload_of

        try:
            payload = payload_of(rule, page.document, missing)
            return self._call(NEAR_MATCHES, payload, "the search for near matches", attempts=1)
        except ChildError:
            return {}

    def _call(self, task: Task[Out], payload: bytes, step: str, attempts: int) -> Out:
        if self._limit is None:
            return self._sandbox.call(task, payload, wall_s=self._wall_s, attempts=attempts)
        left_s, longest_s = self._limit.left_s(step), self._wall_s or task.wall_s
        try:
            return self._sandbox.call(task, payload, wall_s=min(left_s, longest_s), attempts=1)
        except ChildError as error:
            if error.reason == TIMEOUT and left_s < longest_s:
                raise self._limit.exceeded(step) from None
            raise


def depth_of(document: Document) -> int:
    """Upper bound of the nesting depth of a page."""
    from nephila.native import PassOptions, page_pass

    # A rule may ask for a tree of any document; JSON and text may hold markup, but mostly hold none.
    if (tags := document.body.count(b"<")) <= MAX_DEPTH:
        return tags
    return page_pass(
        document.body,
        document.url or "http://a.invalid/",
        document.encoding,
        PassOptions(max_links=0, max_text_bytes=0),
    ).depth


def items_of(extraction: Extraction) -> list[Any]:
    """The items of an extraction as values. Raises `UserError`."""
    try:
        return [msgspec.json.decode(item) for item in extraction.items]
    except msgspec.DecodeError as error:
        raise UserError(f"an item is no JSON: {error}") from None
