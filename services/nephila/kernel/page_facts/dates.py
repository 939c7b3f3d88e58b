"""The dates of a page from all its sources, in order of trust: statements, the URL, marked elements, visible lines."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from nephila.kernel.page_facts.byline import Byline
from nephila.kernel.page_facts.published import (
    Dates,
    day_order,
    first_date,
    is_of_build,
    published,
    url_date,
    visible_dates,
)

DATELINE: Final = "dateline"
"""Entry of `meta`: visible lines beside the headline and behind a label that hold a year or the name of an author."""


class DateElements(Protocol):
    """Dates in elements of a page, in ISO 8601; "" if there is none."""

    def published(self) -> str:
        """The date that the page states by schema.org."""

    def modified(self) -> str:
        """The date that the page states by schema.org."""

    def time(self) -> str:
        """The date of the first <time>."""

    def dated(self, day_first: bool | None) -> str:
        """An element whose class names a date."""


class RowElements:
    """Elements that the page pass has noted in a row."""

    def __init__(self, meta: Mapping[str, str]) -> None:
        self._meta = meta

    def _first(self, *names: str) -> str:
        return first_date(self._meta.get(name, "") for name in names)

    def published(self) -> str:
        return self._first("datepublished", "datecreated")

    def modified(self) -> str:
        return self._first("datemodified")

    def time(self) -> str:
        return self._first("time")

    def dated(self, day_first: bool | None) -> str:
        return ""


def dates(metadata: Byline, elements: DateElements, lang: str, url: str, lines: Sequence[str]) -> Dates:
    """The dates of publication and of the last change. A page that has only the latter was published then. `lines` are
    the visible lines that the page pass has noted."""
    day_first = day_order(lang)
    visible = functools.cache(lambda: visible_dates(lines, day_first))
    stated = Dates(metadata.published, metadata.modified or elements.modified())
    if stated.published and stated.modified and is_of_build(stated, visible().published):
        stated = Dates("", stated.modified)
    first = published(
        stated.published,
        url_date(url),
        elements.published,
        elements.time,
        lambda: visible().published,
        lambda: visible().modified,
        lambda: elements.dated(day_first),
        lambda: stated.modified,
    )
    return Dates(first, stated.modified or visible().modified)
