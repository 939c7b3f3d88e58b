"""Python functions of rules (`py`): which names reach a function, what it gets, and how a call ends that goes wrong."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nephila.kernel.runtime.errors import UsageError
from nephila.parser.sandbox import BlockingSandbox
from nephila_rules.run_rule import RuleRunner
from nephila_rules.runtime.extract import Extraction
from nephila_rules.runtime.function_directory import CHECK_S, FunctionDirectory, faults_of
from nephila_rules.runtime.task import RULES, request_of
from nephila_rules.stored_pages import StoredPage

from tests.rules.execution.rule_rig import URL, document, rule

FILES = {
    "prices.py": """
        import os
        import subprocess
        import sys
        import time
        from os import system
        from datetime import datetime
        from shared import half
        from subprocess import Popen

        RATE = 2

        def euros(value, page):
            return {"amount": half(float(value)), "page": page.url, "title": page.title, "size": len(page.html)}

        def twice(value, rate=RATE):
            return value * rate

        def anything(*values):
            return len(values)

        def constant():
            return 7

        lower = lambda value: value.lower()

        def pair(value):
            return (value, None, True, 1.5)

        def changes(value):
            value["a"] = "changed"
            return value["a"]

        def day(value):
            return datetime.strptime("2026-01-31", "%Y-%m-%d").date().isoformat()

        def nothing(value):
            return None

        def chatter(value):
            print("x" * 100_000)
            os.write(1, b"y")
            sys.stderr.write("z")
            return "said"

        def asks(value):
            return input()

        def fails(value):
            return {}["key"]

        def speaks(value):
            raise RuntimeError("two\\nlines")

        class Silent(Exception):
            def __str__(self):
                raise ValueError

        def silent(value):
            raise Silent

        def leaves(value):
            sys.exit(3)

        def deep(value):
            return deep(value)

        def loops(value):
            while True:
                pass

        def loops_on(value):
            while True:
                try:
                    time.sleep(0)
                except BaseException:
                    pass

        def sleeps(value):
            time.sleep(60)

        def eats(value):
            return len(bytearray(2 << 30))

        def exits(value):
            os._exit(3)

        def an_object(value):
            return object()

        def a_generator(value):
            return (one for one in value)

        def yields(value):
            yield value

        async def waits(value):
            return value

        def not_a_number(value):
            return float("nan")

        def itself(value):
            result = []
            result.append(result)
            return result

        def huge(value):
            return "x" * (5 << 20)

        def three(value, page, more):
            return value

        def reads(value):
            return open("/etc/passwd").read()

        def imports(value):
            import mailbox

        def connects(value):
            import socket
            return socket.create_connection(("127.0.0.1", 1))

        def starts(value):
            return subprocess.run(["true"])
        """,
    "shared.py": "def half(number):\n    return number / 2\n",
    "json.py": "def own(value):\n    return 'of the directory'\n",
    "broken.py": "import os\n\ndef f(:\n",
    "lacks.py": "import a_library_that_is_not_installed\n",
    "refuses.py": "import sys\nsys.exit('no')\n",
    "_hidden.py": "def f(value):\n    return 1\n",
    "test_prices.py": "def f(value):\n    return 1\n",
}


def directory_of(path: Path, files: dict[str, str]) -> str:
    """The path with these files."""
    path.mkdir(exist_ok=True)
    for name, text in files.items():
        (path / name).write_text(textwrap.dedent(text))
    return str(path)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A directory of functions."""
    return directory_of(tmp_path_factory.mktemp("functions"), FILES)


@pytest.fixture(scope="module")
def runner(directory: str) -> Iterator[RuleRunner]:
    """Runs rules whose functions are in the directory."""
    with RuleRunner(scripts=True, functions=directory) as made:
        yield made


def ran(runner: RuleRunner, field: str, body: bytes = b"<title>T</title><h1>12</h1>") -> Extraction:
    """Result of a rule with one field."""
    return runner.run(rule(f"fields: {{f: {field}}}"), StoredPage(URL, "text/html", "utf-8", body, "page"))


def value(runner: RuleRunner, field: str) -> Any:
    """The field of the one item."""
    found = ran(runner, field)
    assert found.problems == []
    (item,) = found.items
    return json.loads(item)["f"]


