"""The requests of the control API, typed: what a client sends, with the bounds of each field."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from nephila.kernel.messages import Context, Seed
from nephila.kernel.runtime.errors import UsageError

SEED_BATCH = 1000
"""Seeds of one request at most; an implementation gives the loop back after so many."""
MAX_CHANGES = 1000
"""Changes of one answer at most."""
MAX_DEAD_LETTERS = 1000
"""Dead letters of one answer at most."""

Name = Annotated[
    str, Meta(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f]+$", description="Name of a job or of a rule.")
]
ContextWord = Annotated[str, Meta(max_length=253)]
Url = Annotated[str, Meta(max_length=100_000)]
"""A seed in the characters of any language, percent-encoded at most this long."""
SettingName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_.]*$", max_length=100)]


class Request(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a client sends; an unknown field is an error."""


class Empty(Request):
    """A request without fields."""


class JobName(Request):
    """One job."""

    name: Name


class ApplyJob(Request):
    """Create a job or change it: the document is the whole desired state."""

    job: dict[str, Any]
    """A CrawlJob document (docs/crawljob.schema.json). Seeds in files are the client's to read and send."""
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
    urls: Annotated[list[Url], Meta(max_length=SEED_BATCH)] = []
    contexts: Annotated[list[SeedContext], Meta(max_length=SEED_BATCH)] = []
    """One for each URL, or none at all."""
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
                context=Context("", one.stage, one.scheme, platform=one.platform, group=one.group, form=one.form),
            )
            for url, one in zip(self.urls, self.contexts, strict=True)
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
    urls: Annotated[list[Url], Meta(max_length=SEED_BATCH)] = []
    match: Annotated[str, Meta(max_length=4000, extra_json_schema={"format": "regex"})] = ""
    """Also all URLs with a row that match this expression (RE2, searched in the full URL)."""


class ExplainUrl(Request):
    """What became of a URL."""

    url: Annotated[Url, Meta(min_length=1)]
    job: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00-\x1f]*$")] = ""
    """In this job; empty: in the job that has the most facts about the URL."""


class ApplyRules(Request):
    """Create rules or change them; all of them or, where one is wrong, none."""

    rules: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=1000)]
    """ParseRule documents (docs/parserule.schema.json)."""


class RuleName(Request):
    """One rule."""

    name: Name


class ListChanges(Request):
    """Changes of pages in the order in which they were recorded."""

    since: Annotated[
        str,
        Meta(max_length=100, pattern=r"^([0-9]{1,18}|[0-9a-f]{32}|[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.,+Z -]*)?)?$"),
    ] = ""
    """A time (at or after it), or the id or number of a change (behind it); empty: from the first one."""
    job: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00-\x1f]*$")] = ""
    """Of this job only."""
    change: Literal["", "new", "changed", "moved", "gone", "returned"] = ""
    """Of this kind only."""
    limit: Annotated[int, Meta(ge=1, le=MAX_CHANGES)] = 100
    newest: bool = False
    """The last `limit` changes behind `since`, not the first ones."""


class ListDeadLetters(Request):
    """Dead letters in the order of partitions and offsets."""

    job: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00-\x1f]*$")] = ""
    """Of this job only."""
    after: Annotated[str, Meta(max_length=100)] = ""
    """Continue behind this id, the `next` of the answer before."""
    limit: Annotated[int, Meta(ge=1, le=MAX_DEAD_LETTERS)] = 100


class ReplayDeadLetters(Request):
    """Publish the messages of dead letters again: those named, or the next `limit` behind `after`."""

    ids: Annotated[list[str], Meta(max_length=MAX_DEAD_LETTERS)] = []
    all: bool = False
    job: Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00-\x1f]*$")] = ""
    after: Annotated[str, Meta(max_length=100)] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_DEAD_LETTERS)] = 100


class ChangeSettings(Request):
    """Change live settings: null takes a setting back to its default, one that is left out keeps its value."""

    settings: Annotated[dict[SettingName, Any], Meta(max_length=100)]
    member: Annotated[str, Meta(max_length=300)] = ""
    """Of this member alone, as NAME or SERVICE/NAME; empty: of all members that read the setting."""


LogText = Annotated[str, Meta(max_length=500, pattern=r"^[^\x00]*$")]


class ListControlLog(Request):
    """Changes made over the control API, the newest first."""

    who: LogText = ""
    """Of this token or user only."""
    operation: Annotated[str, Meta(max_length=100, pattern=r"^[a-z_]*$")] = ""
    """Of this operation only."""
    search: LogText = ""
    """Part of the object or of the change; letters in any case."""
    before: Annotated[str, Meta(max_length=100, pattern=r"^[0-9a-f-]*$")] = ""
    """Continue behind this entry, the `next` of the answer before."""
    limit: Annotated[int, Meta(ge=1, le=200)] = 50
