"""The core crawls, resumes and exports with no other package and no library of an extra."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from nephila.kernel.runtime.extras import EXTRAS

from tests.e2e.web import Reply, Request, page, serve

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
sys.path[:0] = sys.argv[1].split("|")
sys.modules.update(dict.fromkeys(sys.argv[2].split("|")))  # an import of it fails
from nephila.cli.main import main
code = main(sys.argv[3:])
print(sorted({name.partition(".")[0] for name in sys.modules if name.startswith("nephila_")}), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture
def core(tmp_path: Path) -> list[str]:
    """The start of a command line of an installation that has the core alone."""
    path = tmp_path / "core"
    path.mkdir()
    (path / "nephila").symlink_to(ROOT / "services" / "nephila")
    libraries = sysconfig.get_path("purelib")
    # -S: no path file of the environment adds the other packages.
    return [sys.executable, "-S", "-c", PROGRAM, f"{path}|{libraries}", "|".join(EXTRAS)]


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env={})
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"
    return done.stdout


def test_it_crawls_resumes_and_exports(core: list[str], tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    links = {"/": ["/a", "/b"], "/a": ["/c"], "/b": ["/c"], "/c": ["/"]}

    def answer(request: Request) -> Reply | None:
        return page(*links[request.path]) if request.path in links else None

    with serve(answer) as web:
        crawl = [*core, "crawl", f"http://127.0.0.1:{web.port}/", "--out", out, "--allow-private", "--delay", "0"]
        run(*crawl, "--max-pages", "2")
        run(*crawl, "--max-pages", "0", "--resume")
    rows = [json.loads(line) for line in run(*core, "export", "--out", out, "--format", "jsonl").splitlines()]
    assert sorted(row["url"].rpartition("/")[2] for row in rows) == ["", "a", "b", "c"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("crawl", "http://a.test/", "--rules", "."), "items by rules: the package nephila_rules is not installed"),
        (("console",), "nephila console: the package nephila_console is not installed"),
    ],
)
def test_what_another_package_adds_says_so(core: list[str], tmp_path: Path, words: tuple[str, ...], line: str) -> None:
    """One line with the name of the package, and exit code 1."""
    done = subprocess.run(
        [*core, *words, "--out", str(tmp_path / "out")],
        capture_output=True, text=True, timeout=120, check=False, env={},
    )  # fmt: skip
    assert (done.returncode, line in done.stderr, "Traceback" in done.stderr) == (1, True, False), done.stderr


def test_test_files_of_the_core_import_no_other_package() -> None:
    """`make test-alone` collects them; a test that needs a package imports it inside and has the mark whole."""
    folders = re.search(r"CORE := \$\(addprefix tests/,(.*)\)", (ROOT / "Makefile").read_text())
    assert folders is not None
    files = [file for folder in folders[1].split() for file in (ROOT / "tests" / folder).rglob("*.py")]
    assert len(files) > 200
    assert [f"{file.relative_to(ROOT)}: {name}" for file in files for name in _imports_of_packages(file)] == []


def _imports_of_packages(file: Path) -> list[str]:
    """The packages beside the core that a file imports when it is loaded."""
    body = ast.parse(file.read_text()).body
    modules = [node.module or "" for node in body if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in body if isinstance(node, ast.Import) for alias in node.names]
    return [module for module in modules if module.startswith("nephila_")]
