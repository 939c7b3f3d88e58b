"""Mutation testing: small faults put into chosen modules, one at a time; a fault that no test notices is printed.

python -m tools.mutants [FOLDER|FILE ...] [--count 20] [--seed 1] [--workers 2] [--list] [--again OUTPUT]

A mutant is one change of one expression or statement (`OPERATORS`), drawn by the seed, `--count` for each named folder
or file (paths below services; default: `CHOSEN`). It is written into a copy of the checkout, where the tests of
the module's own folder and of its contracts run (`tests_of`). A mutant is killed when a test fails, or when the tests
take longer than three times their normal time. Survivors that change nothing a caller can see are listed in
tests/equivalent_mutants.txt, with a reason each. `--again` runs those mutants only that an earlier output lists as
survived. Exit code 1: a mutant survived that is not in the list.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SERVICES = Path("services")
EQUIVALENT = ROOT / "tests" / "equivalent_mutants.txt"
CHOSEN = (
    "nephila/scheduler/frontier",
    "nephila/scheduler/engine",
    "nephila/scheduler/durability",
    "nephila/scheduler/politeness",
    "nephila/downloader",
    "nephila/storage",
    "nephila/kernel",
    "nephila/parser",
    "nephila_cluster",
    "nephila_control",
    "nephila_harvest",
    "nephila_rules",
)
MODEL = "tests/scheduler/frontier/test_frontier_machine.py"
CONTRACTS = {
    "nephila/scheduler/frontier": ("tests/scheduler/engine",),
    "nephila/scheduler/engine": (MODEL,),
    "nephila/scheduler/durability": (MODEL,),
    "nephila/scheduler/politeness": ("tests/scheduler/engine", MODEL),
    "nephila/kernel/bus": ("tests/contracts/test_bus.py",),
    "nephila_control": ("tests/contracts/test_control.py",),
    "nephila/downloader/http": ("tests/contracts/test_fetcher.py", "tests/adversary/test_adversary.py"),
    "nephila/storage": ("tests/contracts/test_storage_outputs.py",),
    "nephila_cluster/kafka": ("tests/contracts/test_log_reader_contract.py",),
}
"""Suites outside the mirrored folder that hold for the modules below a path."""
UNTESTED = ("metrics.py", "config.py", "__init__.py")
"""Files without behaviour of their own: definitions."""
LEAST_LIMIT_S = 30.0
"""The time limit of a mutant's tests where three times the normal time is less."""

Fault = Callable[[ast.AST], list[ast.AST]]


def _comparison(node: ast.AST) -> list[ast.AST]:
    """`<` becomes `<=`, `==` becomes `!=`, `in` becomes `not in`, and back."""
    other: dict[type[ast.cmpop], type[ast.cmpop]] = {
        ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
        ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    }  # fmt: skip
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return []
    return [ast.Compare(node.left, [other[type(node.ops[0])]()], node.comparators)]


def _arithmetic(node: ast.AST) -> list[ast.AST]:
    """`+` becomes `-`, `*` becomes `//`, and back; not for text."""
    other: dict[type[ast.operator], ast.operator] = {
        ast.Add: ast.Sub(), ast.Sub: ast.Add(), ast.Mult: ast.FloorDiv(), ast.Div: ast.Mult(), ast.FloorDiv: ast.Mult(),
        ast.BitAnd: ast.BitOr(), ast.BitOr: ast.BitAnd(), ast.LShift: ast.RShift(), ast.RShift: ast.LShift(),
    }  # fmt: skip
    if not isinstance(node, ast.BinOp | ast.AugAssign) or type(node.op) not in other or _is_text(node):
        return []
    changed = copy.copy(node)
    changed.op = other[type(node.op)]
    return [changed]


def _is_text(node: ast.BinOp | ast.AugAssign) -> bool:
    parts = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    return any(isinstance(part, ast.JoinedStr) or isinstance(getattr(part, "value", None), str) for part in parts)


def _boolean(node: ast.AST) -> list[ast.AST]:
    """`and` becomes `or` and back, and each operand is left out; `not x` becomes `x`."""
    if isinstance(node, ast.BoolOp):
        found: list[ast.AST] = [ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)]
        for left_out in range(len(node.values)):
            rest = [value for place, value in enumerate(node.values) if place != left_out]
            found.append(rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))
        return found
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [node.operand]
    return []


