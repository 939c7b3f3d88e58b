"""The plan of a crawl: from the options of a run, and its job document, to what `CrawlProgram` is given.

Raises `UsageError` for values that make no sense, before anything is created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from nephila.control.job_checks import check_tenant
from nephila.kernel.documents.browser_schema import Browser, check_selector
from nephila.kernel.documents.job_document import JobDocument, from_json, keep_routes, keywords, protect_session
from nephila.kernel.documents.job_schema import FOLLOW, MAIN_TEXTS, MODES, NEAR_COPIES, RENDERS, STRATEGY_NUMBERS
from nephila.kernel.messages import CrawlJob, HostBudget, Parse, Politeness, Render, Scope, Seed
from nephila.kernel.net.robots import product_token
from nephila.kernel.reasons.table import Reason
from nephila.kernel.requisites import PER_PAGE
from nephila.kernel.runtime.errors import UsageError, suggest
from nephila.parser.page import trafilatura_text
from nephila.programs import proxies
from nephila.programs.control_servers import TcpAddress
from nephila.programs.headers import redacted, redacted_user
from nephila.programs.output_directory import Run
from nephila.programs.service_configs import (
    GRACE_S,
    ServiceConfigs,
    archive_name,
    formats_of,
    make_configs,
)
from nephila.scheduler.frontier.scope import CompiledScope
from nephila.scheduler.frontier.tenants import tenants
from nephila.scheduler.recrawl.policy import RecrawlPolicy
from nephila.storage.outputs import check_outputs
from nephila.storage.source import Source

E = TypeVar("E")

JOB = "crawl"
"""Uid of the one job of `nephila crawl` without a job file; part of the key of every row."""
WARC = "warc"
"""The format that keeps requisites of pages."""
DUE, LINKS = "due", "links"
"""Kinds that a run fetches again, in addition to `ended_urls.ROW_KINDS`: due URLs, and links that were refused."""
COPIES = "copies"
"""The kind of `ended_urls.ROW_KINDS` that is fetched without validators (ETag, Last-Modified): an answer 304 would
bring no page to make an added output of."""


@dataclass(slots=True)
class Plan:
    """All that one crawl is given."""

    job: CrawlJob
    seeds: Iterable[Seed]
    """Read lazily in a thread: a pipe may deliver nothing for an hour."""
    configs: ServiceConfigs
    sources: tuple[tuple[str, str], ...] = ()
    """(file, sitemap or feed; name or URL) of seeds that the job does not give as URLs."""
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
    rule_versions: dict[str, int] = field(default_factory=dict)
    """Version of each rule of the job at the start of the run."""
    tcp: TcpAddress | None = None
    """Address of the control API, in addition to DIR/control.sock."""
    all_rules: bool = False
    """The job uses all rules of the directory, also those added later."""

    @property
    def rows(self) -> Source:
        """Where the rows of the crawl are."""
        storage = self.configs.storage
        return storage.store or storage.directory


def make_plan(run: Run, directory: Path, store: str = "", *, system: bool = False) -> Plan:
    """The plan of a run; its seeds are added by the caller. Stores the window in `run`. `system`: services elsewhere
    crawl, and may have rules that are not in a directory here."""
    options = run.options
    document, job = job_of(run)
    run.uid = job.uid if store else ""
    RecrawlPolicy(job.recrawl)  # checks the times
    ignored = _drop_recurring_keys(job, keep_recrawl=not system)
    formats = run_formats(run)
    paced = bool(job.politeness and job.politeness.delay_s)
    configs = make_configs(
        options,
        directory,
        formats,
        paced=paced,
        store=store,
        writer=run.writer,
        recrawls=False,
        renders=job.render > Render.NEVER and not system,
        pictures=job.parse is not None and job.parse.requisites > 0,
        seeds=job.seeds,
        archive=archive_name(job.uid, run),
    )
    if document is not None and not system:
        check_tenant(document, tenants(configs.scheduler.tenants))
    options["header"] = redacted(options["header"])
    options["proxy"] = proxies.redacted(options.get("proxy", ()))
    if options.get("user"):
        options["user"] = redacted_user(options["user"])
    run.window, run.agent = configs.scheduler.window, configs.scheduler.agent
    rules = options.get("rules", "")
    all_rules = bool(rules) and not job.rules
    if not system:
        if job.parse is not None and job.parse.requisites and WARC not in formats:
            raise UsageError("--page-requisites (spec.parse.requisites) stores into archives: add --format warc")
        check_outputs(configs.storage)
        check_text_library(job)
    versions = check_rules(job, Path(rules) if rules else None) if rules or not system else {}
    return Plan(
        job=job,
        rule_versions=versions,
        rules=Path(rules) if rules else None,
        all_rules=all_rules,
        seeds=(),
        configs=configs,
        sources=document.sources if document else (),
        ignored=ignored,
        max_time_s=options["max_time"],
        max_wait_s=options["max_wait"],
    )


def job_of(run: Run) -> tuple[JobDocument | None, CrawlJob]:
    """The document of a run, if it has one, and its job with the run's options over it. Raises `UsageError`."""
    document = from_json(run.document) if run.document else None
    uid = run.uid or JOB
    job = document.job if document else CrawlJob(uid=uid, name=uid, seeds=run.seeds)
    override(job, run.options)
    return document, job


