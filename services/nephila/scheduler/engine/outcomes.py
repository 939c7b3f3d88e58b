"""Outcomes: pace of the host, retry, redirect, robots.txt. `endings` has rows and receipts. Pure."""

from __future__ import annotations

import msgspec

from nephila.kernel.fragment_routes import redirected
from nephila.kernel.messages import (
    FetchKind,
    FetchOutcome,
    FetchResult,
    HostUse,
    Outcome,
    QueuedUrl,
    UrlState,
)
from nephila.kernel.reasons.row import Pause, Retry, Row
from nephila.kernel.reasons.table import Reason, row_of, row_of_outcome
from nephila.native import UrlError
from nephila.scheduler.engine import recrawl_queue
from nephila.scheduler.engine.admission import add_sitemaps, admit, anchor_scope
from nephila.scheduler.engine.endings import Endings
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.frontier.host_state import Host, TurnOutput
from nephila.scheduler.frontier.in_flight import FETCHED, LEASED, Key, Outstanding
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import (
    SEED,
    Entry,
    entry_flags,
    is_requisite,
    pack,
    pack_context,
    unpack_context,
)
from nephila.scheduler.jobs.strategies import HEAD, TAIL
from nephila.scheduler.politeness.host_pace import is_refusal, took_s
from nephila.scheduler.politeness.recent_fetches import RecentFetches
from nephila.scheduler.politeness.robots import from_outcome

# Names of the module: in Python 3.11 an attribute of an enum class costs ten times as much.
_RETRACTED, _FETCHED, _NOT_MODIFIED = FetchResult.RETRACTED, FetchResult.FETCHED, FetchResult.NOT_MODIFIED
_ROBOTS = FetchKind.ROBOTS
_PASSING = Pause.PASSING
_NO_REASON = row_of(Reason.NONE)
_RENDER_TIMEOUT = row_of(Reason.RENDER_TIMEOUT)
"""The row of nearly all outcomes: it pauses nothing."""
CLOCKS_S = 1.0
"""Largest difference of the clocks of two members that are ready."""
SEED_HOPS = 5
"""Redirects of a seed that add their target's host to the scope."""
BUSY = Reason.BUSY
CRASH_TRIES_FACTOR = 3
"""Factor of `tries` for a URL whose downloader process crashed: most URLs in flight at a crash did not cause it."""
NOT_COUNTED = (FetchResult.UNSPECIFIED, FetchResult.EXPIRED, FetchResult.LOST)
"""Results that count as no attempt: nothing was dialled, or the process that had the request is dead."""