@pytest.mark.parametrize(
    ("field", "result"),
    [
        ("{css: h1, py: 'prices:twice'}", "1212"),
        ("{css: h1, py: 'prices:anything'}", 2),
        ("{css: h1, py: 'prices:constant'}", 7),
        ("{constant: ABC, py: 'prices:lower'}", "abc"),
        ("{css: h1, py: 'prices:pair', all: true}", [["12", None, True, 1.5]]),
        ("{css: h1, py: 'prices:day', type: date}", "2026-01-31"),
        ("{css: h1, py: 'prices:nothing', default: none}", "none"),
        ("{css: h1, py: 'prices:chatter'}", "said"),
        ("{css: h2, py: 'prices:constant', type: integer}", 7),
        ("{css: h1, py: 'shared:half'}", None),
        ("{css: h1, py: 'json:own'}", "of the directory"),
    ],
)
def test_a_function_makes_a_value(runner: RuleRunner, field: str, result: Any) -> None:
    """JSON in and out, for each value, or once without values; the keys after it apply to its result."""
    if result is None:
        assert ran(runner, field).problems == [
            "f: py: shared.py:2: TypeError: unsupported operand type(s) for /: 'str' and 'int'"
        ]
    else:
        assert value(runner, field) == result


def test_a_function_reads_the_page(runner: RuleRunner) -> None:
    assert value(runner, "{css: h1, py: 'prices:euros'}") == {"amount": 6.0, "page": URL, "title": "T", "size": 27}


def test_a_function_that_changes_its_value_does_not_change_the_document(runner: RuleRunner) -> None:
    spec = "fields: {a: {jsonpath: $, py: 'prices:changes'}, b: {jsonpath: $.a}}"
    page = StoredPage(URL, "application/json", "utf-8", b'{"a": "first"}', "page")
    assert runner.run(rule(spec), page).items == [b'{"a":"changed","b":"first"}']


def test_javascript_and_python_in_one_rule(runner: RuleRunner) -> None:
    spec = "fields: {a: {css: h1, js: 'v => v + v'}, b: {css: h1, py: 'prices:twice'}}"
    found = runner.run(rule(spec), StoredPage(URL, "text/html", "utf-8", b"<h1>1</h1>", "page"))
    assert found.items == [b'{"a":"11","b":"11"}']


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("prices:fails", r"prices\.py:\d+: KeyError: 'key'"),
        ("prices:speaks", r"prices\.py:\d+: RuntimeError: two lines"),
        ("prices:silent", r"prices\.py:\d+: Silent"),
        ("prices:leaves", r"prices\.py:\d+: SystemExit: 3"),
        ("prices:deep", r"prices\.py:\d+: RecursionError: .*"),
        ("prices:asks", r"prices\.py:\d+: EOFError: .*"),
        ("prices:loops", "prices:loops: the functions of the page took longer than 1 s of CPU time"),
        ("prices:an_object", "prices:an_object: the result is no JSON: object: .*"),
        ("prices:a_generator", "prices:a_generator: the result is no JSON: generator: .*"),
        ("prices:not_a_number", "prices:not_a_number: the result is no JSON: float: .*"),
        ("prices:itself", "prices:itself: the result is no JSON: list: .*"),
        ("prices:huge", "prices:huge: the result is longer than 4 Mi characters"),
        ("prices:yields", "prices:yields is no plain function: it has to return a value"),
        ("prices:waits", "prices:waits is no plain function: it has to return a value"),
        ("prices:three", r"prices:three has other parameters than \(value\) or \(value, page\): .*"),
        ("prices:euro", r"prices\.py defines no function 'euro'; did you mean 'euros'\?"),
        ("price:euros", r"there is no price\.py in the directory of functions; did you mean 'prices'\?"),
        ("broken:f", r"broken\.py:3: SyntaxError: .*"),
        ("lacks:f", r"lacks\.py:1: ModuleNotFoundError: No module named 'a_library_that_is_not_installed'"),
        ("refuses:f", r"refuses\.py:2: SystemExit: no"),
    ],
)
def test_a_call_that_fails_costs_its_field_and_says_why(runner: RuleRunner, name: str, reason: str) -> None:
    spec = f"fields: {{h: h1, f: {{css: h1, py: '{name}'}}}}"
    found = runner.run(rule(spec), StoredPage(URL, "text/html", "utf-8", b"<h1>x</h1>", "page"))
    assert found.items == [b'{"h":"x","f":null}']
    (problem,) = found.problems
    assert re.fullmatch(f"f: py: {reason}", problem)


@pytest.mark.parametrize(
    "name",
    [
        "prices:system",
        "prices:Popen",
        "prices:half",
        "prices:os",
        "prices:RATE",
        "prices:Silent",
        "os:system",
        "test_prices:f",
    ],
)
def test_a_name_reaches_only_functions_that_a_file_of_the_directory_defines(runner: RuleRunner, name: str) -> None:
    """Neither imports of a file, nor its classes, nor modules of Python, nor tests."""
    (problem,) = ran(runner, f"{{css: h1, py: '{name}'}}").problems
    assert re.match(r"f: py: (prices\.py defines no function|there is no \w+\.py in the directory)", problem)


