"""The plan of a crawl: from the options of a run, and its job document, to what `CrawlProgram` is given.

Raises `UsageError` for values that make no sense, before anything is created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from nephila.kernel.documents import job_document
from nephila.kernel.documents.cron import UTC
from nephila.kernel.documents.field_types import seconds
from nephila.kernel.documents.job_document import JobDocument, from_json, settled, spec_of, urls_of
from nephila.kernel.documents.job_schema import JobSpec, Scope
from nephila.kernel.documents.job_schema import Seed as SeedOfJob
from nephila.kernel.messages import CrawlJob, Seed
from nephila.kernel.net.robots import product_token
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.extensions import extension
from nephila.parser.page import trafilatura_text
from nephila.programs.control_port import ControlAddress
from nephila.programs.crawl.job_options import apply_options
from nephila.programs.headers import redacted, redacted_user
from nephila.programs.output_directory import RunFile
from nephila.programs.service_configs import (
    GRACE_S,
    ServiceConfigs,
    archive_name,
    formats_of,
    make_configs,
)
from nephila.scheduler.frontier.scope import CompiledScope
from nephila.scheduler.frontier.tenants import check_tenant, tenants
from nephila.storage.outputs import check_outputs
from nephila.storage.source import Source

JOB = "crawl"
"""Uid of the one job of `nephila crawl` without a job file; part of the key of every row."""
WARC = "warc"
"""The format that keeps requisites of pages."""
DUE, LINKS = "due", "links"
"""Kinds that a run fetches again, in addition to `ended_urls.ROW_KINDS`: due URLs, and links that were refused."""
COPIES = "copies"
"""The kind of `ended_urls.ROW_KINDS` that is fetched without validators (ETag, Last-Modified): an answer 304 would
bring no page to make an added output of."""


class CrawlPlan(msgspec.Struct):
    """All that one crawl is given."""

    job: CrawlJob
    seeds: Iterable[Seed]
    """Read lazily in a thread: a pipe may deliver nothing for an hour."""
    configs: ServiceConfigs
    files: tuple[str, ...] = ()
    """Names of the files of seeds of the job's document."""
    ignored: tuple[str, ...] = ()
    """Keys of the job that have no effect in a crawl that runs once."""
    max_time_s: float = 0.0
    """0 means no limit."""
    max_wait_s: float = 600.0
    """The crawl ends when all that is left waits longer than this."""
    grace_s: float = GRACE_S
    """Time for fetches in flight after a stop."""
    refetch: tuple[str, ...] = ()
    """Ended URLs to fetch again: kinds of rows (`ended_urls.ROW_KINDS`), DUE, LINKS."""
    on_refetch_queued: Callable[[], None] = lambda: None
    """Called once all of them are queued and in the log: a restart must not queue them a second time."""
    on_first_end: Callable[[], None] = lambda: None
    """Called once, when the first URL has ended or the crawl is over; not if a service refuses its settings, so that
    this error is the only line."""
    rules: Path | None = None
    """Directory of the job's rules; they are read again when a file changes."""
    rule_versions: dict[str, int] = msgspec.field(default_factory=dict)
    """Version of each rule of the job at the start of the run."""
    tcp: ControlAddress | None = None
    """Address of the control API, in addition to DIR/control.sock."""
    all_rules: bool = False
    """The job uses all rules of the directory, also those added later."""

    @property
    def rows(self) -> Source:
        """Where the rows of the crawl are."""
        storage = self.configs.storage
        return storage.store or storage.directory


def make_plan(run: RunFile, directory: Path, store: str = "", *, system: bool = False) -> CrawlPlan:
    """The plan of a run; its seeds are added by the caller. Stores the window in `run`. `system`: services elsewhere
    crawl, and may have rules that are not in a directory here."""
    options = run.options
    document, spec = spec_of_run(run)
    run.uid = _uid_of(run) if store else ""
    ignored = _drop_recurring_keys(spec, keep_recrawl=not system)
    job = _job_of(_uid_of(run), spec)
    formats = run_formats(run)
    paced = seconds(spec.politeness.delay) > 0
    configs = make_configs(
        options,
        directory,
        formats,
        paced=paced,
        store=store,
        writer=run.writer,
        recrawls=False,
        renders=spec.render != "never" and not system,
        pictures=spec.parse.requisites > 0,
        seeds=urls_of(spec),
        archive=archive_name(job.uid, run),
    )
    if document is not None and not system:
        check_tenant(document, tenants(configs.scheduler.tenants))
    options["header"] = redacted(options["header"])
    if options.get("proxy"):
        options["proxy"] = extension("proxy-redaction")(options["proxy"])
    if options.get("user"):
        options["user"] = redacted_user(options["user"])
    run.window, run.agent = configs.scheduler.window, configs.scheduler.agent
    rules = options.get("rules", "")
    all_rules = bool(rules) and not spec.rules
    if not system:
        if spec.parse.requisites and WARC not in formats:
            raise UsageError("--page-requisites (spec.parse.requisites) stores into archives: add --format warc")
        check_outputs(configs.storage)
        check_text_library(spec)
    functions = "" if system else configs.parser.rule_functions_dir
    versions = check_rules(spec.rules, Path(rules) if rules else None, functions) if rules or not system else {}
    return CrawlPlan(
        job=job,
        rule_versions=versions,
        rules=Path(rules) if rules else None,
        all_rules=all_rules,
        seeds=(),
        configs=configs,
        files=document.files if document else (),
        ignored=ignored,
        max_time_s=options["max_time"],
        max_wait_s=options["max_wait"],
    )


