"""Facts about one URL, as values: its position in the frontier, and the state of its host, job and rules. Pure.

No function changes anything: no pace advances, and no exemption is used up. Instants are seconds since 1970 UTC, 0 for
none. `explain` draws the conclusions.
"""

import math
import shlex
from typing import Literal, NamedTuple

import msgspec
from nephila.kernel.live_settings import DEPTH
from nephila.kernel.messages import HostUse, Outcome, Quarantine, UrlState
from nephila.native import parse_url
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.engine.unwanted import ODD_SHAPES_ALLOWED
from nephila.scheduler.frontier.host_state import Host
from nephila.scheduler.frontier.in_flight import ENDING, FETCHED, LEASED, LifeState
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import SEED, Entry, unpack
from nephila.scheduler.jobs.strategies import HEAD
from nephila.scheduler.politeness.host_pace import MARGIN_S
from nephila.scheduler.politeness.robots import OriginRobots, origin_of
from nephila.scheduler.traps.path_patterns import patterns_of
from nephila.scheduler.traps.url_shape import shape

PauseCause = Literal["held", "delay", "refused", "robots", "longer"]
LOOKED_AT = 20_000
"""URLs of a host's queue that are searched: 10 ms in which a running program is blocked."""
SAME_INSTANT_S = 0.01
LONGER_S = 1.0
"""A pause longer than the delay by this much has another cause."""


class Home(NamedTuple):
    """The directory of the crawl, as commands name it; whether `nephila up` made it; whether a crawl runs there. Or the
    cluster of services."""

    out: str = ""
    many: bool = False
    running: bool = False
    system: str = ""
    """HOST:PORT of its broker."""
    member: str = ""
    """The scheduler that owns the partition, as SERVICE/NAME; empty: the program has one scheduler."""

    @property
    def option(self) -> str:
        """--out DIR or --bootstrap HOST:PORT; empty when neither is known."""
        if self.system:
            return f" --bootstrap {shlex.quote(self.system)}"
        return f" --out {shlex.quote(self.out)}" if self.out else ""

    @property
    def takes_requests(self) -> bool:
        """Whether `nephila jobs` helps: a finished crawl fetches nothing more."""
        return self.many or self.running or bool(self.system)

    @property
    def goes_on(self) -> str:
        """The command that continues it."""
        return ("nephila up" if self.many else "nephila crawl --resume") + self.option


class ScopeFact(msgspec.Struct):
    """Whether the job admits the URL as a link at depth 0, and the rule that decides."""

    admitted: bool
    rule: str


class DepthFact(msgspec.Struct):
    """The largest depth at which links are admitted: the smaller one of two limits."""

    limit: int
    set_by: Literal["job", "member"]
    """job: its `maxDepth`. member: the live setting `depth` of the scheduler."""
    job_limit: int = -1
    """`maxDepth` of the job; -1: none."""
    release: str = ""
    """The command that takes the live setting back."""


class RobotsFact(msgspec.Struct):
    """The stored robots.txt of the URL's origin. `line` is 0 when no line decides."""

    origin: str
    policy: str
    allowed: bool
    line: int
    rule: str
    status: int
    reason: str
    fetched_at: float
    expired: bool


class QueuedFact(msgspec.Struct):
    """Where the URL waits; `position` counts from 1 among the `of` URLs of its host and job."""

    position: int
    """0 behind the first LOOKED_AT; depth, attempts and priority are unknown then."""
    of: int
    head: bool
    depth: int
    fetch_no: int
    attempts: int
    not_before: float
    """0 when it waits in the queue, not for an instant."""
    priority: int = 0


class LeaseFact(msgspec.Struct):
    """The URL is outstanding. In a running program all fields are known; a log gives only `attempt`."""

    attempt: int
    fetch_no: int = 0
    state: Literal["leased", "fetched", "ending"] = "leased"
    """leased: being fetched; fetched: its page is not stored yet; ending: its row is not stored yet, and there is no
    page."""
    since: float = 0.0
    until: float = 0.0
    address: str = ""


