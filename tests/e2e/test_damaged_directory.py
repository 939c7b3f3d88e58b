"""What happens to a directory from outside: damaged, deleted and locked files are refused or recovered, in one line."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import threading
from pathlib import Path

from tests.e2e.web import NEPHILA, crawl, page, rows, run, run_json, serve

PAGES = 200
FORMATS = ("--format", "sqlite,jsonl,warc", "--quiet")


def answer(request):
    """A web of 200 pages, each linking to two others."""
    if request.path == "/robots.txt":
        return None
    number = int(request.path[1:] or 0)
    return page(*[f"/{n}" for n in (2 * number + 1, 2 * number + 2) if n < PAGES]) if number < PAGES else None


def contents(directory: Path) -> dict[str, bytes]:
    """All files but those that a run writes at its start."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in (".lock", "run.json", "nephila.db-shm")
    }


def killed(web, tmp_path, failpoint="sink_flush_after:8"):
    """A crawl that was killed in the middle."""
    small = {
        "NEPHILA_FAILPOINT": failpoint,
        "NEPHILA_STORAGE__FLUSH_INTERVAL_S": "0.01",
        "NEPHILA_STORAGE__BATCH_ROWS": "10",
    }
    done = crawl(web, "http://a.test/0", *FORMATS, cwd=tmp_path, **small)
    assert done.returncode == -signal.SIGKILL, done.stderr


def whole(tmp_path):
    """Every page stored, in the table and in pages.jsonl, none twice."""
    found = rows(tmp_path, "url, outcome")
    assert len(found) == PAGES
    assert {outcome for _, outcome in found} == {"stored"}
    assert run_json(tmp_path)["outcomes"] == {"stored": PAGES}
    lines = [json.loads(line)["url"] for line in (tmp_path / "o" / "pages.jsonl").read_text().splitlines()]
    assert sorted(lines) == [url for url, _ in found]


def refused(done, *words):
    """One line, exit code 1."""
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_a_damaged_write_ahead_log_cuts_nothing(tmp_path):
    """SQLite reads on without a word with the older rows: refused before any file is touched; without frontier/ the
    crawl is whole again, and what pages.jsonl had beyond the rows is kept."""
    with serve(answer) as web:
        killed(web, tmp_path)
        wal = tmp_path / "o" / "nephila.db-wal"
        data = bytearray(wal.read_bytes())
        data[len(data) // 2] ^= 1
        wal.write_bytes(data)
        before = contents(tmp_path / "o")
        refused(
            crawl(web, "--resume", *FORMATS, cwd=tmp_path),
            "o/nephila.db has ",
            "-wal was damaged",
            "or remove o/frontier: --resume",
        )
        assert contents(tmp_path / "o") == before
        shutil.rmtree(tmp_path / "o" / "frontier")
        done = crawl(web, "--resume", *FORMATS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    whole(tmp_path)
    tails = list((tmp_path / "o").glob("pages.jsonl.cut-*"))
    assert tails
    assert before["pages.jsonl"].endswith(tails[0].read_bytes())


def test_without_its_log_a_crawl_begins_at_its_seeds_and_keeps_its_rows(tmp_path):
    """No row is written twice, none is lost, and the rest is found."""
    with serve(answer) as web:
        killed(web, tmp_path)
        kept = dict(rows(tmp_path, "url, fetched_at"))
        shutil.rmtree(tmp_path / "o" / "frontier")
        done = crawl(web, "--resume", *FORMATS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    whole(tmp_path)
    assert 0 < len(kept) < PAGES
    assert kept.items() <= dict(rows(tmp_path, "url, fetched_at")).items()


def test_without_its_log_seeds_of_standard_input_are_asked_for(tmp_path):
    """They are nowhere else."""
    with serve(answer) as web:
        words = ["--allow-private", "--host-map", web.host_map, "--delay", "0", "--out", "o", "--quiet"]
        first = subprocess.run(
            [*NEPHILA, "crawl", "--seeds", "-", "--max-pages", "3", *words],
            cwd=tmp_path, input="http://a.test/0\n", text=True, timeout=60, check=False,
        )  # fmt: skip
        assert first.returncode == 0
        shutil.rmtree(tmp_path / "o" / "frontier")
        done = run("crawl", "--resume", "--out", "o", cwd=tmp_path)
    assert done.returncode == 2
    assert "give them again: --resume --seeds -" in done.stderr


def test_a_database_deleted_under_a_crawl_is_saved(tmp_path):
    """The crawl ends with one line as soon as it writes again, and goes on with --resume: no row is lost."""
    reached, deleted = threading.Event(), threading.Event()

    def watched(request):
        if request.path == "/20":
            reached.set()
            deleted.wait(30)
        return answer(request)

    with serve(watched) as web:
        words = ["crawl", "http://a.test/0", "--out", "o", "--allow-private", "--host-map", web.host_map]
        process = subprocess.Popen(
            [*NEPHILA, *words, "--delay", "0.05", *FORMATS], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        assert reached.wait(30)
        (tmp_path / "o" / "nephila.db").unlink()
        deleted.set()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1, err
        assert err.count("\n") == 1, err
        assert "o/nephila.db was deleted while it was written to; " in err
        assert len(web.requests) < PAGES / 2
        done = crawl(web, "--resume", *FORMATS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    whole(tmp_path)
