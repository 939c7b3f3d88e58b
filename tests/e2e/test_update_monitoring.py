"""Pages fetched again on a schedule: unseen links and changed texts are new content and delivered so, the rest not."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
from datetime import datetime
from itertools import pairwise

from tests.e2e.program import job
from tests.e2e.web import Reply, page, run, serve

EVERY_S = 2
JITTER = 0.1
"""Intervals are spread by so much to either side of half of it."""
SEEDS = ("index", "news", "still", "etag")


class News:
    """A site with a list, a text that may change, one that never does, and one that says so itself."""

    def __init__(self):
        self.edition = 1
        self.not_modified = 0

    def __call__(self, request):
        articles = [f"/article/{n}" for n in range(1, self.edition + 1)]
        if request.path == "/etag":
            if request.headers.get("If-None-Match") == '"1"':
                self.not_modified += 1
                return Reply(status=304, headers={"ETag": '"1"'})
            return Reply("<p>Never another word.", headers={"ETag": '"1"'})
        pages = {
            "/index": page(*articles),
            "/news": Reply(f"<p>Edition {self.edition}."),
            # Another body each time, the same text.
            "/still": Reply(f"<!-- {datetime.now()} --><p>Always the same."),
            **{path: page("/index", title=f"About {path}") for path in articles},
        }
        return pages.get(request.path)


def query(tmp_path, words):
    """Rows of the database."""
    with contextlib.closing(sqlite3.connect(tmp_path / "o" / "nephila.db")) as db:
        return db.execute(words).fetchall()


def history(tmp_path):
    """Page → what each of its fetches changed, in order."""
    found: dict[str, list[str]] = {}
    for url, change in query(
        tmp_path,
        "select pages.url, fetches.change from fetches join pages using (job, url_key) order by fetches.fetch_no",
    ):
        found.setdefault(url.rpartition(".test")[2], []).append(change)
    return found


def visits(web, path):
    """How often a page was asked for."""
    return web.paths().count(path)


def until_each_seed_came_again(program, web, times):
    """Until every seed was asked for so many times more."""
    before = {seed: visits(web, f"/{seed}") for seed in SEEDS}
    program.until(lambda _: all(visits(web, f"/{seed}") >= before[seed] + times for seed in SEEDS))


def test_a_monitored_site(tmp_path, up):
    """Two editions, a stop and a kill in between: what is new or changed counts once, all else is the same."""
    site = News()
    recrawl = {"every": f"{EVERY_S}s", "monitor": True}
    wanted = job(
        "news", seeds=[f"http://a.test/{seed}" for seed in SEEDS], recrawl=recrawl, politeness={"delay": "10ms"}
    )
    with serve(site) as web:
        program = up(web, "--format", "sqlite,jsonl")
        program.apply(wanted)
        until_each_seed_came_again(program, web, 2)
        assert program.end() == (0, "", "")
        first = history(tmp_path)
        assert {path: (found[0], set(found[1:])) for path, found in first.items()} == {
            **{f"/{seed}": ("new", {"same"}) for seed in SEEDS},
            "/article/1": ("new", set()),
        }
        site.edition, between = 2, query(tmp_path, "select max(fetched_at) from fetches")[0][0]
        program.start()
        until_each_seed_came_again(program, web, 1)
        program.until(lambda jobs: visits(web, "/article/2") and jobs["news"]["in_flight"] == 0)
        program.end(signal.SIGKILL)
        program.start()
        until_each_seed_came_again(program, web, 1)
        found = program.list()["news"]
        assert found["freshness"] is not None
        assert program.end() == (0, "", "")
        asked = {path: web.paths().count(path) for path in set(web.paths())}

    result = history(tmp_path)
    assert {path: found.count("changed") for path, found in result.items()} == {
        **{f"/{seed}": int(seed in ("index", "news")) for seed in SEEDS},
        "/article/1": 0,
        "/article/2": 0,
    }
    # A kill may cost a fetch its row, never the row its place in the history.
    assert all(found[0] == "new" and set(found[1:]) <= {"same", "changed"} for found in result.values())
    assert all(asked[path] - 1 <= len(found) <= asked[path] for path, found in result.items())
    assert site.not_modified == asked["/etag"] - 1 >= 3
    assert asked["/article/1"] == asked["/article/2"] == 1

    new_content = [("/article/2", "new"), ("/index", "changed"), ("/news", "changed")]
    assert seen_in_view(tmp_path, between) == new_content
    assert exported(tmp_path, "--since", between) == new_content
    assert len(exported(tmp_path)) == len(result)
    lines = [json.loads(line) for line in (tmp_path / "o" / "pages.jsonl").read_text().splitlines()]
    delivered = [(line["url"], line["change"]) for line in lines if line["change"] in ("new", "changed")]
    assert len(delivered) == len(set(delivered)) == len(result) + 2
    keeps_its_schedule(tmp_path)


def seen_in_view(tmp_path, since):
    """The view `changes` behind an instant."""
    rows = query(tmp_path, f"select url, change from changes where fetched_at > '{since}' order by url")
    return [(url.rpartition(".test")[2], change) for url, change in rows]


def exported(tmp_path, *words):
    """`nephila export --changes`."""
    done = run("export", "o", "--format", "jsonl", "--changes", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return sorted((row["url"].rpartition(".test")[2], row["change"]) for row in rows)


def keeps_its_schedule(tmp_path):
    """No seed was fetched before its time, over both restarts: a start does not begin the schedule anew."""
    for seed in SEEDS:
        instants = [
            datetime.fromisoformat(at)
            for (at,) in query(
                tmp_path,
                "select fetches.fetched_at from fetches join pages using (job, url_key)"
                f" where pages.url like '%/{seed}' order by fetches.fetched_at",
            )
        ]
        gaps = [(after - before).total_seconds() for before, after in pairwise(instants)]
        assert min(gaps) >= EVERY_S * (1 - JITTER / 2) - 0.05, (seed, gaps)
