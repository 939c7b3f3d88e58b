"""From a request and what is stored to the plan of a run. Pure: equal inputs give equal plans, and nothing is read.

`draft_of` is the part of it that needs no more than run.json, the job's file and the request; it decides what
`stored.read_stored` reads next. Raises `UsageError` for values that make no sense.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from nephila import __version__
from nephila.kernel.documents.job_document import JobDocument
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.messages import CrawlJob
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.extensions import extension
from nephila.kernel.seeds import STDIN
from nephila.kernel.url_credentials import redacted
from nephila.programs import headers
from nephila.programs.crawl.differences import RULES, SCOPE, additions, lifted_limits
from nephila.programs.crawl.plan import (
    COPIES,
    DUE,
    LINKS,
    MOVE,
    REMOVE,
    Plan,
    job_of,
    run_formats,
    seed_urls,
    spec_of_run,
    without_recurring_keys,
)
from nephila.programs.crawl.request import CrawlRequest
from nephila.programs.option_table import IN_JOB
from nephila.programs.output_directory import OutputDirectory, RunFile
from nephila.programs.service_configs import ServiceConfigs, with_store
from nephila.scheduler.tenants.tenants import check_tenant, tenants

JOB = "crawl"
"""Uid of the one job of `nephila crawl` without a job file; part of the key of every row."""
WARC = "warc"
"""The format that keeps requisites of pages."""


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """What the directory, the job's file and the environment hold before the run."""

    run: RunFile | None = None
    """Content of run.json."""
    document: dict[str, Any] | None = None
    """Content of the request's job file."""
    has_log: bool = False
    """The directory has a commit log, which holds the seeds of earlier runs."""
    has_parts: bool = False
    """Each partition of its frontier has a log of its own."""
    holder: int = 0
    """Process that works in the directory."""
    has_copies: bool = False
    """A page was stored; read for a new crawl only."""
    leftovers: tuple[str, ...] = ()
    """Files of a crawl in the directory, beside run.json."""
    store: str = ""
    """URL of the database in the environment."""
    writer: str = ""
    """Name for a crawl that begins to write into a database."""
    now: float = 0.0
    """Seconds since 1970 UTC."""


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """All that is read before a run."""

    earlier: Earlier
    configs: ServiceConfigs
    """Settings of the services: from the draft's options, the environment, files of headers, and the machine."""
    rule_versions: dict[str, int] = {}
    """Rule of the job → its version."""
    keeps_links: bool = False
    """Links of the job's pages are stored; read where links are to be fetched again."""
    copies: int = 0
    """Stored pages; read where they lack an output."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """The crawl of a run, before the settings of its services are read."""

    run: RunFile
    """The run, with the secrets of its options and without the facts of the settings."""
    document: JobDocument | None
    spec: JobSpec
    job: CrawlJob
    formats: tuple[str, ...]
    store: str
    """URL of the database for the rows, with its password; empty: nephila.db."""
    ignored: tuple[str, ...]
    continues: bool
    """The run continues a crawl of the directory; it does not begin one."""
    clear: str
    """How an earlier result is cleared, as in `Plan`."""


def resolve(request: CrawlRequest, stored: Stored) -> Plan:
    """The plan of a run. Raises `UsageError`."""
    earlier, configs, draft = stored.earlier, stored.configs, draft_of(request, stored.earlier)
    run, options = draft.run, draft.run.options
    if draft.document is not None:
        check_tenant(draft.document, tenants(configs.scheduler.tenants))
    if draft.spec.parse.requisites and WARC not in draft.formats:
        raise UsageError("--page-requisites (spec.parse.requisites) stores into archives: add --format warc")
    refetch, incomplete = again_of(request, draft, stored)
    notice = ""
    if incomplete and COPIES not in refetch:
        notice, incomplete = _what_is_incomplete(stored.copies, incomplete)
    rules = options.get("rules", "")
    return Plan(
        run=replace(
            run,
            options=_without_secrets(options),
            window=configs.scheduler.window,
            agent=configs.scheduler.agent,
            rules=stored.rule_versions,
            refetch=refetch,
            incomplete=incomplete,
            runs=run.runs + 1,
            state="running",
        ),
        job=draft.job,
        configs=configs,
        files=draft.document.files if draft.document else (),
        ignored=() if request.refresh else draft.ignored,
        has_seeds=draft.continues and _has_seeds(request, run, earlier),
        refreshes=draft.continues and request.refresh,
        notice=notice,
        clear=draft.clear,
        max_time_s=options["max_time"],
        max_wait_s=options["max_wait"],
        rules=Path(rules) if rules else None,
        all_rules=bool(rules) and not draft.spec.rules,
        tcp=request.tcp,
    )


def draft_of(request: CrawlRequest, earlier: Earlier) -> Draft:
    """The crawl of a run: a new one, or the stored one with the explicit options applied. Raises `UsageError`."""
    if request.fresh and request.resume:
        raise UsageError("--fresh starts a new crawl; leave --resume, --refresh and --retry-failed out")
    if request.resume and earlier.run is not None:
        run, clear = _continued(request, earlier.run, earlier.document), ""
    else:
        run, clear = _begun(request, earlier), _clear_mode(request, earlier)
    run, store = with_store(run, request.store, earlier.store, earlier.writer)
    document, spec = spec_of_run(run)
    uid = document.name if document else (run.uid if store else "") or JOB
    spec, ignored = without_recurring_keys(spec, keep_recrawl=True)
    return Draft(
        run=replace(run, uid=uid if store else ""),
        document=document,
        spec=spec,
        job=job_of(uid, spec),
        formats=run_formats(run),
        store=store,
        ignored=ignored,
        continues=run.runs > 0,
        clear=clear,
    )


def new_run(request: CrawlRequest, document: dict[str, Any] | None, now: float) -> RunFile:
    """The run of a crawl that begins."""
    return RunFile(
        program=f"nephila {__version__}",
        seeds=list(request.urls) or seed_urls(document),
        seed_file=request.seed_file,
        options=_options(request, {}, document),
        document=document,
        started_at=now,
    )


def again_of(request: CrawlRequest, draft: Draft, stored: Stored) -> tuple[list[str], list[str]]:
    """The kinds of ended URLs that are fetched once more, and what stored pages lack."""
    run = draft.run
    if not draft.continues:
        return [], []
    refetch = [*run.refetch, *(["failed"] if request.retry_failed else []), *([DUE] if request.refresh else [])]
    incomplete = list(run.incomplete)
    if LINKS in refetch and not stored.keeps_links:
        # Links were not kept. The scheduler holds those just beyond the scope; the summary counts what it could not
        # hold, which a refresh finds when it fetches the pages once more.
        refetch.remove(LINKS)
        incomplete += [SCOPE] if request.refresh else []
    if any(run.rules.get(name) != version for name, version in stored.rule_versions.items()):
        incomplete.append(RULES)
    copies = [COPIES] if incomplete and request.refresh else []
    return list(dict.fromkeys([*copies, *refetch])), list(dict.fromkeys(incomplete))


def _begun(request: CrawlRequest, earlier: Earlier) -> RunFile:
    has_seeds = request.urls or request.seed_file or earlier.document is not None
    if request.resume and ("frontier" in earlier.leftovers or not has_seeds):
        raise UsageError(f"{request.out} holds no crawl that could be resumed (no run.json); check --out")
    if not has_seeds:
        raise UsageError("nothing to crawl: give a URL, a job.yaml, --seeds FILE, or --resume with --out DIR")
    return new_run(request, earlier.document, earlier.now)


def _continued(request: CrawlRequest, run: RunFile, document: dict[str, Any] | None) -> RunFile:
    urls = request.urls
    if [redacted(url) for url in urls] != [redacted(url) for url in run.seeds[: len(urls)]]:
        raise UsageError(
            f"{request.out} holds a crawl of {run.seeds[0] if run.seeds else run.seed_file}, not of "
            f"{urls[0]}; leave the URL out to --resume it or choose another --out"
        )
    OutputDirectory(request.out).check_command(run, "crawl")
    if document is not None:
        _check_same_job(run, document, request.out)
    # With the credentials that run.json does not keep.
    before = replace(run, seeds=[*urls, *run.seeds[len(urls) :]])
    after = replace(
        before,
        document=document or run.document,
        options=_options(request, run.options, document or run.document),
        seed_file=request.seed_file or run.seed_file,
    )
    return replace(
        after,
        refetch=list(dict.fromkeys([*run.refetch, *lifted_limits(before, after)])),
        incomplete=[*run.incomplete, *additions(before, after)],
    )


def _options(request: CrawlRequest, earlier: Mapping[str, Any], document: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options in force: explicit ones, then those of the run before. Options that were not given are left to the
    job's document if it has them as well."""

    def overrides(name: str) -> bool:
        return name in request.explicit or not (name in earlier or (document and name in IN_JOB))

    return {**earlier, **{name: value for name, value in request.options.items() if overrides(name)}}


