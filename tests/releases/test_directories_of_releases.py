"""A crawl goes on in the directory of a release before, and a release before goes on in the directory of this one."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import time
from collections import Counter

import pytest

from tests.releases.freeze import JOBS, killed_crawl, killed_up, up
from tests.releases.past import (
    PAGES,
    URLS,
    WITHOUT_WARC,
    crawl,
    environment,
    known,
    releases,
    site,
    unpack_data,
    unpack_tree,
)

pytestmark = pytest.mark.timeout(400)
WAIT_S = 120
"""Some programs one after the other: seconds, on a machine that has nothing else to do."""


def each(release):
    """The name of a case."""
    return release.version


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """Programs of before, by their releases."""
    found = {}
    for release in releases():
        if known(release.commit):
            found[release] = unpack_tree(release.commit, tmp_path_factory.mktemp(release.version))
    return found


def tree_of(trees, release):
    """A program of before; where the history was not fetched nobody can go back, and the test says so."""
    if release not in trees:
        pytest.skip(
            f"release {release.version} ({release.commit[:10]}) is not in this history: git fetch --unshallow. What "
            "its messages let it read is still tested, in test_messages_of_releases.py"
        )
    return trees[release]


def test_a_program_of_before_is_its_own(trees):
    """Nothing of the present one is on its path, and its native core is the twin of its own time."""
    for tree in trees.values():
        words = "import nephila, nephila.native as n; print(nephila.__file__, n.__file__, n.IMPLEMENTATION)"
        done = subprocess.run([sys.executable, "-c", words], env=environment(tree), capture_output=True, text=True)
        program, native, implementation = done.stdout.split()
        assert (program, native) == (f"{tree}/nephila/__init__.py", f"{tree}/nephila/native/__init__.py")
        assert implementation == "python"


def rows(folder, query):
    """What the database says."""
    with contextlib.closing(sqlite3.connect(folder / "o" / "nephila.db")) as db:
        return db.execute(query).fetchall()


def expect_whole(folder):
    """A row for each URL with its own title, none twice, in the table and in the files."""
    found = {url: (outcome, title) for url, outcome, title in rows(folder, "select url, outcome, title from pages")}
    assert found == {url: ("stored", f"Page {url.rpartition('/')[2]}") for url in URLS}
    lines = [json.loads(line)["url"] for line in (folder / "o" / "pages.jsonl").read_text().splitlines()]
    assert sorted(lines) == sorted(URLS)
    book = json.loads((folder / "o" / "run.json").read_text())
    assert (book["state"], book["outcomes"]) == ("finished", {"stored": PAGES})


def stored(folder):
    """Rows by job."""
    return dict(rows(folder, "select job, count(*) from pages group by job"))


def until_all(folder, program):
    """Wait until both jobs have all their rows."""
    wanted = {"plain": PAGES, "watched": PAGES}
    until = time.monotonic() + WAIT_S
    while (found := stored(folder)) != wanted:
        assert program.process.poll() is None, program.process.communicate()
        assert time.monotonic() < until, found
        with contextlib.suppress(Exception):
            program.process.wait(0.1)


def expect_jobs(folder, web, before):
    """Of both jobs every page once, but for what was on its way at the kill; the agenda knows all that is watched."""
    assert {outcome for (outcome,) in rows(folder, "select distinct outcome from pages")} == {"stored"}
    assert Counter(url for (url,) in rows(folder, "select url from pages")) == dict.fromkeys(URLS, 2)
    counts = rows(folder, "select job, count(*) from fetches group by job, url_key")
    # What was watched in a directory that is older than the interval is due again, once.
    due = sum(job == "watched" and count == 2 for job, count in counts)
    assert sum(count > 1 for _, count in counts) == due <= before["watched"]
    again = len([r for r in web.requests if r.path != "/robots.txt"]) - (2 * PAGES - sum(before.values())) - due
    assert 0 <= again <= 2 * PAGES / 4
    book = json.loads((folder / "o" / "run.json").read_text())
    assert {name: one["outcomes"] for name, one in book["jobs"].items()} == {
        "plain": {"stored": PAGES},
        "watched": {"stored": PAGES},
    }


@pytest.mark.parametrize("release", releases(), ids=each)
def test_a_crawl_that_a_release_before_began(tmp_path, release):
    """Log, snapshot, queues, seen URLs, rows and files as it left them when it was killed: all pages, none twice."""
    unpack_data(release.data / "crawl.tar.xz", tmp_path)
    assert 0 < len(rows(tmp_path, "select url from pages")) < PAGES
    with site() as web:
        done = crawl(web, "--resume", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert len(web.requests) < PAGES
    expect_whole(tmp_path)


@pytest.mark.parametrize("release", releases(), ids=each)
def test_a_crawl_that_a_release_before_ends(tmp_path, trees, release):
    """The present program is killed in the middle, the one before is put in its place: all pages, none twice."""
    tree = tree_of(trees, release)
    killed_crawl(tmp_path, None, WITHOUT_WARC)
    assert 0 < len(rows(tmp_path, "select url from pages")) < PAGES
    with site() as web:
        done = crawl(web, "--resume", cwd=tmp_path, tree=tree, formats=WITHOUT_WARC)
        assert done.returncode == 0, done.stderr
        assert len(web.requests) < PAGES
    expect_whole(tmp_path)


@pytest.mark.parametrize("release", releases(), ids=each)
def test_jobs_that_a_release_before_began(tmp_path, release):
    """Novelty of path patterns and states of what is fetched again, as it packed them."""
    unpack_data(release.data / "up.tar.xz", tmp_path)
    go_on(tmp_path, None)


@pytest.mark.parametrize("release", releases()[-1:], ids=each)
def test_jobs_that_a_release_before_ends(tmp_path, trees, release):
    """The same, packed by this program and read by that one."""
    tree = tree_of(trees, release)
    killed_up(tmp_path, None)
    go_on(tmp_path, tree)


def go_on(folder, tree):
    """Run the jobs of a directory to their end, and tell them once more: nothing changes."""
    before = stored(folder)
    assert all(0 < before[name] < PAGES for name in ("plain", "watched"))
    with site() as web:
        program = up(folder, web.host_map, tree)
        try:
            until_all(folder, program)
            told = program.apply(JOBS).stdout
            found = program.list()
            code, out, err = program.end()
        finally:
            program.process.kill()
            program.process.communicate()
    assert told == "plain: unchanged (generation 1)\nwatched: unchanged (generation 1)\n"
    assert found["watched"]["freshness"] is not None
    assert (code, err) == (0, ""), out + err
    expect_jobs(folder, web, before)
