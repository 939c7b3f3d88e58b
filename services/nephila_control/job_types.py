"""The types of the operations on jobs and their URLs: requests with the bounds of each field, and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from nephila.kernel.documents.field_types import JobOwner
from nephila.kernel.messages import Context, Seed
from nephila.kernel.runtime.errors import UsageError

from nephila_control.explain.explain import Explanation
from nephila_control.requests import Name, Request, Url

SEED_BATCH = 1000
"""Seeds of one request at most; an implementation gives the loop back after so many."""
ContextWord = Annotated[str, Meta(max_length=253)]
MAX_REFUSED = 100
"""Refused seeds listed in one answer; beyond that only their number."""
JobState = Literal["new", "running", "paused", "limit", "quota", "window", "idle"]
"""new: no scheduler has reported on the newest generation yet. running: URLs are queued or in flight. paused: nothing
is dispatched. limit: a budget is spent, of the job or of every host that is left. quota: a quota of the job, its site
or its tenant is used up. window: no window of the job is open. idle: every known URL is finished."""


class JobName(Request):
    """One job."""

    name: Name


class ListJobs(Request):
    """The jobs of one owner, or all."""

    owner: JobOwner = ""
    """`spec.owner` of the jobs; empty: all."""


class ApplyJob(Request):
    """Create a job or change it: the document is the whole desired state."""

    job: dict[str, Any]
    """A CrawlJob document (docs/crawljob.schema.json). Seeds in files are the client's to read and send."""
    author: Annotated[str, Meta(max_length=253, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    """For whom the caller applies it, for the log of changes: the operator names the author of a CrawlJob."""
    seeds_follow: bool = False
    """More seeds come with `add_seeds`; the last request of them has `last`."""


class SeedContext(Request):
    """What a seed stands for in a crawl by keyword schemes."""

    stage: ContextWord = ""
    scheme: ContextWord = ""
    platform: ContextWord = ""
    group: ContextWord = ""
    form: bool = False
    """The route of the URL, #!post:…, is a form that is sent by POST."""


class AddSeeds(Request):
    """More seeds of a job."""

    name: Name
    urls: Annotated[list[str], Meta(max_length=SEED_BATCH)] = msgspec.field(default_factory=list)
    """As in a file of seeds: one that cannot be crawled is refused, and the others are taken."""
    contexts: Annotated[list[SeedContext], Meta(max_length=SEED_BATCH)] = msgspec.field(default_factory=list)
    """One context for each URL, or none at all."""
    last: bool = False
    """No more seeds follow."""
    held_generation: Annotated[int, Meta(ge=0)] = 0
    """With `last`: the generation that `apply_job` answered for a job that is held until its seeds are in."""

    def seeds(self, uid: str) -> list[Seed]:
        """The messages of these seeds. Raises `UsageError`."""
        if not self.contexts:
            return [Seed(uid, url, "file") for url in self.urls]
        if len(self.contexts) != len(self.urls):
            raise UsageError(
                f"contexts: {len(self.urls)} URLs have {len(self.contexts)} contexts; give one for each URL, or none"
            )
        return [
            Seed(
                uid,
                url,
                "scheme",
                context=Context(
                    "", context.stage, context.scheme, platform=context.platform, group=context.group, form=context.form
                ),
            )
            for url, context in zip(self.urls, self.contexts, strict=True)
        ]


class ReleaseQuarantine(Request):
    """Fetch from a quarantined part of a host again."""

    name: Name
    host: Annotated[str, Meta(min_length=1, max_length=1000)]
    pattern: Annotated[str, Meta(min_length=1, max_length=10_000)]


class ExcludeUrls(Request):
    """Expressions that are added to the exclusions of a job's scope."""

    name: Name
    exclude: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"^[^\x00-\x1f]+$")]],
        Meta(min_length=1, max_length=20),
    ]
    """RE2, searched in the full URL."""
    generation: Annotated[int, Meta(ge=0, le=1 << 62)] = 0
    """Refuse when the job has another generation: it was changed since; 0: apply in any case. A trial does not
    read it."""


class ForgetUrls(Request):
    """Forget URLs of a job: they are crawled again when they are found again."""

    name: Name
    urls: Annotated[list[Url], Meta(max_length=SEED_BATCH)] = msgspec.field(default_factory=list)
    match: Annotated[str, Meta(max_length=4000, extra_json_schema={"format": "regex"})] = ""
    """Also all URLs with a row that match this expression (RE2, searched in the full URL)."""


class ExplainUrl(Request):
    """What became of a URL."""

    url: Annotated[Url, Meta(min_length=1)]
    job: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00-\x1f]*$")] = ""
    """Job whose facts are explained; an empty name chooses the job with the most facts about the URL."""


class Degradation(msgspec.Struct, kw_only=True):
    """A fault of a job that goes on all the same: its result is less than its document asks for."""

    reason: Literal["RuleMissing", "SiteChanged"]
    """RuleMissing: a rule of the job is deleted. SiteChanged: a rule of the job no longer fits its site."""
    cause: str
    since: float
    """Seconds since 1970 UTC. A rule that is missing: when the program first missed it."""
    remedy: str


class Failure(msgspec.Struct, kw_only=True):
    """Why a job has no result: it ended, and no page of it is stored."""

    cause: str
    """Counts by outcome, with the most frequent reasons where the rows can be read."""
    since: float
    """When the program first saw it, in seconds since 1970 UTC."""
    remedy: str


