"""From the options of a run to the configuration of every service. Raises `UsageError` for values without sense."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, structs

from nephila.cli.headers import headers_of, redacted
from nephila.cli.services.shared_settings import check_names
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.request import request_headers
from nephila.kernel.documents.job_document import JobDocument, from_json, keywords, protect_session
from nephila.kernel.documents.job_schema import FOLLOW, MAIN_TEXTS, MODES, STRATEGIES
from nephila.kernel.messages import CrawlJob, HostBudget, Parse, Politeness, Scope
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.net.egress import HostMap
from nephila.kernel.net.robots import product_token
from nephila.kernel.runtime.config import load
from nephila.kernel.runtime.errors import UsageError, suggest
from nephila.parser.config import ParserConfig
from nephila.parser.page import trafilatura_text
from nephila.programs.assembly import ServiceConfigs
from nephila.programs.crawl import LINKS, Plan
from nephila.programs.output_directory import Run
from nephila.programs.process_setup import can_have_workers, usable_cores
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.scope import CompiledScope
from nephila.scheduler.recrawl.policy import RecrawlPolicy
from nephila.storage.backends import BACKENDS, FORMATS
from nephila.storage.config import StorageConfig
from nephila.storage.source import ENVIRONMENT, is_url, without_password

E = TypeVar("E")

JOB = "crawl"
"""Uid of the one job of `nephila crawl` without a job file; part of the key of every row."""
SOURCE = "command line"
JOB_OPTIONS = {
    *("scope", "include", "exclude", "strategy", "keywords", "sitemap"),
    *("max_pages", "max_depth", "host_pages", "host_bytes", "host_time"),
    *("delay", "ignore_robots", "links", "follow", "main_text", "format"),
}
"""Options that a job file says as well: only where they are given do they override it."""


def make_plan(run: Run, directory: Path, store: str = "", *, system: bool = False) -> Plan:
    """The plan of a run; its seeds are added by the caller. Notes the window in `run`. `system`: services elsewhere
    crawl, which may have rules that are not here."""
    options = run.options
    document, job = job_of(run)
    run.uid = job.uid if store else ""
    RecrawlPolicy(job.recrawl)  # times that make no sense are told now
    ignored = _drop_recurring_keys(job, keep_recrawl=not system)
    named = options["format"] if "format" in options else ",".join(document.sinks if document else ())
    formats = formats_of(named, options.get("keep_raw", False))
    paced = bool(job.politeness and job.politeness.delay_s)
    configs = make_configs(
        options,
        directory,
        formats,
        paced=paced,
        store=store,
        writer=run.writer,
        recrawls=False,
        seeds=job.seeds,
        archive=archive_name(job.uid, run),
    )
    options["header"] = redacted(options["header"])
    run.window = configs.scheduler.window
    rules = options.get("rules", "")
    all_rules = bool(rules) and not job.rules
    if not system:
        check_text_library(job)
    if rules or not system:
        check_rules(job, Path(rules) if rules else None)
    return Plan(
        job=job,
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


def lifted_limits(before: Run, after: Run) -> list[str]:
    """Why URLs have ended under the options of a run that no longer counts under those of another: kinds of rows
    (`ended_urls.ROW_KINDS`) and `embedded.LINKS`."""
    (_, old), (_, new) = job_of(before), job_of(after)
    was, now = before.options, after.options
    found = []
    if (now["allow_private"], now["host_map"]) != (was.get("allow_private"), was.get("host_map")):
        found.append("denied(address)")
    polite = old.politeness is not None and not old.politeness.ignore_robots
    lifts = polite and new.politeness is not None and new.politeness.ignore_robots
    if lifts or product_token(now["user_agent"]) != product_token(was.get("user_agent", "")):
        found.append("denied(robots)")
    if _scope_fields(old) != _scope_fields(new):
        found += ["dropped(excluded)", LINKS]
    if new.traps is not None and new.traps.off and not (old.traps is not None and old.traps.off):
        found.append("dropped(trap)")
    return found


def _scope_fields(job: CrawlJob) -> tuple[Any, ...]:
    scope = job.scope or Scope()
    return scope.mode, scope.include, scope.exclude, scope.max_depth


def check_text_library(job: CrawlJob) -> None:
    """That the library is there which a job wants its texts from. Raises `UsageError`."""
    if trafilatura_text.lacks_library(job):
        raise UsageError(trafilatura_text.MISSING)


def check_rules(job: CrawlJob, directory: Path | None) -> None:
    """That rules can be read, and that there are all that a job names. Raises `UsageError`."""
    if directory is None:
        if job.rules:
            raise UsageError(f"the job names the rule {job.rules[0]!r} (spec.rules); --rules DIR says where it is")
        return
    from nephila.rulekit.files import read_all

    known = {document.name: document for document in read_all([directory])}
    for name in job.rules:
        if name not in known:
            raise UsageError(f"there is no rule {name!r} in {directory} (spec.rules); {suggest(name, known)}")


def archive_name(name: str, run: Run) -> str:
    """Job and start of a run, as WARC files are named."""
    return f"{name}-{time.strftime('%Y%m%d%H%M%S', time.gmtime(run.started_at))}"


def resolve_store(run: Run, store: str) -> str:
    """The URL of the database for the rows of a run, empty for nephila.db; notes in `run` what a resume has to know.

    `store` is the option; the environment comes after it, and then what was noted before. Raises `UsageError`.
    """
    url = store or os.environ.get(ENVIRONMENT, "")
    if url and not is_url(url):
        raise UsageError("--store is no URL of the form postgresql://user@host:5432/database")
    if run.runs and not run.store:
        if store:
            raise UsageError("the rows of this crawl are in its nephila.db; --store is for a new --out")
        return ""
    if not url and run.store:
        return run.store
    run.store = without_password(url) if url else ""
    if url and not run.writer:
        run.writer = f"crawl-{secrets.token_hex(4)}"
        # The database may hold other crawls, and a job is part of the key of every row.
        run.uid = run.writer
    return url


def make_configs(
    options: dict[str, Any],
    directory: Path,
    formats: tuple[str, ...],
    *,
    paced: bool = True,
    store: str = "",
    writer: str = "",
    recrawls: bool = True,
    seeds: Sequence[str] = (),
    archive: str = "",
) -> ServiceConfigs:
    """The configuration of every service. `paced`: hosts are not fetched from as fast as they answer. `recrawls`: pages
    are fetched again by themselves when they are due. `seeds`: whose hosts get the headers that may be secrets.
    `archive`: in the names of WARC files."""
    if "postgres" in formats and not store:
        raise UsageError(f"the format postgres needs the URL of a database: --store, or {ENVIRONMENT}")
    if "parquet" in formats and store:
        raise UsageError("parquet files are written beside nephila.db only; use nephila export --format parquet")
    if store:
        formats = ("postgres", *(name for name in formats if name in BACKENDS))
    downloader = load(DownloaderConfig, _downloader(options, formats, paced, seeds), SOURCE, "downloader")
    scheduler = load(
        SchedulerConfig,
        {
            "directory": str(directory / "frontier"),
            "concurrency": options["concurrency"],
            "agent": product_token(downloader.agent()),
            "recrawl": recrawls,
        },
        SOURCE,
        "scheduler",
    )
    workers: int | None = options.get("workers")
    if workers and not can_have_workers():
        raise UsageError("--workers: this system cannot start worker processes; leave the option out")
    # What makes no sense is told now, before anything is made.
    request_headers(downloader)
    for service, settings in (("scheduler", scheduler), ("downloader", downloader)):
        AddressLimits(settings.per_address, settings.address_gap_s, settings.networks, f"{service}.networks")
    rows = {"directory": directory, "formats": formats, "writer": writer, "archive": archive}
    storage = load(StorageConfig, rows, SOURCE, "storage")
    check_names(product_token(downloader.agent()), {}, SOURCE)
    parser = {"partitions": scheduler.partitions, "robots_agent": scheduler.agent}
    if options.get("rule_scripts"):
        parser["rule_scripts"] = True
    if "markdown" in formats:
        parser["markdown"] = True
    return ServiceConfigs(
        scheduler=scheduler,
        downloader=downloader,
        parser=load(ParserConfig, parser, SOURCE, "parser"),
        storage=structs.replace(storage, store=store),
        # Where nobody says how many, the main process has a core of its own, and as many begin as have enough to do.
        workers=usable_cores() - 1 if workers is None and can_have_workers() else workers or 0,
        workers_first=1 if workers is None else 0,
    )


def _drop_recurring_keys(job: CrawlJob, *, keep_recrawl: bool) -> tuple[str, ...]:
    """Take from a job what means nothing to a crawl that runs once; returns the names of those keys. When pages are
    due is kept where a later run may ask (--refresh)."""
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
    """Put options over a job; those that are not there leave it as it is. Raises `UsageError`."""
    scope = job.scope or Scope()
    if "scope" in options:
        scope.mode = _value_of(MODES, options["scope"], "--scope")
    _set(scope, options, include="include", exclude="exclude", max_depth="max_depth", max_pages="max_pages")
    CompiledScope(scope)  # a bad expression is told now, not in the middle of the crawl
    politeness = job.politeness or Politeness(concurrency_per_host=1)
    _set(politeness, options, delay_s="delay", ignore_robots="ignore_robots")
    budget = job.host_budget or HostBudget()
    _set(budget, options, pages="host_pages", bytes="host_bytes", time_s="host_time")
    if "strategy" in options:
        job.strategy = _value_of(STRATEGIES, options["strategy"], "--strategy")
    if "keywords" in options:
        job.keywords = keywords(word for words in options["keywords"] for word in words.split(","))
    _set(job, options, keep_links="links", sitemaps="sitemap")
    if options.get("cookies"):
        job.cookies = True
    _set_parse(job, options)
    job.scope, job.politeness = scope, politeness
    protect_session(job)
    job.host_budget = budget if budget != HostBudget() else None


def _set_parse(job: CrawlJob, options: dict[str, Any]) -> None:
    parse = job.parse or Parse()
    if "follow" in options:
        kinds = [kind.strip() for words in options["follow"] for kind in words.split(",") if kind.strip()]
        parse.follow = [_value_of(dict(zip(FOLLOW, FOLLOW, strict=True)), kind, "--follow") for kind in kinds]
    if "main_text" in options:
        parse.main_text = _value_of(MAIN_TEXTS, options["main_text"], "--main-text")
    job.parse = parse if parse != Parse() else None


def _set(message: Struct, options: dict[str, Any], **fields: str) -> None:
    """Field by field from the option of that name, where there is one."""
    for field, option in fields.items():
        if option in options:
            setattr(message, field, options[option])


def _value_of(table: dict[str, E], word: str, option: str) -> E:
    if word not in table:
        raise UsageError(f"{option} {word!r} is none of {', '.join(table)}")
    return table[word]


def formats_of(names: str, keep_raw: bool = False) -> tuple[str, ...]:
    """Formats of a list of names; `keep_raw` adds the one that keeps bodies. Raises `UsageError`."""
    if keep_raw:
        names += ",raw"
    formats = [name.strip() for name in names.split(",") if name.strip()]
    for name in formats:
        if name not in FORMATS:
            raise UsageError(f"--format {name!r} is none of {', '.join(FORMATS)}")
    return ("sqlite", *dict.fromkeys(name for name in formats if name != "sqlite"))


def _downloader(options: dict[str, Any], formats: tuple[str, ...], paced: bool, seeds: Sequence[str]) -> dict[str, Any]:
    try:
        headers = headers_of(options["header"], seeds)
    except UsageError as error:
        raise UsageError(f"--{str(error).removeprefix('--')}") from None
    cookies: str = options.get("cookies", "")
    if cookies:
        from nephila.downloader.middleware.cookies import load_jar

        load_jar(cookies, time.time())
    HostMap(options["host_map"])
    return {
        "concurrency": options["concurrency"],
        # Without a delay the user has taken the pace into their own hands; one fetch per host remains.
        **({} if paced else {"per_address": 0, "address_gap_s": 0.0}),
        "user_agent": options["user_agent"],
        "contact": options["contact"],
        "headers": headers,
        **({"cookies": os.path.abspath(cookies)} if cookies else {}),
        # What a job of this machine's user may name: spec.login.fields.file.
        "secrets": os.getcwd(),
        "allow_private": options["allow_private"],
        "host_map": tuple(options["host_map"]),
        "raw_capture": "warc" in formats,
    }
