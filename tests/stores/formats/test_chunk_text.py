"""Chunks of Markdown for language models: bounds, sections, stable ids, overlap."""

from __future__ import annotations

import random

import nephila
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from nephila_stores.formats.chunk_text import Chunk, chunks_of

PAGE = """# Guide

Intro of the guide.

## Install

Run this:

```sh
pip install nephila
# no heading
```

## Use

### Crawl

First step. Second step.

- one
- two

### Export

Last words.
"""


def texts(text: str, size: int = 1000, overlap: int = 0, *, markdown: bool = True) -> list[str]:
    """The texts of the chunks."""
    return [one.text for one in chunks_of("k", text, size, overlap, markdown=markdown)]


def seen(token: Token) -> str:
    """The text of an inline token."""
    return "".join(map(seen, token.children)) if token.children else token.content


def test_a_chunk_is_a_section_with_the_path_of_its_headings():
    """A heading without text of its own begins the section below it; a # in code is no heading."""
    found = chunks_of("k", PAGE, 1000)
    assert [one.headings for one in found] == [
        ("Guide",),
        ("Guide", "Install"),
        ("Guide", "Use", "Crawl"),
        ("Guide", "Use", "Export"),
    ]
    assert found[1].text == "## Install\n\nRun this:\n\n```sh\npip install nephila\n# no heading\n```"
    assert found[2].text == "## Use\n\n### Crawl\n\nFirst step. Second step.\n\n- one\n- two"


@pytest.mark.parametrize(
    "html",
    [
        '<a href="/install#pip">Install with <code>pip</code></a>',
        'The <em>two</em> <strong>modes<em>!</em></strong> <img src="/a(b).png" alt="[one] *star*">',
        "C[0] * p_1 * q &amp;lt; `tick` ~~x~~ \\ # end #",
        "<code>a`b[0] *c*</code> and <code>``</code>",
        '<a href="/x">[RFC 1](see)</a> [not a link](y)',
    ],
)
def test_headings_of_chunks_are_what_a_reader_sees(html):
    """Without links, emphasis, code marks and escapes; markdown-it reads the same line the same way."""
    [chunk] = chunks_of("k", nephila.extract(f"<h2>{html}</h2><p>Text of it.", "http://a.test/").markdown, 1000)
    [line] = chunk.text.splitlines()[:1]
    assert chunk.headings == (seen(MarkdownIt("commonmark").parse(line)[1]),)


def test_blocks_stay_whole_while_they_fit():
    """Three paragraphs of which two fit into a chunk."""
    one, two, three = "a" * 40, "b" * 40, "c" * 40
    assert texts(f"{one}\n\n{two}\n\n{three}", 100) == [f"{one}\n\n{two}", three]


def test_a_long_block_is_divided_at_sentences_then_words_then_anywhere():
    """In this order, and nothing is lost."""
    assert texts("First one is here. Second one is here. Third.", 40) == [
        "First one is here. Second one is here.",
        "Third.",
    ]
    assert texts("alpha beta gamma delta", 12) == ["alpha beta", "gamma delta"]
    assert texts("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]
    assert texts("第一句在这里。第二句在这里。第三句。", 10) == ["第一句在这里。", "第二句在这里。", "第三句。"]


def test_parts_of_tables_and_code_can_be_read_alone():
    """The head of a table and the fences of code are repeated."""
    rows = [f"| name {number} | {number} |" for number in range(20)]
    found = texts("\n".join(["| name | n |", "|---|---|", *rows]), 120)
    assert len(found) > 2
    assert all(one.startswith("| name | n |\n|---|---|\n| name ") for one in found)
    assert [row for one in found for row in one.splitlines()[2:]] == rows
    for size in range(60, 80):
        assert max(map(len, texts("\n".join(["| name | n |", "|---|---|", *rows]), size))) <= size
    code = [f"line_{number} = {number}" for number in range(30)]
    for size in range(60, 80):
        assert max(map(len, texts("\n".join(["```python", *code, "```"]), size))) <= size
    found = texts("\n".join(["```python", *code, "```"]), 150)
    assert all(one.startswith("```python\n") and one.endswith("\n```") for one in found)
    assert [line for one in found for line in one.splitlines()[1:-1]] == code


def test_the_overlap_repeats_the_end_of_the_chunk_before_within_a_section():
    """From the start of a sentence; a new section repeats nothing."""
    text = "# A\n\nOne is here. Two is here.\n\nThree is here. Four is here.\n\n# B\n\nFive."
    found = texts(text, 50, 15)
    assert found == [
        "# A\n\nOne is here. Two is here.",
        "Two is here.\n\nThree is here. Four is here.",
        "# B\n\nFive.",
    ]


def test_ids_are_those_of_the_text_and_survive_changes_elsewhere():
    """The same text twice in a page has two ids; another page has others; the overlap is no part of the id."""
    before, after = chunks_of("k", PAGE, 1000), chunks_of("k", "# News\n\nFirst.\n\n" + PAGE, 1000)
    assert [one.id for one in after[1:]] == [one.id for one in before]
    twice = chunks_of("k", "# A\n\nsame\n\n# A\n\nsame", 1000)
    assert len({one.id for one in twice}) == 2
    assert not {one.id for one in chunks_of("other", PAGE, 1000)} & {one.id for one in before}


def test_plain_text_has_no_headings():
    """A # at the start of a line is text."""
    assert chunks_of("k", "# 1 of the list\nmore", 1000, markdown=False)[0][1:] == ((), "# 1 of the list\nmore")
    assert texts("", 100) == texts("\n\n", 100) == []


@pytest.mark.parametrize("seed", range(20))
def test_every_word_is_in_a_chunk_and_no_chunk_is_longer_than_the_size(seed):
    """Random pages of all kinds of blocks, also broken ones."""
    source = random.Random(seed)
    number = 0

    def words(count: int) -> str:
        nonlocal number
        number += count
        return " ".join(f"w{one}" for one in range(number - count, number))

    parts = []
    for _ in range(60):
        kind = source.randrange(6)
        if kind == 0:
            parts.append("#" * source.randint(1, 6) + " " + words(2))
        elif kind == 1:
            parts.append(
                "```x\n" + "\n".join(words(source.randint(1, 9)) for _ in range(5)) + source.choice(["\n```", ""])
            )
        elif kind == 2:
            parts.append("| a | b |\n|---|---|\n" + "\n".join(f"| {words(2)} | {words(1)} |" for _ in range(12)))
        else:
            parts.append(words(source.randint(1, 120)) + source.choice(["", ". "]))
    size, overlap = source.choice([(120, 0), (200, 50), (1000, 200), (100, 49)])
    found: list[Chunk] = chunks_of("k", "\n\n".join(parts), size, overlap)
    assert max(len(one.text) for one in found) <= size
    assert {f"w{one}" for one in range(number)} <= {
        word for one in found for word in one.text.replace(".", " ").split()
    }
    assert len({one.id for one in found}) == len(found)