def _constant(node: ast.AST) -> list[ast.AST]:
    """A number one higher, True as False and back."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return [ast.Constant(not node.value)]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return [ast.Constant(node.value + 1)]
    return []


def _branch(node: ast.AST) -> list[ast.AST]:
    """A branch that is never taken, and one that is always taken."""
    if not isinstance(node, ast.If | ast.IfExp):
        return []
    found: list[ast.AST] = []
    for value in (True, False):
        changed = copy.copy(node)
        changed.test = ast.Constant(value)
        found.append(changed)
    return found


def _statement(node: ast.AST) -> list[ast.AST]:
    """A call, an assignment to an attribute or an item, a deletion or a raise is left out; `continue` is `break`."""
    if isinstance(node, ast.Continue):
        return [ast.Break()]
    call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await) and not _logs(node)
    if isinstance(node, ast.Assign):
        call = isinstance(node.targets[0], ast.Attribute | ast.Subscript)
    if call or isinstance(node, ast.AugAssign | ast.Delete | ast.Raise):
        return [ast.Pass()]
    return []


def _logs(node: ast.Expr) -> bool:
    text = ast.unparse(node)
    return text.startswith(("log.", "logger.", "reach(", "await reach(", "warnings.", "super().__init__"))


def _answer(node: ast.AST) -> list[ast.AST]:
    """A function that answers None."""
    if isinstance(node, ast.Return) and node.value and not isinstance(node.value, ast.Constant):
        return [ast.Return(ast.Constant(None))]
    return []


OPERATORS: tuple[Fault, ...] = (_comparison, _arithmetic, _boolean, _constant, _branch, _statement, _answer)


@dataclass(frozen=True)
class Mutant:
    """One fault: the text of a module with one change."""

    path: Path
    """Below the root of the checkout."""
    line: int
    was: str
    now: str
    source: str

    @property
    def key(self) -> str:
        """What names it in the list of equivalent mutants; it survives moved lines."""
        return f"{self.path.relative_to(SERVICES)} | {self.was} -> {self.now}"


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All faults of a module, in the order of its text."""
    tree = ast.parse((ROOT / path).read_text())
    for node, put, statement in _places(tree, tree):
        for fault in OPERATORS:
            for changed in fault(node):
                was = _short(statement)
                ast.copy_location(changed, node)
                put(changed)
                source = ast.unparse(ast.fix_missing_locations(tree))
                now = _short(changed if node is statement else statement)
                put(node)
                yield Mutant(path, node.lineno, was, now, source)  # type: ignore[attr-defined]


def _short(node: ast.AST) -> str:
    """The first line of a statement."""
    return ast.unparse(node).splitlines()[0]