@pytest.mark.parametrize("name", ["reads", "imports", "connects", "starts"])
def test_a_call_computes_only(runner: RuleRunner, name: str) -> None:
    """The process is locked down by then; the reason says where to do it instead."""
    with BlockingSandbox() as sandbox:
        sandbox.call(RULES, request_of({}, document("<p>"), scripts=False))
        (child,) = sandbox._children.values()
        if "seccomp" not in child.guards:
            pytest.skip("needs seccomp")
    (problem,) = ran(runner, f"{{css: h1, py: 'prices:{name}'}}").problems
    assert problem.endswith("a call opens no file, no connection and no module: do that where the file is loaded")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("sleeps", "rules with py: timeout (after 0.5 s), tried 2 times"),
        ("eats", "rules with py: memory (more than 768 MiB), tried 2 times"),
        ("exits", "rules with py: crash (exit code 3), tried 2 times"),
    ],
)
def test_a_call_that_ends_its_process_costs_the_page_alone(directory: str, name: str, reason: str) -> None:
    """With the words of any rule that is killed; the next page gets a new process."""
    with RuleRunner(functions=directory, wall_s=0.5 if name == "sleeps" else 20.0) as runner:
        found = ran(runner, f"{{css: h1, py: 'prices:{name}'}}")
        assert (found.items, found.problems) == ([], [reason])
        assert value(runner, "{css: h1, py: 'prices:twice'}") == "1212"


def test_code_that_swallows_the_limit_is_killed(directory: str) -> None:
    with RuleRunner(functions=directory, wall_s=1.5) as runner:
        (problem,) = ran(runner, "{css: h1, py: 'prices:loops_on'}").problems
    assert problem.startswith("rules with py: timeout")


def test_without_a_directory_the_field_is_empty_and_says_what_to_name() -> None:
    with RuleRunner(scripts=True) as runner:
        found = ran(runner, "{css: h1, py: 'os:getcwd'}")
    assert found.items == [b'{"f":null}']
    (problem,) = found.problems
    assert problem.startswith("f: there is no directory of Python functions; name it with --rule-functions DIR")


def test_rules_without_functions_stay_in_a_process_without_them(directory: str) -> None:
    with RuleRunner(functions=directory) as runner:
        value(runner, "{xpath: 'string(//h1)'}")
        value(runner, "{css: h1, py: 'prices:twice'}")
        assert len(runner.pids) == 2


def test_an_edited_file_is_read_before_the_next_page(tmp_path: Path) -> None:
    """It is looked at once a second; helpers and data beside it count as well."""
    directory_of(tmp_path, {"a.py": "from b import C\ndef f(value):\n    return C\n", "b.py": "C = 'old'\n"})
    now_s = [0.0]
    functions = FunctionDirectory(str(tmp_path), lambda: now_s[0])
    payload = request_of({"r": rule("fields: {f: {py: 'a:f'}}").text}, document("<p>"), scripts=False, chosen=True)
    with BlockingSandbox() as sandbox:
        assert sandbox.call(functions.task(RULES), payload).found.items == [b'{"f":"old"}']
        first = sandbox.pids
        (tmp_path / "b.py").write_text("C = 'newer'\n")
        assert sandbox.call(functions.task(RULES), payload).found.items == [b'{"f":"old"}']
        assert sandbox.pids == first
        now_s[0] += CHECK_S
        assert sandbox.call(functions.task(RULES), payload).found.items == [b'{"f":"newer"}']
        assert len(sandbox.pids) == 1


def test_files_that_cannot_be_loaded_are_named_before_a_page_is_read(directory: str, tmp_path: Path) -> None:
    functions = FunctionDirectory(directory, lambda: 0.0)
    faults = faults_of(functions, ["prices:euros", "broken:f", "prices:nope"])
    assert sorted(faults) == ["broken:f", "prices:nope"]
    assert faults_of(functions, []) == {}
    directory_of(tmp_path, {"a.py": "import os\nos._exit(3)\n"})
    assert faults_of(FunctionDirectory(str(tmp_path), lambda: 0.0), ["a:f"]) == {
        "a:f": "functions with py: crash (exit code 3)"
    }


def test_a_directory_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the directory of rule functions .*nowhere does not exist"):
        FunctionDirectory(f"{tmp_path}{os.sep}nowhere", lambda: 0.0)
