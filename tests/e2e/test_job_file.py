"""`nephila crawl job.yaml`: one job from its file, once; what the command line says goes before what the file says."""

from __future__ import annotations

import contextlib
import json
import sqlite3

from tests.e2e.web import crawl, page, rows, run, run_json, serve

JOB = """
apiVersion: nephila.dev/v1
kind: CrawlJob
metadata: {name: news}
spec:
  seeds: [http://a.test/0, {file: more.txt}]
  scope: {exclude: ["/3$"], maxPages: 9}
  schedule: "0 6 * * *"
  sinks: [{type: jsonl}]
  links: true
"""


def answer(request):
    """Pages 0 to 29, each linking to two others."""
    if request.path == "/robots.txt":
        return None
    number = int(request.path[1:] or 0)
    return page(f"/{2 * number + 1}", f"/{2 * number + 2}") if number < 30 else None


def jobs(cwd):
    """Uids that rows have."""
    with contextlib.closing(sqlite3.connect(cwd / "o" / "nephila.db")) as db:
        return [uid for (uid,) in db.execute("select distinct job from pages")]


def test_a_job_runs_once(tmp_path):
    """Under its own name, with its seeds, limits and sinks; a schedule is said to be ignored."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "job.yaml").write_text(JOB)
    (tmp_path / "d" / "more.txt").write_text("b.test/29\n")
    with serve(answer) as web:
        done = crawl(web, "d/job.yaml", cwd=tmp_path)
        (ignored,) = done.stderr.splitlines()
        assert done.returncode == 0
        assert ignored == "nephila: ignored, since a crawl runs once: spec.schedule; see --refresh and nephila up"
        found = [url for url, outcome, _ in rows(tmp_path) if outcome == "stored"]
        assert len(found) == 9
        assert "http://b.test/29" in found
        assert "http://a.test/3" not in found
        assert jobs(tmp_path) == ["news"]
        assert len((tmp_path / "o" / "pages.jsonl").read_text().splitlines()) == len(rows(tmp_path))
        assert run_json(tmp_path)["document"]["metadata"] == {"name": "news"}
        # On a resume the file is not needed; what is given overrides it, what it said else stays.
        (tmp_path / "d" / "job.yaml").unlink()
        done = crawl(web, "--resume", "--max-pages", "0", cwd=tmp_path)
        assert done.returncode == 0
        stored = [url for url, outcome, _ in rows(tmp_path) if outcome == "stored"]
        assert len(stored) > 9
        assert "http://a.test/3" not in stored


def test_the_command_line_overrides_the_file(tmp_path):
    """Only where an option is given."""
    (tmp_path / "job.yaml").write_text(JOB.replace(", {file: more.txt}", ""))
    with serve(answer) as web:
        crawl(web, "job.yaml", "--max-pages", "3", "--format", "sqlite", cwd=tmp_path)
    assert len(rows(tmp_path)) == 3
    assert not (tmp_path / "o" / "pages.jsonl").exists()


def test_a_changed_file_applies_on_resume(tmp_path):
    """The same job with another scope; another job is refused."""
    (tmp_path / "job.yaml").write_text(JOB.replace(", {file: more.txt}", ""))
    with serve(answer) as web:
        crawl(web, "job.yaml", cwd=tmp_path)
        changed = JOB.replace(", {file: more.txt}", "").replace("/3$", "[13579]$").replace("maxPages: 9", "maxPages: 0")
        (tmp_path / "job.yaml").write_text(changed)
        done = crawl(web, "job.yaml", "--resume", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "dropped" in {outcome for _, outcome, _ in rows(tmp_path)}
        (tmp_path / "job.yaml").write_text(changed.replace("news", "olds"))
        done = crawl(web, "job.yaml", "--resume", cwd=tmp_path)
    assert done.returncode == 2
    assert "o holds the job 'news', not 'olds'; choose another --out" in done.stderr


def test_new_options_reach_the_job(tmp_path):
    """Order, keywords, sitemaps and what a host may cost: as the log has them."""
    words = ("--strategy", "best-first", "--keywords", "Solar,wind  power", "--keywords", "tide", "--sitemap")
    budget = ("--host-pages", "5", "--host-bytes", "100000", "--host-time", "60")
    with serve(answer) as web:
        done = crawl(web, "http://a.test/0", *words, *budget, "--workers", "0", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    from nephila.kernel.documents.job_document import spec_of
    from nephila.scheduler.durability.commit_log import CommitLog

    specs = [spec for entry in CommitLog(tmp_path / "o" / "frontier", read_only=True).recover() for spec in entry.jobs]
    job = spec_of(specs[0])
    assert (specs[0].uid, job.strategy, job.keywords, job.sitemaps) == (
        "crawl",
        "best-first",
        ["solar", "wind power", "tide"],
        True,
    )
    assert (job.host_budget.pages, job.host_budget.bytes, job.host_budget.time) == (5, 100_000, "60s")


def test_mistakes(tmp_path):
    """One line with the place; nothing is made."""
    (tmp_path / "job.yaml").write_text(JOB.replace("maxPages", "maxPagse"))
    done = run("crawl", "job.yaml", "--out", "o", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == ("nephila: job.yaml:7:29: unknown key 'maxPagse' in spec.scope; did you mean 'maxPages'?\n")
    (tmp_path / "job.yaml").write_text(f"{JOB}---{JOB.replace('news', 'other')}")
    done = run("crawl", "job.yaml", "--out", "o", cwd=tmp_path)
    assert "job.yaml holds 2 jobs and crawl takes one" in done.stderr
    (tmp_path / "job.yaml").write_text(JOB)
    for words, says in (
        (["job.yaml", "http://b.test/"], "job.yaml is a job; its URLs stand in it"),
        (["nowhere.yaml"], "cannot read nowhere.yaml"),
        (["job.yaml"], "more.txt: No such file or directory"),
        (["job.yaml", "--strategy", "astar"], "--strategy 'astar' is none of bfs, dfs, best-first"),
    ):
        done = run("crawl", *words, "--out", "o", cwd=tmp_path)
        assert done.returncode == 2
        assert says in done.stderr
        assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["job.yaml"]


def test_json_is_a_job_file_as_well(tmp_path):
    """YAML has it inside."""
    document = {"apiVersion": "nephila.dev/v1", "kind": "CrawlJob", "metadata": {"name": "j"}}
    (tmp_path / "job.yaml").write_text(json.dumps({**document, "spec": {"seeds": ["http://a.test/20"]}}, indent="\t"))
    with serve(answer) as web:
        done = crawl(web, "job.yaml", "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(rows(tmp_path)) == 3
