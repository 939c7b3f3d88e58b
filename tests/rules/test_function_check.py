"""Functions that rules name are checked before a crawl reads its first page."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.crawl.stored import check_rules
from nephila_rules.function_check import check_functions

from tests.rules.execution.rule_rig import HEAD, rule

SPEC = "fields: {a: {css: h1, py: 'words:upper'}, b: {css: h1, py: 'words:lower'}, c: {css: h1, py: 'broken:f'}}"


@pytest.fixture
def functions(tmp_path: Path) -> str:
    """A directory with one whole file and one that cannot be read."""
    folder = tmp_path / "functions"
    folder.mkdir()
    (folder / "words.py").write_text("def upper(value):\n    return value.upper()\n")
    (folder / "broken.py").write_text("def f(value):\nreturn value\n")
    return str(folder)


def test_every_function_that_cannot_be_called_is_named_with_its_rule(functions: str) -> None:
    with pytest.raises(UsageError) as error:
        check_functions([rule(SPEC)], functions)
    lines = sorted(str(one) for one in (error.value, *error.value.others))
    assert lines[0].startswith("rule.yaml:1:1: py: broken.py:2: SyntaxError: expected an indented block")
    assert lines[1] == "rule.yaml:1:1: py: words.py defines no function 'lower'; known are upper"
    assert len(lines) == 2


def test_functions_of_second_pages_are_checked(functions: str) -> None:
    spec = "fields: {a: h1}\nfollowUps: {more: {css: a, url: x, fields: {b: {css: p, py: 'words:none'}}}}"
    with pytest.raises(UsageError, match="no function 'none'"):
        check_functions([rule(spec)], functions)


def test_without_a_directory_the_parser_warns_and_the_crawl_runs() -> None:
    check_functions([rule(SPEC)], "")


def test_rules_that_the_job_does_not_name_are_not_checked(functions: str, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    for name, call in (("good", "words:upper"), ("bad", "words:lower")):
        (rules / name).mkdir(parents=True)
        text = HEAD.replace("NAME", name) + f"  match: {{url: x}}\n  fields: {{a: {{css: h1, py: '{call}'}}}}\n"
        (rules / name / "rule.yaml").write_text(text)
    assert list(check_rules(["good"], rules, functions)) == ["good"]
    with pytest.raises(UsageError, match=r"bad/rule\.yaml:1:1: py: words\.py"):
        check_rules([], rules, functions)
