"""Ordinary pages: seeded words in the markup that real sites wrap around them.

Invariant: the same seed and the same calls give the same bytes. A page carries exactly the links it is given (no
other href in the document is
followed by a crawler), so the builder of a web has its link graph.
"""

import html
import random
from collections.abc import Sequence

_ONSETS = [
    "b",
    "br",
    "c",
    "ch",
    "d",
    "dr",
    "f",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "pr",
    "r",
    "s",
    "st",
    "t",
    "tr",
    "v",
    "w",
]
_VOWELS = ["a", "e", "i", "o", "u", "ea", "ou", "io"]
_CODAS = ["", "n", "r", "s", "t", "l", "nd", "st", "ck", "m"]
_SENTENCES = 400
_BLOCKS = 300


class Prose:
    """A writer of words, sentences and whole pages; O(1) memory per page, one pool of blocks per seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._words = [self._word() for _ in range(1200)]
        self._sentences = [self._sentence() for _ in range(_SENTENCES)]
        self._blocks = [self._block(i) for i in range(_BLOCKS)]
        self._mean_block = sum(map(len, self._blocks)) // _BLOCKS

    def title(self) -> str:
        """Three to seven words with a capital."""
        return " ".join(self._rng.choices(self._words, k=self._rng.randint(3, 7))).capitalize()

    def text(self, sentences: int) -> str:
        """Running text without markup."""
        return " ".join(self._rng.choices(self._sentences, k=sentences))

    def page(self, title: str, hrefs: Sequence[str], size: int, *, head: str = "", charset: str = "utf-8") -> bytes:
        """One document of about *size* bytes that links to *hrefs*: some in the navigation, the rest spread over the
        text.
        """
        nav, inline = hrefs[: len(hrefs) // 4], hrefs[len(hrefs) // 4 :]
        parts = [
            _HEAD.format(charset=charset, title=html.escape(title), head=head, nav="".join(map(self._nav_item, nav)))
        ]
        count = max(1, (size - len(parts[0]) - 60 * len(hrefs)) // self._mean_block)
        blocks = self._rng.choices(self._blocks, k=count)
        for i, block in enumerate(blocks):
            parts.append(block)
            parts.extend(self._anchor(h) for h in inline[i * len(inline) // count : (i + 1) * len(inline) // count])
        parts.append(_FOOT)
        return "".join(parts).encode(charset, "xmlcharrefreplace")

    def _word(self) -> str:
        rng = self._rng
        return "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(rng.randint(1, 3)))

    def _sentence(self) -> str:
        return " ".join(self._rng.choices(self._words, k=self._rng.randint(5, 22))).capitalize() + "."

    def _nav_item(self, href: str) -> str:
        return f'<li class="nav-item"><a class="nav-link" href="{href}">{self._rng.choice(self._words)}</a></li>\n'

    def _anchor(self, href: str) -> str:
        return f'<p>{self._rng.choice(self._sentences)} <a href="{href}">{self._rng.choice(self._words)}</a></p>\n'

    def _block(self, i: int) -> str:
        """Every seventh block is a script, every fifth a card: about the share of text that news pages have."""
        text = self.text(self._rng.randint(1, 4))
        if i % 7 == 0:
            return f'<script type="application/json">{{"id":{i},"state":"{text}","open":"<\\/div>"}}</script>\n'
        if i % 5 == 0:
            return (
                f'<div class="card card--wide" data-id="{i}" data-track="c{i}"><figure>'
                f'<img src="/static/{i}.jpg" alt="{self.title()}" loading="lazy">'
                f'<figcaption class="caption">{text}</figcaption></figure></div>\n'
            )
        if i % 11 == 0:
            return (
                "<ul>"
                + "".join(f"<li><em>{word}</em></li>" for word in self._rng.choices(self._words, k=8))
                + "</ul>\n"
            )
        bold = self._rng.choice(self._words)
        return f'<p class="body-text paragraph-{i % 9}">{text} <b>{bold}</b> &amp; &#8211; {self.text(1)}</p>\n'


_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="{charset}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<meta property="og:title" content="{title}">
<meta name="description" content="{title}">
<style>.nav-item{{display:inline}}.body-text{{max-width:40em}}.card--wide{{width:100%}}</style>
{head}</head>
<body class="page">
<header><nav><ul class="nav">
{nav}</ul></nav></header>
<main><article>
<h1>{title}</h1>
"""
_FOOT = """</article></main>
<footer><p>Set by machine; all rights left where they were.</p></footer>
</body>
</html>
"""