def _places(node: ast.AST, statement: ast.AST) -> Iterator[tuple[ast.AST, Callable[[ast.AST], None], ast.AST]]:
    """Every expression and statement below a node, with what puts another one in its place, and the statement that it
    belongs to; no annotations, defaults of arguments, decorators, error texts and code for type checkers."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "args", "keywords", "type_params", "exc") and not (
            isinstance(node, ast.Call)
        ):
            continue
        if isinstance(value, list):
            for place, child in enumerate(value):
                if isinstance(child, ast.AST) and not _skipped(child):
                    owner = child if isinstance(child, ast.stmt) else statement
                    yield child, lambda new, at=value, place=place: at.__setitem__(place, new), owner
                    yield from _places(child, owner)
        elif isinstance(value, ast.AST) and not _skipped(value):
            yield value, lambda new, of=node, name=name: setattr(of, name, new), statement
            yield from _places(value, statement)


def _skipped(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.Expr) and (isinstance(node.value, ast.Constant) or _logs(node))


def modules_of(name: str) -> list[Path]:
    """The modules with behaviour below a folder or at a file of the package."""
    at = ROOT / SERVICES / name
    found = [at] if at.suffix == ".py" else sorted(at.rglob("*.py"))
    return [path.relative_to(ROOT) for path in found if path.name not in UNTESTED]


def tests_of(module: Path) -> list[str]:
    """The tests that must notice a fault of a module: its mirrored folder and its contracts."""
    below = module.relative_to(SERVICES)
    package, *folders = below.parent.parts
    mirror = [] if package == "nephila" else [package.removeprefix("nephila_")]
    folder = Path("tests", *mirror, *folders)
    while not any((ROOT / folder).glob("test_*.py")) and not any((ROOT / folder).glob("*/test_*.py")):
        folder = folder.parent
    contracts = [suite for part, suites in CONTRACTS.items() if below.as_posix().startswith(part) for suite in suites]
    return [str(folder), *contracts]


class Checkout:
    """A copy of the tracked files (and the built core) in which one mutant at a time is tested."""

    def __init__(self, root: Path) -> None:
        self.root = root
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
        tracked = [name for name in names.decode().split("\0") if name]
        for name in [
            *tracked,
            *(str(path.relative_to(ROOT)) for path in (ROOT / SERVICES / "nephila" / "native").glob("*.so")),
        ]:
            if (ROOT / name).exists():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, root / name)

    def run(self, tests: list[str], limit_s: float) -> str:
        """`passed`, `failed` or `timeout`."""
        environment = {**os.environ, "PYTHONPATH": str(self.root / "services"), "TMPDIR": str(self.root / "tmp")}
        (self.root / "tmp").mkdir(exist_ok=True)
        options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not full", "-n", "0"]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=(self.root / "output").open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return "failed" if process.wait(limit_s) else "passed"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return "timeout"
        finally:
            shutil.rmtree(self.root / "tmp", ignore_errors=True)

    def judge(self, mutant: Mutant, normal_s: float) -> str:
        """What the tests say of a mutant."""
        target = self.root / mutant.path
        target.write_text(mutant.source)
        try:
            return self.run(tests_of(mutant.path), max(LEAST_LIMIT_S, 3 * normal_s))
        finally:
            shutil.copy2(ROOT / mutant.path, target)


def equivalent() -> dict[str, str]:
    """Key of a mutant → the reason why no test can notice it."""
    rows = [line for line in EQUIVALENT.read_text().splitlines() if line and not line.startswith("#")]
    return {key.strip(): reason.strip() for key, _, reason in (row.rpartition(" | ") for row in rows)}


def draw(folders: list[str], count: int, seed: int) -> list[tuple[str, Mutant]]:
    """`count` mutants of each folder, by chance."""
    chance = random.Random(seed)
    found: list[tuple[str, Mutant]] = []
    for folder in folders:
        mutants = [mutant for module in modules_of(folder) for mutant in mutants_of(module)]
        found += [(folder, mutant) for mutant in chance.sample(mutants, min(count, len(mutants)))]
    return found


def survivors(output: Path) -> list[tuple[str, Mutant]]:
    """The mutants that an earlier output lists as survived, each under its folder. Where a module has several of one
    text, the one at the listed line or nearest to it: lines move when the module is changed."""
    wanted: defaultdict[Path, list[tuple[int, str]]] = defaultdict(list)
    for row in output.read_text().splitlines():
        if row.startswith("survived "):
            path, line, text = row.removeprefix("survived ").split(":", 2)
            wanted[Path(path)].append((int(line), text.strip()))
    found: list[tuple[str, Mutant]] = []
    for path, rows in sorted(wanted.items()):
        known: defaultdict[str, list[Mutant]] = defaultdict(list)
        for mutant in mutants_of(path):
            known[f"{mutant.was} -> {mutant.now}"].append(mutant)
        for line, text in sorted(rows):
            if same := known[text]:
                nearest = min(same, key=lambda mutant, line=line: abs(mutant.line - line))
                same.remove(nearest)
                found.append((str(path.parent.relative_to(SERVICES)), nearest))
    return found


def judged(drawn: list[tuple[str, Mutant]], workers: int) -> Iterator[tuple[str, Mutant, str]]:
    """Each mutant with its verdict, as they end."""
    waiting: queue.SimpleQueue[tuple[str, Mutant]] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[str, Mutant, str] | BaseException] = queue.SimpleQueue()
    normal: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as parent:
        os.chmod(parent, 0o755)  # noqa: S103 - the PostgreSQL server of the tests has a user of its own
        first = Checkout(Path(parent) / "0")
        for tests in {tuple(tests_of(mutant.path)) for _, mutant in drawn}:
            started = time.monotonic()
            if first.run(list(tests), 1800) != "passed":
                output = (first.root / "output").read_text(errors="replace")
                raise SystemExit(f"{' '.join(tests)}: fails without a mutant\n{output[-3000:]}")
            normal[tests[0]] = time.monotonic() - started
        for row in drawn:
            waiting.put(row)

        def work(checkout: Checkout) -> None:
            try:
                while True:
                    folder, mutant = waiting.get_nowait()
                    done.put((folder, mutant, checkout.judge(mutant, normal[tests_of(mutant.path)[0]])))
            except queue.Empty:
                return
            except BaseException as error:  # passed on to the caller
                done.put(error)

        for number in range(workers):
            checkout = first if number == 0 else Checkout(Path(parent) / str(number))
            threading.Thread(target=work, args=(checkout,), daemon=True).start()
        for _ in drawn:
            row = done.get()
            if isinstance(row, BaseException):
                raise row
            yield row


def main() -> int:
    """Print each survivor as it is found, then the table by folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", help="folders or files below services")
    parser.add_argument("--count", type=int, default=20, help="mutants of each folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--again", type=Path, metavar="OUTPUT", help="run only what this output lists as survived")
    chosen = parser.parse_args()
    drawn = survivors(chosen.again) if chosen.again else draw(chosen.folders or list(CHOSEN), chosen.count, chosen.seed)
    if chosen.list:
        for _, mutant in drawn:
            print(f"{mutant.path}:{mutant.line}: {mutant.was} -> {mutant.now}")
        return 0
    reasons = equivalent()
    table: dict[str, Counter[str]] = {folder: Counter() for folder, _ in drawn}
    for folder, mutant, verdict in judged(drawn, chosen.workers):
        if verdict == "passed":
            verdict = "equivalent" if mutant.key in reasons else "survived"
            print(f"{verdict} {mutant.path}:{mutant.line}: {mutant.was} -> {mutant.now}", flush=True)
        table[folder][verdict] += 1
    print(f"\n{'folder':24} mutants  killed  timeout  equivalent  survived   rate")
    for folder, verdicts in [*table.items(), ("all", sum(table.values(), Counter()))]:
        killed, counted = verdicts["failed"] + verdicts["timeout"], verdicts.total() - verdicts["equivalent"]
        print(
            f"{folder:24} {verdicts.total():7} {verdicts['failed']:7} {verdicts['timeout']:8} "
            f"{verdicts['equivalent']:11} {verdicts['survived']:9} {killed / max(1, counted):6.0%}"
        )
    return 1 if any(verdicts["survived"] for verdicts in table.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
