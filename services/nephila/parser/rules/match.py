"""Which of many rules is for a page: one RE2 set over the URL patterns of all, then what the page has to have.

Of several rules for one page the one with the highest priority counts, then the one whose name comes first in byte
order. Invariant: the answer equals that of asking each rule (`Rule.matches`), however many there are. A URL costs some
microseconds with 5,000 rules, since all patterns run as one automaton.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import re2

from nephila.parser.page.html_tree import css_first
from nephila.parser.rules.document import Document
from nephila.parser.rules.selectors import compiled
from nephila.parser.rules.spec import Rule

log = logging.getLogger(__name__)

_MEMORY: Final = 64 << 20
_PER_PATTERN: Final = 32 << 10
"""Bytes that the automaton may grow to, all in all and for each pattern."""


class RuleSet:
    """Rules that are asked together. Made once, O(all patterns); immutable."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        readers = [reader for rule in rules for reader in rule.page_rules]
        # Before a rule what reads its second pages, whose URLs are the narrower ones.
        self.rules = tuple(sorted(readers, key=_order))
        self._owner: list[int] = []
        self._set = self._compile() if self.rules else None

    def __len__(self) -> int:
        return len(self.rules)

    def for_url(self, url: str) -> Iterator[Rule]:
        """The rules for a URL as far as the URL says, in the order in which they count."""
        for index in self._candidates(url):
            rule = self.rules[index]
            if not any(compiled("regex", pattern).search(url) for pattern in rule.not_urls):
                yield rule

    def of_page(self, url: str, document: Callable[[], Document]) -> Rule | None:
        """The rule for a page, None when there is none; `document` is asked only where a rule looks at the content."""
        for rule in self.for_url(url):
            if not rule.content or holds(rule, document()):
                return rule
        return None

    def _compile(self) -> re2.Set | None:
        options = re2.Options()
        options.log_errors = False
        patterns = [(pattern, index) for index, rule in enumerate(self.rules) for pattern in rule.urls]
        options.max_mem = _MEMORY + _PER_PATTERN * len(patterns)
        found = re2.Set.SearchSet(options)
        # The empty expression matches everywhere: where even it does not, the automaton ran out of memory.
        found.Add("")
        for pattern, index in patterns:
            found.Add(pattern)
            self._owner.append(index)
        try:
            found.Compile()
        except re2.error:
            log.warning("the patterns of %d rules are too large for one automaton; each is asked", len(self.rules))
            return None
        return found

    def _candidates(self, url: str) -> Iterable[int]:
        try:
            found = self._set.Match(url) if self._set is not None else ()
            if not found:
                return [index for index, rule in enumerate(self.rules) if rule.matches(url)]
        except UnicodeEncodeError:
            return ()
        return sorted({self._owner[number - 1] for number in found if number})


def _order(rule: Rule) -> tuple[int, bytes, bool]:
    base, part, _ = rule.name.partition("/")
    return -rule.priority, base.encode(), not part


def holds(rule: Rule, document: Document) -> bool:
    """Whether a page has what the rule asks of its content."""
    content = rule.content
    if "contentType" in content and not compiled("regex", content["contentType"]).search(document.content_type):
        return False
    if "text" in content and not compiled("regex", content["text"]).search(document.source):
        return False
    return "css" not in content or css_first(document.tree.root, content["css"]) is not None
