"""Keyword schemes as a user runs them: three platforms, one program, every expected content page once."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import Counter

from tests.e2e.scheme_sites import GROUPS, JOB, PLATFORMS, SCHEME, Sites
from tests.e2e.web import run, serve
from tests.waits import wait_until

HOSTS = ("board.test", "stream.test", "api.test")


def schemes(tmp_path, *words, code=0):
    """`nephila schemes …` in the directory of the program."""
    done = run("schemes", *words, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def items(tmp_path):
    """URL → item, of all rows of the table items."""
    with contextlib.closing(sqlite3.connect(tmp_path / "o" / "nephila.db")) as db:
        rows = db.execute("select rule, data from items").fetchall()
    found = [(rule, json.loads(data)) for rule, data in rows]
    assert all(rule == item["resource"] for rule, item in found)
    return {item["url"]: item for _, item in found}


def content_requests(web):
    """How often each content page was requested."""
    return Counter(
        f"http://{one.host.partition(':')[0]}{one.path}" for one in web.requests if one.path.startswith("/a/")
    )


def expected(sites):
    return set().union(*(sites.expected(host, GROUPS) for host in HOSTS))


def test_three_platforms_in_one_program(tmp_path, up):
    """Each expected page is a record once, with its keywords and groups; the counts and states are right; a changed
    scheme searches only what is new, and pages that are known are not fetched again."""
    (tmp_path / "all.yaml").write_text("---\n".join((PLATFORMS, SCHEME, JOB)))
    sites = Sites(36)
    with serve(sites) as web:
        program = up(web, "--format", "items")
        answer = json.loads(schemes(tmp_path, "apply", "-f", "all.yaml", "--out", "o", "--json").stdout)
        assert (answer["job"], answer["searches"], answer["refused"]) == ("schemes", 9, [])
        program.until(lambda jobs: jobs["schemes"]["state"] == "idle")
        found = items(tmp_path)
        assert set(found) == expected(sites)
        assert set(content_requests(web).values()) == {1}
        one = found["http://board.test/a/3"]
        assert set(one) == {"id", "content", "resource", "url", "time", "title", "keywords", "schemes"}
        assert one["keywords"] == ["河南", "地震"]
        assert one["schemes"] == {"floods": ["quakes"]}
        lines = [
            json.loads(line)
            for path in (tmp_path / "o").glob("items.*.jsonl")
            for line in path.read_text().splitlines()
        ]
        assert sorted(one["url"] for one in lines) == sorted(found)
        listed = json.loads(schemes(tmp_path, "list", "--out", "o", "--json").stdout)
        assert listed["schemes"] == {"floods": "finished"}
        counts = {(one["platform"], one["group"]): one for one in listed["counts"]}
        assert {
            (one["searches"], one["ended"], one["failed"]) for one in listed["counts"] if one["group"] == "north"
        } == {(2, 2, 0)}
        assert counts["api", "quakes"]["records"] == len(sites.expected("api.test", {"q": GROUPS["quakes"]}))
        before, known = len(web.requests), len(content_requests(web))
        # One more keyword: only its searches, and of their pages only those that are not known.
        (tmp_path / "all.yaml").write_text("---\n".join((SCHEME.replace("[地震]", "[地震, 台风]"), JOB)))
        answer = json.loads(schemes(tmp_path, "apply", "-f", "all.yaml", "--out", "o", "--json").stdout)
        assert answer["searches"] == 3
        stored = answer["stored"]
        assert (stored["evaluated"], stored["removed"], stored["doubts"]) == (known, 0, {})
        assert stored["ended"]
        program.until(lambda jobs: jobs["schemes"]["state"] == "idle")
        assert len(web.requests) > before
        assert set(content_requests(web).values()) == {1}
        groups = {**GROUPS, "quakes": [["地震", "台风"]]}
        assert set(items(tmp_path)) == set().union(*(sites.expected(host, groups) for host in HOSTS))
        why = schemes(tmp_path, "explain", "http://board.test/a/30", "--out", "o").stdout
        assert "excluded keyword '演习'" in why
        kept = len(items(tmp_path))
        wrong = schemes(tmp_path, "delete", "flods", "--out", "o", code=1).stderr
        assert wrong.splitlines()[-1].endswith("the job 'schemes' has no scheme 'flods'; did you mean 'floods'?")
        gone = json.loads(schemes(tmp_path, "delete", "floods", "--out", "o", "--json").stdout)
        assert gone == {"job": "schemes", "deleted": "floods", "schemes": []}
        assert len(items(tmp_path)) == kept
        assert program.end() == (0, "", "")


def rows_of(folder):
    """Pages and items of a directory, without their instants and fetch numbers and the search that came first."""
    with contextlib.closing(sqlite3.connect(folder / "o" / "nephila.db")) as db:
        pages = db.execute("select url, outcome, title, rule, rule_version, text, meta from pages").fetchall()
        found = db.execute("select url_key, rule, rule_version, data from items").fetchall()
    first = ("scheme", "group", "page")
    notes = [(*one, {k: v for k, v in json.loads(meta)["search"].items() if k not in first}) for *one, meta in pages]
    plain = [(*one, {k: v for k, v in json.loads(data).items() if k != "time"}) for *one, data in found]
    return sorted(notes, key=lambda one: one[0]), sorted(plain, key=lambda one: one[0])


def test_schemes_applied_one_after_the_other_equal_a_fresh_directory(tmp_path, up):
    """Same rows, same records, in the middle of a run and after it; a scheme has records of its platforms alone."""
    south = SCHEME.replace("name: floods", "name: south").replace("[board, stream, api]", "[board, stream]")
    south = (
        south.partition("    north:")[0] + "    south: {region: {any: [上海]}}\n    storms: {event: {any: [台风]}}\n"
    )
    steps = {"1.yaml": (PLATFORMS, SCHEME, JOB), "2.yaml": (south,), "3.yaml": (south.replace("上海", "河北"),)}
    for name in ("later", "fresh"):
        (tmp_path / name).mkdir()
    for name, parts in steps.items():
        (tmp_path / "later" / name).write_text("---\n".join(parts))
    (tmp_path / "fresh" / "all.yaml").write_text("---\n".join((PLATFORMS, SCHEME, *steps["3.yaml"], JOB)))
    with serve(Sites(48)) as web:
        program = up(web, folder=tmp_path / "later")
        answers = []
        for name in steps:
            answers.append(json.loads(schemes(tmp_path / "later", "apply", "-f", name, "--out", "o", "--json").stdout))
            if name != "1.yaml":
                program.until(lambda jobs: jobs["schemes"]["state"] == "idle")
        again = schemes(tmp_path / "later", "apply", "-f", "3.yaml", "--out", "o").stdout
        assert program.end() == (0, "", "")
        program = up(web, folder=tmp_path / "fresh")
        schemes(tmp_path / "fresh", "apply", "-f", "all.yaml", "--out", "o")
        program.until(lambda jobs: jobs["schemes"]["state"] == "idle")
        assert program.end() == (0, "", "")
    (later, later_items), (fresh, fresh_items) = rows_of(tmp_path / "later"), rows_of(tmp_path / "fresh")
    assert later_items == fresh_items
    # The pages of searches that the last change no longer has stay.
    assert [one for one in later if one in fresh] == fresh
    assert all("south" not in item["schemes"] for *_, item in fresh_items if item["resource"] == "api")
    assert answers[-1]["stored"]["removed"] > 0
    assert "none to evaluate again" in again


def test_runs_again_fetch_only_what_is_new(tmp_path, up):
    """Searches are fetched again; their next pages only where a page has a new link, and known content pages never."""
    again = JOB.replace('politeness: {delay: "0"}', 'politeness: {delay: "0"}\n  recrawl: {every: 1s, monitor: true}')
    (tmp_path / "all.yaml").write_text("---\n".join((PLATFORMS, SCHEME, again)))
    sites = Sites(48)
    with serve(sites) as web:
        program = up(web)
        schemes(tmp_path, "apply", "-f", "all.yaml", "--out", "o")
        wanted = expected(sites)
        wait_until(lambda: (tmp_path / "o" / "nephila.db").exists() and set(items(tmp_path)) == wanted)
        first = further_pages(web)
        searches = len(web.requests)
        # Three more rounds: nothing is new, so no further page of a list.
        wait_until(lambda: len(web.requests) > searches + 27)
        assert further_pages(web) == first
        # Enough for a second page of results: each list is followed as far as there is something new.
        sites.articles = 100
        wanted = expected(sites)
        wait_until(lambda: set(items(tmp_path)) == wanted)
        assert further_pages(web) > first
        assert set(content_requests(web).values()) == {1}
        assert program.end() == (0, "", "")


def further_pages(web):
    """Requests for pages of results behind the first."""
    api = [path for path in web.paths() if "page=" in path and "page=0" not in path]
    return len(api) + sum("after=" in path for path in web.paths())
