"""What all commands have in common: an example, --json where data is printed, the directory as argument or option."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from nephila.cli import main
from nephila.cli.examples import EXAMPLES
from nephila.cli.service_group import SERVICE
from nephila.programs.options import RESULT
from nephila.programs.output_directory import OutputDirectory, RunFile

RUN_UNTIL_STOPPED = {
    "console",
    "mcp",
    *("up", "webhooks run", "sites run", "audit label", "browser install"),
    *("frontier", "api"),
    *(f"service {name}" for name in ("scheduler", "downloader", "parser", "fetchparse", "storage", "api", "operator")),
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
    return dict(pair for name in main.COMMANDS for pair in leaves(main.command_of(name), name))


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
    panels = [row.panel for row in main.COMMANDS.values()]
    assert [panel for panel in panels if panel not in lines] == []
    assert panels == sorted(panels, key=panels.index), "a panel is in two places"
    assert "Example: nephila cost --out site" in nephila("cost", "--help").out


def test_the_commands_for_a_system_over_kafka_are_one_group_with_their_earlier_names_hidden(nephila, commands):
    lines = nephila("--help").out.splitlines()
    first = {line.split()[1] for line in lines if len(line.split()) > 2 and line.startswith("│ ")}
    assert first >= {"service", "crawl", "export"}
    assert first.isdisjoint(SERVICE.keys() - {"api"})
    listed = nephila("service", "--help").out
    for name, row in SERVICE.items():
        assert f"│ {name} " in listed
        assert row.panel in listed
        below = [words for words in commands if words.split()[:2] == ["service", name]]
        for words in below:
            named, earlier = nephila(*words.split(), "--help"), nephila(*words.split()[1:], "--help")
            assert named.code == earlier.code == 0
            if name != "api":
                options = [line for line in named.out.splitlines() if line.startswith("│")]
                assert [line for line in earlier.out.splitlines() if line.startswith("│")] == options
    ran = nephila("service", "scheduller")
    assert (ran.code, "Did you mean 'scheduler'" in ran.err) == (2, True)


def test_commands_of_operators_are_not_among_those_for_results():
    panels = {name: row.panel for name, row in main.COMMANDS.items()}
    operators = {"backup", "restore", "check", "status", "hosts", "log", "service"}
    assert {name for name, panel in panels.items() if panel == main.OPERATE} == operators


def test_options_of_servers_and_systems_are_no_options_of_the_result(commands):
    elsewhere = {"--server", "--bootstrap", "--token-file", "--api", "--api-token-file", "--api-access"}
    for words, command in commands.items():
        for one in command.params:
            if elsewhere.intersection(one.opts):
                assert one.rich_help_panel != RESULT, words


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
