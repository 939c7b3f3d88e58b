"""Refetch: URLs that have ended are queued again on request: retry of failures, a lifted denial, refresh of what is
due. Pure.

One object per request, before the first URL is dispatched. A URL is queued with its next fetch number and a state in
the due table, in one commit, so that a restart finds it open. Invariant: a queued, delayed or outstanding URL stays as
it is; no URL is queued twice. Cost: each host's queue is read once, O(queued URLs of the named hosts).
"""

from __future__ import annotations

import contextlib

import msgspec

from nephila.kernel.documents.job_document import urls_of
from nephila.kernel.fragment_routes import parse_for
from nephila.kernel.messages import UrlState
from nephila.kernel.pages.requisites import level_of
from nephila.kernel.url_credentials import credentials_of, with_credentials
from nephila.native import UrlError
from nephila.scheduler.engine import recrawl_queue
from nephila.scheduler.engine.admission import admit
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.engine.open_urls import OpenUrls
from nephila.scheduler.frontier.host_state import Host
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import Entry
from nephila.scheduler.politeness.robots import origin_of


class Refetch:
    def __init__(self, dispatcher: Dispatcher, job: Job) -> None:
        self.frontier = dispatcher.frontier
        self.job = job
        self._open = OpenUrls(dispatcher, job)
        self.queued = 0
        """URLs that were queued."""
        self._seeds: set[bytes] = set()
        self._credentials: dict[str, list[str]] = {}
        """Host key → credentials of seeds."""
        for url in urls_of(job.compiled.document):
            with contextlib.suppress(UrlError):
                parts = parse_for(job.compiled.routes, url)
                self._seeds.add(parts.fingerprint)
                if credentials := credentials_of(url):
                    self._credentials.setdefault(parts.host_key, []).append(credentials)

    def ended(self, row: UrlState, *, due: bool = False, conditional: bool = True) -> bool:
        """Queue the URL of a terminal row; `row`: as in the table. False: the URL is open, the scope refuses it
        now, or, with `due`, it is not due. `conditional`: send its validators."""
        frontier, job, key = self.frontier, self.job, row.url_key
        try:
            url, host_key = self._as_found(row.url, key)
        except UrlError:
            return False
        if url != row.url:
            row = msgspec.structs.replace(row, url=url)
        if self._open.contains(host_key, key):
            return False
        stored = job.due_table.get(key)
        state = self._merged(row, stored, host_key)
        if due and not job.compiled.recrawl.refresh_due(
            state if stored is not None else job.compiled.recrawl.adopted(state), frontier.time.utc_now
        ):
            return False
        if job.scope.excluded(row.url) if state.seed else not self._in_scope(state):
            return False
        if not conditional:
            state.etag = state.last_modified = ""
        state.next_at = 0.0
        self._ask_robots_again(frontier.hosts.get_or_create(host_key), row.url)
        job.due_table.put(state)
        frontier.pending.of(frontier.pending.partition(key)).urls.append(state)
        job.note_change()
        if job.seen.add(key):
            recrawl_queue.enqueue(frontier, job, state)  # not counted as ended in this frontier
        else:
            job.due_table.check_out(key)
            recrawl_queue.requeue(frontier, job, state)
        self._open.add(host_key, key)
        self.queued += 1
        return True

    def link(self, url: str, key: bytes, depth: int) -> bool:
        """Admit a link that the scope refused earlier; False when the scope still refuses it, or when it is known.
        `url`, `key`: as in the table."""
        frontier, job = self.frontier, self.job
        try:
            parts = parse_for(job.compiled.routes, self._as_found(url, key)[0])
        except UrlError:
            return False
        if parts.fingerprint in job.seen or not job.scope.decide(parts.href, parts.host_key, depth).admitted:
            return False
        admit(frontier, job, Entry(parts.fingerprint, depth, url=parts.href), parts.host_key)
        self.queued += 1
        return True

    # ---- parts

    def _as_found(self, url: str, key: bytes) -> tuple[str, str]:
        """(URL, host key) of a row. Rows have no credentials: those of a seed of the host are put back where the key
        was made with them. Raises `UrlError`."""
        parts = parse_for(self.job.compiled.routes, url)
        if parts.fingerprint != key:
            for credentials in self._credentials.get(parts.host_key, ()):
                with_login = with_credentials(url, credentials)
                if parse_for(self.job.compiled.routes, with_login).fingerprint == key:
                    return with_login, parts.host_key
        return url, parts.host_key

    def _merged(self, row: UrlState, stored: UrlState | None, host_key: str) -> UrlState:
        if stored is not None:
            return msgspec.structs.replace(stored, fetch_no=max(stored.fetch_no, row.fetch_no))
        # The table does not mark seeds. At depth 0 are seeds, their redirects and URLs from sitemaps. Of these only a
        # seed may be out of scope.
        state = msgspec.structs.replace(row, job=self.job.uid, host=host_key)
        state.seed = row.depth == 0 and (row.url_key in self._seeds or not self._in_scope(state))
        return state

    def _in_scope(self, state: UrlState) -> bool:
        return self.job.admits(state.url, state.host, state.depth, level_of(state.context) > 0)

    def _ask_robots_again(self, host: Host, url: str) -> None:
        """Expire a robots.txt that could not be fetched: it may be the reason why the URL ended."""
        robots = host.robots.get(origin_of(url, host.key))
        if (
            robots is None
            or robots.rules is not None
            or robots.policy == "allow"
            or robots.expires <= self.frontier.time.now
        ):
            return
        text = msgspec.structs.replace(robots.text, expires_at=self.frontier.time.utc_now)
        self.frontier.hosts.set_robots(host, text)
        host.changed = True
        self.frontier.pending.of(self.frontier.partitions[host.partition]).robots.append(text)
