"""Endings: terminal rows of URLs without a page, and receipts, which end a URL. Pure."""

from __future__ import annotations

from nephila.kernel.messages import EndedUrl, FetchOutcome, FetchResult, Outcome, Receipt, Receipts, Record
from nephila.kernel.pages.requisites import note_of
from nephila.kernel.reasons.fault_note import fault_note
from nephila.kernel.reasons.link_note import link_note
from nephila.kernel.reasons.table import UNKNOWN, row_of
from nephila.scheduler.engine import recrawl_queue
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.frontier.host_state import Host, TurnOutput
from nephila.scheduler.frontier.host_table import novelty_of
from nephila.scheduler.frontier.in_flight import Outstanding
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.page_budget import STORED
from nephila.scheduler.jobs.queue_entry import Entry, unpack_context
from nephila.scheduler.recrawl.policy import GONE_STATUSES


class Endings:
    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier

    def unfetched(self, host: Host, job: Job, entry: Entry, out: TurnOutput, reason: str, cause: str = "") -> None:
        """Give a terminal row to a URL that was never dialled. `cause`: the finer reason, where there is one."""
        waiting = Outstanding(job.uid, host, entry, entry.attempts)
        self.without_page(waiting, job, out, reason, None, cause=cause)

    def without_page(
        self,
        waiting: Outstanding,
        job: Job,
        out: TurnOutput,
        reason: str,
        fetched: FetchOutcome | None,
        final_url: str = "",
        cause: str = "",
    ) -> None:
        """Publish the terminal row of a URL without a page. Its receipt ends the URL."""
        entry = waiting.entry
        self.frontier.counters.without_page[reason] += 1
        cause = fetched.cause if fetched is not None else cause
        if cause:
            self.frontier.counters.causes[cause] += 1
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
            fetched_at=fetched.ended_at if fetched and fetched.ended_at else self.frontier.time.utc_now,
            gone_pending=self._is_gone_pending(job, entry, fetched),
            # Storage then knows which platforms lead to the target.
            context=context if final_url else None,
            title=context.link_text if context is not None else "",
            meta=note_of(context)
            or link_note(context)
            or fault_note(cause, fetched.detail if fetched is not None else ""),
        )
        out.records.append((self.frontier.partitions[waiting.host.partition].number, record))
        self.frontier.in_flight.no_page(waiting, job, record)
        self.frontier.readiness.resume_hosts(job)

    @staticmethod
    def _is_gone_pending(job: Job, entry: Entry, fetched: FetchOutcome | None) -> bool:
        if fetched is None or fetched.status not in GONE_STATUSES or not job.compiled.recrawl.active:
            return False
        return job.compiled.recrawl.gone_pending(job.due_table.get(entry.url_key))

    def receipts(self, message: Receipts) -> None:
        """The rows of these URLs are durable: the URLs have ended."""
        urls = self.frontier.in_flight.urls
        for receipt in message.receipts:
            waiting = urls.get((message.job, receipt.url_key))
            if waiting is not None and waiting.entry.fetch_no == receipt.fetch_no:
                self.receipt(waiting, receipt)

    def _yielded(self, job: Job, waiting: Outstanding, receipt: Receipt) -> None:
        """Count whether the page brought new text; close the path pattern that brings none."""
        frontier = self.frontier
        host = waiting.host
        if frontier.hosts.hot.get(host.number) is not host:  # it was evicted meanwhile
            host = frontier.hosts.get_or_create(host.key)
        host.changed = True
        size_bytes = receipt.size_bytes
        closed = novelty_of(host, job).fetched(waiting.entry.url, receipt.text_hash, size_bytes, frontier.time.utc_now)
        if closed is not None:
            frontier.note_quarantine(job, host, closed)

    def receipt(self, waiting: Outstanding, receipt: Receipt) -> None:
        frontier, entry, outcome = self.frontier, waiting.entry, receipt.outcome
        job = frontier.jobs[waiting.job]
        if not frontier.in_flight.receipt(waiting, job, receipt):
            return
        job.budget.requisites.discard(entry.url_key)
        partition = frontier.partitions[waiting.host.partition]
        frontier.count_ended(job, partition, outcome)
        commit = partition.pending or frontier.pending.of(partition)
        commit.ended.append(EndedUrl(entry.url_key, waiting.job, waiting.host.key, entry.fetch_no, outcome))
        first = job.is_first_fetch(entry.url_key, entry.fetch_no)
        if outcome is STORED and first and not job.compiled.traps.off:
            self._yielded(job, waiting, receipt)
        if job.compiled.recrawl.active or job.due_table.packed:
            recrawl_queue.record_fetch(frontier, job, waiting, receipt)
        if outcome is not STORED:
            frontier.readiness.resume_hosts(job)


def _ends_as(reason: str, fetched: FetchOutcome | None) -> Outcome:
    """How a URL without a page ends. A reason of a newer version is a failure, unless its result is a denial."""
    row = row_of(reason)
    if row is UNKNOWN and fetched is not None and fetched.result is FetchResult.DENIED:
        return Outcome.DENIED
    return Outcome.FAILED if row.ends is None or row.ends is Outcome.STORED else row.ends