class OutcomeHandler:
    def __init__(self, frontier: Frontier, endings: Endings) -> None:
        self.frontier = frontier
        self._endings = endings

    # ---- outcomes

    def outcome(self, outcome: FetchOutcome, now: float, out: TurnOutput) -> None:
        """One attempt has ended. A late or unknown outcome changes only the pace of the host."""
        result = outcome.result
        if result is _RETRACTED:
            self._retract(outcome, now)
            return
        frontier = self.frontier
        in_flight = frontier.in_flight
        waiting = in_flight.urls.get((outcome.job, outcome.url_key)) or in_flight.find(outcome.job, outcome.url_key)
        row = row_of_outcome(outcome) if outcome.reason else _NO_REASON
        if in_flight.notes_consumed and not row.no_outcome:
            in_flight.note_consumed(now, waiting is not None and in_flight.is_rendered(waiting))
        if (
            waiting is None
            or waiting.state is not LEASED
            or not _is_of(outcome, waiting)
            or (row.no_outcome and self._lease_start_utc(waiting) > outcome.ended_at)
        ):
            self._late(waiting, outcome, row, now)
            return
        host = waiting.host
        before = host.pace.certain_at
        job = frontier.jobs.get(waiting.job)
        if 0 < outcome.started_at < host.pace.not_before + frontier.time.utc_offset - CLOCKS_S:
            self._count_early(host, job, waiting)
        in_flight.answer(waiting, now, outcome.reason == BUSY)
        host.changed = True
        frontier.counters.wire_bytes += outcome.wire_bytes
        self._pace(host, job, outcome, row, now)
        if outcome.kind is _ROBOTS:
            self._robots(waiting, outcome, row, now)
        elif job is not None:
            if job.compiled.host_limits.counts_use:
                self._account(host, job, outcome)
            if outcome.started_at > 0:
                if job.tenant:
                    frontier.counters.count_tenant(job.tenant, outcome.wire_bytes, outcome.browser_s)
                if job.holds.rooms or outcome.browser_s:
                    frontier.holds.count_quotas(job, outcome.wire_bytes, outcome.browser_s)
            if result is _FETCHED or result is _NOT_MODIFIED:
                in_flight.page(waiting)
                if waiting.receipted is not None:
                    self._endings.receipt(waiting, waiting.receipted)
            else:
                self._without_page(waiting, job, outcome, row, now, out)
        else:
            in_flight.drop(waiting)
        if host.pace.certain_at > before or (job is not None and job.compiled.host_limits.counts_use):
            self._log_host(host, before, now, always=job is not None and job.compiled.host_limits.counts_use)
        frontier.readiness.reschedule(host)

    def _late(self, waiting: Outstanding | None, outcome: FetchOutcome, row: Row, now: float) -> None:
        """Only the pace of the host changes, unless the page of the present fetch was lost."""
        if waiting is not None and outcome.result is FetchResult.LOST:
            self._lost_page(waiting, outcome, now)
        host = self.frontier.hosts.find(outcome.host)
        if host is not None:
            before = host.pace.certain_at
            self._pace(host, None, outcome, row, now, late=True)
            self._log_host(host, before, now)
            self.frontier.readiness.reschedule(host)

    def _count_early(self, host: Host, job: Job | None, waiting: Outstanding) -> None:
        """Count a fetch that began before its host might be fetched from. It would be a fault of this program: requests
        are sent after that instant. Clocks of members may differ by `CLOCKS_S`. A pause that was set after the lease,
        by an outcome that came again, does not concern the fetch."""
        frontier = self.frontier
        if frontier.hosts.fetches_alone(host, job):
            frontier.counters.early_fetches += host.pace.set_at <= frontier.in_flight.leased_at(waiting)

    def _lease_start_utc(self, waiting: Outstanding) -> float:
        return self.frontier.in_flight.leased_at(waiting) + self.frontier.time.utc_offset

    def _pace(
        self, host: Host, job: Job | None, outcome: FetchOutcome, row: Row, now: float, late: bool = False
    ) -> None:
        """Set when the host may be fetched from next: after its delay, or later when it refused. `late`: a fetch that
        came after it may have ended later."""
        if outcome.address:
            host.address = outcome.address
        if outcome.started_at <= 0:
            # Given back undialled; a wait is stated where no proxy works, or a login is paused.
            host.pace.after_fetch(now, outcome.retry_after_s)
            return
        pace = host.pace
        if outcome.kind is not _ROBOTS:
            if host.recent is None:
                host.recent = RecentFetches(now)
            host.recent.note(now, took_s(outcome), outcome.status)
        if row is not _RENDER_TIMEOUT:  # the time of a page that does not end is not that of its host
            pace.took_s = took_s(outcome)
            self.frontier.lead.on_fetch(pace.took_s)
        delay_s = self.frontier.hosts.delay_s(host, job)
        if delay_s > 0:
            since_end = self.frontier.lead.since_end(outcome, self.frontier.time.utc_now) if not late else ()
            pace.after_fetch(now, delay_s, *since_end)
        if (row is not _NO_REASON or outcome.retry_after_s > 0) and is_refusal(outcome, row):
            config, rng = self.frontier.config, self.frontier.rng
            again = outcome.attempt - 1 if row.behind else 0
            pace.after_refusal(now, outcome.retry_after_s, config, rng, row.pause is _PASSING, again)
            self.frontier.hosts.note_refusal(host.key, now)
        elif 0 < outcome.status < 500:
            pace.answered = True
            if self.frontier.hosts.refusing_since:
                self.frontier.hosts.note_answer(host.key)
            if pace.backoff_s:
                pace.after_answer(self.frontier.config, now)

    def _account(self, host: Host, job: Job, outcome: FetchOutcome) -> None:
        """Count a fetch in the job's budget for the host."""
        if outcome.started_at <= 0:
            return
        use = host.uses.get(job.uid)
        if use is None:
            use = host.uses[job.uid] = HostUse(job.uid)
        use.pages += 1
        use.bytes += outcome.wire_bytes
        use.time_s += max(outcome.ended_at - outcome.started_at, 0.0)
        self.frontier.readiness.update_host_budget(host, job)

    def _log_host(self, host: Host, before: float, now: float, always: bool = False) -> None:
        """Log a new pause and the used budget, so that they outlive a restart."""
        if always or host.pace.certain_at > max(before, now):
            self.frontier.log_host(host)

    def _without_page(
        self, waiting: Outstanding, job: Job, outcome: FetchOutcome, row: Row, now: float, out: TurnOutput
    ) -> None:
        """The fetch of a URL of a job brought no page."""
        result = outcome.result
        if result is FetchResult.FAILED and job.domains is not None:
            job.domains.fail(waiting.host.key)
        if result in NOT_COUNTED:
            self._requeue(waiting, job, waiting.attempt - 1, now, behind=row.behind)
        elif result is FetchResult.REDIRECT:
            self._redirect(waiting, job, outcome, now, out)
        elif result is FetchResult.DENIED:
            self._endings.without_page(waiting, job, out, outcome.reason or Reason.ADDRESS, outcome)
        elif result is FetchResult.CONTENT_TYPE:
            self._endings.without_page(waiting, job, out, Reason.CONTENT_TYPE, outcome)
        elif self._tries_again(row, waiting.attempt):
            self._note_fault(waiting.entry.url, outcome, row, waiting.attempt)
            wait_s = 0.0 if row.behind else self._retry_wait(waiting, outcome, row)
            self._requeue(waiting, job, waiting.attempt, now, wait_s, behind=row.behind)
        else:
            self._endings.without_page(waiting, job, out, outcome.reason, outcome)

    def _lost_page(self, waiting: Outstanding, outcome: FetchOutcome, now: float) -> None:
        """The fetch succeeded, but its page was lost before it became a record: fetch it again."""
        job = self.frontier.jobs.get(waiting.job)
        if _is_of(outcome, waiting) and waiting.state is FETCHED and job is not None:
            self._requeue(waiting, job, waiting.attempt - 1, now)

    def receipts_lost(self, before: float, now: float, out: TurnOutput) -> int:
        """The outcomes of these URLs came by `before`, and their messages are lost: fetch the URLs again, publish the
        rows of those without a page again. Returns their number. O(URLs without receipt)."""
        frontier = self.frontier
        in_flight = frontier.in_flight
        keys = [key for key, since in in_flight.without_receipt.items() if since <= before]
        for key in keys:
            waiting = in_flight.urls[key]
            job = frontier.jobs[waiting.job]
            if waiting.record is not None:
                out.records.append((frontier.partitions[waiting.host.partition].number, waiting.record))
                in_flight.await_receipt(waiting)
            elif waiting.attempt < frontier.config.tries * CRASH_TRIES_FACTOR:
                self._requeue(waiting, job, waiting.attempt, now)
            else:
                self._endings.without_page(waiting, job, out, Reason.LOST, None)
        frontier.counters.lost_messages += len(keys)
        return len(keys)

    def _retract(self, outcome: FetchOutcome, now: float) -> None:
        """The page of an earlier fetch did not come from its server: the URL is fetched again, ended or not. A URL that
        is open for a later fetch stays as it is."""
        frontier, request, key = self.frontier, outcome.request, outcome.url_key
        job = frontier.jobs.get(outcome.job)
        if job is None or request is None:
            return
        waiting = frontier.in_flight.urls.get((outcome.job, key))
        if waiting is not None:
            if waiting.state is FETCHED and waiting.entry.fetch_no == outcome.fetch_no:
                # The receipt of the false page has a lower number, so it does not end the next fetch.
                entry = waiting.entry._replace(fetch_no=outcome.fetch_no + 1)
                self._requeue(waiting, job, 0, now, entry=entry)
            return
        state = job.due_table.get(key)
        if state is None:
            state = UrlState(job.uid, key, request.url, request.host, request.depth, request.seed)
            state.fetch_no, state.outcome = outcome.fetch_no, _ended_as(outcome.status)
            state.context, state.render = request.context, request.render
        if key not in job.seen or job.due_table.is_checked_out(key) or state.fetch_no != outcome.fetch_no:
            return
        state.etag = state.last_modified = ""
        job.due_table.put(state)
        frontier.pending.of(frontier.pending.partition(key)).urls.append(state)
        job.due_table.check_out(key)
        recrawl_queue.requeue(frontier, job, state)

    def _note_fault(self, url: str, outcome: FetchOutcome, row: Row, tried: int) -> None:
        """Keep the first try that failed: a crawl of one seed shows it long before the last try."""
        counters = self.frontier.counters
        if not counters.first_fault:
            detail = f" ({outcome.detail[:200]})" if outcome.detail else ""
            tries = self.frontier.config.tries
            counters.first_fault = f"{url}: try {tried} of {tries} failed ({outcome.reason}): {row.words}{detail}"

    def _tries_again(self, row: Row, tried: int) -> bool:
        """Whether a fetch that failed is worth another try."""
        match row.retry:
            case Retry.NEVER:
                return False
            case Retry.TRIES:
                return tried < self.frontier.config.tries
            case Retry.LONGER:
                return tried < self.frontier.config.tries * CRASH_TRIES_FACTOR
            case Retry.ALWAYS:
                return True

    def _retry_wait(self, waiting: Outstanding, outcome: FetchOutcome, row: Row) -> float:
        """Seconds until the next try; 0 when the whole host pauses anyway."""
        if is_refusal(outcome, row):
            return 0.0
        config = self.frontier.config
        wait: float = config.retry_delay_s * 2 ** (min(waiting.attempt, config.tries) - 1)
        return wait * (1 + self.frontier.rng.random() * config.jitter)

    def _robots(self, waiting: Outstanding, outcome: FetchOutcome, row: Row, now: float) -> None:
        frontier = self.frontier
        host = waiting.host
        frontier.in_flight.drop(waiting)
        if outcome.result in NOT_COUNTED:
            self._end_preparation(host)
            return
        tried = host.robots_tries + 1
        if outcome.result is FetchResult.FAILED and self._tries_again(row, tried):
            host.robots_tries = tried
            self._note_fault(waiting.entry.url, outcome, row, tried)
            self._end_preparation(host)
            if not is_refusal(outcome, row):
                host.pace.after_fetch(now, self._retry_wait(waiting, outcome, row))
            return
        host.robots_tries = 0
        host.changed = True
        origin = waiting.entry.url.removesuffix("/robots.txt")
        text = from_outcome(outcome, origin, now + frontier.time.utc_offset, frontier.config)
        frontier.pending.of(frontier.partitions[host.partition]).robots.append(text)
        frontier.hosts.set_robots(host, text)
        users = frontier.hosts.jobs_on(host)
        for job in users:
            add_sitemaps(frontier, job, host.key, origin, host.robots[origin].rules)
        if is_refusal(outcome, row):
            self._end_preparation(host)
        elif users:
            frontier.readiness.prepared.fetched(host.number, users[0].number, origin, now)
        if outcome.started_at > 0 and host.crawl_delay_s:
            host.pace.after_fetch(now, host.crawl_delay_s, *frontier.lead.since_end(outcome, frontier.time.utc_now))

    def _end_preparation(self, host: Host) -> None:
        """No robots.txt came, or the host pauses: no page follows for now, and another host may be begun."""
        job = self.frontier.jobs.numbered.get(self.frontier.readiness.prepared.job(host.number))
        if job is not None:
            self.frontier.readiness.prepared.discard(host.number)
            self.frontier.readiness.resume_hosts(job)

    def lease_expired(self, key: Key, now: float, out: TurnOutput) -> None:
        """No outcome came in time. That is a failed try, and a later outcome is late. If no downloader consumed the
        request, the try does not count and the URL is leased again."""
        utc = self.frontier.time.utc_now
        in_flight = self.frontier.in_flight
        waiting = in_flight.urls[key]
        no_outcome = FetchOutcome(
            job=waiting.job,
            url_key=waiting.entry.url_key,
            host=waiting.host.key,
            kind=FetchKind.UNSPECIFIED if waiting.job else FetchKind.ROBOTS,
            fetch_no=waiting.entry.fetch_no,
            attempt=waiting.attempt,
            result=FetchResult.FAILED,
            reason=Reason.LEASE_EXPIRED,
            started_at=utc,
            ended_at=utc,
            lease_until=waiting.lease_until,
        )
        if not in_flight.was_consumed(waiting):
            no_outcome.reason = Reason.NOT_CONSUMED
        self.outcome(no_outcome, now, out)

    def _requeue(
        self,
        waiting: Outstanding,
        job: Job,
        attempts: int,
        now: float,
        wait_s: float = 0.0,
        entry: Entry | None = None,
        behind: bool = False,
    ) -> None:
        """Put the URL at the head of its host's queue, or at its tail if `behind`, in the log too. `wait_s`: it goes
        to the head, so much later."""
        frontier = self.frontier
        entry = (entry or waiting.entry)._replace(attempts=attempts)
        # By its key: a host without a fetch in flight may have been evicted, and its number given to another host.
        host = frontier.hosts.get_or_create(waiting.host.key)
        frontier.in_flight.requeue(waiting, job, wait_s > 0)
        job.fetch_numbers.note(entry.fetch_no)
        state = job.due_table.get(entry.url_key) if job.budget.max_pages else None
        if state is not None and state.outcome is Outcome.STORED:
            job.budget.reserve(entry.url_key)
        packed = pack(entry)
        not_before = now + wait_s + frontier.time.utc_offset if wait_s > 0 else 0.0
        queued = QueuedUrl(job.uid, host.key, packed, not behind, not_before)
        frontier.pending.queued(frontier.partitions[host.partition]).append(queued)
        if wait_s > 0:
            frontier.delayed.add(host.number, job, packed, now + wait_s)
        else:
            order = TAIL if behind else HEAD
            frontier.store.push(host.number, job.number, order, packed)
            frontier.readiness.newly_queued(host.number, job, order)
        frontier.readiness.resume_hosts(job)

    # ---- redirects

    def _redirect(self, waiting: Outstanding, job: Job, outcome: FetchOutcome, now: float, out: TurnOutput) -> None:
        """Queue the target like any URL: scope, seen set, robots.txt, pace and egress guard apply."""
        entry = waiting.entry
        try:
            target = redirected(job.compiled.routes, outcome.location, entry.url)
        except UrlError:
            self._endings.without_page(waiting, job, out, Reason.BAD_REDIRECT, outcome)
            return
        hops = entry.hops + 1
        if hops > self.frontier.config.max_hops:
            self._endings.without_page(waiting, job, out, Reason.TOO_MANY_REDIRECTS, outcome, target.href)
            return
        if target.fingerprint == entry.url_key and target.host_key == waiting.host.key:
            # Another spelling of the same canonical URL: its row comes from the next fetch.
            hop = entry._replace(url=target.href, hops=hops, fetch_no=entry.fetch_no + 1)
            self._requeue(waiting, job, 0, now, entry=hop)
            return
        self._endings.without_page(waiting, job, out, Reason.REDIRECT, outcome, target.href)
        seed = bool(entry.flags & SEED) and hops <= SEED_HOPS
        if seed:
            if job.scope.excluded(target.href):
                return
            anchor_scope(self.frontier, job, target.host_key, target.path_query)
            job.note_redirect(entry.url, target)
        elif self.frontier.is_other_partition(target.fingerprint):
            pass  # the partition of the target checks the scope
        elif not job.admits(target.href, target.host_key, entry.depth, is_requisite(entry.context)):
            return
        if target.fingerprint not in job.seen:
            moved = entry._replace(
                url_key=target.fingerprint,
                url=target.href,
                attempts=0,
                hops=hops,
                flags=entry_flags(seed, entry.render),
                context=_without_form(entry.context),
            )
            admit(self.frontier, job, moved, target.host_key, head=True)


def _ended_as(status: int) -> Outcome:
    """The outcome of a URL whose last fetch had a status and no other fault."""
    if 200 <= status < 300:
        return Outcome.STORED
    return Outcome.DROPPED if 300 <= status < 400 else Outcome.FAILED


def _is_of(outcome: FetchOutcome, waiting: Outstanding) -> bool:
    """Whether an outcome ends the present lease of a URL. An attempt that was not dialled keeps its number in the next
    lease, and an outcome may be read again after a takeover: only the instant of the lease tells the two apart."""
    return (
        outcome.attempt == waiting.attempt
        and outcome.fetch_no == waiting.entry.fetch_no
        and outcome.lease_until == waiting.lease_until
    )


def _without_form(packed: bytes) -> bytes:
    """The context of the target of a redirect: a form is not sent to another URL."""
    context = unpack_context(packed)
    return packed if context is None or not context.form else pack_context(msgspec.structs.replace(context, form=False))
