"""Pages with a hand-written main text (WCXB), and the word-F1 of an answer.

A directory holds `html/ID.html.gz` and `ground-truth/ID.json` (Web Content Extraction Benchmark; development split in
../shared/data/wcxb-dev, CC-BY-4.0). Words are runs of letters and digits in lower case, counted as a multiset. Also the
test pages of Readability and Defuddle: what these programs take from an article, checked by people.
"""

from __future__ import annotations

import gzip
import json
import re
import tarfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from nephila.native import PassOptions, page_pass

_WORD = re.compile(r"\w+")
_METADATA = re.compile(r"\A\s*```json\n.*?\n```\n", re.DOTALL)
_SYNTAX = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"!\[[^\]]*\]\([^)]*\)",
        r"(?<=\])\([^)\s]*(?: \"[^\"]*\")?\)",
        r"</?[a-z][^>]{0,500}>",
        r"\$\$.*?\$\$",
    )
)
ASIDE = 5
"""One site in so many is held out."""


class TruePage(NamedTuple):
    """One page and what a reader took from it."""

    id: str
    url: str
    kind: str
    body: bytes
    text: str


def pages(directory: Path) -> Iterator[TruePage]:
    """All pages, in the order of their ids."""
    for path in sorted((directory / "ground-truth").glob("*.json")):
        result = json.loads(path.read_text("utf-8"))
        body = gzip.decompress((directory / "html" / f"{path.stem}.html.gz").read_bytes())
        kind = result["_internal"]["page_type"]["primary"]
        yield TruePage(path.stem, result.get("url") or "", kind, body, result["ground_truth"].get("main_content") or "")


def readability(path: Path) -> Iterator[TruePage]:
    """The test pages in a tar file of `NAME/source.html` and `NAME/expected.html`."""
    with tarfile.open(path) as tar:
        for name in sorted(name for name in tar.getnames() if name.endswith("/source.html")):
            source, expected = (tar.extractfile(at) for at in (name, name.replace("source.html", "expected.html")))
            if source and expected:
                text = page_pass(
                    expected.read(), "http://page.invalid/", "utf-8", PassOptions(main_text=False)
                ).text.decode()
                yield TruePage(name.split("/")[-2], "", "readability", source.read(), text)


def defuddle(path: Path) -> Iterator[TruePage]:
    """The test pages of Defuddle, their Markdown without its syntax."""
    for stem, body, markdown in defuddle_files(path):
        yield TruePage(stem, "", "defuddle", body, plain(markdown))


def defuddle_files(path: Path) -> Iterator[tuple[str, bytes, str]]:
    """Name, page and Markdown of the files in a tar file of `fixtures/NAME.html` and `expected/NAME.md`."""
    with tarfile.open(path) as tar:
        members = {"/".join(name.split("/")[-2:]): name for name in tar.getnames()}
        for name in sorted(name for name in members if name.startswith("fixtures/") and name.endswith(".html")):
            stem = name.removeprefix("fixtures/").removesuffix(".html")
            source, expected = (tar.extractfile(members[at]) for at in (name, f"expected/{stem}.md") if at in members)
            if source and expected:
                yield stem, source.read(), _METADATA.sub("", expected.read().decode(), count=1)


def plain(markdown: str) -> str:
    """The text of Markdown: pictures, targets of links, tags and TeX left out."""
    for pattern in _SYNTAX:
        markdown = pattern.sub(" ", markdown)
    return markdown


def aside(page: TruePage) -> bool:
    """Whether its site is one of those that no choice was made by."""
    return zlib.crc32(f"held{fold(page.url or page.id, 10**9)}".encode()) % ASIDE == 0


def site(page: TruePage) -> str:
    """The site of a page: the last two labels of its host; of a page without a URL its id."""
    return _site(page.url or page.id)


def _site(url: str) -> str:
    return ".".join((urlsplit(url).hostname or url).split(".")[-2:])


def fold(url: str, folds: int) -> int:
    """Which of `folds` parts a URL's site belongs to."""
    return zlib.crc32(_site(url).encode()) % folds


def words(text: str) -> list[str]:
    """The words that are compared."""
    return _WORD.findall(text.lower())


def f1(truth: str, answer: str) -> float:
    """Harmonic mean of precision and recall over the words; 1 where both are empty."""
    left, right = Counter(words(truth)), Counter(words(answer))
    if not left and not right:
        return 1.0
    both = (left & right).total()
    return 2 * both / (left.total() + right.total())


def word_score(truth: str, answer: str) -> tuple[float, float, float]:
    """Precision, recall and F1 of the words."""
    left, right = Counter(words(truth)), Counter(words(answer))
    both = (left & right).total()
    precision, recall = (both / whole.total() if whole else 1.0 for whole in (right, left))
    return precision, recall, f1(truth, answer)


def means(scores: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Mean by kind, and of all under "all"."""
    by_kind: dict[str, list[float]] = defaultdict(list)
    for kind, score in scores:
        by_kind[kind].append(score)
        by_kind["all"].append(score)
    return {kind: sum(found) / len(found) for kind, found in sorted(by_kind.items())}
