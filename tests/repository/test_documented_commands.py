"""Commands that documents show exist, with their options."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nephila.cli import main

ROOT = Path(__file__).parents[2]
LISTED = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
PAGES = [
    name
    for name in LISTED.split()
    if not name.startswith("docs/adr/") and name != "CHANGELOG.md" and (ROOT / name).is_file()
]
"""Without decisions and the change log, which name what is gone."""
FENCED = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(text: str) -> Iterator[str]:
    """What stands behind `nephila` in a line of a block, or in back quotes."""
    text = re.sub(r"\\\n\s*", " ", text).replace(r"\|", "|")
    lines = "\n".join(FENCED.findall(text)).split("\n")
    quoted = re.findall(r"(?<!`)`([^`]+)`(?!`)", FENCED.sub("", text))
    for one in (*lines, *quoted):
        for found in re.findall(r"(?:^|[|&;] )\s*nephila ([a-z][^#;]*)", one):
            yield str(found)


def unknown(words: list[str]) -> Iterator[str]:
    """Words that are no command, and options that the commands do not have. a|b are two commands."""
    names = words[0].split("|")
    found: list[Any] = [main.command_of(name) if name in main.COMMANDS else None for name in names]
    rest = words[1:]
    while rest and found[0] is not None and hasattr(found[0], "commands") and re.fullmatch(r"[a-z][a-z|-]*", rest[0]):
        names = rest.pop(0).split("|")
        found = [found[0].commands.get(name) for name in names]
    yield from (name for name, command in zip(names, found, strict=True) if command is None)
    known = {option for one in found if one is not None for each in one.params for option in each.opts}
    for word in rest if None not in found else ():
        option = re.match(r"\[?(--[a-z][a-z-]*)", word)
        if option and option[1] not in known | {"--help"}:
            yield option[1]


@pytest.mark.parametrize("name", PAGES)
def test_commands_of_a_page_exist(name):
    shown = list(commands((ROOT / name).read_text()))
    wrong = {f"nephila {command}": word for command in shown for word in unknown(command.split())}
    assert wrong == {}


def test_unknown_commands_and_options_are_found():
    page = "```sh\nnephila crawl URL --ever\n```\nand `nephila jobs list|lost --json`, `nephila crow`"
    assert [word for one in commands(page) for word in unknown(one.split())] == ["--ever", "lost", "crow"]
