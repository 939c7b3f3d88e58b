"""A search as people write it, parsed: words, "phrases", -without, prefix*, title:, url:, host:, since:, until:.

Invariant: every word has to be in the page; what cannot be meant is a `UsageError` of one line that names the part.
Pure.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final, Literal, NamedTuple

from nephila.kernel.runtime.errors import UsageError

from nephila_stores.search.words import runs

Field = Literal["", "title", "url"]
FIELDS: Final = ("title", "url", "host", "since", "until")
MAX_TERMS: Final = 32
MAX_TOKENS: Final = 128
"""Pairs and words of all terms."""
MIN_PREFIX: Final = 2
"""Characters before the star: a shorter beginning is that of too many words."""
_PART: Final = re.compile(
    r'(?P<minus>-)?(?:(?P<field>[A-Za-z_]+):(?!//))?(?:"(?P<phrase>[^"]*)"(?P<star>\*)?|(?P<word>[^\s"]+))'
)
_DATE: Final = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?\Z")
_HOST: Final = re.compile(r"[^\s/?#@]+\Z")


class Term(NamedTuple):
    """Words that follow each other."""

    tokens: tuple[str, ...]
    """As in the index, the last one a beginning where `prefix` is true."""
    written: tuple[str, ...]
    """Folded, as they are found in a text."""
    prefix: bool = False
    field: Field = ""
    """In this field only; empty: in title, URL or text."""


class Query(NamedTuple):
    """A search."""

    terms: tuple[Term, ...]
    without: tuple[Term, ...]
    hosts: tuple[str, ...]
    """Any of these, or of their subdomains."""
    since: str
    """First day, YYYY-MM-DD; empty: no limit."""
    until: str
    """Last day."""


def parse(text: str) -> Query:
    """The search of a text. Raises `UsageError`."""
    if text.count('"') % 2:
        raise UsageError('the search has a " that is not closed')
    terms: list[Term] = []
    without: list[Term] = []
    hosts: list[str] = []
    limits = {"since": "", "until": ""}
    at = 0
    while part := _PART.match(text, at := _blank(text, at)):
        at = part.end()
        name, value = (part["field"] or "").lower(), part["phrase"] if part["phrase"] is not None else part["word"]
        if name in ("host", *limits):
            if part["minus"]:
                raise UsageError(f"-{name}: a search cannot leave a {name} out; write -url: and a word of the address")
            if name == "host":
                hosts.append(_host(value))
            else:
                limits[name] = _day(name, value)
            continue
        (without if part["minus"] else terms).extend(_term(name, value, star=bool(part["star"])))
    if at < len(text):
        raise UsageError(f"the search cannot be read at {text[at : at + 20]!a}")
    if not terms:
        raise UsageError("the search has no word to look for; write at least one word that has to be in a page")
    every = (*terms, *without)
    if len(every) > MAX_TERMS or sum(len(term.tokens) for term in every) > MAX_TOKENS:
        raise UsageError(f"the search is too long: at most {MAX_TERMS} words and phrases, {MAX_TOKENS} words in all")
    if limits["since"] and limits["until"] and limits["since"] > limits["until"]:
        raise UsageError(f"since:{limits['since']} is after until:{limits['until']}")
    return Query(tuple(terms), tuple(without), tuple(hosts), limits["since"], limits["until"])


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _term(name: str, value: str, *, star: bool) -> list[Term]:
    if name not in ("", "title", "url"):
        raise UsageError(f"{name}: is no field of a search; fields are {', '.join(FIELDS)}")
    if value.lower().rstrip(":") in FIELDS and value.endswith(":"):
        raise UsageError(f"{value} has no word behind it")
    prefix = star or (value.endswith("*") and len(value) > 1)
    words = runs(value)
    if not words:
        if name:
            raise UsageError(f"{name}: has no word behind it")
        return []
    tokens: list[str] = []
    for word, spaceless in words:
        tokens += [word[i : i + 2] for i in range(len(word) - 1)] if spaceless and len(word) > 1 else [word]
    last, last_spaceless = words[-1]
    # A single character of such a script is the beginning of a pair, wherever the run goes on.
    single = last_spaceless and len(last) == 1
    if prefix and not last_spaceless and len(last) < MIN_PREFIX:
        raise UsageError(f"{value!a}: at least {MIN_PREFIX} characters have to be before the *")
    return [Term(tuple(tokens), tuple(word for word, _ in words), prefix or single, name)]  # type: ignore[arg-type]


def _host(value: str) -> str:
    host = value.strip().lower().rstrip(".").removeprefix("*.")
    if not _HOST.match(host):
        raise UsageError(f"host:{value[:60]!a} is no host; write host:example.org")
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        raise UsageError(f"host:{value[:60]!a} is no host; write host:example.org") from None


def _day(name: str, value: str) -> str:
    match = _DATE.match(value)
    try:
        if match is None:
            raise ValueError
        year, month, day = int(match[1]), int(match[2] or (1 if name == "since" else 12)), int(match[3] or 1)
        if name == "until" and not match[3]:
            day = 31 if month == 12 else (date(year, month + 1, 1) - date(year, month, 1)).days
        return date(year, month, day).isoformat()
    except ValueError:
        raise UsageError(
            f"{name}:{value[:40]!a} is no day; write {name}:2026-11-23, {name}:2026-11 or {name}:2026"
        ) from None
