"""What all commands have in common: an example, --json where data is printed, the directory as argument or option."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from nephila.cli import main
from nephila.cli.examples import EXAMPLES
from nephila.programs.output_directory import OutputDirectory, RunFile

RUN_UNTIL_STOPPED = {
    "console",
    "mcp",
    *("up", "webhooks run", "sites run", "audit label", "browser install"),
    *("scheduler", "downloader", "parser", "fetchparse", "frontier", "storage", "api", "operator"),
}
"""Commands that print no data: programs, a dialogue, and an installation."""


def leaves(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", {})
    for name, one in below.items():
        yield from leaves(one, f"{words} {name}")
    if not below:
        yield words, command


@pytest.fixture(scope="module")
def commands() -> dict[str, Any]:
    """Words of a command → the command."""
    return dict(pair for name in main.COMMANDS for pair in leaves(main._load(name), name))


def options_of(command: Any) -> set[str]:
    return {word for one in command.params if one.param_type_name == "option" for word in one.opts}


def test_each_command_has_an_example_that_it_accepts(commands):
    assert set(EXAMPLES) == set(commands)
    for words, line in EXAMPLES.items():
        program, *rest = shlex.split(line)
        assert [program, *rest[: len(words.split())]] == ["nephila", *words.split()]
        arguments = rest[len(words.split()) :]
        assert {one for one in arguments if one.startswith("-")} <= options_of(commands[words]), line
        commands[words].make_context(words, arguments)  # raises for what is missing or too much


def test_each_command_that_prints_data_prints_json_too(commands):
    assert {words for words, one in commands.items() if "--json" not in options_of(one)} == RUN_UNTIL_STOPPED


def test_help_has_groups_and_each_command_an_example(nephila):
    lines = nephila("--help").out
    assert [
        panel for panel in (main.CRAWL, main.RESULTS, main.RULES, main.MANY, main.SYSTEM) if panel not in lines
    ] == []
    assert "Example: nephila cost --out site" in nephila("cost", "--help").out


def test_a_directory_is_an_argument_or_an_option(commands):
    """Where a command has no arguments of its own."""
    for words, one in commands.items():
        named = [param.name for param in one.params if param.param_type_name == "argument"]
        if "--out" in options_of(one):
            assert named, words


@pytest.mark.parametrize("words", [["cost"], ["export", "--json"], ["jobs", "list"], ["webhooks", "list"], ["report"]])
def test_both_ways_to_name_a_directory_are_one(nephila, tmp_path, words):
    OutputDirectory(tmp_path).write(RunFile(state="finished"))
    assert nephila(*words, str(tmp_path)) == nephila(*words, "--out", str(tmp_path))


def test_a_directory_that_is_named_twice_is_refused(nephila):
    ran = nephila("cost", "a", "--out", "b")
    assert (ran.code, ran.err) == (2, "nephila: the directory is given twice: a and --out b\n")
    assert nephila("cost", "a", "b").code == 2