def spec_of_run(run: RunFile) -> tuple[JobDocument | None, JobSpec]:
    """The document of a run, if it has one, and the spec of its job with the run's options over it. Raises
    `UsageError`."""
    document = from_json(run.document) if run.document else None
    spec = document.spec if document else JobSpec(seeds=[SeedOfJob(url=url) for url in run.seeds])
    apply_options(spec, run.options)
    CompiledScope(spec.scope)  # checks the expressions before the crawl starts
    return document, settled(spec)


def _uid_of(run: RunFile) -> str:
    return run.document["metadata"]["name"] if run.document else run.uid or JOB


def _job_of(uid: str, spec: JobSpec) -> CrawlJob:
    """The job, which services can read. Raises `UsageError` where the options do not fit the document."""
    try:
        job = job_document.job_of(uid, spec)
        spec_of(job)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise UsageError(f"the options make no valid job: {error}") from None
    job.generation = 1
    return job


def run_formats(run: RunFile) -> tuple[str, ...]:
    """The formats of a run: those of its options, else those of its document. Raises `UsageError`."""
    document = from_json(run.document) if run.document else None
    named = run.options["format"] if "format" in run.options else ",".join(document.sinks if document else ())
    return formats_of(named, run.options.get("keep_raw", False))


def lifted_limits(before: RunFile, after: RunFile) -> list[str]:
    """Reasons for which URLs ended under the options of one run and would not end under those of another: kinds of rows
    (`ended_urls.ROW_KINDS`) and `LINKS`."""
    (_, old), (_, new) = spec_of_run(before), spec_of_run(after)
    was, now = before.options, after.options
    found = []
    if (now["allow_private"], now["host_map"]) != (was.get("allow_private"), was.get("host_map")):
        found.append(Reason.ADDRESS.ended)
    if (now["insecure"], now["ca_file"]) != (was.get("insecure", False), was.get("ca_file", "")):
        found.append(Reason.TLS.ended)
    lifts = old.politeness.respect_robots and not new.politeness.respect_robots
    if lifts or product_token(now["user_agent"]) != product_token(was.get("user_agent", "")):
        found.append(Reason.ROBOTS.ended)
    if _without_budget(old.scope) != _without_budget(new.scope):
        found += [Reason.EXCLUDED.ended, LINKS]
    if new.traps.off and not old.traps.off:
        found.append(Reason.TRAP.ended)
    if (now["accept"], now["reject"]) != (was.get("accept", ""), was.get("reject", "")):
        found.append(Reason.CONTENT_TYPE.ended)
    if old.max_page_bytes and not 0 < new.max_page_bytes <= old.max_page_bytes:
        found.append(Reason.TOO_LARGE.ended)
    return found


def _without_budget(scope: Scope) -> Scope:
    return msgspec.structs.replace(scope, max_pages=0)


def check_text_library(spec: JobSpec) -> None:
    """Check that the library for the job's main text is installed. Raises `UsageError`."""
    if trafilatura_text.lacks_library(spec):
        raise UsageError(trafilatura_text.MISSING)


def check_rules(wanted: list[str], directory: Path | None, functions: str) -> dict[str, int]:
    """The versions of the job's rules, all of the directory if it names none. Raises `UsageError` if the rules cannot
    be read, do not include all that the job names, or name what the directory of functions lacks."""
    if directory is None:
        if wanted:
            raise UsageError(f"the job names the rule {wanted[0]!r} (spec.rules); --rules DIR says where it is")
        return {}
    versions: dict[str, int] = extension("rule-versions")(directory, wanted, functions)
    return versions


def _drop_recurring_keys(spec: JobSpec, *, keep_recrawl: bool) -> tuple[str, ...]:
    """Remove from a spec the keys that have no effect in a crawl that runs once; returns their names.
    `keep_recrawl`: the recrawl times stay, for a later --refresh."""
    given = {"schedule": spec.schedule, "recrawl": spec.recrawl is not None, "paused": spec.paused}
    spec.paused = False
    if not keep_recrawl:
        spec.recrawl, spec.schedule = None, ""
        spec.time_zone = spec.time_zone if spec.windows else UTC
    return tuple(name for name, value in given.items() if value)
