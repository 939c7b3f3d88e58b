"""The configuration of every service of one program, from its options. Raises `UsageError` for values without sense."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from nephila.downloader.browser_port import VERDICT_FILE, missing
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http.request import request_headers
from nephila.downloader.middleware.auth import Auth
from nephila.downloader.middleware.user.user_files import UserMiddleware
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.net.egress import HostMap
from nephila.kernel.net.robots import product_token
from nephila.kernel.process.process_setup import can_have_workers, usable_cores
from nephila.kernel.runtime.config import by_section, load, replaced
from nephila.kernel.runtime.errors import UsageError, none_of
from nephila.kernel.runtime.extensions import extension
from nephila.parser.config import ParserConfig
from nephila.programs.headers import basic_auth, headers_of
from nephila.programs.option_values import settings_of
from nephila.programs.output_directory import RunFile
from nephila.programs.robots_names import check_names
from nephila.scheduler.config import SchedulerConfig
from nephila.storage.config import StorageConfig
from nephila.storage.outputs import FORMATS, SINKS
from nephila.storage.source import ENVIRONMENT, is_url, without_password

SOURCE = "command line"
"""Where the options come from, for errors."""
GRACE_S = 4.0
"""Time for fetches in flight after a stop. With the last flush, the program ends within five seconds."""

FLUSH_S = 1.0
"""Least time for the last flush, so that pages already fetched are not fetched again."""


class ServiceConfigs(msgspec.Struct, frozen=True):
    """The configuration of every service."""

    scheduler: SchedulerConfig
    downloader: DownloaderConfig
    parser: ParserConfig
    storage: StorageConfig
    workers: int = 0
    """Processes that have parts of the frontier, fetch and parse; 0: this one does."""
    workers_first: int = 0
    """How many of them begin at once, the others when there is enough to do; 0: all."""
    divided: bool = False
    """The frontier has a log for each partition, as workers have left it."""


def archive_name(name: str, run: RunFile) -> str:
    """Job and start of a run, as WARC files are named."""
    return f"{name}-{time.strftime('%Y%m%d%H%M%S', time.gmtime(run.started_at))}"


def with_store(run: RunFile, store: str, variable: str, writer: str) -> tuple[RunFile, str]:
    """The run with what a resume needs of the database for its rows, and the URL of that database; empty for
    nephila.db. Pure.

    Order of precedence: `store` (the option), `variable` (the environment), the value of an earlier run. `writer`: name
    of a run that has none. Raises `UsageError`.
    """
    url = store or variable
    if url and not is_url(url):
        raise UsageError("--store is no URL of the form postgresql://user@host:5432/database")
    if run.runs and not run.store:
        if store:
            raise UsageError("the rows of this crawl are in its nephila.db; --store is for a new --out")
        return run, ""
    if not url:
        return run, run.store
    run = structs.replace(run, store=without_password(url))
    # The database may hold other crawls, and a job is part of the key of every row.
    return run if run.writer else structs.replace(run, writer=writer, uid=writer), url


def new_writer() -> str:
    """A name for a crawl that begins to write into a database."""
    return f"crawl-{secrets.token_hex(4)}"


def make_configs(
    options: Mapping[str, Any],
    directory: Path,
    formats: tuple[str, ...],
    *,
    paced: bool = True,
    store: str = "",
    writer: str = "",
    recrawls: bool = True,
    renders: bool = False,
    pictures: bool = False,
    seeds: Sequence[str] = (),
    archive: str = "",
    divided: bool = False,
) -> ServiceConfigs:
    """The configuration of every service. `paced`: there is a delay between fetches of a host. `recrawls`: pages are
    fetched again when they are due. `renders`: a browser renders pages; `pictures`: with their pictures. `seeds`: whose
    hosts get the headers that may be secrets. `archive`: in the names of WARC files. `divided`: each partition of the
    directory's frontier has a log."""
    if "postgres" in formats and not store:
        raise UsageError(f"the format postgres needs the URL of a database: --store, or {ENVIRONMENT}")
    if "parquet" in formats and store:
        raise UsageError("parquet files are written beside nephila.db only; use nephila export --format parquet")
    if store:
        formats = ("postgres", *(name for name in formats if name in SINKS))
    mapped = settings_of(options)
    settings = {
        # Without a delay the user has taken the pace into their own hands; one fetch per host remains.
        **({} if paced else {"limits.per_address": 0, "limits.address_gap_s": 0.0}),
        **mapped["downloader"],
        "http.headers": _headers(options, seeds),
        # What a job of this machine's user may name: spec.login.fields.file.
        "middleware.secrets": os.getcwd(),
        "http.raw_capture": "warc" in formats,
    }
    downloader = load(DownloaderConfig, by_section(settings), SOURCE, "downloader")
    if downloader.proxies.sources and not downloader.proxies.pool:
        downloader = replaced(downloader, {"proxies.pool": str(directory / "proxies.json")})
    if renders:
        downloader = _rendering(downloader, directory, pictures)
    settings = {**mapped["scheduler"], "agent": product_token(downloader.http.agent()), "recrawl": recrawls}
    scheduler = load(SchedulerConfig, settings, SOURCE, "scheduler")
    # A variable of the services, as images set it, must not move a part of the directory.
    scheduler = structs.replace(scheduler, directory=str(directory / "frontier"))
    workers = _workers(options.get("workers"), downloader)
    _check_values(scheduler, downloader)
    rows = {"directory": directory, "formats": formats, "writer": writer, "archive": archive}
    storage = load(StorageConfig, rows, SOURCE, "storage")
    settings = {**mapped["parser"], "partitions": scheduler.partitions, "robots_agent": scheduler.agent}
    parser = load(ParserConfig, settings, SOURCE, "parser")
    if parser.rule_functions_dir:
        extension("rule-functions")(parser.rule_functions_dir, time.monotonic)
    # Without --workers, the main process keeps one core, and workers start as the load grows.
    processes = usable_cores() - 1 if workers is None and can_have_workers() else workers or 0
    return ServiceConfigs(
        scheduler=scheduler,
        downloader=replaced(downloader, {"admission.processes": max(processes, 1)}),
        parser=parser,
        storage=structs.replace(storage, store=store, directory=directory),
        workers=processes,
        workers_first=1 if workers is None else 0,
        divided=divided,
    )


