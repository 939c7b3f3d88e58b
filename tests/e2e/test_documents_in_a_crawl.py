"""PDFs and other documents of a site, hostile ones among them: rows with text and reasons, no process left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.e2e.web import NEPHILA, Reply, crawl, page, rows, run_json, serve
from tests.parser.pdfs import bomb, pdf
from tests.waits import wait_until

PDF = "application/pdf"
HOSTILE = bomb(400)
SLOW = bomb(100)
PAPER = pdf("Hello there", "See http://a.test/beyond", info="/Title(A paper)/Author(Ann)", link="/under")


def site(request):
    """A page that links to documents of every kind."""
    return {
        "/": page("/paper.pdf", "/torn.pdf", "/data.json", "/table.csv", "/doc.xml", "/notes.txt", "/hostile.pdf"),
        "/paper.pdf": Reply(PAPER, type=PDF),
        "/torn.pdf": Reply(PAPER[:300], type=PDF),
        "/hostile.pdf": Reply(HOSTILE, type=PDF),
        "/data.json": Reply('{"title": "Data", "url": "/not-followed"}', type="application/json"),
        "/table.csv": Reply("name,size\na,1\n", type="text/csv"),
        "/doc.xml": Reply("<doc><title>Doc</title><a href='/linked'>x</a></doc>", type="application/xml"),
        "/notes.txt": Reply("plain words", type="text/plain"),
        "/under": page(),
        "/beyond": page(),
        "/linked": page(),
    }.get(request.path)


def sandbox_children() -> dict[int, int]:
    """Process id of every child of a sandbox on this machine, and of its parent."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            # As a word of its own: a shell may have the name in its script.
            if b"nephila.parser.sandbox.child" in (path / "cmdline").read_bytes().split(b"\0"):
                found[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    return found


def none_left() -> bool:
    """Whether soon no child of a sandbox is without the parent that it was begun by."""
    return wait_until(lambda: 1 not in sandbox_children().values(), 30.0)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_documents_of_every_kind_become_rows(tmp_path, workers):
    """Text, titles and links; the one that breaks its process twice is a dead letter, and the crawl goes on."""
    with serve(site) as web:
        done = crawl(web, "http://a.test/", "--workers", workers, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {row[0]: row[1:] for row in rows(tmp_path, "url, outcome, reason, title, text, depth")}
    assert found["http://a.test/paper.pdf"] == (
        "stored",
        "",
        "A paper",
        "Hello there\nSee http://a.test/beyond",
        1,
    )
    assert found["http://a.test/torn.pdf"][:2] == ("stored", "")
    assert found["http://a.test/hostile.pdf"][:2] == ("failed", "dead_letter")
    assert found["http://a.test/data.json"][2:4] == ("Data", '{\n  "title": "Data",\n  "url": "/not-followed"\n}')
    assert found["http://a.test/table.csv"][3] == "name\tsize\na\t1"
    assert found["http://a.test/doc.xml"][2:4] == ("Doc", "Doc\nx")
    assert found["http://a.test/notes.txt"][3] == "plain words"
    assert [found[f"http://a.test/{name}"][4] for name in ("under", "beyond", "linked")] == [2, 2, 2]
    assert len(found) == 11
    meta = {url: json.loads(text) for url, text in rows(tmp_path, "url, meta") if text}
    assert meta["http://a.test/paper.pdf"]["author"] == "Ann"
    assert meta["http://a.test/torn.pdf"]["problem"] == "broken: not a whole PDF"
    assert meta["http://a.test/hostile.pdf"]["error"].startswith("ChildError: pdf: ")
    assert meta["http://a.test/hostile.pdf"]["error"].endswith("tried 2 times")
    assert run_json(tmp_path)["left"] == 0
    assert none_left()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends a child with its parent")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_end_of_the_program_ends_its_children(tmp_path, how):
    """Ctrl-C reaches the program alone, kill -9 not even that: no child is left, and the page is read on the resume."""
    asked = threading.Event()

    def answer(request):
        if request.path == "/":
            return page("/slow.pdf")
        if request.path != "/slow.pdf":
            return None
        first = not asked.is_set()
        asked.set()
        return Reply(SLOW if first else PAPER, type=PDF)

    words = ["--allow-private", "--delay", "0", "--workers", "0", "--out", "o"]
    with serve(answer) as web:
        words += ["--host-map", web.host_map]
        process = subprocess.Popen(
            [*NEPHILA, "crawl", "http://a.test/", *words],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert asked.wait(30)
        wait_until(lambda: process.pid in sandbox_children().values())
        (child,) = [pid for pid, parent in sandbox_children().items() if parent == process.pid]
        if how == signal.SIGINT:
            os.kill(child, signal.SIGSTOP)  # else the page may have been given up before the end
        os.killpg(process.pid, how)
        if how == signal.SIGINT:
            time.sleep(0.3)
            os.killpg(process.pid, how)
        process.wait(30)
        assert none_left()
        done = subprocess.run(
            [*NEPHILA, "crawl", "--resume", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 0, done.stderr
    assert ("http://a.test/slow.pdf", "stored", "A paper") in rows(tmp_path, "url, outcome, title")
