"""Rules in a crawl, as an analyst uses them: the sites of the repository crawled from a local copy, and files that
change under a running crawl."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nephila_rules.fixtures import items_file
from nephila_rules.stored_pages import pages_of

from tests.e2e.program import job
from tests.e2e.web import Reply, crawl, page, run, serve

RULES = Path(__file__).parents[2] / "rules"
SITES = {
    "news": ["http://www.courier.example/2026/10/harbour-bridge-reopens"],
    "shop": ["http://kettle.example/en/p/copper-kettle", "http://kettle.example/de/p/stahlkessel"],
    "forum": ["http://forum.loom.example/t/4711"],
    "events": ["http://calendar.hall.example/events"],
    "api": ["http://api.stations.example/v2/stations?region=north"],
}
"""Site → seeds; the pages beside its rule are found from them. The sixth, ajax, needs a browser."""


def copy_of(site: str) -> dict[str, tuple[Path, bytes]]:
    """URL → (file, bytes) of the pages beside a rule."""
    found = {}
    for path in sorted((RULES / site).glob("page*.*")):
        if path.suffix in (".html", ".json"):
            (stored,) = pages_of(path)
            found[stored.url] = (path, stored.body)
    return found


def items(cwd: Path) -> dict[str, list[Any]]:
    """URL → its items in their order, with the rule that made them."""
    query = (
        "SELECT pages.url, items.data, items.rule, pages.rule, items.rule_version = pages.rule_version FROM items"
        " JOIN pages USING (job, url_key) ORDER BY url, ordinal"
    )
    found: dict[str, list[Any]] = {}
    with contextlib.closing(sqlite3.connect(cwd / "o" / "nephila.db")) as db:
        for url, data, of_item, of_page, same in db.execute(query):
            assert (of_item, same) == (of_page, 1)
            found.setdefault(url, []).append(json.loads(data))
    return found


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_site_is_crawled_and_its_items_are_those_of_the_rule(tmp_path: Path, site: str, workers: str) -> None:
    """Every page beside the rule is found from the seeds, and gives what items.json says; rules test says the same."""
    pages = copy_of(site)

    def answer(request: Any) -> Reply | None:
        known = pages.get(f"http://{request.host}{request.path}")
        if known is None:
            return None
        return Reply(known[1], type="application/json" if known[0].suffix == ".json" else "text/html; charset=utf-8")

    with serve(answer) as web:
        words = ("--rules", str(RULES / site), "--host-map", f"*.example=127.0.0.1:{web.port}", "--workers", workers)
        done = crawl(web, *SITES[site], *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    expected = {url: json.loads(items_file(path).read_text(encoding="utf-8")) for url, (path, _) in pages.items()}
    assert items(tmp_path) == {url: found for url, found in expected.items() if found}
    # The pages that have no items are links alone.
    with contextlib.closing(sqlite3.connect(tmp_path / "o" / "nephila.db")) as db:
        stored = {url for (url,) in db.execute("SELECT url FROM pages WHERE outcome = 'stored'")}
    assert stored == set(pages)
    assert run("rules", "test", str(RULES / site), cwd=tmp_path).returncode == 0


@pytest.mark.smoke
def test_all_six_sites_pass_their_tests(tmp_path: Path) -> None:
    """The one that a browser has to build as well, by its stored DOM."""
    done = run("rules", "test", str(RULES), cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert {line.split()[1] for line in done.stdout.splitlines()} >= {"ajax", "ajax-state", *SITES} - {"events"}
    assert run("rules", "lint", str(RULES), cwd=tmp_path).returncode == 0


def a_rule(name: str, field: str, selector: str) -> str:
    """A rule of one field."""
    return (
        f"apiVersion: nephila.dev/v1\nkind: ParseRule\nmetadata: {{name: {name}}}\n"
        f"spec: {{match: {{url: '/\\d+$'}}, fields: {{{field}: {selector}}}}}\n"
    )


def changing(write: Callable[[str], None], at: int, last: int) -> tuple[Any, threading.Event]:
    """A site whose page `at` changes the rule before it is answered."""
    changed = threading.Event()

    def answer(request: Any) -> Reply | None:
        if request.path == "/robots.txt":
            return None
        number = int(request.path[1:] or 0)
        if number == at and not changed.is_set():
            write(a_rule("r", "second", "h1"))
            changed.set()
        return page(f"/{number + 1}", title=str(number)) if number < last else page(title="end")

    return answer, changed


def test_a_rule_that_changes_loses_no_page(tmp_path: Path) -> None:
    """Pages before are read by the old one, pages some time after by the new one, each with its version; none is
    without items."""
    (tmp_path / "rules").mkdir()
    file = tmp_path / "rules" / "rule.yaml"
    file.write_text(a_rule("r", "first", "h1"))
    answer, changed = changing(lambda text: file.write_text(text), at=3, last=40)
    with serve(answer) as web:
        words = ("--rules", "rules", "--delay", "0.15", "--out", "o", "--allow-private", "--host-map", web.host_map)
        done = run("crawl", "http://a.test/0", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert changed.is_set()
    found = {int(url.rpartition("/")[2]): one for url, (one,) in items(tmp_path).items()}
    assert set(found) == set(range(41))
    keys = ["".join(found[number]) for number in range(41)]
    assert keys[:3] == ["first"] * 3
    assert keys[-1] == "second"
    assert keys == sorted(keys)
    with contextlib.closing(sqlite3.connect(tmp_path / "o" / "nephila.db")) as db:
        assert db.execute("SELECT count(DISTINCT rule_version) FROM pages").fetchone() == (2,)


def test_a_crawl_with_rules_is_resumed_with_them(tmp_path: Path) -> None:
    """--rules need not be given again."""
    (tmp_path / "rule.yaml").write_text(a_rule("r", "t", "h1"))
    with serve(lambda request: page(request.path + "1", title="x") if len(request.path) < 6 else None) as web:
        first = crawl(web, "http://a.test/1", "--rules", "rule.yaml", "--max-pages", "1", cwd=tmp_path)
        assert first.returncode == 0, first.stderr
        assert crawl(web, "--resume", "--max-pages", "3", cwd=tmp_path).returncode == 0
    assert len(items(tmp_path)) == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--rules", "nowhere"), "nowhere is neither a file nor a directory"),
        (("--rules", "empty"), "empty holds no rule.yaml, itself or below"),
        (("--rules", "bad.yaml"), "bad.yaml:4:"),
        (("job.yaml",), "names the rule 'news' (spec.rules); --rules DIR says where it is"),
        (("job.yaml", "--rules", "rule.yaml"), "there is no rule 'news' in"),
    ],
)
def test_rules_that_cannot_be_used_are_told_before_anything_is_fetched(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    """One line, exit code 2, no directory."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.yaml").write_text(a_rule("r", "t", "'h1['"))
    (tmp_path / "rule.yaml").write_text(a_rule("r", "t", "h1"))
    (tmp_path / "job.yaml").write_text(job("news", rules=["news"]).removeprefix("---\n"))
    urls = () if "job.yaml" in words else ("http://a.test/",)
    with serve(lambda request: page()) as web:
        done = crawl(web, *urls, *words, cwd=tmp_path)
        assert web.requests == []
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "o").exists()


