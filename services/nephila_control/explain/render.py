"""An explanation as people read it: the verdict in one line, then every fact that applies, one below the other.

Invariant: nothing from the web reaches the terminal but as harmless text; keys and order are the same every time.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer
from nephila.cli.terminal import sanitize
from nephila.kernel.reasons.table import words

from nephila_control.explain.explain import utc

if TYPE_CHECKING:
    from nephila_control.explain.explain import Explanation

WIDTH = 110
LONGEST = 2000
Pair = tuple[str, str]


def show(explanation: Explanation) -> None:
    """Print it."""
    typer.echo(sanitize(explanation.sentence, LONGEST))
    typer.echo("")
    pairs = [(key, sanitize(text, LONGEST)) for key, text in _pairs(explanation) if text]
    width = max(len(key) for key, _ in pairs) + 2
    for key, text in pairs:
        first, blank = f"{key + ':':<{width}}", " " * width
        # URLs are left whole: they are copied from here.
        lines = textwrap.wrap(text, WIDTH - width, break_long_words=False, break_on_hyphens=False)
        typer.echo("\n".join((blank if number else first) + line for number, line in enumerate(lines)))


def _pairs(explanation: Explanation) -> Iterator[Pair]:
    yield "verdict", explanation.kind
    yield "url", explanation.url
    yield "canonical", explanation.canonical if explanation.canonical != explanation.url else ""
    yield "host key", explanation.host_key
    yield "url key", explanation.url_key
    yield "partition", f"{explanation.partition}, owned by {explanation.owner}"
    yield "job", explanation.job
    yield "seen", "yes" if explanation.seen else "no"
    yield "scope", ("inside: " if explanation.scope.admitted else "outside: ") + explanation.scope.rule
    yield from _depth_limit(explanation)
    yield from _robots(explanation)
    yield from _place(explanation)
    yield from _host(explanation)
    yield from _budget(explanation)
    yield from _trap(explanation)
    yield from _recrawl(explanation)
    yield "render", explanation.lane
    yield from _rows(explanation)


def _depth_limit(explanation: Explanation) -> Iterator[Pair]:
    limit = explanation.depth_limit
    if limit is None:
        return
    if limit.set_by == "job":
        yield "depth limit", f"{limit.limit}, maxDepth of the job"
    else:
        job = limit.job_limit if limit.job_limit >= 0 else "none"
        yield "depth limit", f"{limit.limit}, live setting of the scheduler (maxDepth of the job: {job})"
        yield "take it back", limit.release


def _robots(explanation: Explanation) -> Iterator[Pair]:
    robots = explanation.robots
    if explanation.robots_ignored:
        yield "robots", "ignored by this crawl"
    elif robots is None:
        yield "robots", "not fetched"
    else:
        verdict = "allowed" if robots.allowed else "denied"
        status = "no rule matches" if robots.policy == "rules" else f"status {robots.status} {robots.reason}".rstrip()
        by = f"by line {robots.line}: {robots.rule}" if robots.line else f"({status})"
        yield "robots", f"{verdict} {by}"
        yield "robots age", f"fetched {utc(robots.fetched_at)}{', expired' if robots.expired else ''}"


def _place(explanation: Explanation) -> Iterator[Pair]:
    queued, lease = explanation.queued, explanation.lease
    if queued is not None:
        position = f"{queued.position:,}" if queued.position else "far behind"
        yield "queued", f"{position} of {queued.of:,} of its host{', at the head' if queued.head else ''}"
        yield "not before", utc(queued.not_before) if queued.not_before else ""
        if queued.position:
            yield "depth", f"{queued.depth}"
            yield "priority", f"{queued.priority}" if queued.priority else ""
            yield "tries", f"{queued.attempts} of fetch {queued.fetch_no}"
    elif explanation.row is not None:
        yield "depth", str(explanation.row.get("depth", ""))
    if lease is not None:
        until = f", {utc(lease.since)} to {utc(lease.until)}" if lease.until else ""
        yield "handed out", f"try {lease.attempt}, {lease.state}{until}"


def _host(explanation: Explanation) -> Iterator[Pair]:
    host = explanation.host
    if host is None:
        return
    yield "host", f"delay {host.delay_s:g} s, back-off {host.backoff_s:g} s, {host.queued:,} queued"
    if host.ranks:
        yield (
            "rank",
            f"{host.rank:,} of {host.ranks:,} domains" if host.rank else f"none; {host.ranks:,} domains have one",
        )
    if host.wait_s:
        yield "host pause", f"until {utc(host.not_before)} ({host.wait_s:.1f} s, set by: {host.pause})"
    line = f", {host.line:,} of {host.line_of:,} in its line" if host.line else ""
    yield "address", f"{host.address}{line}" if host.address else ""


def _budget(explanation: Explanation) -> Iterator[Pair]:
    for limit in explanation.budget.limits:
        yield "budget", f"{limit.used:,.10g} of {limit.limit:,.10g} {limit.what}"


def _trap(explanation: Explanation) -> Iterator[Pair]:
    trap = explanation.trap
    if trap is None:
        return
    spared = (
        f" ({trap.let_through} more such URLs of its host are let through)"
        if trap.let_through and explanation.row is None
        else ""
    )
    yield "odd shape", trap.shape + spared if trap.shape else ""
    yield "copy of", trap.copy_of
    if trap.place:
        what = "released by hand" if trap.released else f"closed since {utc(trap.since)}"
        yield "quarantine", f"{trap.place} {what}: {trap.reason}"
        yield "release with", trap.release


def _recrawl(explanation: Explanation) -> Iterator[Pair]:
    recrawl = explanation.recrawl
    if recrawl is None:
        return
    next_at = utc(recrawl.next_at) if recrawl.next_at else "never"
    due = "never: gone" if recrawl.gone else "due" if recrawl.out else next_at
    yield "fetched again", f"{due} ({recrawl.policy}, interval {recrawl.interval_s:,.0f} s)"
    checks = f"{recrawl.changes} of {recrawl.checks} checks showed a change"
    yield "changes", f"about {recrawl.changes_per_day:.3g} a day; {checks}"
    yield "missing", f"{recrawl.missing} times in a row" if recrawl.missing else ""


def _rows(explanation: Explanation) -> Iterator[Pair]:
    row = explanation.row
    if row is not None:
        yield "row", _ended(row)
        yield "title", row.get("title") or ""
        yield "rule", f"{row['rule']}, version {row['rule_version']}" if row.get("rule") else ""
    for fetch in explanation.fetches:
        notes = [
            _ended(fetch),
            f"status {fetch['status']}" if fetch.get("status") else "",
            f"try {fetch['attempt']}" if fetch.get("attempt") else "",
            f"text {fetch['change']}" if fetch.get("change") else "",
        ]
        reason = words(str(fetch.get("outcome", "")), str(fetch.get("reason", "")))
        yield (
            f"fetch {fetch.get('fetch_no', '')}",
            f"{fetch.get('fetched_at', '')} {', '.join(filter(None, notes))}: {reason}",
        )


def _ended(row: Mapping[str, Any]) -> str:
    reason = row.get("reason")
    return f"{row.get('outcome', '')}({reason})" if reason else str(row.get("outcome", ""))
