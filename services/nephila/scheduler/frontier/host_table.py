"""The host table: active hosts are Python objects, idle hosts are bytes in the native store.

A million hosts wait; a few thousand are being fetched from. Invariant: a host with a fetch in flight is an object, and
the store holds the complete state of every host that is not an object.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from nephila.kernel.messages import HostRecord, HostState, HostUse, HostYield, RefusingHost, RobotsTxt
from nephila.native import HostStore, partition_of
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.host_state import Host
from nephila.scheduler.frontier.prepared_hosts import PreparedHosts
from nephila.scheduler.frontier.turn_time import TurnTime
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.politeness.host_pace import from_state
from nephila.scheduler.politeness.robots import crawl_delay_s, from_log, to_log
from nephila.scheduler.politeness.robots_cache import RobotsCache
from nephila.scheduler.traps.novelty import NoveltyTracker

log = logging.getLogger(__name__)
MAX_REFUSING = 1000
"""Refusing hosts that are remembered; further ones are not reported."""

Account = TypeVar("Account", HostUse, HostYield)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(HostRecord).decode


class HostTable:
    def __init__(
        self,
        store: HostStore,
        config: SchedulerConfig,
        numbered: Mapping[int, Job],
        prepared: PreparedHosts,
        time: TurnTime,
    ) -> None:
        self.store = store
        self.prepared = prepared
        self.numbered = numbered
        """Jobs by number. The store names jobs by number, because a uid may be deleted and used again."""
        self.config = config
        self._time = time
        self.hot: dict[int, Host] = {}
        self.refusing_since: dict[str, float] = {}
        """Host key → monotonic instant of its first refusal without an answer since. It is not stored: a host that
        still refuses after a restart is noted again."""
        self.robots = RobotsCache(config.agent)
        """robots.txt files of active hosts."""
        self.written_bytes = 0
        """States written since the last checkpoint. The store keeps them in memory until the next one."""

    def __len__(self) -> int:
        return len(self.store)

    def checkpointed(self) -> None:
        """The store has written a checkpoint."""
        self.written_bytes = 0

    def note_refusal(self, key: str, now: float) -> None:
        if len(self.refusing_since) < MAX_REFUSING:
            self.refusing_since.setdefault(key, now)

    def note_answer(self, key: str) -> None:
        self.refusing_since.pop(key, None)

    def refusing(self, now: float, longer_than_s: float) -> list[RefusingHost]:
        """Hosts with queued URLs that have refused every request for so long, the longest first. Costs
        O(`MAX_REFUSING`)."""
        hosts = []
        for key, since in list(self.refusing_since.items()):
            number = self.store.find(key)
            if number < 0:
                del self.refusing_since[key]
            elif now - since >= longer_than_s and (queued := self.store.queued(number)):
                hosts.append(RefusingHost(key, since + self._time.utc_offset, queued))
        return sorted(hosts, key=lambda host: host.since)

    def get_or_create(self, key: str) -> Host:
        """The host of that key, created when it is new."""
        return self.get(self.store.host(key))

    def find(self, key: str) -> Host | None:
        """The host of that key, or None."""
        number = self.store.find(key)
        return self.get(number) if number >= 0 else None

    def get(self, number: int) -> Host:
        """The host of that number, as an object."""
        host = self.hot.get(number)
        if host is None:
            host = self.hot[number] = self._load(number)
        return host

    def _load(self, number: int) -> Host:
        key = self.store.name(number)
        partition = partition_of(hashlib.md5(key.encode(), usedforsecurity=False).digest(), self.config.partitions)
        host = Host(number, key, partition)
        packed = self.store.state(number)
        if packed:
            self._fill(host, _decode(packed))
        return host

    def _fill(self, host: Host, record: HostRecord) -> None:
        if record.state is not None:
            record.state.uses = self._by_uid(record.state.uses)
            load_state(host, record.state, self._time.now, self._time.utc_now)
        for text in record.robots:
            self.set_robots(host, text)
        for part in self._by_uid(record.yields):
            host.novelty[part.job] = self._yield(host, part)

    def _yield(self, host: Host, part: HostYield) -> NoveltyTracker:
        tracker = NoveltyTracker(part.job, host.key)
        try:
            tracker.unpack(part.packed)
        except ValueError as error:
            # A newer release packed it. The job holds the quarantines too, so those survive.
            log.warning("%s; novelty is measured from zero", error)
            closed = [q for job in self.numbered.values() if job.uid == part.job for q in job.quarantines.values()]
            for quarantine in closed:
                if quarantine.host == host.key:
                    tracker.restore(quarantine)
        return tracker

    def set_robots(self, host: Host, text: RobotsTxt) -> None:
        before = host.robots.get(text.origin)
        host.robots[text.origin] = from_log(text, self._time.now, self._time.utc_now, self.robots)
        if before is not None and before.rules is not None:
            self.robots.release(before.rules)
        host.crawl_delay_s = crawl_delay_s(host.robots.values(), self.config)

    def state_of(self, host: Host) -> HostState:
        """The state of a host that outlives a restart."""
        uses = list(host.uses.values())
        return host.pace.to_state(host.key, host.address, self._time.utc_offset, host.crawl_delay_s, uses)

    # ---- jobs that use a host

    def jobs_on(self, host: Host) -> list[Job]:
        """Jobs that have URLs queued on a host."""
        numbered = self.numbered
        return [numbered[number] for number, _ in self.store.jobs(host.number) if number in numbered]

    def limit(self, host: Host) -> int:
        """Concurrent fetches of a host: the smallest limit of the jobs that use it."""
        least, numbered = 0, self.numbered
        for number, _ in self.store.jobs(host.number):
            job = numbered.get(number)
            if job is not None:
                policies = job.compiled.policies
                limit = policies.everywhere or policies.concurrency(host.key)
                least = limit if not least or limit < least else least
        return least or 1

    def fetches_alone(self, host: Host, job: Job | None) -> bool:
        """Whether this job, and every other one with URLs on the host, fetches one at a time there. False where no job
        is known."""
        users = [*self.jobs_on(host), *([job] if job is not None else [])]
        return bool(users) and all(user.compiled.policies.concurrency(host.key) == 1 for user in users)

    def delay_s(self, host: Host, job: Job | None) -> float:
        """Seconds between two fetches of a host for a job; for None the longest over all jobs that use the host."""
        pace = host.pace
        if job is None:
            least = max(host.crawl_delay_s, pace.least_delay_s)
            return max((self.delay_s(host, user) for user in self.jobs_on(host)), default=least)
        return max(job.compiled.policies.delay_s(host.key, host.crawl_delay_s, pace.took_s), pace.least_delay_s)

    # ---- memory

    def evict(self, host: Host) -> None:
        """Write a host into the store and drop its object. A host without state worth keeping is forgotten."""
        self._save(host)
        del self.hot[host.number]
        self._release_robots(host)
        if not self.store.state(host.number):
            self.store.forget(host.number)

    def drop(self, number: int) -> None:
        """The host belongs to another partition: remove it with its queues."""
        if (host := self.hot.pop(number, None)) is not None:
            self._release_robots(host)
        for job, _ in self.store.jobs(number):
            self.store.drop_queue(number, job)
        self.store.unschedule(number)
        self.store.set_state(number, b"")
        self.store.forget(number)

    def _release_robots(self, host: Host) -> None:
        for robots in host.robots.values():
            if robots.rules is not None:
                self.robots.release(robots.rules)

    def _save(self, host: Host) -> None:
        if not host.changed:
            return
        host.changed = False
        pace = host.pace
        prepared = host.number in self.prepared.by_number
        robots = [origin for origin in host.robots.values() if prepared or origin.expires > self._time.now]
        if (
            pace.certain_at <= self._time.now
            and not pace.backoff_s
            and not pace.least_delay_s
            and not robots
            and not host.uses
            and not host.novelty
        ):
            self.store.set_state(host.number, b"")
            return
        accounts = bool(host.uses or host.novelty)
        names = {job.uid: str(number) for number, job in self.numbered.items() if accounts}
        yields = [HostYield(names[job], part.pack()) for job, part in host.novelty.items() if job in names]
        state = self.state_of(host)
        state.uses = [msgspec.structs.replace(use, job=names[use.job]) for use in state.uses if use.job in names]
        packed = _encode(HostRecord(state, [to_log(origin) for origin in robots], yields))
        self.store.set_state(host.number, packed)
        self.written_bytes += len(packed)

    def _by_uid(self, accounts: Iterable[Account]) -> list[Account]:
        """Accounts of the store, which have job numbers in the place of uids, with uids; without those of deleted
        jobs."""
        accounts_by_uid = []
        for account in accounts:
            if (job := self.numbered.get(int(account.job))) is not None:
                account.job = job.uid
                accounts_by_uid.append(account)
        return accounts_by_uid

    def trim(self, pinned: Callable[[], set[int]]) -> None:
        """Evict inactive objects when there are too many. `pinned` hosts stay: the number of a forgotten host may be
        given to another, while the number is still in use. O(evicted objects) amortised."""
        hosts, robots_bytes = self.config.hot_hosts, self.config.hot_robots_bytes
        many, heavy = len(self.hot) > hosts, self.robots.size_bytes > robots_bytes
        if not many and not heavy:
            return
        hosts, robots_bytes = hosts * 3 // 4 if many else hosts, robots_bytes * 3 // 4 if heavy else robots_bytes
        for host in self._cold(pinned()):
            many, heavy = len(self.hot) > hosts, self.robots.size_bytes > robots_bytes
            if not many and not heavy:
                return
            if many or host.robots:
                self.evict(host)

    def _cold(self, pinned: set[int]) -> Iterator[Host]:
        return (host for host in list(self.hot.values()) if not host.in_flight and host.number not in pinned)

    def flush(self) -> None:
        """Write every changed object into the store, before a checkpoint."""
        for host in self.hot.values():
            self._save(host)

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold."""
        self.store.check()
        held = [origin.rules for host in self.hot.values() for origin in host.robots.values()]
        self.robots.check([rules for rules in held if rules is not None])
        for number, host in self.hot.items():
            assert host.number == number, f"{host.key} is under another number"
            assert self.store.name(number) == host.key, f"{host.key} is under another name"


def novelty_of(host: Host, job: Job) -> NoveltyTracker:
    """The novelty tracker of a job on a host, with the current limits of the job."""
    tracker = host.novelty.get(job.uid)
    if tracker is None:
        tracker = host.novelty[job.uid] = NoveltyTracker(job.uid, host.key)
    tracker.cap_fetches = job.compiled.traps.cap_fetches
    tracker.cap_share = job.compiled.traps.cap_share
    return tracker


def load_state(host: Host, state: HostState, now: float, utc_now: float) -> None:
    """Set the pace and use of a host from their stored form."""
    host.pace = from_state(state, now, utc_now)
    host.address = state.address
    host.uses = {use.job: use for use in state.uses}