class HostFact(msgspec.Struct):
    """Pace of the host."""

    queued: int
    delay_s: float
    backoff_s: float
    """Its last back-off. It outlives answers, so it does not mean that a pause is in force."""
    wait_s: float
    """Seconds until the host may be fetched from."""
    not_before: float
    pause: Literal["", "held", "delay", "refused", "robots", "longer"]
    """Cause of not_before. held: a person has paused the host. longer: longer than the delay, cause not known."""
    address: str
    in_flight: int = 0
    line: int = 0
    """Position in the queue of its server address, 0 for none, and the length of that queue."""
    line_of: int = 0
    rank: int = 0
    """Rank of its domain by `domains.ranks` of the job; 0: none."""
    ranks: int = 0
    """Domains that have a rank in the job."""


class Spend(msgspec.Struct):
    """One limit and its use."""

    what: str
    used: float
    limit: float


class BudgetFact(msgspec.Struct):
    """The limits of the job, and the one that stops the URL: the empty string for none."""

    limits: list[Spend]
    spent: Literal["", "job", "host", "domain", "queued"]
    reason: str
    on_way: int
    """Outstanding pages of the job, which count too."""


class TrapFact(msgspec.Struct):
    """Evidence for a trap."""

    shape: str
    """Why the URL has the shape of a trap, or the empty string."""
    let_through: int
    """How many more URLs of odd shapes are fetched from its host."""
    place: str = ""
    """The closed path pattern that the URL belongs to."""
    reason: str = ""
    since: float = 0.0
    fetches: int = 0
    released: bool = False
    copy_of: str = ""
    """The URL without its session id, when links to copies of it are refused."""
    release: str = ""
    """The command that releases the pattern, where there is one."""


class RecrawlFact(msgspec.Struct):
    """When the page is fetched again, and why."""

    policy: Literal["adaptive", "fixed", "cron", "on request"]
    interval_s: float
    changes_per_day: float
    """Estimated."""
    checks: int
    changes: int
    fetched_at: float
    """Last fetch that brought or confirmed a copy."""
    next_at: float
    """0 = never."""
    out: bool
    """It is due: queued or outstanding."""
    missing: int
    """404 and 410 in a row."""
    gone: bool
    fetch_no: int


def depth(dispatcher: Dispatcher, job: Job, home: Home) -> DepthFact | None:
    """The limit of depth that counts in this partition; None without any."""
    of_job, of_member = job.scope.max_depth, dispatcher.frontier.depth_limit
    if of_member >= 0 and (of_job < 0 or of_member < of_job):
        member = f" --member {shlex.quote(home.member)}" if home.member else ""
        return DepthFact(of_member, "member", of_job, f"nephila service settings {DEPTH}={member}{home.option}")
    return DepthFact(of_job, "job", of_job) if of_job >= 0 else None


def robots(dispatcher: Dispatcher, host: Host | None, url: str, host_key: str, now: float) -> RobotsFact | None:
    """robots.txt of the URL's origin; None before its first fetch."""
    origin = origin_of(url, host_key)
    file: OriginRobots | None = host.robots.get(origin) if host is not None else None
    if file is None:
        return None
    agent = dispatcher.frontier.config.agent
    line, rule = 0, ""
    if file.rules is not None:
        allowed, line, rule = file.rules.decide(agent, parse_url(url).path_query)
    else:
        allowed = file.allows(agent, url)
    text = file.text
    return RobotsFact(
        origin, file.policy, allowed, line, rule, text.status, text.reason, text.fetched_at, file.expires <= now
    )


