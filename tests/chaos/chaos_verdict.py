"""The verdict of a chaos show: what the server's log, the manifest and the rows say, and nothing the crawler says.

Each rule returns a `Finding`; a rule with violations fails the show. Refetches are counted against what the web asks of
a crawler that nothing happens to, and bounded: a fault can bring back what was in flight, one request of each host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import psycopg

from benchmarks.web import checks
from benchmarks.web.checks import Finding
from benchmarks.web.evidence import Case, Row, Unusable, ending
from tests.chaos.chaos_web import tries

SLACK_S = 0.005
TRIES = 3
"""Attempts of the scheduler for an error of the server or the network."""


@dataclass(frozen=True)
class Happened:
    """A fault and when it struck, on the machine's monotonic clock."""

    at: float
    what: str
    member: str


@dataclass(frozen=True)
class Show:
    """What is judged."""

    case: Case
    happened: Sequence[Happened]
    planned: int
    code: int | None
    """Exit code of the crawl that watched; None: it had not ended in time."""
    strangers: Sequence[str] = ()
    """Members that ended though nobody asked them to."""


def load_rows(dsn: str) -> list[Row]:
    """The rows of the database. Raises `Unusable`."""
    try:
        with psycopg.connect(dsn) as link:
            found = link.execute("SELECT job, url, url_key, outcome, reason, title FROM pages").fetchall()
    except psycopg.Error as error:
        raise Unusable(f"database: {error}") from None
    return [
        Row(str(job), url, str(key), ending(outcome, reason), title) for job, url, key, outcome, reason, title in found
    ]


def ended_by_itself(show: Show) -> Finding:
    """The crawl that was told over the broker said that it is done, and returned 0."""
    wrong = [] if show.code == 0 else ["it had not ended in time" if show.code is None else f"exit code {show.code}"]
    return Finding(1, wrong)


def all_happened(show: Show) -> Finding:
    """Every fault of the plan struck before the last page was asked for: else the show shows less than it says."""
    last = max((r.start for r in show.case.requests if not show.case.is_rules(r)), default=0.0)
    late = [f"{h.what} {h.member}: {h.at - last:.1f} s after the last page" for h in show.happened if h.at > last]
    missing = show.planned - len(show.happened)
    return Finding(show.planned, late + ([f"{missing} faults did not happen"] if missing else []))


def nobody_gave_up(show: Show) -> Finding:
    """No member ended but those that were ended: a fault elsewhere is waited out."""
    return Finding(len(show.happened), list(show.strangers))


def refetches_bounded(show: Show) -> Finding:
    """Requests beyond those that the web itself asks for; at most one of each host and fault."""
    found = Finding(len(show.case.requests))
    again = 0
    for key, page in show.case.pages.items():
        again += max(len(show.case.by_page.get(key, ())) - tries(page, TRIES), 0)
    rules = sum(show.case.is_rules(request) for request in show.case.requests) - len(show.case.by_host)
    most = len(show.case.hosts) * len(show.happened)
    found.note = f"{again} pages and {rules} robots.txt again, at most {most}"
    if again + rules > most:
        found.violations.append(f"{again + rules} requests again, at most {most}")
    return found


def _of(check: checks.Check) -> Rule:
    return lambda show: check(show.case)


Rule = Callable[[Show], Finding]
RULES: dict[str, Rule] = {
    "the crawl ended by itself": ended_by_itself,
    "all faults before the last page": all_happened,
    "no member gave up": nobody_gave_up,
    "no URL lost: a row for each": _of(checks.no_row_lost),
    "no URL lost: each was requested": _of(checks.all_requested),
    "every row in its outcome": _of(checks.outcomes_right),
    "no row twice": _of(checks.none_twice),
    "one request at a time per host": _of(checks.one_at_a_time),
    "no gap below the delay": _of(checks.no_gap_below_the_delay),
    "robots.txt first": _of(checks.robots_first),
    "no disallowed path": _of(checks.nothing_disallowed),
    "nothing that no page links to": _of(checks.nothing_foreign),
    "refetches bounded": refetches_bounded,
}


def judge(show: Show) -> dict[str, Finding]:
    """Every rule's finding by its name."""
    return {name: rule(show) for name, rule in RULES.items()}


def longest_silence(show: Show) -> float:
    """The longest time in seconds in which no request began on any host."""
    starts = sorted(request.start for request in show.case.requests)
    return max((after - before for before, after in pairwise(starts)), default=0.0)
