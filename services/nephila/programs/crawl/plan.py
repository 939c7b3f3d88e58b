"""The plan of one run of a crawl, and what follows from the content of run.json alone. Pure.

`resolve.resolve` computes a plan; nothing changes it afterwards.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from nephila.kernel.documents import job_document
from nephila.kernel.documents.cron import UTC
from nephila.kernel.documents.job_document import JobDocument, from_json, settled, spec_of
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.documents.job_schema import Seed as SeedOfJob
from nephila.kernel.messages import CrawlJob
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.control_port import ControlAddress
from nephila.programs.crawl.job_options import apply_options
from nephila.programs.output_directory import RunFile
from nephila.programs.service_configs import ServiceConfigs, formats_of
from nephila.scheduler.jobs.scope import CompiledScope
from nephila.storage.source import Source

DUE, LINKS = "due", "links"
"""Kinds that a run fetches again, in addition to `ended_urls.ROW_KINDS`: due URLs, and links that were refused."""
COPIES = "copies"
"""The kind of `ended_urls.ROW_KINDS` that is fetched without validators (ETag, Last-Modified): an answer 304 would
bring no page to make an added output of."""
REMOVE, MOVE = "remove", "move"
"""How an earlier result in the directory is cleared."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a crawl does."""

    run: RunFile
    """Content of run.json before the run; `refetch` in it has the ended URLs to fetch again: kinds of rows
    (`ended_urls.ROW_KINDS`), DUE, LINKS."""
    job: CrawlJob
    configs: ServiceConfigs
    files: tuple[str, ...] = ()
    """Names of the files of seeds of the job's document."""
    ignored: tuple[str, ...] = ()
    """Keys of the job that have no effect in this run, for a warning."""
    has_seeds: bool = False
    """The frontier has the seeds of earlier runs."""
    refreshes: bool = False
    """The run fetches pages that are due, and its summary lists the changes."""
    notice: str = ""
    """One line about the run, for people; empty: none."""
    clear: str = ""
    """How an earlier result in the directory is cleared once this run has the lock: REMOVE, MOVE, or not at all."""
    max_time_s: float = 0.0
    """0 means no limit."""
    max_wait_s: float = 600.0
    """The crawl ends when all that is left waits longer than this."""
    rules: Path | None = None
    """Directory of the job's rules; they are read again when a file changes."""
    all_rules: bool = False
    """The job uses all rules of the directory, also those added later."""
    tcp: ControlAddress | None = None
    """Address of the control API, in addition to DIR/control.sock."""

    @property
    def rows(self) -> Source:
        """Where the rows of the crawl are."""
        storage = self.configs.storage
        return storage.store or storage.directory


def spec_of_run(run: RunFile) -> tuple[JobDocument | None, JobSpec]:
    """The document of a run, if it has one, and the spec of its job with the run's options over it. Raises
    `UsageError`."""
    document = from_json(run.document) if run.document else None
    spec = document.spec if document else JobSpec(seeds=[SeedOfJob(url=url) for url in run.seeds])
    apply_options(spec, run.options)
    CompiledScope(spec.scope)  # checks the expressions before the crawl starts
    return document, settled(spec)


def run_formats(run: RunFile) -> tuple[str, ...]:
    """The formats of a run: those of its options, else those of its document. Raises `UsageError`."""
    document = from_json(run.document) if run.document and "format" not in run.options else None
    named = run.options.get("format", ",".join(document.sinks) if document else "")
    return formats_of(named, run.options.get("keep_raw", False))


def job_of(uid: str, spec: JobSpec) -> CrawlJob:
    """The job, which services can read. Raises `UsageError` where the options do not fit the document."""
    try:
        job = job_document.job_of(uid, spec)
        spec_of(job)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise UsageError(f"the options make no valid job: {error}") from None
    return msgspec.structs.replace(job, generation=1)


def without_recurring_keys(spec: JobSpec, *, keep_recrawl: bool) -> tuple[JobSpec, tuple[str, ...]]:
    """A spec without the keys that have no effect in a crawl that runs once, and their names. `keep_recrawl`: the
    recrawl times stay, for a later --refresh."""
    recurring = {"schedule": spec.schedule, "recrawl": spec.recrawl is not None, "paused": spec.paused}
    changed: dict[str, Any] = {"paused": False}
    if not keep_recrawl:
        changed |= {"recrawl": None, "schedule": "", "time_zone": spec.time_zone if spec.windows else UTC}
    return msgspec.structs.replace(spec, **changed), tuple(name for name, value in recurring.items() if value)


def seed_urls(document: Mapping[str, Any] | None) -> list[str]:
    """The pages among the seeds of a document."""
    seeds = document["spec"].get("seeds", []) if document else []
    return [seed["url"] for seed in seeds if "url" in seed]