def _rendering(downloader: DownloaderConfig, directory: Path, pictures: bool) -> DownloaderConfig:
    """The settings of a downloader that renders pages into this directory. `pictures`: its browser loads pictures,
    fonts and media, regardless of `browser.block`."""
    browser = structs.replace(
        downloader.browser,
        enabled=True,
        block=() if pictures else downloader.browser.block,
        captures=downloader.browser.captures or str(directory / "captures"),
        verdicts=downloader.browser.verdicts or str(directory / VERDICT_FILE),
    )
    return structs.replace(downloader, browser=browser)


def no_browser(downloader: DownloaderConfig) -> str:
    """Why a program that renders no pages refuses jobs that need a browser, with the remedy."""
    return missing(downloader.browser.executable) or "this program has no browser; start it with nephila up --browser"


def _workers(workers: int | None, downloader: DownloaderConfig) -> int | None:
    """The number of worker processes of the option; None: as many as the load needs. Raises `UsageError`."""
    if downloader.browser.enabled:
        if reason := missing(downloader.browser.executable):
            raise UsageError(f"pages cannot be rendered: {reason}")
        if workers:
            raise UsageError("--workers: a program that renders pages has no worker processes; leave the option out")
        return 0  # rendered pages are parsed here, and most of their CPU is the browser's
    if workers and not can_have_workers():
        raise UsageError("--workers: this system cannot start worker processes; leave the option out")
    return workers


def formats_of(names: str, keep_raw: bool = False) -> tuple[str, ...]:
    """Formats of a list of names; `keep_raw` adds the one that keeps bodies. Raises `UsageError`."""
    if keep_raw:
        names += ",raw"
    formats = [name.strip() for name in names.split(",") if name.strip()]
    for name in formats:
        if name not in FORMATS:
            raise UsageError(f"--format {name!r} {none_of(name, FORMATS)}")
    return ("sqlite", *dict.fromkeys(name for name in formats if name != "sqlite"))


def _headers(options: Mapping[str, Any], seeds: Sequence[str]) -> tuple[str, ...]:
    """The downloader's headers for --header and --user, which may be secrets of the seeds' hosts. Raises
    `UsageError`."""
    try:
        return headers_of(options["header"], seeds) + basic_auth(options.get("user", ""), seeds)
    except UsageError as error:
        raise UsageError(f"--{str(error).removeprefix('--')}") from None


def _check_values(scheduler: SchedulerConfig, downloader: DownloaderConfig) -> None:
    """Raise `UsageError` for a value that its service would refuse later: no file is created before."""
    if downloader.middleware.cookies:
        from nephila.downloader.middleware.cookies import load_jar

        load_jar(downloader.middleware.cookies, time.time())
    if downloader.http.ca_file:
        from nephila.downloader.http.tls import tls_context

        tls_context(True, downloader.http.ca_file)
    HostMap(downloader.dns.host_map)
    request_headers(downloader.http)
    Auth(downloader.middleware)
    UserMiddleware(downloader.middleware.directory)
    for where, settings in (("scheduler", scheduler), ("downloader.limits", downloader.limits)):
        AddressLimits(settings.per_address, settings.address_gap_s, settings.networks, f"{where}.networks")
    check_names(product_token(downloader.http.agent()), {}, SOURCE)
