"""Proposes include and exclude expressions from labelled URLs. Pure.

Candidates are made of parts of the URLs: first directories, a segment anywhere, the shape of the path with its numbers,
names of parameters, the suffix. A proposal matches at least MIN_HITS URLs of one kind and hardly any of the other; the
one with the most URLs that no earlier one has comes first. O(URLs × candidates), both bounded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

import re2

from nephila_harvest.audit.precision import Interval, wilson

Kind = Literal["include", "exclude"]

MIN_HITS: Final = 3
MAX_AGAINST: Final = 0.05
"""Of the URLs that an expression matches: those of the other kind, at most."""
MAX_PROPOSALS: Final = 20
MAX_CANDIDATES: Final = 2_000
_DIRECTORIES: Final = 3
_DIGITS: Final = re.compile(r"\d+")


class Proposal(NamedTuple):
    """An expression (RE2, searched in the full URL) and what the labels say of it."""

    kind: Kind
    expression: str
    hits: int
    """Labelled URLs of the kind that it matches: not wanted ones for exclude, missed ones for include."""
    against: int
    """URLs of the other kind that it matches."""
    share: Interval
    """Of its URLs that are of its kind, with 95 %."""


def proposals(kind: Kind, urls: Sequence[str], others: Sequence[str]) -> list[Proposal]:
    """Expressions for `urls` that hardly match one of `others`."""
    return list(_cover(kind, urls, others))


def _cover(kind: Kind, urls: Sequence[str], others: Sequence[str]) -> Iterator[Proposal]:
    count = Counter(part for url in set(urls) for part in set(_parts(url)))
    likely = [part for part, hits in count.most_common(MAX_CANDIDATES) if hits >= MIN_HITS]
    by_part: dict[str, tuple[frozenset[str], int]] = {}
    for part in likely:
        program = re2.compile(part)
        hits = frozenset(url for url in urls if program.search(url))
        against = sum(program.search(url) is not None for url in others)
        if len(hits) >= MIN_HITS and against <= MAX_AGAINST * (len(hits) + against):
            by_part[part] = (hits, against)
    left = set(urls)
    for _ in range(MAX_PROPOSALS):
        best = max(by_part, key=lambda part: (len(by_part[part][0] & left), -by_part[part][1], -len(part)), default="")
        if not best or len(by_part[best][0] & left) < MIN_HITS:
            return
        hits, against = by_part.pop(best)
        left -= hits
        number = len(hits) + against
        yield Proposal(kind, best, len(hits), against, wilson(len(hits) / number, number))


def _parts(url: str) -> Iterable[str]:
    """Expressions that match a URL."""
    parts = urlsplit(url)
    host = f"^https?://{re.escape(parts.netloc)}/"
    segments = parts.path.lstrip("/").split("/")
    for depth in range(1, min(len(segments), _DIRECTORIES + 1)):
        yield host + "".join(f"{re.escape(segment)}/" for segment in segments[:depth])
    yield from (f"/{re.escape(segment)}/" for segment in segments[:-1] if not _DIGITS.search(segment))
    last = segments[-1]
    if _DIGITS.search(parts.path):
        shape = "/".join(_DIGITS.sub(r"\\d+", re.escape(segment)) for segment in segments[:-1])
        yield f"{host}{shape}/" if shape else f"{host}{_DIGITS.sub(r'[0-9]+', re.escape(last))}$"
        yield "/" + _DIGITS.sub(r"\\d+", re.escape(last)) + "$"
    if "." in last:
        yield re.escape("." + last.rpartition(".")[2]) + "$"
    for argument in parts.query.split("&") if parts.query else ():
        yield f"[?&]{re.escape(argument.partition('=')[0])}="
