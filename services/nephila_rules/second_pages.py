"""Items of stored pages, completed from stored second pages (`followUps`). In a crawl storage does the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from nephila.kernel.pages.item_parts import complete_item, is_part, part_rule, waits_of
from nephila.native import UrlError, parse_url
from nephila.storage.ledgers.item_parts import MAX_HOPS

from nephila_rules.runtime.extract import Extraction


def _no_redirect(_: str) -> str:
    """Redirects of stored pages are not known."""
    return ""


class SecondPageItems:
    """Items of second pages, by their rule (`rule/part`) and URL."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, str], str] = {}

    def add(self, rule: str, url: str, extraction: Extraction) -> bool:
        """Keep the item of a page if it is a second page; returns whether it is."""
        if is_part(rule) and extraction.items:
            self._parts[rule, _canonical(url)] = extraction.items[0].decode("utf-8", "replace")
        return is_part(rule)

    def complete(self, rule: str, items: Sequence[bytes], target: Callable[[str], str] = _no_redirect) -> list[Any]:
        """The items of a page as values. An item keeps its `MISSING` key if its second page is not stored. `target`:
        the URL that a URL redirects to, "" if there is no redirect."""
        return [json.loads(self._complete(rule, item.decode("utf-8", "replace"), target)) for item in items]

    def _complete(self, rule: str, data: str, target: Callable[[str], str]) -> str:
        for wait in waits_of(data):
            part, url = None, wait.url
            for _ in range(MAX_HOPS):
                part = self._parts.get((part_rule(rule, wait.name), _canonical(url)))
                if part is not None or not (url := target(url)):
                    break
            if part is not None:
                data = complete_item(data, wait.name, part, wait.url, "")
        return data


def _canonical(url: str) -> str:
    try:
        return parse_url(url).canonical
    except UrlError:
        return url
