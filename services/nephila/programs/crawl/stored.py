"""All that a run of a crawl reads before it begins: `read_stored` reads it once, `resolve.resolve` makes a plan of it.

What is read second depends on what is read first: the environment, the options and the job's file decide which rules,
headers and rows there are. `resolve.draft_of` decides it, which is pure as well.
"""

import contextlib
import time
from pathlib import Path
from typing import Any

import msgspec

from nephila.kernel.documents.field_types import seconds
from nephila.kernel.documents.job_document import urls_of
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.runtime.config import secret_variable
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.runtime.extensions import absence, extension
from nephila.parser.page import trafilatura_text
from nephila.programs.crawl.plan import COPIES, LINKS, Plan
from nephila.programs.crawl.request import CrawlRequest
from nephila.programs.crawl.resolve import Draft, Earlier, Stored, again_of, draft_of, resolve
from nephila.programs.job_files import read_jobs
from nephila.programs.output_directory import OutputDirectory, RunFile
from nephila.programs.service_configs import ServiceConfigs, archive_name, make_configs, new_writer
from nephila.storage.ledgers.read_connection import NoTables
from nephila.storage.outputs import check_outputs
from nephila.storage.read import ended_urls
from nephila.storage.source import ENVIRONMENT, Source, display_name


def read_plan(request: CrawlRequest) -> Plan:
    """The plan of a request. Raises `UserError` and `UsageError` before anything is created."""
    return resolve(request, read_stored(request))


def read_stored(request: CrawlRequest) -> Stored:
    """Read what `resolve` needs. Raises `UserError` and `UsageError`."""
    earlier = read_earlier(request)
    draft = draft_of(request, earlier)
    run, rows = draft.run, draft.store or request.out
    configs = _read_configs(request, draft, divided=draft.continues and earlier.has_parts)
    rules = run.options.get("rules", "")
    stored = Stored(
        earlier=earlier,
        configs=configs,
        rule_versions=check_rules(draft.spec.rules, Path(rules) if rules else None, configs.parser.rule_functions_dir),
        keeps_links=LINKS in run.refetch and ended_urls.keeps_links(rows, draft.job.uid),
    )
    _check_unused(run, rows)
    refetch, incomplete = again_of(request, draft, stored)
    if not incomplete or COPIES in refetch:
        return stored
    with contextlib.suppress(NoTables):
        return msgspec.structs.replace(stored, copies=ended_urls.count(rows, draft.job.uid, COPIES))
    return stored


def read_earlier(request: CrawlRequest) -> Earlier:
    """Read what the directory, the job's file and the environment hold. Raises `UserError` and `UsageError`."""
    document = read_job(request.job_file)
    directory = OutputDirectory(request.out)
    run = None
    with contextlib.suppress(UserError) if request.fresh else contextlib.nullcontext():
        run = directory.read()  # a damaged run.json can still be moved
    return Earlier(
        run=run,
        document=document,
        has_log=directory.has_log,
        has_parts=directory.has_parts,
        holder=directory.holder(),
        has_copies=run is not None and not (request.resume or request.fresh) and _has_copies(directory, run),
        leftovers=directory.leftovers(),
        store=secret_variable(ENVIRONMENT),
        writer=new_writer(),
        now=time.time(),
    )


def read_job(name: str) -> dict[str, Any] | None:
    """The content of the one job of a file; None without a file. Raises `UsageError`."""
    if not name:
        return None
    documents = read_jobs([name])
    if len(documents) > 1:
        raise UsageError(
            f"{name} holds {len(documents)} jobs and crawl takes one; see nephila up and nephila jobs apply"
        )
    return documents[0].content


def check_rules(names: list[str], directory: Path | None, functions: str) -> dict[str, int]:
    """The versions of the job's rules, all of the directory if it names none. Raises `UsageError` if the rules cannot
    be read, do not include all that the job names, or name what the directory of functions lacks."""
    if directory is None:
        if names:
            raise UsageError(f"the job names the rule {names[0]!r} (spec.rules); --rules DIR says where it is")
        return {}
    versions: dict[str, int] = extension("rule-versions")(directory, names, functions)
    return versions


def check_packages(spec: JobSpec) -> None:
    """Check that what the job's login, schemes and main text need is installed. Raises `UsageError`."""
    for key, part, package in (("login", spec.login, "login"), ("schemes", spec.schemes, "scheme-records")):
        if part is not None and (reason := absence(package)):
            raise UsageError(f"spec.{key}: {reason}")
    if trafilatura_text.lacks_library(spec):
        raise UsageError(trafilatura_text.MISSING)


def _read_configs(request: CrawlRequest, draft: Draft, *, divided: bool) -> ServiceConfigs:
    """The settings of the services, whose outputs and libraries can work."""
    run, spec = draft.run, draft.spec
    renders = spec.render != "never"
    # The number of an earlier run, which rendered nothing, is no wish of this one.
    automatic = {"workers": None} if renders and "workers" not in request.explicit else {}
    configs = make_configs(
        {**run.options, **automatic},
        request.out,
        draft.formats,
        paced=seconds(spec.politeness.delay) > 0,
        store=draft.store,
        writer=run.writer,
        recrawls=False,
        renders=renders,
        pictures=spec.parse.requisites > 0,
        seeds=urls_of(spec),
        archive=archive_name(draft.job.uid, run),
        divided=divided,
    )
    check_outputs(configs.storage)
    check_packages(spec)
    return configs


def _has_copies(directory: OutputDirectory, run: RunFile) -> bool:
    rows = directory.rows(run)
    if run.command != "crawl":
        return True
    if isinstance(rows, Path) and not (rows / "nephila.db").exists():
        return False
    try:
        return ended_urls.has_copies(rows, run.uid or None)
    except NoTables:
        return False


def _check_unused(run: RunFile, rows: Source) -> None:
    """Raise `UsageError` where a new crawl would mix its rows with those of another one."""
    from nephila.storage.read import reader

    if run.uid and not run.runs and reader.holds(rows, run.uid):
        raise UsageError(
            f"{display_name(rows)} has rows of a job {run.uid!r} already; --resume the crawl they are of (its --out),"
            " or give the job another name"
        )
