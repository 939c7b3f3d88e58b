"""What CommonMark makes of the Markdown of a page has the words, links, emphasis, code and lists of the page."""

from __future__ import annotations

from html import escape
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from .conftest import load
from .markdown_reading import Reading, rendered

URL = "http://a.test/"
ODD = (
    "!", "*", "_", "~", "~~", "`", "``", "[", "]", "(", ")", "<", ">", "&", "&amp;", "#", "##", "+", "-", "--", "=",
    "|", "\\", "\\|", "1.", "2)", ":", ".", ",", "$", '"', "^", "<b>", "![", "](", "http://", "~5", "5~", "foo_bar",
    "_x_", "[^1]", "amp;", "b>", "# ", "- ", "> ", "***", "---", "===", "```", "~~~",
)  # fmt: skip
WORDS = ("a", "word", "Word2", "注意", "：", "。", "（", "）", "é", "”", "“", "…", "—", "😀", "क्", "€", "х", "٣")
REFERENCES = ("/x", "/a_b*c*", "/x(y)", "/q?a=1&b=`2`", "/q?a&amp;b", "/~u/!", "/|", "/%5B]")


class Writer:
    """Writes random HTML whose structure Markdown has."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def text(self) -> str:
        """Words and what may be read as markup."""
        pieces = self.random.choices((ODD, WORDS, WORDS, (" ", " ")), k=self.random.randint(1, 5))
        return escape("".join(map(self.random.choice, pieces)))

    def some(self, makers: tuple[object, ...], most: int) -> str:
        """Pieces side by side."""
        return "".join(self.random.choice(makers)() for _ in range(self.random.randint(1, most)))  # type: ignore[operator]

    def marked(self, *without: str) -> str:
        """A mark around text and other marks."""
        tag = self.random.choice([tag for tag in ("b", "i", "s", "code", "sup") if tag not in without])
        makers: tuple[object, ...] = (self.text, self.text)
        if tag != "code" and len(without) < 2:
            makers = (self.text, lambda: self.marked(*without, tag))
        return f"<{tag}>{self.some(makers, 3)}</{tag}>"

    def image(self) -> str:
        """A picture; commands of LaTeX in its text would make a formula of it."""
        alt = self.text().replace("\\", "")
        return f'<img alt="{alt}" src="{escape(self.random.choice(REFERENCES))}">'

    def link(self) -> str:
        """A link around text, marks and pictures."""
        inner = self.some((self.text, self.text, self.marked, self.image), 3)
        return f'<a href="{escape(self.random.choice(REFERENCES))}">{inner}</a>'

    def line(self) -> str:
        """A line of text; lines that end."""
        plain = (self.text, self.text, self.marked, self.marked, self.link, self.image, lambda: "<br>", self.spans)
        return "x" + self.some(plain, 6)

    def spans(self) -> str:
        """Text in elements without a meaning."""
        return f"<span>{self.text()}</span><span>{self.text()}</span>"

    def block(self, depth: int) -> str:
        """A block, at most three lists and quotes around it."""
        kinds = ["p", "p", "p", "h", "pre", "table", "hr"] + ["ul", "ol", "blockquote"] * (depth < 3)
        kind = self.random.choice(kinds)
        if kind == "hr":
            # A rule has a meaning between two blocks alone.
            return "<p>x</p><hr><p>x</p>"
        if kind == "h":
            return f"<h{depth + 1}>{self.line().replace('<br>', '')}</h{depth + 1}>"
        if kind == "pre":
            return f"<pre>x{''.join(self.text() + chr(10) for _ in range(2))}x</pre>"
        if kind == "table":
            rows = (f"<tr><td>{self.line()}<td>{self.line()}" for _ in range(self.random.randint(1, 3)))
            return f"<table><tr><th>A<th>B{''.join(rows)}</table>"
        if kind in ("ul", "ol"):
            start = self.random.choice(("", " start=7")) if kind == "ol" else ""
            items = (f"<li>{self.blocks(depth + 1)}</li>" for _ in range(self.random.randint(1, 3)))
            return f"<{kind}{start}>{''.join(items)}</{kind}>"
        return f"<{kind}>{self.line() if kind == 'p' else self.blocks(depth + 1)}</{kind}>"

    def blocks(self, depth: int) -> str:
        """Blocks, one behind the other, in a list now and then a line alone. Text is in each."""
        blocks = [self.block(depth) for _ in range(self.random.randint(1, 3))]
        return "".join([self.random.choice(("", "", "x" + self.line())) if depth else "", *blocks, "<p>x</p>"])


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(("inline", "reference")))
def test_markdown_reads_back(random: Random, links: str) -> None:
    """Each character of the page, in its order and with what it stands in, and all pictures and rules."""
    html = Writer(random).blocks(0)
    core = load("rust")
    text, structure = core.structure_by(f"<body>{html}".encode(), "utf-8", [])
    written = core.markdown(structure, text, URL, links).decode()
    page, again = Reading(html, URL), Reading(rendered(written), URL)
    assert list(page.differences(again)) == [], f"{html}\n\n{written}"