def run_formats(run: Run) -> tuple[str, ...]:
    """The formats of a run: those of its options, else those of its document. Raises `UsageError`."""
    document = from_json(run.document) if run.document else None
    named = run.options["format"] if "format" in run.options else ",".join(document.sinks if document else ())
    return formats_of(named, run.options.get("keep_raw", False))


def lifted_limits(before: Run, after: Run) -> list[str]:
    """Reasons for which URLs ended under the options of one run and would not end under those of another: kinds of rows
    (`ended_urls.ROW_KINDS`) and `LINKS`."""
    (_, old), (_, new) = job_of(before), job_of(after)
    was, now = before.options, after.options
    found = []
    if (now["allow_private"], now["host_map"]) != (was.get("allow_private"), was.get("host_map")):
        found.append(Reason.ADDRESS.ended)
    polite = old.politeness is not None and not old.politeness.ignore_robots
    lifts = polite and new.politeness is not None and new.politeness.ignore_robots
    if lifts or product_token(now["user_agent"]) != product_token(was.get("user_agent", "")):
        found.append(Reason.ROBOTS.ended)
    if _scope_fields(old) != _scope_fields(new):
        found += [Reason.EXCLUDED.ended, LINKS]
    if new.traps is not None and new.traps.off and not (old.traps is not None and old.traps.off):
        found.append(Reason.TRAP.ended)
    if (now["accept"], now["reject"]) != (was.get("accept", ""), was.get("reject", "")):
        found.append(Reason.CONTENT_TYPE.ended)
    if old.max_page_bytes and not 0 < new.max_page_bytes <= old.max_page_bytes:
        found.append(Reason.TOO_LARGE.ended)
    return found


def _scope_fields(job: CrawlJob) -> tuple[Any, ...]:
    scope = job.scope or Scope()
    return scope.mode, scope.include, scope.exclude, scope.max_depth


def check_text_library(job: CrawlJob) -> None:
    """Check that the library for the job's main text is installed. Raises `UsageError`."""
    if trafilatura_text.lacks_library(job):
        raise UsageError(trafilatura_text.MISSING)


def check_rules(job: CrawlJob, directory: Path | None) -> dict[str, int]:
    """The versions of the job's rules, all of the directory if it names none. Raises `UsageError` if the rules cannot
    be read, or do not include all that the job names."""
    if directory is None:
        if job.rules:
            raise UsageError(f"the job names the rule {job.rules[0]!r} (spec.rules); --rules DIR says where it is")
        return {}
    from nephila.rulekit.files import read_all

    known = {document.name: document for document in read_all([directory])}
    for name in job.rules:
        if name not in known:
            raise UsageError(f"there is no rule {name!r} in {directory} (spec.rules); {suggest(name, known)}")
    return {name: known[name].rule.version for name in job.rules or known}


