"""Rules on the pages of the service: here at once when that is bounded, else in the rules' child process.

Bounded is a rule whose selectors are (`Rule.bounded`), on a page of at most INLINE_BYTES that is not nested deeper than
INLINE_DEPTH. A rule that took longer than SLOW_S all the same goes to the child from then on. Invariants: the loop
never waits for a rule that is not bounded; every page is finished exactly once, with the rule's items or with the
reason why there are none, and then its own title, text and links stand.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from nephila.kernel import messages as m
from nephila.kernel.clock import Clock
from nephila.parser.document import Document
from nephila.parser.elsewhere import Body, Elsewhere
from nephila.parser.rules.book import Entry, RuleBook
from nephila.parser.rules.extract import Extraction, extract
from nephila.parser.rules.match import holds
from nephila.parser.rules.outcome import links_of, note, put_items
from nephila.parser.sandbox import Broken, Sandbox

log = logging.getLogger(__name__)

INLINE_BYTES: Final = 256 << 10
"""A larger page is looked at in the child: trees and selectors cost what is in a page, times its depth."""
INLINE_DEPTH: Final = 120
"""Elements within each other; real pages have under 60."""
SLOW_S: Final = 0.1
"""Of one page."""

Done = Callable[[Sequence[m.Outlinks]], None]
"""Publishes the links and the record, and acks the page."""


class RuleReader:
    """See the module."""

    def __init__(self, clock: Clock, sandbox: Sandbox, elsewhere: Elsewhere, *, scripts: bool = False) -> None:
        self.book = RuleBook()
        self.items = 0
        self.elsewhere = 0
        """Pages that went to the child."""
        self.broken = 0
        """Pages whose rule was given up."""
        self._clock = clock
        self._sandbox = sandbox
        self._pages = elsewhere
        self._scripts = scripts
        self._slow: dict[tuple[str, int], None] = {}

    def read(
        self,
        page: m.Page,
        record: m.Record,
        links: Sequence[m.Outlinks],
        document: Document,
        depth: int,
        follow: bool,
        done: Done,
    ) -> None:
        """Read a page by the rule that is for it, if there is one; `depth` is how deep it is nested at most, `follow`
        whether its links may go on. `done` is called now or in a later turn."""
        entries = list(self.book.of_url(page.job, page.url))
        if not entries:
            done(links)
        elif self._inline(entries, document, depth):
            done(self._read_now(page, record, links, document, entries, follow))
        else:
            self.elsewhere += 1
            from nephila.parser.rules.task import ask_of

            payload = ask_of([entry.text for entry in entries], document, scripts=self._scripts)
            body = self._pages.hold(payload)
            self._pages.begin(self._read_later(page, record, links, body, entries, follow, done))

    def _inline(self, entries: list[Entry], document: Document, depth: int) -> bool:
        if len(document.body) > INLINE_BYTES or depth > INLINE_DEPTH:
            return False
        return all(entry.rule.bounded and _key(entry) not in self._slow for entry in entries)

    def _read_now(
        self,
        page: m.Page,
        record: m.Record,
        links: Sequence[m.Outlinks],
        document: Document,
        entries: list[Entry],
        follow: bool,
    ) -> Sequence[m.Outlinks]:
        began = self._clock.monotonic()
        for entry in entries:
            if holds(entry.rule, document):
                found = extract(entry.rule, document)
                if self._clock.monotonic() - began > SLOW_S:
                    self._slow[_key(entry)] = None
                return self._finished(page, record, links, entry, found, follow)
        return links

    async def _read_later(
        self,
        page: m.Page,
        record: m.Record,
        links: Sequence[m.Outlinks],
        body: Body,
        entries: list[Entry],
        follow: bool,
        done: Done,
    ) -> None:
        from nephila.parser.rules.task import RULES

        try:
            answer = await self._sandbox.call(RULES, body.take())
            if 0 <= answer.number < len(entries):
                links = self._finished(page, record, links, entries[answer.number], answer.found, follow)
        except (Broken, OSError) as error:
            # The page is what it is without a rule; what went wrong stands in its row.
            self.broken += 1
            log.warning("rule %s: %s: %s", entries[0].rule.name, ascii(page.url)[:500], error)
            record.rule, record.rule_version = entries[0].rule.name, entries[0].rule.version
            note(record, str(error))
        done(links)

    def _finished(
        self,
        page: m.Page,
        record: m.Record,
        links: Sequence[m.Outlinks],
        entry: Entry,
        found: Extraction,
        follow: bool,
    ) -> Sequence[m.Outlinks]:
        put_items(record, entry.rule, found)
        self.items += len(found.items)
        return links_of(page, links, found) if follow else links


def _key(entry: Entry) -> tuple[str, int]:
    return entry.rule.name, entry.rule.version
