"""A backup of a running crawl, restored and resumed, ends with the rows of a crawl that nothing disturbed."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from nephila.programs.output_directory import OutputDirectory
from nephila_tools.backup import archive, directory

from tests.e2e.test_stop_and_resume import FORMATS, PAGES, answer, expect_whole, start
from tests.e2e.web import crawl, page, rows, run, serve

SMALL = {"NEPHILA_SCHEDULER__SEGMENT_BYTES": "20000", "NEPHILA_STORAGE__BATCH_ROWS": "16"}
"""Snapshots replace the log all the time, and rows are committed often."""
COLUMNS = "url, outcome, reason, status, depth, title, text, sha256"


@pytest.mark.smoke
def test_backups_of_a_running_crawl_lead_to_the_same_rows(tmp_path):
    """Several, taken at once after the other, while the log and the files change."""
    times = iter(range(1_700_000_000, 1_800_000_000))
    begun, taken = threading.Event(), []

    def watched(request):
        if request.path == "/20":
            begun.set()
        return answer(request)

    with serve(watched) as web, pytest.MonkeyPatch.context() as environment:
        for name, value in SMALL.items():
            environment.setenv(name, value)
        process = start(web, tmp_path, "http://a.test/0", *FORMATS)
        assert begun.wait(30)
        while process.poll() is None:
            taken.append(directory.back_up(OutputDirectory(tmp_path / "o"), tmp_path / "backups", next(times)))
        process.communicate()
        assert process.returncode == 0
        undisturbed = sorted(rows(tmp_path, COLUMNS))
        unfinished = [path for path in taken if _rows(path) < PAGES]
        assert len(unfinished) >= 3
        for number, path in enumerate((unfinished[0], unfinished[len(unfinished) // 2], unfinished[-1])):
            place = tmp_path / str(number)
            place.mkdir()
            restored = run("restore", str(path), "--out", "o", cwd=place)
            assert restored.returncode == 0, restored.stderr
            assert "continue: " in restored.stdout
            assert run("check", "--out", "o", cwd=place).returncode == 0
            before = len(web.paths())
            done = crawl(web, "--resume", *FORMATS, cwd=place, **SMALL)
            assert done.returncode == 0, done.stderr
            expect_whole(place)
            assert sorted(rows(place, COLUMNS)) == undisturbed
            # What the backup has is not fetched again, but for what was in flight and what ended while it was taken.
            assert len(web.paths()) - before < PAGES - _rows(path) + 100


def _rows(path: Path) -> int:
    database = path / "files" / "nephila.db"
    if not database.exists():
        return 0
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("SELECT count(*) FROM pages").fetchone()[0]


@pytest.fixture
def finished(tmp_path):
    """A finished crawl of three pages in o, and the web."""

    def three(request):
        links = {"/": ("/1", "/2"), "/1": (), "/2": ()}
        found = links.get(request.path)
        return None if found is None else page(*found)

    with serve(three) as web:
        assert crawl(web, "http://a.test/", "--links", "--quiet", cwd=tmp_path).returncode == 0
        yield web


def test_what_is_refused(tmp_path, finished):
    """One line each, and nothing changes."""
    for words, code, line in (
        (("backup", "--out", "o"), 2, "--to is missing: the directory of backups"),
        (("backup", "--out", "none", "--to", "b"), 1, "none holds no crawl; name its directory with --out"),
        (("restore", "o", "--out", "p"), 1, "o is no backup: it has no backup.json"),
    ):
        done = run(*words, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (code, f"nephila: {line}\n")
    assert run("backup", "o", "--to", "b", cwd=tmp_path).returncode == 0
    (path,) = archive.finished(tmp_path / "b")
    done = run("restore", str(path), "--out", "o", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "nephila: o is not empty; restore into another --out\n")
    database = path / "files" / "nephila.db"
    data = bytearray(database.read_bytes())
    data[5000] ^= 1
    database.write_bytes(data)
    done = run("restore", str(path), "--out", "p", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        1,
        f"nephila: {database} is damaged: its checksum is wrong; use another backup\n",
    )
    assert not (tmp_path / "p").exists()


def test_older_backups_are_deleted(tmp_path, finished):
    """--keep 2 of three, and one that was interrupted."""
    place = tmp_path / "b"
    (place / "2026-01-01T00-00-00Z.part").mkdir(parents=True)
    whole = [directory.back_up(OutputDirectory(tmp_path / "o"), place, time.time() - age) for age in (90, 60)]
    done = run("backup", "o", "--to", "b", "--keep", "2", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert sorted(place.iterdir()) == [whole[1], tmp_path / told["path"]]
    assert len(told["deleted"]) == 2


def test_lost_rows_are_found_and_crawled_again(tmp_path, finished):
    """A database that lost two committed rows: --resume refuses it, `check` names them, --repair brings them back."""
    undisturbed = sorted(rows(tmp_path, COLUMNS))
    whole = run("check", "--out", "o", cwd=tmp_path)
    assert (whole.returncode, whole.stdout) == (0, "crawl: 3 URLs have ended, none without a row\n")
    with closing(sqlite3.connect(tmp_path / "o" / "nephila.db")) as database:
        database.execute("DELETE FROM pages WHERE url != 'http://a.test/1'")
        database.commit()
    found = run("check", "--out", "o", cwd=tmp_path)
    assert found.returncode == 1
    assert found.stdout.splitlines()[0] == "crawl: 3 URLs have ended, 2 without a row"
    assert sorted(found.stdout.splitlines()[1:]) == ["  lost http://a.test/", "  lost http://a.test/2"]
    repaired = run("check", "--out", "o", "--repair", cwd=tmp_path)
    assert repaired.returncode == 0, repaired.stderr
    assert "crawl: 2 queued; continue: " in repaired.stdout
    before = len(finished.paths())
    assert crawl(finished, "--resume", "--quiet", cwd=tmp_path).returncode == 0
    assert {path for path in finished.paths()[before:] if path != "/robots.txt"} == {"/", "/2"}
    assert sorted(rows(tmp_path, COLUMNS)) == undisturbed
    assert run("check", "--out", "o", cwd=tmp_path).returncode == 0


def test_check_waits_for_no_program(tmp_path):
    """A running crawl is named with its process."""
    asked, hold = threading.Event(), threading.Event()

    def slow(request):
        if request.path == "/3":
            asked.set()
            hold.wait(30)
        return answer(request)

    with serve(slow) as web:
        process: subprocess.Popen[str] = start(web, tmp_path, "http://a.test/0", *FORMATS)
        assert asked.wait(30)
        done = run("check", "--out", "o", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (
            1,
            f"nephila: o is in use by process {process.pid}; stop it first: what it writes is not lost\n",
        )
        hold.set()
        process.kill()
        process.communicate()
