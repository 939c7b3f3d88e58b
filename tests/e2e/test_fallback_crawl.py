"""A crawl without the native core: the Python fallback fetches the same pages, also after a kill."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

from tests.formats.samples import PAGES, SEED, URLS, crawl, killed_crawl, site

FALLBACK = {"NEPHILA_NATIVE": "python"}


def rows(folder: Path) -> list[tuple[str, str, str, bytes]]:
    """URL, outcome, title and fingerprint of all pages."""
    with contextlib.closing(sqlite3.connect(folder / "o" / "nephila.db")) as db:
        return db.execute("select url, outcome, title, url_key from pages order by 1").fetchall()


def test_the_fallback_crawls_as_the_core_does(tmp_path: Path) -> None:
    """Every page is stored, with the title and the fingerprint that the core gives it; the log says what ran."""
    found = []
    for name, env in (("fallback", FALLBACK), ("core", {})):
        (tmp_path / name).mkdir()
        with site() as web:
            done = crawl(web, SEED, cwd=tmp_path / name, **env)
        assert done.returncode == 0, done.stderr
        found.append(rows(tmp_path / name))
    assert found[0] == found[1]
    assert [row[:3] for row in found[0]] == [(url, "stored", f"Page {url.rpartition('/')[2]}") for url in sorted(URLS)]


def test_a_killed_crawl_of_the_fallback_is_resumed(tmp_path: Path) -> None:
    """From its own snapshot, queues and seen URLs: all pages, none twice."""
    killed_crawl(tmp_path, **FALLBACK)
    assert 0 < len(rows(tmp_path)) < PAGES
    assert list((tmp_path / "o" / "frontier").glob("*.snapshot"))
    with site() as web:
        done = crawl(web, "--resume", cwd=tmp_path, **FALLBACK)
        assert done.returncode == 0, done.stderr
        assert len(web.requests) < PAGES
    assert [row[0] for row in rows(tmp_path)] == sorted(URLS)
    lines = [json.loads(line)["url"] for line in (tmp_path / "o" / "pages.jsonl").read_text().splitlines()]
    assert sorted(lines) == sorted(URLS)
