"""The judge's checks: each takes the case and returns what it found. `CHECKS` is the whole list; pure functions, no
I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from benchmarks.web.evidence import Case, Request, Row, normalised

# Places a crawler may look at without a link.
_WELL_KNOWN = frozenset({"/robots.txt", "/favicon.ico", "/sitemap.xml"})


@dataclass
class Finding:
    """The subjects of one check and its violations; *skipped*: why it could not be made."""

    judged: int
    violations: list[str] = field(default_factory=list)
    note: str = ""
    skipped: str = ""


Check = Callable[[Case], Finding]


def one_at_a_time(case: Case) -> Finding:
    """At most *concurrency* requests of a host are being answered at once."""
    found = Finding(len(case.requests))
    worst = 0
    for host, requests in case.by_host.items():
        spans = [(r.start, r.end) for r in requests]
        most, when = _most_at_once(spans, 0.0)
        worst = max(worst, most)
        if most > case.concurrency:
            found.violations.append(f"{host}: {most} requests at once at t={when:.3f}")
    found.note = f"at most {worst}"
    return found


def one_connection(case: Case) -> Finding:
    """At most *concurrency* connections to a host are open at once, from their first request to their close."""
    found = Finding(0)
    for host, requests in case.by_host.items():
        first: dict[int, float] = {}
        last: dict[int, float] = {}
        for r in requests:
            first.setdefault(r.conn, r.start)
            last[r.conn] = max(last.get(r.conn, r.end), r.end)
        found.judged += len(first)
        spans = [(first[c], case.closed.get(c, last[c])) for c in first]
        most, when = _most_at_once(spans, case.slack_s)
        if most > case.concurrency:
            found.violations.append(f"{host}: {most} connections open at once at t={when:.3f}")
    return found


def _most_at_once(spans: list[tuple[float, float]], slack: float) -> tuple[int, float]:
    """How many spans overlap at most, and when; a span that is over within *slack* of another's start is over. O(n log
    n).
    """
    edges = sorted([(start, 1) for start, _ in spans] + [(max(start, end - slack), -1) for start, end in spans])
    now = most = 0
    when = 0.0
    for at, change in edges:
        now += change
        if now > most:
            most, when = now, at
    return most, when


def no_gap_below_the_delay(case: Case) -> Finding:
    """From the end of a request to the start of the next on its host: the delay, or the host's Crawl-delay if that is
    longer.
    """
    if case.concurrency > 1:
        return Finding(0, skipped="a gap is defined for one connection per host")
    found = Finding(0)
    shortest = float("inf")
    for before, after in _neighbours(case):
        if case.is_rules(before) and case.is_rules(after):
            continue  # robots.txt follows its own redirects in place
        due = case.delay_s
        if not case.is_rules(before):
            due = max(due, case.hosts.get(after.host, {}).get("crawl_delay_s", 0.0))
        gap = after.start - before.end
        found.judged += 1
        shortest = min(shortest, gap)
        if gap < due - case.slack_s:
            found.violations.append(f"{after.host}: {gap:.3f} s before {after.path[:80]}, due {due:g} s")
    found.note = f"shortest {shortest:.3f} s" if found.judged else ""
    return found


def pauses_kept(case: Case) -> Finding:
    """After a 429 or 503 with Retry-After no request is sent to the host for that long."""
    found = Finding(0)
    for host, requests in case.by_host.items():
        for r in requests:
            if r.retry_after_s is None or r.status not in (429, 503):
                continue
            found.judged += 1
            after = next((later for later in requests if later.start >= r.end), None)
            if after and after.start - r.end < r.retry_after_s - case.slack_s:
                found.violations.append(
                    f"{host}: asked again after {after.start - r.end:.3f} s, was told {r.retry_after_s:.1f} s"
                )
    return found


def so_many_per_address(case: Case) -> Finding:
    """At most *per_address* requests are being answered at once on one server address, over all its hosts."""
    found = Finding(0, skipped=_unpaced(case, case.per_address))
    if found.skipped:
        return found
    worst = 0
    for address, requests in _addresses(case):
        found.judged += len(requests)
        most, when = _most_at_once([(r.start, r.end) for r in requests], case.slack_s)
        worst = max(worst, most)
        if most > case.per_address:
            found.violations.append(f"{address}: {most} requests at once at t={when:.3f}")
    found.note = f"at most {worst} on {len(case.by_address)} addresses"
    return found


def no_gap_below_the_address_pace(case: Case) -> Finding:
    """From the start of a request to the start of the next on its server address: *address_gap_s*, over all hosts. A
    request that the server read late began earlier than its start says."""
    found = Finding(0, skipped=_unpaced(case, case.address_gap_s))
    if found.skipped:
        return found
    shortest = float("inf")
    for address, requests in _addresses(case):
        for before, after in pairwise(requests):
            gap = after.start - before.start + before.late_s
            found.judged += 1
            shortest = min(shortest, gap)
            if gap < case.address_gap_s - case.slack_s:
                found.violations.append(
                    f"{address}: {gap:.3f} s between {before.host} and {after.host}{after.path[:60]}, "
                    f"due {case.address_gap_s:g} s"
                )
    found.note = f"shortest {shortest:.3f} s" if found.judged else ""
    return found


def _unpaced(case: Case, limit: float) -> str:
    """Why addresses are not judged, or the empty string."""
    if not case.delay_s:
        return "a crawl without delay has no pace by address"
    if not limit:
        return "no limit was given"
    return "" if any(case.by_address) else "the log does not say which addresses were asked"


def _addresses(case: Case) -> list[tuple[str, list[Request]]]:
    return [(address, requests) for address, requests in case.by_address.items() if address]


def _neighbours(case: Case) -> Iterator[tuple[Request, Request]]:
    for requests in case.by_host.values():
        yield from pairwise(requests)


def robots_first(case: Case) -> Finding:
    """The first request of a host is for robots.txt, and it ends before the first page is requested."""
    found = Finding(len(case.by_host))
    for host, requests in case.by_host.items():
        rules = [r for r in requests if case.is_rules(r)]
        pages = [r for r in requests if not case.is_rules(r)]
        if not rules and pages:
            found.violations.append(f"{host}: robots.txt was never asked for")
        elif pages and pages[0].start < rules[0].end:
            found.violations.append(f"{host}: {pages[0].path[:80]} before the end of robots.txt")
    return found


def nothing_disallowed(case: Case) -> Finding:
    """No path that robots.txt forbids is requested; nothing at all where the rules cannot be learned."""
    found = Finding(len(case.requests))
    for page, requests in case.by_page.items():
        host = requests[0].host
        forbidden = case.pages.get(page, {}).get("disallowed") or case.hosts.get(host, {}).get("disallow_all")
        wrong = [r for r in requests if not case.is_rules(r)]
        if forbidden and wrong:
            found.violations.append(f"{host}{wrong[0].path[:80]}: disallowed, requested {len(wrong)} times")
    return found


def nothing_foreign(case: Case) -> Finding:
    """Nothing out of scope, and nothing that no page links to (links in comments, scripts and the like are none)."""
    found = Finding(len(case.requests))
    for page, requests in case.by_page.items():
        r = requests[0]
        if case.hosts.get(r.host, {}).get("forbidden"):
            found.violations.append(f"{r.host}{r.path[:80]}: out of scope")
        elif (
            page not in case.pages
            and r.path not in _WELL_KNOWN
            and not case.is_rules(r)
            and not case.open_prefix(r.host, r.path)
        ):
            found.violations.append(f"{r.host}{r.path[:80]}: no page links to it")
    return found


def traps_bounded(case: Case) -> Finding:
    """A web without end costs no more requests than the manifest allows."""
    found = Finding(len(case.manifest["open"]))
    counts = []
    for prefix in case.manifest["open"]:
        targets = {r.path for r in case.by_host[prefix["host"]] if r.path.startswith(prefix["prefix"])}
        counts.append(f"{prefix['kind'].removeprefix('trap: ')} {len(targets)} of {prefix['max_requests']}")
        if len(targets) > prefix["max_requests"]:
            found.violations.append(
                f"{prefix['host']}{prefix['prefix']}: {len(targets)} URLs, at most {prefix['max_requests']}"
            )
    found.note = ", ".join(counts)
    return found


def floods_cut(case: Case) -> Finding:
    """No answer is read beyond what its page allows."""
    found = Finding(len(case.requests))
    for page, requests in case.by_page.items():
        most = case.pages.get(page, {}).get("max_bytes")
        worst = max(r.bytes for r in requests)
        if most is not None and worst > most:
            found.violations.append(f"{requests[0].host}{requests[0].path[:80]}: {worst} bytes sent, at most {most}")
    return found


def all_requested(case: Case) -> Finding:
    """Each page that must be stored got a whole good answer; each that must fail or be dropped was tried."""
    found = Finding(0)
    for key, page in case.pages.items():
        if "none" in page["accept"] or any(a.startswith("denied") for a in page["accept"]):
            continue
        found.judged += 1
        requests = case.by_page.get(key, [])
        good = any(not r.aborted and (200 <= r.status < 300 or r.status == 304) for r in requests)
        if not requests:
            found.violations.append(f"{page['url'][:120]}: never requested")
        elif page["accept"] == ["stored"] and not good:
            found.violations.append(f"{page['url'][:120]}: never got a whole good answer")
    repeated = sum(len(requests) - 1 for requests in case.by_page.values())
    found.note = f"{repeated} requests were repeats (retries, refetches)"
    return found


def outcomes_right(case: Case) -> Finding:
    """Each row ends as in the manifest, with the title the page has; nothing is stored that was not fetched."""
    if case.rows is None:
        return Finding(0, skipped="no database given")
    found = Finding(len(case.rows))
    found.violations = [complaint for row in case.rows if (complaint := _complaint(case, row))]
    counts = Counter(row.ending for row in case.rows)
    found.note = ", ".join(f"{n} {name}" for name, n in counts.most_common(4))
    return found


def _complaint(case: Case, row: Row) -> str:
    key = normalised(row.url)
    parts = urlsplit(key)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    page: dict[str, Any] | None = case.pages.get(key) or case.open_prefix(parts.hostname or "", target)
    where = row.url[:120]
    if page is None:
        return f"{where}: a row that no page of the manifest has"
    if not any(fnmatchcase(row.ending, accepted) for accepted in page["accept"]):
        return f"{where}: {row.ending}, expected {' or '.join(page['accept'])} ({page['kind']})"
    if row.ending == "stored" and not case.by_page.get(key):
        return f"{where}: stored, but never requested"
    if (
        row.ending == "stored"
        and page.get("title")
        and row.title is not None
        and " ".join(row.title.split()) != page["title"]
    ):
        return f"{where}: title {row.title[:60]!r}, expected {page['title'][:60]!r}"
    return ""


def no_row_lost(case: Case) -> Finding:
    """Each page that must have a row has one."""
    if case.rows is None:
        return Finding(0, skipped="no database given")
    have = {normalised(row.url) for row in case.rows}
    due = {key: page for key, page in case.pages.items() if "none" not in page["accept"]}
    lost = [page for key, page in due.items() if key not in have]
    return Finding(
        len(due), [f"{p['url'][:120]}: no row ({p['kind']}, expected {' or '.join(p['accept'])})" for p in lost]
    )


def none_twice(case: Case) -> Finding:
    """No page has two rows in a job, under one key or under two spellings."""
    if case.rows is None:
        return Finding(0, skipped="no database given")
    pages = Counter((row.job, normalised(row.url)) for row in case.rows)
    keys = Counter((row.job, row.url_key) for row in case.rows)
    twice = [f"{page}: {n} rows" for (_, page), n in pages.items() if n > 1]
    twice += [f"url_key {key}: {n} rows" for (_, key), n in keys.items() if n > 1]
    return Finding(len(case.rows), twice)


CHECKS: dict[str, Check] = {
    "one request at a time per host": one_at_a_time,
    "one connection at a time per host": one_connection,
    "no gap below the delay": no_gap_below_the_delay,
    "connections per address": so_many_per_address,
    "no gap below the address's": no_gap_below_the_address_pace,
    "Retry-After kept": pauses_kept,
    "robots.txt first": robots_first,
    "no disallowed path": nothing_disallowed,
    "nothing out of scope or unlinked": nothing_foreign,
    "traps bounded": traps_bounded,
    "floods cut": floods_cut,
    "every page requested": all_requested,
    "every row in its outcome": outcomes_right,
    "no row lost": no_row_lost,
    "no row twice": none_twice,
}