def _check_same_job(run: RunFile, document: Mapping[str, Any], directory: Path) -> None:
    old = run.document["metadata"]["name"] if run.document else ""
    new = document["metadata"]["name"]
    if old != new:
        what = f"the job {old!r}" if old else "a crawl without a job file"
        raise UsageError(f"{directory} holds {what}, not {new!r}; choose another --out")


def _clear_mode(request: CrawlRequest, earlier: Earlier) -> str:
    """How a result in the directory is cleared for a new crawl. Raises `UserError` when it must stay."""
    directory, run = OutputDirectory(request.out), earlier.run
    if request.fresh:
        if run is not None:
            directory.check_command(run, "crawl")
        return MOVE
    if run is not None and run.command == "crawl" and not earlier.holder and not earlier.has_copies:
        return REMOVE
    directory.check_fresh(run, earlier.holder, earlier.leftovers)
    return ""


def _without_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as run.json keeps them."""
    changed: dict[str, Any] = {"header": headers.redacted(options["header"])}
    if proxies := options.get("proxy"):
        changed["proxy"] = extension("proxy-redaction")(proxies)
    if user := options.get("user"):
        changed["user"] = headers.redacted_user(user)
    return {**options, **changed}


def _what_is_incomplete(pages: int, incomplete: list[str]) -> tuple[str, list[str]]:
    """One line about stored pages that lack an output, and what they lack; both empty where no page is stored."""
    if not pages:
        return "", []
    line = (
        f"{pages:,} pages were stored before these were added, and lack them: {', '.join(incomplete)};"
        " add --refresh to fetch the pages again"
    )
    return line, incomplete


def _has_seeds(request: CrawlRequest, run: RunFile, earlier: Earlier) -> bool:
    """Whether the frontier has the seeds of earlier runs. Raises `UsageError` when it is gone and the seeds cannot be
    read again."""
    if "seeds" in request.explicit:
        return False
    if not earlier.has_log and run.seed_file == STDIN:
        raise UsageError(
            f"{OutputDirectory(request.out).frontier} is gone, and with it the seeds that came from standard input; "
            "give them again: --resume --seeds -"
        )
    return earlier.has_log
