"""The mutants that `tools.mutants --again` runs are those of the earlier output."""

from __future__ import annotations

import pytest

from tools import mutants

MODULE = """def first(a):
    if a:
        return 1
    return 2


def second(a):
    if a:
        return 3
    return 4
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A package of one module."""
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    path = mutants.SERVICES / "nephila_harvest" / "one.py"
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(MODULE)
    return path


@pytest.mark.parametrize(
    ("listed", "run"), [((8,), [8]), ((2,), [2]), ((9,), [8]), ((2, 8), [2, 8]), ((3, 9), [2, 8]), ((), [])]
)
def test_again_tells_equal_texts_apart_by_their_lines(module, tmp_path, listed, run):
    """Also after the lines have moved a little."""
    output = tmp_path / "output"
    rows = [f"survived {module}:{line}: if a: -> if True:\n" for line in listed]
    output.write_text("".join(rows) + f"equivalent {module}:2: if a: -> if False:\n")
    found = mutants.survivors(output)
    assert [(folder, mutant.line, mutant.now) for folder, mutant in found] == [
        ("nephila_harvest", line, "if True:") for line in run
    ]
