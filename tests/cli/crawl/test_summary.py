"""The summary at the end of a crawl."""

from __future__ import annotations

import io
import shlex
import sys

import pytest
from nephila.cli.crawl import summary
from nephila.cli.output import program
from nephila.programs.crawl.program import Result
from nephila.programs.option_table import defaults
from nephila.programs.output_directory import OutputDirectory, RunFile
from nephila.storage.read.reader import Summary
from rich.console import Console


def items(result, counts):
    console = Console(file=io.StringIO(), width=120, markup=False, highlight=False)
    summary._items(console, Summary({}, {}, [], 0, 0, counts), result)
    return console.file.getvalue()


def test_items_are_counted_by_rule_and_a_rule_without_items_is_named():
    shown = items(Result(rules=["shop", "news"]), {"shop": 1200})
    assert [line.split() for line in shown.splitlines()[:3]] == [["rule", "items"], ["shop", "1,200"], ["news", "0"]]
    assert "No items by news: no page matched" in shown
    assert "nephila rules try URL --rule news" in shown


def test_a_crawl_without_rules_says_nothing_of_items():
    assert items(Result(), {}) == ""


def test_links_that_a_wider_scope_does_not_bring_back_are_named():
    lines = summary.remarks(RunFile(), Result(links_lost=1234))
    assert any(line.startswith("1,234 links that the earlier scope refused were not held") for line in lines)


def test_links_out_of_scope_are_counted():
    assert any(
        line.startswith("41 links led out of scope") for line in summary.remarks(RunFile(), Result(out_of_scope=41))
    )
    assert not any("out of scope" in line for line in summary.remarks(RunFile(), Result()))


COUNTS = Summary({"stored": 50}, {}, [], 0, 0, {"shop": 7}, shells=40)


def shown(tmp_path, capsys, counts=COUNTS, **run):
    run = RunFile(seeds=["http://a.test/?a=1&b=2"], outcomes={"stored": 50}, **run)
    summary.show(OutputDirectory(tmp_path / "my site"), run, Result(), counts, None, as_json=False, quiet=False)
    return capsys.readouterr().out


def test_pages_that_look_like_shells_of_scripts_are_counted(tmp_path, capsys):
    assert "40 of 50 pages look as if they need --render auto" in shown(tmp_path, capsys)
    assert "--render" not in shown(tmp_path, capsys, Summary({"stored": 50}, {}, [], 0, 0))


@pytest.mark.whole
def test_the_next_commands_can_be_pasted(tmp_path, capsys):
    """Quoted for a shell; each is a command that the program has."""
    words = {
        shlex.split(line)[1]: shlex.split(line) for line in shown(tmp_path, capsys).splitlines() if " --out " in line
    }
    place = str(tmp_path / "my site")
    assert words["explain"] == ["nephila", "explain", "http://a.test/?a=1&b=2", "--out", place]
    assert words["export"] == ["nephila", "export", "--out", place, "--format", "csv", "-o", "pages.csv"]


def test_items_have_a_command_where_there_are_items(tmp_path, capsys):
    assert "--items --format csv -o items.csv" in shown(tmp_path, capsys)
    assert "--items" not in shown(tmp_path, capsys, Summary({"stored": 50}, {}, [], 0, 0))


def test_a_crawl_at_its_limit_is_continued_with_a_larger_one(tmp_path, capsys):
    options = {**defaults(), "max_pages": 50}
    out = shown(tmp_path, capsys, state="stopped", reason="max_pages", left=9, options=options)
    assert "nephila crawl --resume --max-pages 100 --out " in out


@pytest.mark.parametrize(
    ("called", "in_path", "name"),
    [
        ("/x/venv/bin/nephila", "", "/x/venv/bin/nephila"),
        ("/x/venv/bin/nephila", "/x/venv/bin/nephila", "nephila"),
        (".venv/bin/nephila", "/usr/bin/nephila", ".venv/bin/nephila"),
        ("/x/site-packages/nephila/__main__.py", "", f"{shlex.quote(sys.executable)} -m nephila"),
    ],
)
def test_the_program_is_named_as_a_shell_finds_it(monkeypatch, called, in_path, name):
    monkeypatch.setattr(sys, "argv", [called])
    monkeypatch.setattr("nephila.cli.output.shutil.which", lambda _: in_path or None)
    assert program() == name
