"""Search templates: URL and form of a search from its parameters. Pure.

A template is compiled once for each span of dates: a search then costs one join. Keywords are percent-encoded in the
encoding of the platform.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from string import Formatter
from typing import NamedTuple
from urllib.parse import quote_plus

from nephila.kernel.documents.scheme_schema import Search, parameters_of
from nephila.kernel.fragment_routes import FORM


class Span(NamedTuple):
    """The dates of a search, both inclusive."""

    first: date
    last: date


class CompiledSearch:
    """The first page of a platform's searches in one span of dates."""

    def __init__(self, search: Search, span: Span | None) -> None:
        self.encoding = search.encoding
        self._joiner = quote_plus(search.joiner.encode(search.encoding))
        values = {
            "page": str(search.first_page),
            "size": str(search.size),
            "order": quote_plus(search.order.encode(search.encoding)),
            "from": _day(span.first, search) if span else "",
            "to": _day(span.last, search) if span else "",
        }
        pieces = _pieces([(search.url, False), *_form(search)], values, search.encoding)
        if len(pieces) == 2:
            before, after = pieces
            self._url: Callable[[str], str] = lambda keyword: f"{before}{keyword}{after}"
        else:
            self._url = lambda keyword: keyword.join(pieces)

    def encoded(self, keyword: str) -> str:
        """A keyword as it is in a URL. Raises UnicodeEncodeError."""
        return quote_plus(keyword.encode(self.encoding))

    def url(self, encoded: list[str]) -> str:
        """The URL of a search for these keywords, each as `encoded` made it."""
        return self._url(self._joiner.join(encoded))


def is_dated(search: Search) -> bool:
    """Whether the searches of a platform have dates."""
    names = {name for text in (search.url, *search.form.values()) for name in parameters_of(text)}
    return bool(names & {"from", "to"})


def page_parameter(search: Search) -> str:
    """Name of the query parameter, or of the field of the form, that has {page}; empty where there is none."""
    if search.method == "POST":
        return next((name for name, value in search.form.items() if "{page}" in value), "")
    query = search.url.partition("?")[2].partition("#")[0]
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if "{page}" in value:
            return name
    return ""


def _day(day: date, search: Search) -> str:
    return quote_plus(day.strftime(search.date_format).encode(search.encoding))


def _form(search: Search) -> list[tuple[str, bool]]:
    """The form as templates behind the URL, each with whether its text has to be encoded."""
    if search.method == "GET":
        return []
    templates = [(f"#{FORM}", False)]
    for name, value in search.form.items():
        separator = "&" if len(templates) > 1 else ""
        templates += [(f"{separator}{quote_plus(name.encode(search.encoding))}=", False), (value, True)]
    return templates


def _pieces(templates: list[tuple[str, bool]], values: Mapping[str, str], encoding: str) -> list[str]:
    """The templates with all values but that of {keyword}, cut at {keyword}."""
    pieces = [""]
    for template, encode in templates:
        for text, name, _, _ in Formatter().parse(template):
            pieces[-1] += quote_plus(text.encode(encoding)) if encode else text
            if name == "keyword":
                pieces.append("")
            elif name is not None:
                pieces[-1] += values[name]
    return pieces