def queued(
    dispatcher: Dispatcher, host: Host | None, job: Job, key: bytes, state: UrlState | None, ended: bool
) -> tuple[Entry, QueuedFact] | None:
    """The URL among the delayed ones or in the queue of its host. `ended`: it has a row.

    In a queue longer than LOOKED_AT, a URL that is neither found nor ended is behind the part that was searched: a seen
    URL is queued until it is leased, and a lease ends with a row. O(min(queue, LOOKED_AT)).
    """
    if host is None:
        return None
    store = dispatcher.frontier.store
    of = store.length(host.number, job.number)
    for when, number, uid, packed in dispatcher.frontier.delayed.items():
        if number == host.number and uid == job.uid and packed.startswith(key):
            entry = unpack(packed)
            return entry, _place(entry, 1, of + 1, True, when + dispatcher.frontier.time.utc_offset)
    for position, (order, packed) in enumerate(store.items(host.number, job.number, LOOKED_AT), 1):
        if packed.startswith(key):
            entry = unpack(packed)
            return entry, _place(entry, position, of, order == HEAD)
    again = state is not None and job.due_table.is_checked_out(key)
    if of <= LOOKED_AT or key not in job.seen or (ended and not again):
        return None
    depth, fetch_no = (state.depth, state.fetch_no + 1) if again and state is not None else (0, 1)
    entry = Entry(key, depth, fetch_no)
    return entry, _place(entry, 0, of, False)


def _place(entry: Entry, position: int, of: int, head: bool, not_before: float = 0.0) -> QueuedFact:
    return QueuedFact(position, of, head, entry.depth, entry.fetch_no, entry.attempts, not_before, entry.priority)


def lease(dispatcher: Dispatcher, job: Job, key: bytes, now: float) -> LeaseFact | None:
    """Start and end of the URL's lease; None when it is not leased."""
    frontier = dispatcher.frontier
    waiting = frontier.in_flight.urls.get((job.uid, key))
    if waiting is None:
        return None
    fact = LeaseFact(waiting.attempt, waiting.entry.fetch_no, _STATES[waiting.state], address=waiting.address)
    if waiting.state is LEASED:
        fact.until = frontier.in_flight.leases[job.uid, key] + frontier.time.utc_offset
        fact.since = frontier.in_flight.leased_at(waiting) + frontier.time.utc_offset
    return fact


_STATES: dict[LifeState, Literal["leased", "fetched", "ending"]] = {
    LEASED: "leased",
    FETCHED: "fetched",
    ENDING: "ending",
}


def host_fact(dispatcher: Dispatcher, host: Host | None, job: Job, now: float) -> HostFact | None:
    """Pace of the host, and its position in the queue of its address. O(that queue)."""
    if host is None:
        return None
    frontier = dispatcher.frontier
    wait_s = max(host.pace.not_before - now, 0.0)
    fact = HostFact(
        queued=frontier.store.queued(host.number),
        delay_s=frontier.hosts.delay_s(host, job),
        backoff_s=host.pace.backoff_s,
        wait_s=wait_s,
        not_before=host.pace.not_before + frontier.time.utc_offset if wait_s else 0.0,
        pause=pause_cause(dispatcher, host, job) if wait_s else "",
        address=host.address,
        in_flight=host.in_flight,
    )
    if job.compiled.ranks is not None:
        fact.rank, fact.ranks = job.compiled.ranks.rank(host.key), len(job.compiled.ranks)
    if host.number in frontier.readiness.waiting_for_address:
        numbers = [slot.number for slot in frontier.addresses.line(host.address)]
        fact.line_of = len(numbers)
        fact.line = numbers.index(host.number) + 1 if host.number in numbers else 0
    return fact


def pause_cause(dispatcher: Dispatcher, host: Host, job: Job | None) -> PauseCause:
    """Cause of the host's not_before. A back-off is kept long after the host answers again, so it proves nothing. A
    pause that began with the last refusal does."""
    frontier, pace = dispatcher.frontier, host.pace
    if pace.held_until and pace.not_before <= pace.held_until + SAME_INSTANT_S:
        return "held"
    if abs(pace.not_before - pace.pause_s - pace.refused_at) < SAME_INSTANT_S:
        return "refused"
    if host.robots_tries:
        return "robots"
    longest_s = max(frontier.hosts.delay_s(host, job), frontier.hosts.delay_s(host, None))
    return "longer" if pace.pause_s > longest_s + MARGIN_S + LONGER_S else "delay"


