"""The port between the operations of the control API and the system they act on.

`local/backend.py` is one program on this machine, `cluster/backend.py` a system over Kafka. What an operation means,
and in which order it checks, publishes and answers, is in `operations.py`; a backend reads state, publishes, and waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from nephila.kernel.documents.browser_schema import Browser
from nephila.kernel.documents.job_document import JobDocument
from nephila.kernel.live_settings import SettingScope
from nephila.kernel.messages import CrawlJob, Outcome, ParseRule, Quarantine, RuleVerdict, Seed
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError
from nephila.storage.source import Source

from nephila_control import job_types, screen_types, system_types
from nephila_control.event_log import EventLog
from nephila_control.explain.explain import Explanation
from nephila_control.rule_versions import StoredVersion
from nephila_control.series import JobSeries

if TYPE_CHECKING:
    from nephila.downloader.config import DownloaderConfig
    from nephila_rules.stored_pages import StoredPage

    from nephila_control.access.change_log import ChangeLog


class DeadLetters(Protocol):
    """A dead letter is a message that a service could not process."""

    async def page(self, request: system_types.ListDeadLetters) -> system_types.DeadLetterList:
        """Raises `UserError`."""

    async def replay(self, request: system_types.ReplayDeadLetters) -> system_types.ReplayedList:
        """Publishes messages again. Raises `UserError`."""


class Topics(Protocol):
    async def rows(self) -> list[system_types.TopicRow]:
        """Raises `UserError`."""


class Backend(Protocol):
    """A coroutine that changes something returns when the change is durable. Each method raises `UserError` if the
    present state refuses the request."""

    kind: system_types.SystemKind
    place: str
    """The directory, or HOST:PORT of the broker."""
    clock: Clock
    rows: Source | None
    """Database of the rows; None if it is not configured."""
    captures: Path | None = None
    """Directory of screenshots and other captures of browsers; None if it is not configured."""
    sites_file: Path | None = None
    """File of the sites, which need not exist; None if the system has no sites."""
    letters: DeadLetters
    series: JobSeries
    events: EventLog
    log: ChangeLog
    at_once: bool
    """Seeds are admitted in the turn that receives their job: a new job is not held until its seeds are in, and the
    seeds of its document are sent with each apply. Otherwise only those that are new in the document are sent."""

    # ---- jobs

    @property
    def tenants(self) -> Collection[str]:
        """Tenants in the settings; an empty list lets jobs name any tenant."""

    @property
    def own_jobs(self) -> Collection[str] | None:
        """Jobs whose rows may be read; None allows the rows of all jobs, deleted ones too."""
        return None

    def check_change(self) -> None:
        """Raise `UserError` where jobs cannot be changed."""
        return

    def check_job(self, document: JobDocument) -> None:
        """Raise `UserError` for a job that needs a rule, a sink or a library that is missing."""

    def spec(self, uid: str) -> CrawlJob | None:
        """Returns the newest desired state of a job, deleted or not; None for an unknown name."""

    def jobs(self) -> Mapping[str, CrawlJob]:
        """Maps uid to job, without deleted jobs."""

    def reported_generation(self, uid: str) -> int:
        """Returns the last generation of a job that `spec` does not have; 0 for a new name."""
        return 0

    async def prepare_reports(self, jobs: Iterable[CrawlJob]) -> None:
        """Get what the next reports of these jobs have of other processes."""
        return

    def report(self, job: CrawlJob) -> job_types.Job: ...

    async def publish(self, job: CrawlJob, seeds: Sequence[Seed] = ()) -> list[job_types.RefusedSeed]:
        """Publish a desired state, then seeds."""

    async def send_seeds(self, uid: str, seeds: Sequence[Seed]) -> list[job_types.RefusedSeed]: ...

    def expect_seeds(self, job: CrawlJob) -> None:
        """Holds a job whose seeds follow with later requests."""
        return

    async def resume_held(self, job: CrawlJob) -> bool:
        """Continues a held job once its seeds are admitted. Returns False if that happens after the answer."""

    async def republish(self, job: CrawlJob) -> None:
        """Publish a job once more where its receivers are other programs. A scheduler that reports this generation has
        read all seeds before it; a parser clears its caches and sends the links of forgotten URLs again."""
        return

    # ---- URLs

    async def quarantines(self, uid: str) -> list[Quarantine]:
        """Parts of hosts that were closed for a job, released ones too."""

    async def release(self, uid: str, host: str, pattern: str) -> None:
        """Take a part of a host out of quarantine. Raises `NotFound` when it is in none."""

    async def try_exclusion(self, job: CrawlJob, exclude: Sequence[str]) -> job_types.ExclusionTried:
        """Which queued URLs of a job these expressions would remove. Raises `UserError`."""

    async def forget(self, job: CrawlJob, urls: list[tuple[str, Outcome]]) -> job_types.UrlsForgotten:
        """Forget URLs of a job; each has the outcome of its row."""

    async def explain(self, url: str, name: str) -> Explanation:
        """Explains a canonical URL in a job; without a name, in the job with the most facts about it. Raises `NotFound`
        for an unknown job."""

    async def hosts(
        self, request: screen_types.ListHosts, jobs: Collection[str] | None = None
    ) -> screen_types.HostList:
        """Hosts with queued URLs of the job of the request; without one, of these jobs, and of all for None."""

    async def set_pace(self, request: screen_types.ChangeHost) -> None:
        """Change the pace of a host. Raises `NotFound` for a host without a queue or a state."""

    # ---- single pages

    async def fetch(self, url: str, browser: Browser | None = None) -> StoredPage:
        """Fetches one page now, without a job. robots.txt, the egress guard and the limits of size and time count.
        `browser` renders the page. Raises `UserError`, also if there is no browser."""
        from nephila_rules.try_page import stored_page

        return await stored_page(url, self.single_fetches(rendered=browser is not None), browser=browser)

    def single_fetches(self, *, rendered: bool = False) -> DownloaderConfig:
        """Settings of fetches without a job. Raises `UserError` if there are none for this caller, or no browser."""
        if rendered:
            raise UserError("this API has no browser; nephila up renders pages (nephila browser install)")
        from nephila.downloader.fetch_page import config_of

        return config_of({})

    # ---- rules

    @property
    def rules(self) -> Mapping[str, ParseRule]: ...

    @property
    def rules_directory(self) -> Path | None:
        """Directory with rules as files; None without one."""
        return None

    @property
    def knows_rules(self) -> bool:
        """False if `rules` says nothing about the rules of the jobs, as after the end of a crawl."""
        return True

    def check_rule_change(self, names: Iterable[str] = ()) -> None:
        """Raise `UserError` where no rule can be changed, or one of these cannot."""
        return

    @property
    def browser_problem(self) -> str:
        """Why no page can be rendered here; empty if one can, or if the answer is not known here."""
        return ""

    @property
    def has_functions(self) -> bool:
        """False if rules cannot call Python functions; True also if the answer is not known here."""
        return True

    async def put_rules(self, rules: Sequence[ParseRule]) -> None:
        """Publish rules, deletions too."""

    def rule_versions(self, name: str) -> Sequence[StoredVersion]:
        """Returns the last versions of a rule, the newest last; none of a rule that is a file."""
        return ()

    def verdicts(self) -> Iterable[RuleVerdict]: ...

    # ---- the system

    def members(self) -> list[system_types.Member]: ...

    def look(self) -> None:
        """Adds what has happened since the last look to `events`."""

    async def complete(self, status: system_types.Status) -> None:
        """Adds to the sums over jobs the facts that only this kind of system has."""

    def configuration(self) -> Mapping[str, msgspec.Struct]:
        """Returns the configuration of each service of the program. Raises `UserError` if there are several
        programs."""
        raise UserError("each member has its own settings; see its settings file, or nephila service settings")

    async def network(self) -> system_types.Network:
        """Returns DNS and all proxies of this program. Raises `UserError` if other programs fetch."""
        raise UserError("each downloader has its own DNS cache and proxies; see its metrics")

    async def topics(self) -> list[system_types.TopicRow]:
        """Raises `UserError` if there is no broker, or if it does not answer."""
        raise UserError("one program has no topics; its queue is on the overview")

    def settings(self) -> dict[str, Any]:
        """Maps each key to its live setting."""
        return {}

    def scope_of(self, member: str, setting: str) -> SettingScope:
        """Finds the scope of a setting of one member. Raises `UsageError` for an unknown or ambiguous member."""

    async def put_settings(self, changes: Mapping[str, Any]) -> None:
        """Sets each key to its value; None restores the default."""


def next_generation(job: CrawlJob, **changed: Any) -> CrawlJob:
    """Returns a changed copy: services share a message, so it is never changed in place."""
    return msgspec.structs.replace(job, generation=job.generation + 1, **changed)


def is_held(job: CrawlJob | None, generation: int) -> bool:
    """Whether a job is still paused until its seeds are in, and was not changed after this generation."""
    return job is not None and not job.deleted and job.generation == generation and job.paused
