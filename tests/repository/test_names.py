"""Variables are named after what they hold, and docstrings say something: neither a word that fits everything nor a
pointer to another place helps a reader."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from tools.import_arrows import SERVICES

EMPTY_WORDS = frozenset({"found", "one", "wanted", "known", "given", "said", "told", "asked", "kept", "shown", "place"})

MOST_PERCENT = 0.3
MORE_PERCENT = {
    "nephila/api": 0.4,  # `Link.place` is public
}
"""Folder → percent of its assigned names that may still be such words. A bound only shrinks, then leaves the table."""

_POINTER = re.compile(r"(\w+: )?see (the module|`[\w.]+`|[\w.]+)\.?", re.IGNORECASE)


def _folders() -> list[str]:
    packages = sorted(path.parent for path in SERVICES.glob("*/__init__.py"))
    beside = [path.name for path in packages if path.name != "nephila"]
    core = [path.name for path in (SERVICES / "nephila").iterdir() if any(path.rglob("*.py"))]
    return [*(f"nephila/{name}" for name in sorted(core)), *beside]


def assigned_names(tree: ast.AST) -> Iterator[str]:
    """Each name that the code binds: targets, parameters, caught errors and captures of a match."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case _:
                pass


def _trees(folder: str) -> Iterator[ast.Module]:
    for path in (SERVICES / folder).rglob("*.py"):
        if not path.name.endswith("_pb2.py"):
            yield ast.parse(path.read_text("utf-8"))


def _percent(folder: str) -> float:
    names: Counter[str] = Counter()
    for tree in _trees(folder):
        names.update(assigned_names(tree))
    return 100 * sum(names[word] for word in EMPTY_WORDS) / max(names.total(), 1)


def pointers(tree: ast.AST) -> int:
    """The number of docstrings that only name another place. An override needs no docstring."""
    documented = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    texts = (ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, documented))
    return sum(_POINTER.fullmatch(text) is not None for text in texts)


@pytest.mark.parametrize("folder", _folders())
def test_few_variables_have_a_name_that_fits_everything(folder: str) -> None:
    assert _percent(folder) <= MORE_PERCENT.get(folder, MOST_PERCENT)


@pytest.mark.parametrize("folder", _folders())
def test_docstrings_do_not_only_point_elsewhere(folder: str) -> None:
    assert sum(map(pointers, _trees(folder))) == 0


def test_folders_that_need_no_bound_of_their_own_leave_the_table() -> None:
    assert [folder for folder in MORE_PERCENT if _percent(folder) <= MOST_PERCENT] == []


def test_a_docstring_that_says_more_than_where_to_look_is_no_pointer() -> None:
    source = '''
class A:
    """See `B`."""
    def f(self): """See the module."""
    def g(self): """See `B.g`. Raises `ValueError`."""
    async def h(self): """Nothing: see the module."""
    def i(self): """Seeds of the job."""
    def j(self): pass
'''
    assert pointers(ast.parse(source)) == 3


def test_all_ways_to_bind_a_name_count() -> None:
    source = """
def f(a, /, b, *c, d, **e):
    g = h = 1
    for i, j in []: pass
    with b as k: pass
    [l for l in []]
    if (m := 1): pass
    try: pass
    except ValueError as n: pass
    match a:
        case [o, *p]: pass
"""
    assert sorted(assigned_names(ast.parse(source))) == list("abcdeghijklmnop")
