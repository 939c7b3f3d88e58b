"""Markdown of the repository: what an author wrote is what a reader sees."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
MARKDOWN = MarkdownIt("commonmark").enable("table")


def files() -> Iterator[Path]:
    """All that git has."""
    words = ["git", "ls-files", "*.md"]
    for name in subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split():
        if (ROOT / name).is_file():
            yield ROOT / name


def joined(text: str) -> list[int]:
    """Numbers of lines that begin at the margin and still belong to the list item above: a heading without a blank line
    before it, for example."""
    lines = text.split("\n")
    return [
        number + 1
        for token in MARKDOWN.parse(text)
        if token.type == "list_item_open" and token.map
        for number in range(token.map[0] + 1, token.map[1])
        if lines[number].strip() and not lines[number].startswith(" ")
    ]


def test_a_line_that_runs_into_a_list_is_found():
    """As the change log had it: titles of groups stood within the last entry."""
    assert joined("- one\n  more\nFetching\n- two\n") == [3]
    assert joined("- one\n\nFetching\n\n- two\n") == []


def test_no_text_runs_into_a_list():
    """In any file."""
    assert {path.name: found for path in files() if (found := joined(path.read_text()))} == {}


def test_rows_have_as_many_cells_as_their_table():
    """A bar within a cell is escaped; further cells would not be shown."""
    wrong = []
    for path in files():
        lines = path.read_text().split("\n")
        for token in MARKDOWN.parse("\n".join(lines)):
            if token.type == "table_open" and token.map:
                rows = lines[token.map[0] : token.map[1]]
                cells = {len(re.findall(r"(?<!\\)\|", row.strip())) for row in rows}
                if len(cells) != 1:
                    wrong.append(f"{path.name}:{token.map[0] + 1}")
    assert wrong == []


def test_the_change_log_is_a_list_under_headings():
    """Every entry is an item below a kind of change; nothing else stands there."""
    tokens = MARKDOWN.parse((ROOT / "CHANGELOG.md").read_text())
    outside = [token for token in tokens if token.level == 0 and token.type == "paragraph_open"]
    assert outside == []
    headings = [next_.content for token, next_ in pairwise(tokens) if token.tag == "h2" and token.nesting == 1]
    assert headings[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", heading) for heading in headings[1:])
    kinds = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
    for version in re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]:
        found = re.findall(r"^### (.*)$", version, re.MULTILINE)
        assert found == [kind for kind in kinds if kind in found]


@pytest.mark.parametrize("name", ["CHANGELOG.md", "README.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"])
def test_pages_that_people_look_for_exist(name):
    """With one title, in the first line."""
    tokens = MARKDOWN.parse((ROOT / name).read_text())
    assert tokens[0].tag == "h1"
    assert sum(token.type == "heading_open" and token.tag == "h1" for token in tokens) == 1


def anchors(text: str) -> set[str]:
    """Anchors of headings as GitHub makes them: lower case, no punctuation, hyphens for blanks, numbers for repeats."""
    tokens = MARKDOWN.parse(text)
    titles = [next_ for token, next_ in pairwise(tokens) if token.type == "heading_open"]
    words = ["".join(child.content for child in title.children or ()) for title in titles]
    found: set[str] = set()
    for word in words:
        anchor = re.sub(r"[^\w\- ]", "", word.strip().lower()).replace(" ", "-")
        repeats = (f"{anchor}-{number}" for number in count(1))
        found.add(anchor if anchor not in found else next(one for one in repeats if one not in found))
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def links(text: str) -> Iterator[str]:
    """Targets of links and pictures."""
    for token in MARKDOWN.parse(text):
        for child in token.children or ():
            if target := child.attrGet("href") or child.attrGet("src"):
                yield unquote(str(target))


def test_anchors_are_those_of_the_site():
    """Of a heading with code, and of one that is there twice."""
    assert anchors("# A `b.py` (C)\n\n## A-B, c\n\n## A-B, c\n") == {"a-bpy-c", "a-b-c", "a-b-c-1"}


def test_links_within_the_repository_lead_to_something():
    """A file or folder; with an anchor, a heading of a document."""
    broken = []
    for path in files():
        for link in links(path.read_text()):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            found = target.exists() and target.is_relative_to(ROOT)
            if not found or (anchor and target.suffix == ".md" and anchor not in anchors(target.read_text())):
                broken.append(f"{path.relative_to(ROOT)}: {link}")
    assert broken == []


def test_no_line_of_a_paragraph_looks_like_the_start_of_something_else():
    """A numbered list, a heading or a table that needs a blank line before it to be one."""
    start = re.compile(r"(\||#{1,6} |\d+[.)] |[-*+] |```)")
    wrong = [
        f"{path.relative_to(ROOT)}:{token.map[0] + 1}"
        for path in files()
        for token in MARKDOWN.parse(path.read_text())
        if token.type == "inline" and token.map and any(start.match(line) for line in token.content.split("\n")[1:])
    ]
    assert wrong == []


def test_headings_go_one_level_down_at_a_time():
    """From one title; no two of one parent are the same."""
    wrong = []
    for path in files():
        tokens = MARKDOWN.parse(path.read_text())
        above: list[str] = []
        seen: set[tuple[str, ...]] = set()
        for token, next_ in pairwise(tokens):
            if token.type == "heading_open":
                level = int(token.tag[1])
                if level > len(above) + 1 or (*above[: level - 1], next_.content) in seen or (level == 1 and seen):
                    wrong.append(f"{path.relative_to(ROOT)}: {next_.content}")
                above = [*above[: level - 1], next_.content]
                seen.add(tuple(above))
    assert wrong == []
