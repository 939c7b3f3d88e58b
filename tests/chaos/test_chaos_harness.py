"""The chaos harness itself: its web and its plan are seeded and have what they promise; every rule can be broken."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from benchmarks.web.evidence import Case, Request, Row, normalised
from tests.chaos import chaos_web
from tests.chaos.chaos_plan import BROKER, FREEZE, KILL, SCALE, SERVICES, TOPOLOGIES, Counts, plan
from tests.chaos.chaos_verdict import RULES, Happened, Show, judge

HOSTS, PAGES, PORT = 8, 30, 8097


@pytest.fixture(scope="module")
def site():
    """A small web."""
    return chaos_web.build(3, HOSTS, PAGES, crawl_delay_s=7, port=PORT)


def crawled(site) -> Show:
    """What a crawler without fault leaves behind: one request after another on each host, a row for each page."""
    manifest = site.manifest()
    requests, at = [], dict.fromkeys(manifest["hosts"], 1000.0)

    def ask(host: str, path: str, status: int = 200) -> None:
        start = at[host]
        requests.append(Request(host, path, start, start + 0.1, status))
        at[host] = start + 0.1 + 10

    for host in manifest["hosts"]:
        ask(host, "/robots.txt")
    rows = []
    for page in manifest["pages"]:
        if not page.get("disallowed"):
            ask(page["host"], page["path"])
        end = page["accept"][0].replace("*", "x")
        rows.append(Row("job", page["url"], page["url"], end, page.get("title")))
    case = Case(manifest, requests, {}, rows, 5.0, 1, 0.005, 0, 0.0)
    return Show(case, [Happened(1001.0, KILL, "parser-0")], 1, 0)


def broken(show: Show) -> set[str]:
    """Names of the rules that a show breaks."""
    return {name for name, finding in judge(show).items() if finding.violations}


def changed(show: Show, *, requests=None, rows=None) -> Show:
    """The same show with other evidence."""
    case = show.case
    return replace(
        show, case=replace(case, requests=requests or case.requests, rows=case.rows if rows is None else rows)
    )


def ordinary(show: Show, number: int = 3) -> Request:
    """The request of some page that is stored."""
    found = [r for key, (r, *_) in show.case.by_page.items() if show.case.pages.get(key, {}).get("kind") == "ordinary"]
    return found[number]


def test_the_web_is_seeded_and_whole(site):
    """The same arguments give the same pages; each host has as many as were asked for, every page a parent."""
    again = chaos_web.build(3, HOSTS, PAGES, crawl_delay_s=7, port=PORT)
    assert list(site.pages) == list(again.pages)
    assert [page.action for page in site.pages.values()] == [page.action for page in again.pages.values()]
    counts = Counter(page.host for page in site.pages.values() if page.kind != "redirect target")
    assert set(counts.values()) == {PAGES}
    assert len(site.seeds) == 1
    kinds = {page.kind for page in chaos_web.build(7, 100, 60, crawl_delay_s=7, port=PORT).pages.values()}
    assert kinds >= set(chaos_web.FAULTS)


def test_the_plan_is_seeded_and_holds_what_was_asked_for():
    """So many of each kind for each service, scalings in their order, times that rise."""
    faults = plan(7, Counts(), first_s=8.0, every_s=13.0)
    assert faults == plan(7, Counts(), first_s=8.0, every_s=13.0)
    assert faults != plan(8, Counts(), first_s=8.0, every_s=13.0)
    found = Counter((fault.what, fault.service) for fault in faults)
    assert all(found[KILL, service] == 3 and found[FREEZE, service] == 2 for service in SERVICES)
    assert found[BROKER, ""] == 2
    assert [fault.size for fault in faults if fault.what == SCALE] == [2, 5, 3]
    gaps = [after.at_s - before.at_s for before, after in pairwise(faults)]
    assert min(gaps) >= 13.0 / 2
    merged = TOPOLOGIES["fetchparse"]
    struck = {fault.service for fault in plan(7, Counts(), first_s=8.0, every_s=13.0, services=merged)}
    assert struck == {*merged, ""}


def test_a_right_crawl_breaks_no_rule(site):
    """The rules are not stricter than the web."""
    assert broken(crawled(site)) == set()


def test_every_rule_can_be_broken(site):
    """One change of the evidence each; together they break every rule there is."""
    show = crawled(site)
    case, page = show.case, ordinary(show)
    row = next(r for r in case.rows if normalised(r.url) == normalised(f"http://{page.host}:{PORT}{page.path}"))
    others = [r for r in case.requests if r is not page]
    shut = next(p for p in case.pages.values() if p.get("disallowed"))
    again = [replace(page, start=1e6 + 20 * n, end=1e6 + 20 * n + 1) for n in range(HOSTS + 1)]
    breaks = {
        "the crawl ended by itself": replace(show, code=None),
        "all faults before the last page": replace(show, happened=[Happened(1e7, KILL, "parser-0")]),
        "no member gave up": replace(show, strangers=["parser-0 ended with 1"]),
        "no URL lost: a row for each": changed(show, rows=[r for r in case.rows if r is not row]),
        "no URL lost: each was requested": changed(show, requests=others),
        "every row in its outcome": changed(
            show, rows=[replace(r, ending="failed(x)") if r is row else r for r in case.rows]
        ),
        "no row twice": changed(show, rows=[*case.rows, replace(row, url_key="another")]),
        "one request at a time per host": changed(
            show, requests=[*case.requests, replace(page, start=page.start + 0.05, end=page.end + 5)]
        ),
        "no gap below the delay": changed(
            show, requests=[*case.requests, replace(page, start=page.end + 4.9, end=page.end + 4.91)]
        ),
        "robots.txt first": changed(show, requests=[*case.requests, replace(page, start=1.0, end=1.1)]),
        "no disallowed path": changed(
            show, requests=[*case.requests, Request(shut["host"], shut["path"], 1e6, 1e6 + 0.1)]
        ),
        "nothing that no page links to": changed(
            show, requests=[*case.requests, Request(page.host, "/invented", 1e6, 1e6 + 0.1)]
        ),
        "refetches bounded": changed(show, requests=[*case.requests, *again]),
    }
    assert breaks.keys() == RULES.keys()
    for name, other in breaks.items():
        assert name in broken(other), name


def test_faults_that_never_struck_break_a_rule(site):
    """A show that ended too early shows less than it says."""
    assert broken(replace(crawled(site), planned=2)) == {"all faults before the last page"}
