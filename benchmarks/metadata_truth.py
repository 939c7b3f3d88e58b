"""Pages with a known title, author, date, language and description, and what the pages state about themselves.

WCXB has title, author and day of publication, written by people; Readability's test pages have title, byline,
language, excerpt and time of publication, checked by people. For fields that neither has (modified, section, image,
canonical) the truth is what a page states, as extruct reads it: a field counts only on pages that state one value.
"""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

FIELDS = ("title", "authors", "published", "modified", "lang", "description", "canonical", "section", "image")
_WORD = re.compile(r"\w+")


class MetaPage(NamedTuple):
    """One page and the truth of some of its fields; a field that is not a key has no truth."""

    id: str
    set: str
    url: str
    body: bytes
    truth: dict[str, str]


def wcxb(directory: Path) -> Iterator[MetaPage]:
    """Pages of WCXB: a page without a date or an author has an empty one."""
    for path in sorted((directory / "ground-truth").glob("*.json")):
        found = json.loads(path.read_text("utf-8"))
        body = gzip.decompress((directory / "html" / f"{path.stem}.html.gz").read_bytes())
        of = found["ground_truth"]
        truth = {"title": of.get("title"), "authors": of.get("author"), "published": of.get("publish_date")}
        said = {name: value or "" for name, value in truth.items()}
        yield MetaPage(path.stem, "wcxb", found.get("url") or "", body, said)


def readability(path: Path) -> Iterator[MetaPage]:
    """Readability's test pages; a field that the program left empty has no truth."""
    names = {
        "title": "title",
        "authors": "byline",
        "published": "publishedTime",
        "lang": "lang",
        "description": "excerpt",
    }
    with tarfile.open(path) as tar:
        for name in sorted(one for one in tar.getnames() if one.endswith("/expected-metadata.json")):
            stated, source = (
                tar.extractfile(at) for at in (name, name.replace("expected-metadata.json", "source.html"))
            )
            if stated and source:
                found = json.loads(stated.read())
                truth = {ours: found[theirs] for ours, theirs in names.items() if found.get(theirs)}
                yield MetaPage(name.split("/")[-2], "readability", "", source.read(), truth)


def right(field: str, truth: str, answer: str) -> bool:
    """Whether an answer is the truth: dates by their day, names and titles by their words in order."""
    if field in ("published", "modified"):
        return day(truth) == day(answer)
    if field == "lang":
        return truth.lower().split("-")[0] == answer.lower().replace("_", "-").split("-")[0]
    if field in ("canonical", "image"):
        return truth.rstrip("/") == answer.rstrip("/")
    if field == "authors":
        return _names(truth) == _names(answer)
    return _words(truth) == _words(answer)


def day(text: Any) -> str:
    """The day of a date in ISO 8601, as its own zone has it."""
    said = str(text or "")[:10]
    try:
        return datetime.strptime(said, "%Y-%m-%d").date().isoformat()
    except ValueError:
        return said


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _names(text: str) -> set[str]:
    """Words of all names without the label before them: the order of several authors does not count."""
    return set(_words(text)) - {"by", "and", "und", "et", "y", "von", "par", "por"}
