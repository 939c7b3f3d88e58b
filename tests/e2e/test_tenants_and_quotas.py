"""Two tenants in one `nephila up`: one is used up, a kill in the middle, the table of costs."""

from __future__ import annotations

import json
import signal

import pytest

from tests.e2e.program import job
from tests.e2e.web import page, run, serve

PAGES = 60
QUOTA = 20
AT_ONCE = 4


def answer(request):
    """A web of 60 pages on every host, each linking to two others."""
    if request.path == "/robots.txt":
        return None
    number = int(request.path[1:] or 0)
    return page(*[f"/{n}" for n in (2 * number + 1, 2 * number + 2) if n < PAGES]) if number < PAGES else None


def costs(cwd, by):
    """The table by name."""
    done = run("cost", "--out", "o", "--by", by, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return {one["name"]: one for one in json.loads(done.stdout)}


@pytest.mark.full
def test_a_used_up_tenant_is_held_over_a_kill_and_the_other_goes_on(tmp_path, up):
    """Two jobs of `news` fetch the quota of a month and what is in flight; every page of the other tenant is stored."""
    settings = {
        "NEPHILA_SCHEDULER__TENANTS": json.dumps([f"news pages={QUOTA} per=month", "legal share=2"]),
        "NEPHILA_SCHEDULER__CONCURRENCY": str(AT_ONCE),
    }
    with serve(answer) as web:
        program = up(web, **settings)
        program.apply(job("a", tenant="news") + job("b", tenant="news"))
        found = program.until(lambda jobs: {jobs[name]["state"] for name in "ab"} == {"quota"})
        assert found["a"]["quota"].startswith(
            f"the quota of the tenant news, {QUOTA} pages per month, is used up, until"
        )
        program.until(lambda jobs: not any(jobs[name]["in_flight"] for name in "ab"))
        fetched = len([path for host in ("a.test", "b.test") for path in web.paths(host) if path != "/robots.txt"])
        assert QUOTA <= fetched <= QUOTA + AT_ONCE - 1
        program.end(signal.SIGKILL)
        program.start()
        program.apply(job("c", tenant="legal"))
        found = program.until(lambda jobs: jobs["c"]["state"] == "idle")
        assert (found["c"]["stored"], found["a"]["state"], found["b"]["state"]) == (PAGES, "quota", "quota")
        asked = [path for host in ("a.test", "b.test") for path in web.paths(host) if path != "/robots.txt"]
        assert len(asked) == fetched
        explained = run("explain", "http://a.test/59", "--out", "o", cwd=tmp_path)
        assert program.end()[0] == 0
    assert "Traceback" not in explained.stderr
    by_tenant = costs(tmp_path, "tenant")
    assert by_tenant["legal"]["requests"] == by_tenant["legal"]["useful"] == PAGES
    assert by_tenant["news"]["requests"] == fetched
    assert by_tenant["legal"]["cpu_s"] > by_tenant["news"]["cpu_s"] > 0
    assert by_tenant["legal"]["per_useful"]["stored_bytes"] > 0
    assert set(costs(tmp_path, "job")) == {"a", "b", "c"}