class LastError(msgspec.Struct, kw_only=True):
    """The last fetch of a job that failed."""

    reason: str
    words: str
    """Meaning of the reason."""
    at: float
    """Seconds since 1970 UTC."""


class Job(msgspec.Struct, kw_only=True):
    """How one job stands."""

    name: str
    state: JobState
    generation: int
    """Generation of the desired state; every change adds one."""
    observed_generation: int
    """Generation of the desired state that the counts belong to."""
    queued: int
    in_flight: int
    """URLs handed out and not yet finished."""
    stored: int
    denied: int
    failed: int
    dropped: int
    rate: float = 0.0
    """Finished URLs per second, over the last minute."""
    quota: str = ""
    """Which quota is used up, and until when."""
    window: str = ""
    """Which window the job waits for, and until when."""
    links_held: int = 0
    links_lost: int = 0
    """Links that the scope refuses: held for a wider scope, and not held because of the limit."""
    tenant: str = ""
    owner: str = ""
    """Person or team that answers for the job."""
    site: str = ""
    """Site that the job belongs to."""
    browser_s: float = 0.0
    """Seconds in a browser; over Kafka 0."""
    freshness: dict[str, Any] | None = None
    """p50 and p95 of the staleness, where pages are fetched again; null when it is not known."""
    reported_s: float = 0.0
    """Seconds since a scheduler reported on the job."""
    silent_s: float = 0.0
    """Seconds without a report of a scheduler on the job in which one could have come: since the last report, and since
    the broker answers again."""
    degraded: list[Degradation] = msgspec.field(default_factory=list)
    """What is wrong with the job while it goes on; empty for a job without faults."""
    failure: Failure | None = None
    """Set for a job that ended with nothing stored. `state` is still idle or limit."""
    last_error: LastError | None = None
    """None for a job without a failed fetch, and where the rows cannot be read."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing of the newest generation is in flight, and nothing more is dispatched before somebody changes
        the job or a new period of its quota begins. A job that waits for its window has not ended."""
        ends = self.state in ("idle", "limit", "quota", "paused")
        return ends and not self.in_flight and self.observed_generation >= self.generation

    @property
    def ended_urls(self) -> int:
        return self.stored + self.denied + self.failed + self.dropped

    @property
    def has_failed(self) -> bool:
        """Whether the job ended with nothing stored. A job without any URL has not failed."""
        return self.has_ended and self.state in ("idle", "limit") and bool(self.ended_urls) and not self.stored

    @property
    def outcome_counts(self) -> str:
        """Number of URLs by outcome other than stored, in words."""
        counts = {"failed": self.failed, "denied": self.denied, "dropped": self.dropped}
        return ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items() if count)

    @property
    def held_by(self) -> str:
        """What holds the job in its state, and until when; empty in any other state."""
        return {"quota": self.quota, "window": self.window}.get(self.state, "")


class JobList(msgspec.Struct, kw_only=True):
    """Jobs by name."""

    jobs: list[Job]


class JobDetail(msgspec.Struct, kw_only=True):
    """One job and its desired state."""

    status: Job
    document: dict[str, Any]
    """Its CrawlJob document, with every default; sitemaps and feeds among the seeds are left out."""


class RefusedSeed(msgspec.Struct, kw_only=True):
    """A seed that was not admitted."""

    url: str
    reason: str


class SeedsAdded(msgspec.Struct, kw_only=True):
    """What became of seeds."""

    name: str
    generation: int
    refused: list[RefusedSeed]
    refused_count: int
    held: bool = False
    """The job is paused until its seeds are in: they anchor its scope."""


class JobApplied(SeedsAdded, kw_only=True):
    """What an apply changed."""

    verdict: Literal["created", "changed", "unchanged"]
    links_lost: int = 0
    """The scope has changed, and this many links that it refused before were not held. They are found again only when
    their pages are fetched again."""


class JobChanged(msgspec.Struct, kw_only=True):
    """What a change did."""

    name: str
    verdict: Literal["paused", "resumed", "deleted", "unchanged"]
    generation: int


class Quarantine(msgspec.Struct, kw_only=True):
    """A part of a host that a job no longer fetches from, or one that was released by hand."""

    host: str
    pattern: str
    reason: str
    since: float
    """Seconds since 1970 UTC."""
    fetches: int
    released: bool


class QuarantineList(msgspec.Struct, kw_only=True):
    """The quarantines of a job."""

    name: str
    quarantines: list[Quarantine]


class ExclusionTried(msgspec.Struct, kw_only=True):
    """What an exclusion would remove from the queue of a job. URLs that are fetched meanwhile may count or not."""

    name: str
    generation: int
    """Generation of the job when the exclusion was tried."""
    queued: int
    """URLs in the queue."""
    looked_at: int
    removed: int
    """URLs that would be removed, among those that were looked at."""
    complete: bool
    """False if not all queued URLs were looked at; `removed` is a lower bound then."""
    examples: list[str]
    """Up to 20 URLs that would be removed, chosen at random."""


class QuarantineReleased(msgspec.Struct, kw_only=True):
    """A part of a host is fetched from again."""

    name: str
    host: str
    pattern: str
    verdict: Literal["released"] = "released"


class UrlsForgotten(msgspec.Struct, kw_only=True):
    """What became of the URLs."""

    name: str
    forgotten: int
    open: int = 0
    """URLs that are queued or in flight; they stay."""
    unknown: int = 0
    """URLs that the job has not seen."""


class Explained(msgspec.Struct, kw_only=True):
    """What became of a URL: all facts, a kind and one sentence (docs/explain.md)."""

    explanation: Explanation
