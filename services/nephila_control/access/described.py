"""The log of changes shows what differs, so it needs a name and a state of each object that an operation changes. This
module is the table of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nephila_control import job_types, requests, rule_types, site_types
from nephila_control.declaration import Logged


def _job_name(request: Any) -> str:
    return f"job {request.name}"


def _applied_name(request: job_types.ApplyJob) -> str:
    metadata = request.job.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


async def _applied_job(control: Any, request: job_types.ApplyJob) -> Any:
    return (await control.get_job(job_types.JobName(name=_applied_name(request)))).document


async def _job(control: Any, request: Any) -> Any:
    return (await control.get_job(job_types.JobName(name=request.name))).document


def _names(documents: Sequence[Any]) -> list[str]:
    metadata = (document.get("metadata") for document in documents)
    return [str(fields.get("name", "")) for fields in metadata if isinstance(fields, dict)]


async def _rules(control: Any, request: rule_types.ApplyRules) -> Any:
    names = set(_names(request.rules))
    rules = (await control.list_rules(requests.Empty())).rules
    return {rule.name: rule.document for rule in rules if rule.name in names}


async def _rule(control: Any, request: rule_types.RuleName) -> Any:
    rules = (await control.list_rules(requests.Empty())).rules
    return next((rule.document for rule in rules if rule.name == request.name), None)


async def _sites(control: Any, request: site_types.ApplySites) -> Any:
    names = {*_names(request.sites), *request.delete}
    sites = (await control.list_sites(requests.Empty())).sites
    return {site.name: _by_name(site.document) for site in sites if request.prune or site.name in names}


async def _site(control: Any, request: site_types.DeleteSite) -> Any:
    return _by_name((await control.get_site(site_types.SiteName(name=request.name))).document)


async def _directory(control: Any, site: str, name: str) -> Any:
    document = (await control.get_site(site_types.SiteName(name=site))).document
    return _by_name(document)["spec"].get("directories", {}).get(name)


def _by_name(document: dict[str, Any]) -> dict[str, Any]:
    """The document of a site with its directories as a map, so that one that differs is named."""
    spec = dict(document["spec"])
    if "directories" in spec:
        spec["directories"] = {part["name"]: part for part in spec["directories"]}
    return {"name": document["metadata"]["name"], "spec": spec}


def _directory_name(request: site_types.ApplyDirectory) -> str:
    return str(request.directory.get("name", ""))


async def _settings(control: Any, request: Any) -> Any:
    return (await control.get_settings(requests.Empty())).settings


def _seeds(answer: job_types.SeedsAdded) -> str:
    return f"{answer.refused_count} refused" if answer.refused_count else "queued"


JOB: Final = Logged(_job_name, _job)
APPLIED_JOB: Final = Logged(
    lambda request: f"job {_applied_name(request)}", _applied_job, author=lambda request: str(request.author)
)
SEEDS: Final = Logged(_job_name, result=_seeds, batches=True)
QUARANTINE: Final = Logged(
    lambda request: f"job {request.name}: {request.host}{request.pattern}", result=lambda answer: answer.verdict
)
FORGOTTEN: Final = Logged(_job_name, result=lambda answer: f"{answer.forgotten} URLs forgotten")
HOST: Final = Logged(
    lambda request: f"host {request.name}",
    result=lambda answer: f"{answer.action} {answer.seconds:g} s" if answer.seconds else answer.action,
)
SAMPLE: Final = Logged(lambda request: f"sample {request.sample}".strip(), result=lambda answer: answer.name)
LABEL: Final = Logged(lambda request: f"sample {request.sample}", result=lambda answer: "labelled", batches=True)
RULES: Final = Logged(lambda request: f"rules {', '.join(_names(request.rules))}", _rules)
RULE: Final = Logged(lambda request: f"rule {request.name}", _rule)
SITES: Final = Logged(lambda request: f"sites {', '.join([*_names(request.sites), *request.delete])}", _sites)
SITE: Final = Logged(lambda request: f"site {request.name}", _site)
APPLIED_DIRECTORY: Final = Logged(
    lambda request: f"directory {request.site}.{_directory_name(request)}",
    lambda control, request: _directory(control, request.site, _directory_name(request)),
)
DIRECTORY: Final = Logged(
    lambda request: f"directory {request.site}.{request.name}",
    lambda control, request: _directory(control, request.site, request.name),
)
EXTRACTION: Final = Logged(
    lambda request: "stored pages",
    result=lambda answer: f"rule {answer.rule}: {answer.items} items of {answer.pages} pages",
)
COMMIT: Final = Logged(lambda request: "rule of the studio", result=lambda answer: f"commit {answer.commit}")
DEAD_LETTERS: Final = Logged(
    lambda request: "dead letters",
    result=lambda answer: f"{sum(letter.replayed for letter in answer.dead_letters)} published again",
)
SETTINGS: Final = Logged(lambda request: request.member or "all members", _settings)