def test_jobs_of_up_name_their_rules(tmp_path: Path, up: Any) -> None:
    """A job is read by the rules it names, one that names an unknown one is refused."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "rule.yaml").write_text(a_rule("r", "t", "h1") + "---\n" + a_rule("s", "u", "h1"))
    with serve(lambda request: page(title=request.host)) as web:
        program = up(web, "--rules", "rules")
        refused = program.apply(job("a", rules=["nope"]), code=1)
        assert "no rule 'nope'" in refused.stderr
        program.apply(job("a", rules=["r"]) + job("b", rules=["s"]) + job("c"))
        program.until(lambda jobs: all(one["stored"] for one in jobs.values()))
        assert program.end()[0] == 0
    assert items(tmp_path) == {"http://a.test/0": [{"t": "a.test"}], "http://b.test/0": [{"u": "b.test"}]}


def test_rules_are_tried_and_induced_on_hosts_that_are_mapped_and_private(tmp_path):
    """Without the options the line names the one that is missing."""
    with serve(lambda r: Reply('<html><body><h1>Kettle</h1><p class="price">24.50</p>')) as web:
        for words in (["try", "http://a.test/"], ["induce", "http://a.test/", "price=24.50"]):
            where = ["--host-map", web.host_map]
            refused = run("rules", *words, *where, cwd=tmp_path)
            assert refused.returncode == 1
            assert "denied(address)" in refused.stderr
            assert "--allow-private opens it" in refused.stderr
        made = run("rules", "induce", "http://a.test/", "price=24.50", "--out", "rules/shop", *where, "--allow-private",
                   cwd=tmp_path)  # fmt: skip
        assert made.returncode == 0, made.stderr
        tried = run("rules", "try", "http://a.test/", "--rule", "shop", *where, "--allow-private", cwd=tmp_path)
        assert "24.5" in tried.stdout, tried.stderr
        first = run("rules", "init", "rules/two", "--page", "http://a.test/", *where, "--allow-private", cwd=tmp_path)
        assert first.returncode == 0, first.stderr
