"""Outcomes and receipts: pace of the host, retry, redirect, terminal row, end of a URL. Pure."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from nephila.kernel.fragment_routes import redirected
from nephila.kernel.messages import (
    EndedUrl,
    FetchKind,
    FetchOutcome,
    FetchResult,
    HostUse,
    Outcome,
    Receipt,
    Receipts,
    Record,
    UrlState,
)
from nephila.kernel.reasons.row import Pause, Retry, Row
from nephila.kernel.reasons.table import UNKNOWN, Reason, row_of, row_of_outcome
from nephila.kernel.requisites import note_of
from nephila.native import UrlError
from nephila.scheduler.engine import recrawl_queue
from nephila.scheduler.engine.admission import add_sitemaps, admit, anchor_scope
from nephila.scheduler.frontier.frontier import DELETED, Frontier, Key, Partition
from nephila.scheduler.frontier.host_state import Host, Outstanding, OutstandingState, TurnOutput
from nephila.scheduler.frontier.host_table import novelty_of
from nephila.scheduler.frontier.job_state import Job
from nephila.scheduler.frontier.queue_entry import (
    SEED,
    Entry,
    entry_flags,
    is_requisite,
    pack_context,
    queued_of,
    repack,
    unpack_context,
)
from nephila.scheduler.frontier.strategies import HEAD
from nephila.scheduler.politeness.host_pace import is_refusal, took_s
from nephila.scheduler.politeness.robots import from_outcome
from nephila.scheduler.recrawl.policy import GONE_STATUSES

RetryLater = Callable[[int, Job, bytes, float], None]
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
    """Applies outcomes and receipts; `retry_later` delays a URL."""

    def __init__(self, frontier: Frontier, retry_later: RetryLater) -> None:
        self.frontier = frontier
        self._retry_later = retry_later

    # ---- outcomes

    def outcome(self, outcome: FetchOutcome, now: float, out: TurnOutput) -> None:
        """One attempt has ended. A late or unknown outcome changes only the pace of the host."""
        if outcome.result is FetchResult.RETRACTED:
            self._retract(outcome, now)
            return
        frontier = self.frontier
        partition = frontier.partition(outcome.url_key)
        key = (outcome.job, outcome.url_key)
        waiting = partition.outstanding.get(key)
        if waiting is None and outcome.job:
            key = (DELETED + outcome.job, outcome.url_key)
            waiting = partition.outstanding.get(key)
        row = row_of_outcome(outcome)
        if not row.no_outcome:
            frontier.note_consumed(now, waiting is not None and frontier.is_rendered(waiting))
        if (
            waiting is None
            or waiting.state is not OutstandingState.LEASED
            or not _is_of(outcome, waiting)
            or (row.no_outcome and self._lease_start_utc(key) > outcome.ended_at)
        ):
            if waiting is not None and outcome.result is FetchResult.LOST:
                self._lost_page(waiting, outcome, now)
            host = frontier.hosts.find(outcome.host)
            if host is not None:
                before = host.pace.not_before
                self._pace(host, None, outcome, row, now)
                self._log_host(partition, host, before, now)
                frontier.reschedule(host)
            return
        host = waiting.host
        before = host.pace.not_before
        job = frontier.jobs.get(waiting.job)
        frontier.leases.pop(key, None)
        self._check_pace(host, job, outcome)
        frontier.fetch_ended(host)
        host.changed = True
        if waiting.address:
            frontier.addresses.end(waiting.address, now, refused=outcome.reason == BUSY)
        self._pace(host, job, outcome, row, now)
        if outcome.kind is FetchKind.ROBOTS:
            self._robots(waiting, outcome, row, now)
        elif job is not None:
            self._account(host, job, outcome)
            if (job.has_quotas or outcome.browser_s) and outcome.started_at > 0:
                frontier.count_quotas(job, outcome.wire_bytes, outcome.browser_s)
            self._page(waiting, job, outcome, row, now, out)
        else:
            self._finish_untracked(waiting)
        self._log_host(partition, host, before, now, always=job is not None and job.counts_host_use)
        frontier.reschedule(host)

    def _check_pace(self, host: Host, job: Job | None, outcome: FetchOutcome) -> None:
        """Count a fetch that began before its host might be fetched from. It would be a fault of this program: requests
        are sent after that instant. Clocks of members may differ by `CLOCKS_S`."""
        frontier = self.frontier
        may_start = host.pace.not_before + frontier.utc_offset
        if 0 < outcome.started_at < may_start - CLOCKS_S and frontier.fetches_alone(host, job):
            frontier.counters.early_fetches += 1

    def _lease_start_utc(self, key: Key) -> float:
        return self.frontier.lease_start(self.frontier.leases[key]) + self.frontier.utc_offset

    def _pace(self, host: Host, job: Job | None, outcome: FetchOutcome, row: Row, now: float) -> None:
        """Set when the host may be fetched from next: after its delay, or later when it refused."""
        if outcome.address:
            host.address = outcome.address
        if outcome.started_at <= 0:
            # Given back undialled; a wait is stated where no proxy works, or a login is paused.
            host.pace.after_fetch(now, outcome.retry_after_s)
            return
        host.pace.took_s = took_s(outcome)
        delay_s = self.frontier.delay_s(host, job)
        if delay_s > 0:
            host.pace.after_fetch(now, delay_s)
        if is_refusal(outcome, row):
            config, rng = self.frontier.config, self.frontier.rng
            host.pace.after_refusal(now, outcome.retry_after_s, config, rng, row.pause is Pause.PASSING)
        elif 0 < outcome.status < 500:
            host.pace.after_answer(self.frontier.config, now)

    def _account(self, host: Host, job: Job, outcome: FetchOutcome) -> None:
        """Count a fetch in the job's budget for the host."""
        if not job.counts_host_use or outcome.started_at <= 0:
            return
        use = host.uses.get(job.uid)
        if use is None:
            use = host.uses[job.uid] = HostUse(job.uid)
        use.pages += 1
        use.bytes += outcome.wire_bytes
        use.time_s += max(outcome.ended_at - outcome.started_at, 0.0)
        self.frontier.update_host_budget(host, job)

    def _log_host(self, partition: Partition, host: Host, before: float, now: float, always: bool = False) -> None:
        """Log a new pause and the used budget, so that they outlive a restart."""
        if always or host.pace.not_before > max(before, now):
            host.changed = True
            self.frontier.pending(partition).hosts.append(self.frontier.hosts.state_of(host))

    def _page(
        self, waiting: Outstanding, job: Job, outcome: FetchOutcome, row: Row, now: float, out: TurnOutput
    ) -> None:
        result = outcome.result
        if result is FetchResult.FETCHED or result is FetchResult.NOT_MODIFIED:
            waiting.state = OutstandingState.FETCHED
            if waiting.receipted is not None:
                self._ended(waiting, waiting.receipted)
            else:
                self.frontier.log_outstanding(waiting)
                self.frontier.await_receipt(waiting)
        elif result in NOT_COUNTED:
            self._requeue(waiting, job, waiting.attempt - 1, now)
        elif result is FetchResult.REDIRECT:
            self._redirect(waiting, job, outcome, now, out)
        elif result is FetchResult.DENIED:
            self._end(waiting, job, out, outcome.reason or Reason.ADDRESS, outcome)
        elif result is FetchResult.CONTENT_TYPE:
            self._end(waiting, job, out, Reason.CONTENT_TYPE, outcome)
        elif self._tries_again(row, waiting.attempt):
            self._requeue(waiting, job, waiting.attempt, now, self._retry_wait(waiting, outcome, row))
        else:
            self._end(waiting, job, out, outcome.reason, outcome)

    def _lost_page(self, waiting: Outstanding, outcome: FetchOutcome, now: float) -> None:
        """The fetch succeeded, but its page was lost before it became a record: fetch it again."""
        job = self.frontier.jobs.get(waiting.job)
        if _is_of(outcome, waiting) and waiting.state is OutstandingState.FETCHED and job is not None:
            self._requeue(waiting, job, waiting.attempt - 1, now)

    def receipts_lost(self, before: float, now: float, out: TurnOutput) -> int:
        """The outcomes of these URLs came by `before`, and their messages are lost: fetch the URLs again, publish the
        rows of those without a page again. Returns their number. O(URLs without receipt)."""
        frontier = self.frontier
        keys = [key for key, since in frontier.without_receipt.items() if since <= before]
        for key in keys:
            waiting = frontier.partition(key[1]).outstanding[key]
            job = frontier.jobs[waiting.job]
            if waiting.record is not None:
                out.records.append((frontier.partitions[waiting.host.partition].number, waiting.record))
                frontier.await_receipt(waiting)
            elif waiting.attempt < frontier.config.tries * CRASH_TRIES_FACTOR:
                self._requeue(waiting, job, waiting.attempt, now)
            else:
                self._end(waiting, job, out, Reason.LOST, None)
        frontier.counters.lost_messages += len(keys)
        return len(keys)

    def _retract(self, outcome: FetchOutcome, now: float) -> None:
        """The page of an earlier fetch did not come from its server: the URL is fetched again, ended or not. A URL that
        is open for a later fetch stays as it is."""
        frontier, request, key = self.frontier, outcome.request, outcome.url_key
        job = frontier.jobs.get(outcome.job)
        if job is None or request is None:
            return
        waiting = frontier.partition(key).outstanding.get((outcome.job, key))
        if waiting is not None:
            if waiting.state is OutstandingState.FETCHED and waiting.entry.fetch_no == outcome.fetch_no:
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
        frontier.pending(frontier.partition(key)).urls.append(state)
        job.due_table.check_out(key)
        recrawl_queue.requeue(frontier, job, state)

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
        partition = self._finish_untracked(waiting)
        if outcome.result in NOT_COUNTED:
            self._end_preparation(host)
            return
        tried = host.robots_tries + 1
        if outcome.result is FetchResult.FAILED and self._tries_again(row, tried):
            host.robots_tries = tried
            self._end_preparation(host)
            if not is_refusal(outcome, row):
                host.pace.after_fetch(now, self._retry_wait(waiting, outcome, row))
            return
        host.robots_tries = 0
        host.changed = True
        origin = waiting.entry.url.removesuffix("/robots.txt")
        text = from_outcome(outcome, origin, now + frontier.utc_offset, frontier.config)
        frontier.pending(partition).robots.append(text)
        frontier.hosts.set_robots(host, text)
        users = frontier.jobs_on(host)
        for job in users:
            add_sitemaps(frontier, job, host.key, origin, host.robots[origin].rules)
        if is_refusal(outcome, row):
            self._end_preparation(host)
        elif users:
            frontier.prepared.fetched(host.number, users[0].number, origin, now)
        if outcome.started_at > 0 and host.crawl_delay_s:
            host.pace.after_fetch(now, host.crawl_delay_s)

    def _end_preparation(self, host: Host) -> None:
        """No robots.txt came, or the host pauses: no page follows for now, and another host may be begun."""
        job = self.frontier.numbered.get(self.frontier.prepared.job(host.number))
        if job is not None:
            self.frontier.prepared.discard(host.number)
            self.frontier.resume_hosts(job)

    def _finish_untracked(self, waiting: Outstanding) -> Partition:
        """Remove a robots.txt, or a URL of a deleted job, from the outstanding URLs."""
        waiting.state = OutstandingState.FETCHED
        self.frontier.log_outstanding(waiting)
        return self.frontier.remove_outstanding(waiting)

    def lease_expired(self, key: Key, now: float, out: TurnOutput) -> None:
        """No outcome came in time. That is a failed try, and a later outcome is late. If no downloader consumed the
        request, the try does not count and the URL is leased again."""
        utc = self.frontier.utc_now
        waiting = self.frontier.partition(key[1]).outstanding[key]
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
        if not self.frontier.was_consumed(self.frontier.leases[key], self.frontier.is_rendered(waiting)):
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
    ) -> None:
        """Put the URL at the head of its host's queue, in the log too; after `wait_s` when given."""
        frontier = self.frontier
        entry = entry or waiting.entry
        # By its key: a host without a fetch in flight may have been evicted, and its number given to another host.
        host = frontier.hosts.get_or_create(waiting.host.key)
        partition = frontier.remove_outstanding(waiting)
        job.end_lease()
        job.note_fetch_no(entry.fetch_no)
        state = job.due_table.get(entry.url_key) if job.max_pages else None
        if state is not None and state.outcome is Outcome.STORED:
            job.reserve_page(entry.url_key)
        packed = repack(entry, attempts)
        not_before = now + wait_s + frontier.utc_offset if wait_s > 0 else 0.0
        frontier.queued_log(partition).append(
            queued_of(entry, job.uid, host.key, attempts, head=True, not_before=not_before)
        )
        if wait_s > 0:
            self._retry_later(host.number, job, packed, now + wait_s)
        else:
            frontier.store.push(host.number, job.number, HEAD, packed)
            frontier.newly_queued(host.number, job, HEAD)
        frontier.resume_hosts(job)

    # ---- redirects

    def _redirect(self, waiting: Outstanding, job: Job, outcome: FetchOutcome, now: float, out: TurnOutput) -> None:
        """Queue the target like any URL: scope, seen set, robots.txt, pace and egress guard apply."""
        entry = waiting.entry
        try:
            target = redirected(job.spec, outcome.location, entry.url)
        except UrlError:
            self._end(waiting, job, out, Reason.BAD_REDIRECT, outcome)
            return
        hops = entry.hops + 1
        if hops > self.frontier.config.max_hops:
            self._end(waiting, job, out, Reason.TOO_MANY_REDIRECTS, outcome, target.href)
            return
        if target.fingerprint == entry.url_key and target.host_key == waiting.host.key:
            # Another spelling of the same canonical URL: its row comes from the next fetch.
            hop = entry._replace(url=target.href, hops=hops, fetch_no=entry.fetch_no + 1)
            self._requeue(waiting, job, 0, now, entry=hop)
            return
        self._end(waiting, job, out, Reason.REDIRECT, outcome, target.href)
        seed = bool(entry.flags & SEED) and hops <= SEED_HOPS
        if seed:
            if job.scope.excluded(target.href):
                return
            anchor_scope(self.frontier, job, target.host_key, target.path_query)
        elif self.frontier.is_other_partition(target.fingerprint):
            pass  # the partition of the target checks the scope
        elif not job.admits(target.href, target.host_key, entry.depth, is_requisite(entry.context)):
            return
        if target.fingerprint not in job.seen:
            admit(
                self.frontier,
                job,
                target.fingerprint,
                target.href,
                target.host_key,
                entry.depth,
                hops=hops,
                flags=entry_flags(seed, entry.render),
                head=True,
                priority=entry.priority,
                context=_without_form(entry.context),
            )

    # ---- ends

    def end_unfetched(self, host: Host, job: Job, entry: Entry, out: TurnOutput, reason: str) -> None:
        """Give a terminal row to a URL that was never dialled."""
        waiting = Outstanding(job.uid, host, entry, entry.attempts)
        self.frontier.add_outstanding((job.uid, entry.url_key), waiting)
        job.lease()
        self._end(waiting, job, out, reason, None)

    def _end(
        self,
        waiting: Outstanding,
        job: Job,
        out: TurnOutput,
        reason: str,
        fetched: FetchOutcome | None,
        final_url: str = "",
    ) -> None:
        """Publish the terminal row of a URL without a page. Its receipt ends the URL."""
        entry = waiting.entry
        waiting.state = OutstandingState.ENDING
        self.frontier.counters.without_page[reason] += 1
        job.end_lease()
        context = unpack_context(entry.context)
        record = Record(
            job=job.uid,
            url_key=entry.url_key,
            url=entry.url,
            fetch_no=entry.fetch_no,
            attempt=waiting.attempt,
            outcome=_ends_as(reason, fetched),
            reason=reason,
            status=fetched.status if fetched else 0,
            final_url=final_url,
            depth=entry.depth,
            content_type=fetched.content_type if fetched else "",
            fetched_at=fetched.ended_at if fetched and fetched.ended_at else self.frontier.utc_now,
            gone_pending=self._is_gone_pending(job, entry, fetched),
            # Storage then knows which platforms lead to the target.
            context=context if final_url else None,
            meta=note_of(context),
        )
        out.records.append((self.frontier.partitions[waiting.host.partition].number, record))
        waiting.record = record
        self.frontier.log_outstanding(waiting)
        self.frontier.await_receipt(waiting)
        self.frontier.resume_hosts(job)

    @staticmethod
    def _is_gone_pending(job: Job, entry: Entry, fetched: FetchOutcome | None) -> bool:
        """See `Record.gone_pending`."""
        if fetched is None or fetched.status not in GONE_STATUSES or not job.recrawl.active:
            return False
        return job.recrawl.gone_pending(job.due_table.get(entry.url_key))

    def receipts(self, message: Receipts) -> None:
        """The rows of these URLs are durable: the URLs have ended."""
        for receipt in message.receipts:
            waiting = self.frontier.partition(receipt.url_key).outstanding.get((message.job, receipt.url_key))
            if waiting is None or waiting.entry.fetch_no != receipt.fetch_no:
                continue
            if waiting.state is OutstandingState.LEASED:
                waiting.receipted = receipt
                self.frontier.log_outstanding(waiting)
            else:
                self._ended(waiting, receipt)

    def _yielded(self, job: Job, waiting: Outstanding, receipt: Receipt) -> None:
        """Count whether the page brought new text; close the path pattern that brings none."""
        frontier = self.frontier
        host = frontier.hosts.get_or_create(waiting.host.key)  # it may have been evicted meanwhile
        host.changed = True
        size_bytes = receipt.size_bytes
        closed = novelty_of(host, job).fetched(waiting.entry.url, receipt.text_hash, size_bytes, frontier.utc_now)
        if closed is not None:
            frontier.note_quarantine(job, host, closed)

    def _ended(self, waiting: Outstanding, receipt: Receipt) -> None:
        outcome = receipt.outcome
        frontier = self.frontier
        partition = frontier.remove_outstanding(waiting)
        job = frontier.jobs.get(waiting.job)
        if job is None:
            return
        if waiting.state is OutstandingState.FETCHED:
            job.end_lease()
        job.requisites.discard(waiting.entry.url_key)
        job.ended[outcome] += 1
        partition.ended[waiting.job, outcome] += 1
        entry = waiting.entry
        frontier.pending(partition).ended.append(
            EndedUrl(entry.url_key, waiting.job, waiting.host.key, entry.fetch_no, outcome)
        )
        first = job.is_first_fetch(entry.url_key, entry.fetch_no)
        if outcome is Outcome.STORED and first and not job.traps.off:
            self._yielded(job, waiting, receipt)
        recrawl_queue.record_fetch(frontier, job, waiting, receipt)
        if outcome is not Outcome.STORED:
            frontier.resume_hosts(job)