def _drop_recurring_keys(job: CrawlJob, *, keep_recrawl: bool) -> tuple[str, ...]:
    """Remove from a job the keys that have no effect in a crawl that runs once; returns their names.
    `keep_recrawl`: the recrawl times stay, for a later --refresh."""
    recrawl = job.recrawl
    names = []
    if recrawl is not None and recrawl.cron:
        names.append("schedule")
    if recrawl is not None and (recrawl.min_s or recrawl.every_s or not recrawl.cron):
        names.append("recrawl")
    if job.paused:
        names.append("paused")
    if not keep_recrawl:
        job.recrawl = None
    job.paused, job.generation = False, 1
    return tuple(names)


def override(job: CrawlJob, options: dict[str, Any]) -> None:
    """Apply the options that are present to a job. Raises `UsageError`."""
    scope = job.scope or Scope()
    if "scope" in options:
        scope.mode = _value_of(MODES, options["scope"], "--scope")
    _set(scope, options, include="include", exclude="exclude", max_depth="max_depth", max_pages="max_pages")
    CompiledScope(scope)  # checks the expressions before the crawl starts
    politeness = job.politeness or Politeness(concurrency_per_host=1)
    _set(politeness, options, delay_s="delay", ignore_robots="ignore_robots")
    budget = job.host_budget or HostBudget()
    _set(budget, options, pages="host_pages", bytes="host_bytes", time_s="host_time")
    if "render" in options:
        job.render = _value_of(RENDERS, options["render"], "--render")
    _set_browser(job, options)
    if "strategy" in options:
        job.strategy = _value_of(STRATEGY_NUMBERS, options["strategy"], "--strategy")
    if "keywords" in options:
        job.keywords = keywords(word for words in options["keywords"] for word in words.split(","))
    _set(job, options, keep_links="links", sitemaps="sitemap", max_page_bytes="max_page_bytes")
    if options.get("cookies"):
        job.cookies = True
    _set_parse(job, options)
    job.scope, job.politeness = scope, politeness
    protect_session(job)
    keep_routes(job)
    job.host_budget = budget if budget != HostBudget() else None


def _set_browser(job: CrawlJob, options: dict[str, Any]) -> None:
    """Add the options of rendered pages to those of the job. Raises `UsageError` in a job that renders none."""
    selector, screenshot = options.get("wait_for", ""), options.get("screenshot", False)
    if not (selector or screenshot):
        return
    if job.render <= Render.NEVER:
        raise UsageError(
            f"{'--wait-for' if selector else '--screenshot'} needs a browser: add --render always, or auto"
        )
    browser = msgspec.json.decode(job.browser, type=Browser) if job.browser else Browser()
    if selector:
        try:
            browser.wait.selector = check_selector(selector)
        except ValueError as error:
            raise UsageError(f"--wait-for {selector!r} {error}") from None
    if screenshot and "screenshot" not in browser.capture:
        browser.capture = [*browser.capture, "screenshot"]
    job.browser = msgspec.json.encode(browser).decode()


def _set_parse(job: CrawlJob, options: dict[str, Any]) -> None:
    parse = job.parse or Parse()
    if "follow" in options:
        kinds = [kind.strip() for words in options["follow"] for kind in words.split(",") if kind.strip()]
        parse.follow = [_value_of(dict(zip(FOLLOW, FOLLOW, strict=True)), kind, "--follow") for kind in kinds]
    if "main_text" in options:
        parse.main_text = _value_of(MAIN_TEXTS, options["main_text"], "--main-text")
    if "near_copies" in options:
        parse.near_copies = _value_of(NEAR_COPIES, options["near_copies"], "--near-copies")
    if "page_requisites" in options:
        parse.requisites = (parse.requisites or PER_PAGE) if options["page_requisites"] else 0
    job.parse = parse if parse != Parse() else None


def _set(message: Struct, options: dict[str, Any], **fields: str) -> None:
    """Set each field from the option of that name, if it is present."""
    for name, option in fields.items():
        if option in options:
            setattr(message, name, options[option])


def _value_of(table: dict[str, E], word: str, option: str) -> E:
    if word not in table:
        raise UsageError(f"{option} {word!r} is none of {', '.join(table)}")
    return table[word]