def budget(dispatcher: Dispatcher, host: Host | None, job: Job, host_key: str) -> BudgetFact:
    use = (host.uses.get(job.uid) if host is not None else None) or HostUse(job.uid)
    held = dispatcher.frontier.store.length(host.number, job.number) if host is not None else 0
    limits = [
        Spend("pages of the job", job.counts.ended[Outcome.STORED], job.budget.max_pages),
        Spend("fetches of the host", use.pages, job.compiled.host_limits.pages),
        Spend("bytes of the host", use.bytes, job.compiled.host_limits.bytes),
        Spend("seconds of the host", round(use.time_s, 3), job.compiled.host_limits.time_s),
        Spend("queued of the host", held, job.compiled.host_limits.queued),
    ]
    if job.domains is not None and (domain := job.domains.get(host_key)) is not None:
        limit = job.domains.budget(domain)
        limits.append(Spend("requests of the domain", domain.requests, math.ceil(limit) if limit < math.inf else 0))
    fact = BudgetFact([limit for limit in limits if limit.limit], "", "", job.counts.leased)
    if job.budget.max_pages and job.counts.ended[Outcome.STORED] + job.counts.leased >= job.budget.max_pages:
        fact.spent = "job"
    elif reason := job.compiled.host_limits.spent(use):
        fact.spent, fact.reason = "host", reason
    elif job.domains is not None and (reason := job.domains.spent(host_key)):
        fact.spent, fact.reason = "domain", reason
    elif job.compiled.host_limits.queued and held >= job.compiled.host_limits.queued:
        fact.spent = "queued"
    return fact


def trap(
    dispatcher: Dispatcher, host: Host | None, job: Job, url: str, entry: Entry | None, home: Home
) -> TrapFact | None:
    """Evidence for a trap; None without any, or where traps do not apply: seeds, later fetches, traps off."""
    if job.compiled.traps.off or (
        entry is not None and (entry.flags & SEED or not job.is_first_fetch(entry.url_key, entry.fetch_no))
    ):
        return None
    spared = ODD_SHAPES_ALLOWED - job.run_counts.odd_shapes[host.number] if host is not None else ODD_SHAPES_ALLOWED
    fact = TrapFact(shape(url, dispatcher.frontier.time.utc_now), max(spared, 0))
    part = host.novelty.get(job.uid) if host is not None else None
    if part is not None:
        fact.copy_of = part.session_copy_of(url)
        closed = _closed(part.closed, url)
        if closed is not None:
            fact.place, fact.reason, fact.since = closed.place, closed.reason, closed.since
            fact.fetches, fact.released = closed.fetches, closed.released
            if home.takes_requests and not closed.released:
                words = (job.spec.name or job.uid, closed.host, closed.place)
                fact.release = f"nephila jobs release {' '.join(map(shlex.quote, words))}{home.option}"
    return fact if fact.shape or fact.place or fact.copy_of else None


def _closed(closed: dict[str, Quarantine], url: str) -> Quarantine | None:
    """The quarantine in force for the URL, else a released one."""
    quarantines = [closed[pattern] for pattern in patterns_of(url).patterns if pattern in closed] if closed else []
    return min(quarantines, key=lambda quarantine: quarantine.released, default=None)


def recrawl(job: Job, state: UrlState | None, key: bytes) -> RecrawlFact | None:
    """When the page is fetched again; None when it is not watched."""
    policy = job.compiled.recrawl
    if state is None or not policy.active:
        return None
    out = job.due_table.is_checked_out(key)
    return RecrawlFact(
        policy="cron"
        if policy.schedule is not None
        else "fixed"
        if policy.every_s
        else "adaptive"
        if policy.adaptive
        else "on request",
        interval_s=state.interval_s,
        changes_per_day=policy.rate(state) * 86_400.0,
        checks=state.checks,
        changes=state.changes,
        fetched_at=0.0 if state.outcome is Outcome.DROPPED else state.fetched_at,
        next_at=max(state.next_at, 0.0),
        out=out,
        missing=state.missing,
        gone=state.missing >= policy.gone_after,
        fetch_no=state.fetch_no,
    )
