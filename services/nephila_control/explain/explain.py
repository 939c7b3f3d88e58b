"""Explain: what became of one URL, and what it waits for. Pure; changes nothing.

Input is the frontier of a running program, or one restored from its log, of a crawl that runs, has stopped or has
finished. For an unseen URL it states whether the job would admit it. Every explanation has a `kind` and a sentence,
which begins with "Stored at", "Not crawled", "Waiting" or "Never found" and names the first obstacle. docs/explain.md
lists the kinds and what to do about each.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from nephila.kernel.fragment_routes import parse_for
from nephila.kernel.messages import UrlState
from nephila.kernel.reasons.table import kind_of, row_of, words
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.job_holds import Hold
from nephila.scheduler.jobs.queue_entry import Entry

from nephila_control.explain import facts
from nephila_control.explain.facts import (
    BudgetFact,
    DepthFact,
    Home,
    HostFact,
    LeaseFact,
    QueuedFact,
    RecrawlFact,
    RobotsFact,
    ScopeFact,
    TrapFact,
)
from nephila_control.explain.kinds import Kind

OWNER = "this program"
"""Owner of a partition where one program has all of them."""

State = Literal["stored", "not_crawled", "waiting", "never_found"]


class Explanation(msgspec.Struct):
    """Facts and verdict. A fact that does not apply is None."""

    url: str
    canonical: str
    host_key: str
    url_key: str
    partition: int
    owner: str
    job: str
    seen: bool
    scope: ScopeFact
    robots: RobotsFact | None
    robots_ignored: bool
    queued: QueuedFact | None
    lease: LeaseFact | None
    host: HostFact | None
    budget: BudgetFact
    trap: TrapFact | None
    recrawl: RecrawlFact | None
    row: dict[str, Any] | None
    """Row of the table `pages`, without text."""
    fetches: list[dict[str, Any]]
    """The last rows of the table `fetches`, the newest last."""
    kind: Kind = "unknown"
    state: State = "waiting"
    sentence: str = ""
    depth_limit: DepthFact | None = None
    lane: str = ""
    """Of a job with render auto: the verdict on pages of this URL pattern."""


def explain(
    dispatcher: Dispatcher,
    job: Job,
    url: str,
    now: float,
    *,
    attempts: Mapping[tuple[str, bytes], int] | None = None,
    row: Mapping[str, Any] | None = None,
    fetches: Sequence[Mapping[str, Any]] = (),
    running: bool = False,
    home: Home = Home(),  # noqa: B008 - a tuple
) -> Explanation:
    """Facts and verdict for a URL of a job; `UrlError` when it is no http(s) URL. O(queue of its host, bounded).

    `attempts`: outstanding URLs that `restore` found; `row` and `fetches`: rows of the tables `pages` and `fetches` for
    the URL; `now`: monotonic seconds; `home` completes the commands in sentences.
    """
    parts = parse_for(job.compiled.routes, url)
    frontier = dispatcher.frontier
    key = parts.fingerprint
    host = frontier.hosts.find(parts.host_key)
    watched: UrlState | None = job.due_table.get(key)
    lease = facts.lease(dispatcher, job, key, now)
    placed = facts.queued(dispatcher, host, job, key, watched, row is not None) if lease is None else None
    entry, queued = placed if placed else (None, None)
    if lease is None and (tried := (attempts or {}).get((job.uid, key), 0)):
        lease = LeaseFact(tried, entry.fetch_no if entry else 0)
    scope = job.scope.decide(parts.href, parts.host_key)
    explanation = Explanation(
        url=parts.href,
        canonical=parts.canonical,
        host_key=parts.host_key,
        url_key=key.hex(),
        partition=frontier.pending.partition(key).number,
        owner=OWNER,
        job=job.uid,
        seen=key in job.seen,
        scope=ScopeFact(scope.admitted, scope.rule),
        robots=facts.robots(dispatcher, host, parts.href, parts.host_key, now),
        robots_ignored=job.compiled.ignore_robots,
        queued=queued,
        lease=lease,
        host=facts.host_fact(dispatcher, host, job, now),
        budget=facts.budget(dispatcher, host, job, parts.host_key),
        trap=facts.trap(dispatcher, host, job, parts.href, entry, home),
        recrawl=facts.recrawl(job, watched, key),
        row=dict(row) if row is not None else None,
        fetches=[dict(fetch) for fetch in fetches],
        depth_limit=facts.depth(dispatcher, job, home),
    )
    explanation.kind, explanation.state, text = _Verdict(explanation, job, entry, running, home).judge()
    explanation.sentence = _OPENINGS[explanation.state] + text.rstrip(".") + "."
    return explanation


_OPENINGS: dict[State, str] = {
    "stored": "Stored at ",
    "not_crawled": "Not crawled: ",
    "waiting": "Waiting: ",
    "never_found": "Never found: ",
}
Verdict = tuple[Kind, State, str]
Way = tuple[Kind, str]


class _Verdict:
    """From the facts to the first obstacle, in the order in which the dispatcher checks."""

    def __init__(self, explanation: Explanation, job: Job, entry: Entry | None, running: bool, home: Home) -> None:
        self.known = explanation
        self.job = job
        self.entry = entry
        self.running = running
        self.home = home

    def judge(self) -> Verdict:
        """Kind, state and the sentence without its opening."""
        explanation = self.known
        if explanation.row is not None:
            return self._ended(explanation.row)
        if explanation.queued is not None or explanation.lease is not None:
            return self._waiting()
        if explanation.seen:
            if self.home.system:
                return (
                    "seen",
                    "not_crawled",
                    "it was seen and has ended; its row in the table pages of storage says how",
                )
            return "seen", "not_crawled", "it was seen and has ended, but nephila.db, where its row belongs, has none"
        return self._unseen()

    # ---- ended: it has a row

    def _ended(self, row: Mapping[str, Any]) -> Verdict:
        kind, state, text = self._of_row(row, str(row.get("outcome", "")), str(row.get("reason", "")))
        recrawl, fetch_no = self.known.recrawl, int(row.get("fetch_no", 1))
        if self._newest > fetch_no:
            kind = "watched" if kind == "stored" else kind
            return kind, state, f"{text}; fetch {self._newest} of it: {self._waiting()[2]}"
        if recrawl is None:
            return kind, state, text
        if recrawl.gone:
            times = f"{recrawl.missing} times in a row it was missing (404 or 410)"
            return "gone", state, f"{text}; {times}, so it counts as gone and is not fetched again"
        if recrawl.next_at:
            text = f"{text}; watched for changes, fetched again at {utc(recrawl.next_at)}"
            return ("watched" if kind == "stored" else kind), state, text
        return kind, state, text

    @property
    def _newest(self) -> int:
        """Number of the fetch that is queued or outstanding, 0 for none."""
        queued, lease = self.known.queued, self.known.lease
        return max(queued.fetch_no if queued else 0, lease.fetch_no if lease else 0)

    def _of_row(self, row: Mapping[str, Any], outcome: str, reason: str) -> Verdict:
        at = row.get("fetched_at", "")
        if outcome == "stored":
            size = f"{row.get('bytes', 0):,} bytes"
            return "stored", "stored", f"{at}: status {row.get('status', 0)}, {size}, in the table pages"
        kind, text = self._refusal(row, outcome, reason)
        if row.get("sha256"):
            copies = [fetch["fetched_at"] for fetch in self.known.fetches if fetch.get("outcome") == "stored"]
            recrawl = self.known.recrawl
            confirmed = utc(recrawl.fetched_at) if recrawl is not None and recrawl.fetched_at else ""
            of = copies[-1] if copies else confirmed or row.get("changed_at") or "an earlier fetch"
            return "copy_kept", "stored", f"{of}, and that copy is kept; the last fetch brought none: {text}"
        return kind, "not_crawled", text

    def _refusal(self, row: Mapping[str, Any], outcome: str, reason: str) -> Way:
        kind = kind_of(outcome, reason)
        cause = str(row.get("cause", ""))
        cause_words = row_of(cause).words if cause and row_of(cause).reported_as == reason else words(outcome, reason)
        robots = self.known.robots
        match kind:
            case "failed":
                return kind, f"{outcome} ({reason}) at {row.get('fetched_at', '')}{self._tries()}: {cause_words}"
            case "robots" if robots is not None and not robots.allowed:
                return kind, _forbidden(robots)
            case "redirect":
                return kind, f"it redirects to {row.get('final_url', '')}; explain that URL"
            case "content_type":
                return kind, f"its content type {row.get('content_type', '')} is not wanted"
            case "near_copy":
                return kind, f"{cause_words}: {row.get('near_copy_of') or 'its row does not name it'}"
            case "excluded" if not self.known.scope.admitted:
                return kind, f"the scope no longer admits it ({self.known.scope.rule})"
            case "trap":
                return self._trap_of_row(cause_words)
        return kind, cause_words

    def _tries(self) -> str:
        tries = int(self.known.fetches[-1].get("attempt", 0)) if self.known.fetches else 0
        return f" after {tries} {'try' if tries == 1 else 'tries'}" if tries else ""

    def _trap_of_row(self, cause_words: str) -> Way:
        trap = self.known.trap
        if trap is not None and (trap.place or trap.shape):
            return self._trapped(trap)
        return "trap", cause_words

    def _trapped(self, trap: TrapFact) -> Way:
        if trap.place and (not trap.released or not trap.shape):
            # A shape cannot be changed; a quarantine can be released, so it is named first.
            where = f"{trap.place} of {self.known.host_key}"
            if trap.released:
                return "trap_quarantine", f"{where} was closed as a trap ({trap.reason}); it has been released"
            release = f"; to fetch new URLs there, release it with: {trap.release}" if trap.release else ""
            return "trap_quarantine", f"{where} is closed as a trap: {trap.reason}{release}"
        return "trap_shape", f"it has the shape of a trap: {trap.shape}"

    # ---- queued or outstanding

    def _waiting(self) -> Verdict:
        explanation, entry, lease = self.known, self.entry, self.known.lease
        if lease is not None and self.running:
            kind, text = self._under_way(lease)
            return kind, "waiting", text
        left = (
            self.job.left_scope(entry._replace(url=explanation.url), explanation.host_key) if entry is not None else ""
        )
        if left:
            return "excluded", "not_crawled", f"the scope no longer admits it ({left})"
        trap = explanation.trap
        if trap is not None and self._is_shut(trap):
            kind, text = self._trapped(trap)
            return kind, "not_crawled", f"{text}; it is dropped when its turn comes"
        if self._is_forbidden():
            assert explanation.robots is not None
            return "robots", "not_crawled", _forbidden(explanation.robots)
        kind, text = self._way(lease, explanation.queued)
        return kind, "waiting", text if self.running else f"{text}; nothing runs; continue with: {self.home.goes_on}"

    @staticmethod
    def _is_shut(trap: TrapFact) -> bool:
        """The dispatcher would drop the URL."""
        return bool((trap.place and not trap.released) or (trap.shape and not trap.let_through))

    def _is_forbidden(self) -> bool:
        robots = self.known.robots
        return robots is not None and not robots.allowed and not robots.expired and not self.job.compiled.ignore_robots

    @staticmethod
    def _under_way(lease: LeaseFact) -> Way:
        if lease.state == "fetched":
            return "fetched", "it has been fetched; its page is not stored yet"
        if lease.state == "ending":
            return "ending", "it has ended without a page; its row is not stored yet"
        times = f", handed out at {utc(lease.since)}, taken back at {utc(lease.until)}" if lease.until else ""
        return "leased", f"try {lease.attempt} of it is under way{times}"

    def _way(self, lease: LeaseFact | None, queued: QueuedFact | None) -> Way:
        if lease is not None:
            return (
                "interrupted",
                f"try {lease.attempt} of it was under way when the crawl ended, so it is fetched again",
            )
        assert queued is not None
        return self._stop() or self._time(queued) or self._turn(queued)

    def _stop(self) -> Way | None:
        """Obstacles that a person has to remove."""
        job, budget = self.job, self.known.budget
        if budget.spent == "job" and job.budget.is_spent:
            limit = "scope.maxPages" if self.home.many else "--max-pages"
            return "budget_job", f"{limit} {job.budget.max_pages} is reached; with a larger one it is fetched"
        if job.spec.paused:
            return "paused", f"the job is paused; nephila jobs resume {job.uid}{self.home.option}"
        if used_up := job.holds.text(Hold.QUOTA):
            return "quota", f"{used_up}; with a larger one, or in the next period, it is fetched"
        if budget.spent == "job":
            return (
                "budget_job",
                f"the last of {job.budget.max_pages:,} pages are in flight; if one fails, this URL may be fetched",
            )
        if budget.spent == "host":
            return "budget_host", f"{budget.reason} for {self.known.host_key}; with a larger one it is fetched"
        if budget.spent == "domain":
            return "budget_domain", f"held back: {budget.reason}; the budget grows with the crawl"
        return None

    def _time(self, queued: QueuedFact) -> Way | None:
        """Obstacles that pass with time."""
        if closed := self.job.holds.text(Hold.WINDOW):
            return "window", f"the job {closed}"
        host, key = self.known.host, self.known.host_key
        if queued.not_before:
            return "retry", f"try {queued.attempts + 1} of it is due at {utc(queued.not_before)}"
        if host is None or not host.wait_s:
            return None
        until = utc(host.not_before)
        if host.pause == "held":
            return "pause", f"a person has paused {key} until {until}"
        if host.pause == "refused":
            return "backing_off", f"{key} is paused until {until}, because it refused or timed out"
        if host.pause == "robots":
            return "robots_retry", f"robots.txt of {key} could not be fetched and is fetched again at {until}"
        if host.pause == "longer":
            why = f"longer than its delay of {host.delay_s:g} s: the host requested it, or the delay was longer then"
            return "pause", f"{key} is paused until {until}, {why}"
        return "delay", f"{key} is fetched from every {host.delay_s:g} s, next at {until}"

    def _turn(self, queued: QueuedFact) -> Way:
        """URLs and hosts that come first."""
        explanation, host = self.known, self.known.host
        if host is not None and host.line:
            line = f"{explanation.host_key} is number {host.line:,} of {host.line_of:,} hosts in its queue"
            return "address_line", f"its server address {host.address} is busy; {line}"
        if not queued.position:
            first = f"it is one of {queued.of:,} URLs of {explanation.host_key}"
            return "behind", f"{first}, behind the first {facts.LOOKED_AT:,}"
        if queued.position > 1:
            ahead = queued.position - 1
            them = f"{ahead:,} URL{'s' if ahead > 1 else ''} of {explanation.host_key}"
            return "behind", f"{them} go{'es' if ahead == 1 else ''} before it"
        if not self.job.compiled.ignore_robots and (explanation.robots is None or explanation.robots.expired):
            return "robots_first", f"robots.txt of {explanation.host_key} is fetched first"
        if host is not None and host.in_flight:
            return "next", f"it is the next of {explanation.host_key}, after the request that is in flight"
        return "next", f"it is the next of {explanation.host_key}"

    # ---- never found

    def _unseen(self) -> Verdict:
        """The verdict on a URL that was never found, if it were found now."""
        explanation, job, budget, trap = self.known, self.job, self.known.budget, self.known.trap
        limit = explanation.depth_limit
        if not explanation.scope.admitted:
            return "out_of_scope", "not_crawled", explanation.scope.rule
        if trap is not None and trap.copy_of:
            return "copy", "not_crawled", f"but for a session id it is {trap.copy_of}, which is known under other ids"
        depth = ""
        if limit is not None:
            depth = f" within depth {limit.limit}"
            if limit.set_by == "member":
                depth += f" (live setting depth of the scheduler; taken back with: {limit.release})"
            held_depth = job.refused.held.depth_of(bytes.fromhex(explanation.url_key))
            if held_depth is not None and held_depth > limit.limit:
                link_depth = f"a link leads to it at depth {held_depth}, and links are followed{depth}"
                return "too_deep", "not_crawled", f"{link_depth}; it is crawled when that limit is raised"
        text = f"no page fetched so far links to it{depth}; if one did, it would "
        if budget.spent == "host":
            return "budget_host", "never_found", f"{text}be left out: {budget.reason} for {explanation.host_key}"
        if budget.spent == "domain":
            return "budget_domain", "never_found", f"{text}be held back or left out: {budget.reason}"
        if budget.spent == "queued":
            most = f"{explanation.host_key} has {job.compiled.host_limits.queued:,} URLs queued, as many as it may"
            return "queue_full", "never_found", f"{text}be left out: {most}"
        if trap is not None and self._is_shut(trap):
            kind, why = self._trapped(trap)
            return kind, "never_found", f"{text}be dropped: {why}"
        if explanation.robots is not None and not explanation.robots.allowed and not job.compiled.ignore_robots:
            return "robots", "never_found", f"{text}be denied: {_forbidden(explanation.robots)}"
        return "unknown", "never_found", f"{text}be crawled ({explanation.scope.rule})"


def _forbidden(robots: RobotsFact) -> str:
    if robots.policy == "rules":
        return f"robots.txt forbids it (line {robots.line}: {robots.rule})"
    if robots.policy == "failed":
        return f"its host cannot be reached ({robots.reason}): {row_of(robots.reason).words}"
    what = f"answered {robots.status}" if robots.status else f"could not be fetched ({robots.reason})"
    return f"robots.txt of {robots.origin} {what}, which forbids everything for now"


def utc(seconds: float) -> str:
    """An instant as ISO 8601 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
