"""How many words of pages are found where the page writes them in another way: with soft hyphens, with letters and
marks apart.

Each page is written again in both ways, by its text alone. A word that the keywords or the index of words find in the
text of the page as it came has to be found in that of the other page.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from nephila.native import KeywordSet, PassOptions, page_pass, sniff_encoding
from nephila.parser.page.charset import encoding_of
from nephila_stores.search.words import tokens

LONG = 8
"""Letters of a word that is hyphenated."""
SYLLABLE = 3
"""Letters between two soft hyphens."""
MOST_WORDS = 200
"""Of each page."""
WORD = re.compile(r"(?<!\w)[^\W\d_]+(?!\w)")


def hyphenated(text: str) -> str:
    """The text with a soft hyphen after every `SYLLABLE` letters of a long word."""
    cut = re.compile(rf"(?<=\w{{{SYLLABLE}}})(?=\w{{{SYLLABLE}}})")
    return WORD.sub(lambda match: cut.sub("\u00ad", match[0]) if len(match[0]) >= LONG else match[0], text)


def decomposed(text: str) -> str:
    """The text with letters and marks apart."""
    return unicodedata.normalize("NFD", text)


WAYS = {"soft hyphens": hyphenated, "letters and marks apart": decomposed}


def words_of(text: str, way: str) -> list[str]:
    """The words of a text that a way writes differently."""
    return sorted({word for word in WORD.findall(text) if WAYS[way](word) != word})[:MOST_WORDS]


def table(bodies: Iterable[bytes]) -> Iterator[str]:
    """The rows of a Markdown table."""
    sums = {way: [0, 0, 0] for way in WAYS}
    for body in bodies:
        text = _text(body, encoding_of(body, "", sniff_encoding))
        for way, write in WAYS.items():
            words = words_of(text, way)
            again = _text(f"<pre>{_escaped(write(text))}".encode(), "utf-8")
            index = set(tokens(again))
            sums[way][0] += len(words)
            sums[way][1] += len(KeywordSet(words).find(again.encode())) if words else 0
            sums[way][2] += sum(index.issuperset(tokens(word)) for word in words)
    yield "| way to write | words | by keywords | by search |"
    yield "|---|---|---|---|"
    for way, (count, keywords, search) in sums.items():
        yield f"| {way} | {count} | {keywords / max(count, 1):.4f} | {search / max(count, 1):.4f} |"


def _text(body: bytes, encoding: str) -> str:
    return page_pass(body, "http://page.invalid/", encoding, PassOptions(main_text=False)).text.decode()


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
