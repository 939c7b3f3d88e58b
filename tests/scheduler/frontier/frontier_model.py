"""What a frontier should say, in dicts: a small model of jobs, URLs and hosts, and its way back to any commit.

The model is fed the same inputs and sees only what the scheduler publishes. `Marks` keeps a copy of it for each group
of commits that was written, so that after a power cut in the middle of one it says what must have stayed.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from nephila.kernel.documents.budget_schema import HostBudget
from nephila.kernel.documents.field_types import seconds
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.documents.job_schema import JobSpec, Scope
from nephila.kernel.messages import CrawlJob, FetchRequest, FrontierCommit, Outcome
from nephila.native import parse_url, partition_of

PARTITIONS = 4
HOSTS = [f"h{i}.test" for i in range(4)]
PAGES = 7
URLS = [f"http://{host}/{'d/' if page > 3 else ''}{page}" for host in HOSTS for page in range(PAGES)]
PARTS = {url: parse_url(url) for url in URLS}
KEYS = {url: parts.fingerprint for url, parts in PARTS.items()}
URL_OF = {key: url for url, key in KEYS.items()}
HOST_OF = {KEYS[url]: parts.host_key for url, parts in PARTS.items()}
PARTITION_OF = {key: partition_of(key, PARTITIONS) for key in URL_OF}
HOST_PARTITION = {HOST_OF[key]: number for key, number in PARTITION_OF.items()}
Key = tuple[str, bytes]


@dataclass
class JobModel:
    """A job from its creation to its deletion."""

    life: int
    """Which job of that name it is."""
    spec: CrawlJob
    admitted: set[bytes] = field(default_factory=set)
    seeds: set[bytes] = field(default_factory=set)
    ended: dict[bytes, tuple[int, Outcome]] = field(default_factory=dict)
    """Fetch that ended, and how."""
    fetches: Counter[str] = field(default_factory=Counter)
    """By host, while the job has a budget per host."""
    closed: set[str] = field(default_factory=set)
    """Hosts whose directory /d/ is closed as a trap."""
    held: set[bytes] = field(default_factory=set)
    """Stored pages that wait to be fetched again: each keeps its place under max_pages."""
    recrawled: bool = False
    """It had a policy at some time."""
    wanted: dict[str, Any] = field(default_factory=dict)
    """The sections of the latest desired state."""

    def copy(self) -> JobModel:
        """One that shares nothing that changes."""
        return JobModel(
            self.life, self.spec, set(self.admitted), set(self.seeds), dict(self.ended), Counter(self.fetches),
            set(self.closed), set(self.held), self.recrawled, self.wanted,
        )  # fmt: skip

    @property
    def document(self) -> JobSpec:
        """What is wanted."""
        return spec_of(self.spec)

    @property
    def scope(self) -> Scope:
        """Which URLs belong to it."""
        return self.document.scope

    @property
    def delay_s(self) -> float:
        """Seconds between two fetches of a host."""
        return seconds(self.document.politeness.delay)

    @property
    def budget(self) -> HostBudget:
        """Of each host."""
        return self.document.host_budget

    @property
    def stored(self) -> int:
        """Pages whose last fetch was stored, whether or not they wait for another."""
        return sum(outcome is Outcome.STORED for _, outcome in self.ended.values()) + len(self.held)

    def excluded(self, url: str) -> bool:
        """Whether an exclusion names it."""
        return any(re.search(pattern, url) for pattern in self.scope.exclude)

    def wants(self, url: str, depth: int) -> bool:
        """Whether a link is inside; hosts are all inside."""
        return not 0 <= self.scope.max_depth < depth and not self.excluded(url)


@dataclass
class Way:
    """A URL without receipt."""

    request: FetchRequest
    until: float
    """End of its lease, monotonic."""
    group: int
    """Groups of commits written before it was seen."""
    state: str = "leased"
    receipted: Outcome | None = None
    held: bool = False
    """A page that is stored is being fetched again: it gets its place back when it has to be tried again."""


@dataclass
class Model:
    """All that is durable; what is on its way is beside it."""

    jobs: dict[str, JobModel] = field(default_factory=dict)
    free_at: dict[str, float] = field(default_factory=lambda: dict.fromkeys(HOSTS, 0.0))
    """Host → no fetch before this instant, monotonic: a lower bound."""
    robots: dict[str, str] = field(default_factory=dict)
    """Host → the last word of its robots.txt: allow, rules, disallow, failed."""

    def copy(self) -> Model:
        """One that shares nothing that changes."""
        jobs = {uid: job.copy() for uid, job in self.jobs.items()}
        return Model(jobs, dict(self.free_at), dict(self.robots))


def merged(before: Model, after: Model, written: set[int], jobs_written: bool) -> Model:
    """What stays of a turn of which only the commits of these partitions reached the disk."""
    found = (after if jobs_written else before).copy()
    for host in HOSTS:
        source = after if HOST_PARTITION[host] in written else before
        found.free_at[host] = source.free_at[host]
        found.robots.pop(host, None)
        if host in source.robots:
            found.robots[host] = source.robots[host]
    for uid, job in found.jobs.items():
        old, new = before.jobs.get(uid), after.jobs.get(uid)
        sides = {
            number: side
            if (side := new if number in written else old) and side.life == job.life
            else JobModel(0, job.spec)
            for number in range(PARTITIONS)
        }
        job.admitted = {key for number, side in sides.items() for key in side.admitted if PARTITION_OF[key] == number}
        job.seeds = {key for number, side in sides.items() for key in side.seeds if PARTITION_OF[key] == number}
        job.ended = {
            key: end for number, side in sides.items() for key, end in side.ended.items() if PARTITION_OF[key] == number
        }
        job.held = {key for number, side in sides.items() for key in side.held if PARTITION_OF[key] == number}
        job.fetches = Counter({host: sides[HOST_PARTITION[host]].fetches[host] for host in HOSTS})
        job.closed = {host for host in HOSTS if host in sides[HOST_PARTITION[host]].closed}
    return found


@dataclass
class Group:
    """Commits that were written in one turn."""

    ends: list[tuple[int, int]]
    """(end in the segment, partition) of each."""
    after: Model


class Marks:
    """The model at each group of commits of the current segment."""

    def __init__(self, base: Model) -> None:
        self.base = base.copy()
        """At the start of the segment."""
        self.groups: list[Group] = []
        self.earlier = 0
        """Groups of segments before."""
        self.synced = 0
        """Bytes of the segment that a power cut cannot take."""

    @property
    def written(self) -> int:
        """Groups so far."""
        return self.earlier + len(self.groups)

    def append(self, size: int, frames: list[tuple[int, FrontierCommit]], model: Model) -> None:
        """A group was written, which began at `size`; frames are (length, commit)."""
        ends = []
        for length, commit in frames:
            size += length
            ends.append((size, commit.partition))
        self.groups.append(Group(ends, model.copy()))

    def next_segment(self) -> None:
        """A snapshot was taken."""
        self.base = self.groups[-1].after if self.groups else self.base
        self.earlier += len(self.groups)
        self.groups, self.synced = [], 0

    def cut(self, size: int) -> tuple[Model, int, set[int]]:
        """(the model, whole groups, partitions of the one that was torn) when `size` bytes of the segment stay."""
        before = self.base
        for number, group in enumerate(self.groups):
            if group.ends[-1][0] > size:
                written = {partition for end, partition in group.ends if end <= size}
                torn = [partition for _, partition in group.ends]
                model = merged(before, group.after, written, 0 in written or (0 not in torn and bool(written)))
                return model, self.earlier + number, written
            before = group.after
        return before.copy(), self.written, set()
