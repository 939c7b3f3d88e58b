"""What every command does with mistakes: one line on standard error, the right exit code, no traceback."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys

import pytest
from nephila import __version__
from nephila.cli import main
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.runtime.extras import install_line


def boom(kind: str) -> None:
    """A command that fails in the way it is told."""
    raise {
        "user": UserError("disk full in o; free space and run again with --resume"),
        "usage": UsageError("--scope 'x' is none of host, any"),
        "bug": ZeroDivisionError("division by zero\n\x1b[31m"),
        "library": ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow.parquet"),
        "interrupt": KeyboardInterrupt(),
        "pipe": BrokenPipeError(),
        "full": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    }[kind]


@pytest.fixture
def failing(monkeypatch):
    """The table of commands with `boom` in it."""
    monkeypatch.setitem(main.COMMANDS, "boom", main.Command(main.TOOLS, f"{__name__}:boom", "Fails."))


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize(
    ("kind", "code", "line"),
    [
        ("user", 1, "nephila: disk full in o; free space and run again with --resume\n"),
        ("usage", 2, "nephila: --scope 'x' is none of host, any\n"),
        ("bug", 1, "nephila: ZeroDivisionError: division by zero; run with NEPHILA_DEBUG=1 for the traceback\n"),
        ("library", 1, f"nephila: this needs pyarrow.parquet; install it with: {install_line('parquet')}\n"),
        ("interrupt", 130, ""),
        ("pipe", 1, ""),
        ("full", 1, "nephila: standard output: No space left on device\n"),
    ],
)
def test_an_error_is_one_line(nephila, kind, code, line):
    """The exit code tells mistakes of usage, failures and interruptions apart."""
    ran = nephila("boom", kind)
    assert (ran.code, ran.err, ran.out) == (code, line, "")


def test_log_lines_have_no_control_characters(nephila, capsys):
    """They may quote what a server sent."""
    nephila("--version")
    logging.lastResort.handle(logging.makeLogRecord({"msg": "refused: \x1b]0;title\x07\x1b[31mred\nline"}))
    assert capsys.readouterr().err == "refused: red line\n"


@pytest.mark.usefixtures("failing")
def test_debugging_shows_the_traceback(nephila, monkeypatch):
    """NEPHILA_DEBUG=1 is for whoever mends the program."""
    monkeypatch.setenv("NEPHILA_DEBUG", "1")
    ran = nephila("boom", "bug")
    assert ran.code == 1
    assert "Traceback" in ran.err


def test_an_unknown_option_is_answered_with_a_close_one(nephila):
    """Exit code 2, the option, what was probably meant, where to look."""
    ran = nephila("export", "--colums", "x")
    assert ran.code == 2
    assert ran.err.startswith("nephila: No such option: --colums")
    assert "--columns" in ran.err
    assert ran.err.endswith("Try 'nephila export --help'.\n")
    assert ran.err.count("\n") == 1


def test_an_unknown_command_is_answered_with_a_close_one(nephila):
    """The table alone serves the suggestion."""
    ran = nephila("docter")
    assert (ran.code, ran.err) == (
        2,
        "nephila: No such command 'docter'. Did you mean 'doctor'? Try 'nephila --help'.\n",
    )


def test_help_lists_every_command_of_the_table(nephila):
    """Help goes to standard output; no arguments at all is a mistake that shows it."""
    ran = nephila("--help")
    assert ran.code == 0
    assert all(name in ran.out for name in main.COMMANDS)
    assert nephila().code == 2


def test_the_version_is_printed(nephila):
    """One line, name and version."""
    assert nephila("--version") == (0, f"nephila {__version__}\n", "")


@pytest.mark.whole
def test_every_command_of_the_table_can_be_loaded(nephila):
    """A row of the table that names nothing would fail only when it is used."""
    for name in main.COMMANDS:
        assert nephila(name, "--help").code == 0, name


def test_help_imports_no_service():
    """The start is quick because rooms and heavy libraries are imported by the commands that need them."""
    code = (
        "import sys; from nephila.cli.main import main; main(['url', 'key', 'http://a/']);"
        "rooms = ('nephila.scheduler', 'nephila.downloader', 'nephila.parser', 'nephila.storage', 'nephila_control',"
        "'nephila.programs.crawl', 'nephila_control.serve');"
        "print([m for m in sys.modules if m.startswith(rooms) or m in ('asyncio', 'aiohttp', 'rich', 'sqlite3')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "0cc175b9d2e30d023bacb13655cf2f69\n[]\n"


@pytest.mark.e2e
def test_a_reader_that_leaves_is_no_error():
    """`nephila … | head -1` says nothing on standard error."""
    left, written = os.pipe()
    os.close(left)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "nephila", "url", "key", "--batch"],
            input=b'{"url": "http://a/"}\n' * 10_000,
            stdout=written,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(written)
    assert (ran.returncode, ran.stderr) == (1, b"")


def test_closed_streams(tmp_path):
    """Started without standard output and error, as daemons are."""
    words = f"{sys.executable} -m nephila url parse http://a.test/"
    assert subprocess.run(["sh", "-c", f"{words} >&- 2>&-"], cwd=tmp_path, check=False).returncode == 0


def test_an_interruption_while_modules_load_is_no_traceback(tmp_path):
    """The first thing that is imported is interrupted; exit code 130 and not a word."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "nephila", "up"],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
