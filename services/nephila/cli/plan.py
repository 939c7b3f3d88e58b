"""From the options of a run to the configuration of every service. Raises `UsageError` for values without sense."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from nephila.directory import Run
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.request import request_headers
from nephila.embedded import Plan
from nephila.kernel.config import load
from nephila.kernel.egress import HostMap
from nephila.kernel.errors import UsageError
from nephila.kernel.messages import CrawlJob, Politeness, Scope
from nephila.parser.config import ParserConfig
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.scope import MODES, CompiledScope
from nephila.storage.backends import BACKENDS
from nephila.storage.config import StorageConfig

JOB = "crawl"
"""Uid of the one job of `nephila crawl`; part of the key of every row."""
HERE = "command line"


def make_plan(run: Run, directory: Path) -> Plan:
    """The plan of a run; its seeds are added by the caller. Notes the window in `run`."""
    options = run.options
    formats = _formats(options["format"])
    scheduler = load(
        SchedulerConfig,
        {
            "directory": str(directory / "frontier"),
            "concurrency": options["concurrency"],
            "agent": product_token(options["user_agent"]),
        },
        HERE,
        "scheduler",
    )
    run.window = scheduler.window
    downloader = load(DownloaderConfig, _downloader(options, formats), HERE, "downloader")
    request_headers(downloader)  # what cannot be sent is told now, before anything is made
    parser = {"partitions": scheduler.partitions, "robots_agent": scheduler.agent}
    return Plan(
        job=_job(options, run.seeds),
        seeds=(),
        scheduler=scheduler,
        downloader=downloader,
        parser=load(ParserConfig, parser, HERE, "parser"),
        storage=load(StorageConfig, {"directory": directory, "formats": formats}, HERE, "storage"),
        max_time_s=options["max_time"],
        max_wait_s=options["max_wait"],
    )


def product_token(user_agent: str) -> str:
    """The name under which robots.txt addresses a crawler with this User-Agent (RFC 9309, 2.2.1).

    That of the first product, or of the one after "compatible;" where a crawler calls itself Mozilla as browsers do.
    """
    found = re.search(r"compatible;\s*([A-Za-z_-]+)", user_agent) or re.match(r"([A-Za-z_-]+)", user_agent)
    token = found.group(1).lower() if found else ""
    return token if token not in ("", "mozilla") else "nephila"


def _job(options: dict[str, Any], seeds: list[str]) -> CrawlJob:
    mode = options["scope"]
    if mode not in MODES:
        raise UsageError(f"--scope {mode!r} is none of {', '.join(MODES)}")
    scope = Scope(MODES[mode], options["include"], options["exclude"], options["max_depth"], options["max_pages"])
    CompiledScope(scope)  # a bad expression is told now, not in the middle of the crawl
    return CrawlJob(
        uid=JOB,
        name=JOB,
        generation=1,
        seeds=seeds,
        scope=scope,
        politeness=Politeness(options["delay"], 1, options["ignore_robots"]),
        keep_links=options["links"],
    )


def _formats(names: str) -> tuple[str, ...]:
    formats = [name.strip() for name in names.split(",") if name.strip()]
    for name in formats:
        if name not in BACKENDS:
            raise UsageError(f"--format {name!r} is none of {', '.join(BACKENDS)}")
    return ("sqlite", *dict.fromkeys(name for name in formats if name != "sqlite"))


def _downloader(options: dict[str, Any], formats: tuple[str, ...]) -> dict[str, Any]:
    for line in options["header"]:
        if ":" not in line or "\n" in line or "\r" in line:
            raise UsageError(f"--header {line!r} is not of the form 'Name: value'")
    HostMap(options["host_map"])
    return {
        "concurrency": options["concurrency"],
        # Without a delay the user has taken the pace into their own hands; one fetch per host remains.
        **({} if options["delay"] else {"per_address": 0, "address_gap_s": 0.0}),
        "user_agent": options["user_agent"],
        "contact": options["contact"],
        "headers": tuple(options["header"]),
        "allow_private": options["allow_private"],
        "host_map": tuple(options["host_map"]),
        "raw_capture": "warc" in formats,
    }
