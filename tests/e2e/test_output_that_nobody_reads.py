"""The reader of the output goes away, or the terminal is closed: the crawl ends as it would have, or drains."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import termios

import pytest

from tests.e2e.web import NEPHILA, page, rows, run_json, serve

PAGES = 40


def answer(request):
    """A chain of pages: one is known when the one before was parsed."""
    if request.path == "/robots.txt":
        return None
    number = int(request.path[1:] or 0)
    return page(f"/{number + 1}") if number + 1 < PAGES else page()


def command(web, *words):
    options = ("--out", "o", "--allow-private", "--host-map", web.host_map, "--delay", "0")
    return [*NEPHILA, "crawl", "http://a.test/0", *options, *words]


@pytest.mark.parametrize("words", [(), ("-v",), ("--json",), ("-v", "--workers", "2")], ids=" ".join)
def test_a_pipe_that_is_closed_at_the_first_line_changes_nothing(tmp_path, words):
    read, write = os.pipe()
    with serve(answer) as web:
        process = subprocess.Popen(command(web, *words), cwd=tmp_path, stdout=write, stderr=write)
        os.close(write)
        if "-v" in words:
            os.read(read, 10)
        os.close(read)
        assert process.wait(60) == 0
    assert len(rows(tmp_path)) == PAGES
    assert run_json(tmp_path)["reason"] == "done"


def test_a_disk_that_cannot_take_the_summary_is_an_error(tmp_path):
    with serve(answer) as web, open("/dev/full", "w") as full:
        ended = subprocess.run(command(web, "--json"), cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert "standard output: No space left on device" in ended.stderr


def test_a_terminal_that_is_closed_drains_the_crawl(tmp_path):
    """The kernel sends SIGHUP, and each write to the terminal fails from then on."""
    main, terminal = pty.openpty()
    with serve(answer) as web:
        process = subprocess.Popen(
            command(web, "--delay", "5", "-v"),
            cwd=tmp_path,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(terminal, termios.TIOCSCTTY, 0),
        )
        os.close(terminal)
        seen = b""
        while b"stored" not in seen:
            seen += os.read(main, 1000)
        os.close(main)
        assert process.wait(60) == 130
    assert run_json(tmp_path)["reason"] == "interrupted"
    assert run_json(tmp_path)["outcomes"] == {"stored": len(rows(tmp_path))}


def test_under_nohup_the_crawl_continues(tmp_path):
    with serve(answer) as web:
        process = subprocess.Popen(
            command(web, "-v", "--workers", "0"),
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )
        assert b"stored" in process.stderr.readline()
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(rows(tmp_path)) == PAGES


def test_hang_up_ends_up_as_sigterm_does(tmp_path):
    process = subprocess.Popen(
        [*NEPHILA, "up", "--out", "o"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert b"0 jobs" in process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert run_json(tmp_path)["reason"] == "interrupted"
