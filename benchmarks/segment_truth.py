"""Pages with segments that their main text holds and segments that it does not hold (trafilatura's evaluation set).

A directory has `pages.tar.xz` and `segments.json`: page → url, `with`, `without`. Of a segment that belongs an answer
holds it (right) or not (lost); of one that does not belong it holds it (surplus). Compared as NFC without soft hyphens,
no-break spaces as spaces.
"""

from __future__ import annotations

import json
import tarfile
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple


class SegmentPage(NamedTuple):
    """One page and what a reader marked in it."""

    id: str
    url: str
    body: bytes
    belongs: tuple[str, ...]
    surplus: tuple[str, ...]


class Score(NamedTuple):
    """Shares over the segments of all pages."""

    precision: float
    recall: float
    f1: float


def segment_pages(directory: Path) -> Iterator[SegmentPage]:
    """All pages, in the order of their ids."""
    rows = json.loads((directory / "segments.json").read_text("utf-8"))
    with tarfile.open(directory / "pages.tar.xz") as tar:
        members = {Path(member.name).name: member for member in tar.getmembers() if member.isfile()}
        bodies = {}
        for name, member in members.items():
            file = tar.extractfile(member)
            bodies[name] = file.read() if file else b""
    for name, row in sorted(rows.items()):
        belongs, surplus = (tuple(plain(segment) for segment in row[key]) for key in ("with", "without"))
        yield SegmentPage(name, row["url"], bodies[name], belongs, surplus)


def plain(text: str) -> str:
    """The text as segments are compared."""
    return unicodedata.normalize("NFC", text).replace("\u00ad", "").replace("\u00a0", " ")


def counts(page: SegmentPage, answer: str) -> tuple[int, int, int]:
    """Right, surplus and lost segments of an answer."""
    text = plain(answer)
    right = sum(segment in text for segment in page.belongs)
    return right, sum(segment in text for segment in page.surplus), len(page.belongs) - right


def score(rows: Iterable[tuple[int, int, int]]) -> Score:
    """Precision, recall and F1 over the counts of pages."""
    right, surplus, lost = (sum(column) for column in zip(*rows, strict=True))
    precision, recall = right / max(right + surplus, 1), right / max(right + lost, 1)
    return Score(precision, recall, 2 * right / max(2 * right + surplus + lost, 1))