def _ended_as(status: int) -> Outcome:
    """The outcome of a URL whose last fetch had a status and no other fault."""
    if 200 <= status < 300:
        return Outcome.STORED
    return Outcome.DROPPED if 300 <= status < 400 else Outcome.FAILED


def _ends_as(reason: str, fetched: FetchOutcome | None) -> Outcome:
    """How a URL without a page ends. A reason of a newer version is a failure, unless its result is a denial."""
    row = row_of(reason)
    if row is UNKNOWN and fetched is not None and fetched.result is FetchResult.DENIED:
        return Outcome.DENIED
    return Outcome.FAILED if row.ends is None or row.ends is Outcome.STORED else row.ends


def _is_of(outcome: FetchOutcome, waiting: Outstanding) -> bool:
    """Whether an outcome ends the present lease of a URL. An attempt that was not dialled keeps its number in the next
    lease, and an outcome may be read again after a takeover: only the instant of the lease tells the two apart."""
    if outcome.attempt != waiting.attempt or outcome.fetch_no != waiting.entry.fetch_no:
        return False
    return not outcome.lease_until or outcome.lease_until == waiting.lease_until


def _without_form(packed: bytes) -> bytes:
    """The context of the target of a redirect: a form is not sent to another URL."""
    context = unpack_context(packed)
    return packed if context is None or not context.form else pack_context(msgspec.structs.replace(context, form=False))
