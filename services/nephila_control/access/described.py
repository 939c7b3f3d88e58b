"""What the log of changes says about an operation: its object, and what it changed, in short. Pure but for `state`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from nephila_control import answers, requests, site_requests
from nephila_control.api import Control

LONGEST: Final = 500
"""Characters of a change in the log."""
_VALUE_CHARS: Final = 60
_SECRET = re.compile(r"pass|pwd|secret|token|cookie|authorization|pin$", re.IGNORECASE)
_MASK: Final = "…"


class Described(NamedTuple):
    """One operation that changes something."""

    subject: Callable[[Any], str]
    """The object of a request."""
    state: Callable[[Control, Any], Awaitable[Any]] | None = None
    """The state of the object before and after it; None: the answer says what was done."""
    result: Callable[[Any], str] = lambda answer: ""
    """What was done, from the answer; used without a state."""


def difference(before: Any, after: Any) -> str:
    """The values that differ, as "spec.paused: false → true; …". Values of fields that look like secrets are hidden."""
    if before is None or after is None:
        return "" if before is after else "created" if before is None else "deleted"
    old, new = dict(_leaves("", before)), dict(_leaves("", after))
    changed = [
        f"{name}: {_short(old, name)} → {_short(new, name)}"
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]
    text = "; ".join(changed) or "unchanged"
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _leaves(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from _leaves(f"{place}.{name}" if place else str(name), one)
    else:
        yield place, value


def _short(values: Mapping[str, Any], name: str) -> str:
    if name not in values:
        return "–"
    if _SECRET.search(name):
        return _MASK
    text = msgspec.json.encode(values[name]).decode()
    return text if len(text) <= _VALUE_CHARS else text[: _VALUE_CHARS - 1] + "…"


def _job_name(request: Any) -> str:
    return f"job {request.name}"


def _applied_name(request: requests.ApplyJob) -> str:
    metadata = request.job.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


async def _applied_job(control: Control, request: requests.ApplyJob) -> Any:
    return (await control.get_job(requests.JobName(name=_applied_name(request)))).document


async def _job(control: Control, request: Any) -> Any:
    return (await control.get_job(requests.JobName(name=request.name))).document


def _rule_names(request: requests.ApplyRules) -> list[str]:
    found = (one.get("metadata") for one in request.rules)
    return [str(one.get("name", "")) for one in found if isinstance(one, dict)]


async def _rules(control: Control, request: requests.ApplyRules) -> Any:
    names = set(_rule_names(request))
    return {one.name: one.document for one in (await control.list_rules(requests.Empty())).rules if one.name in names}


async def _rule(control: Control, request: requests.RuleName) -> Any:
    found = (await control.list_rules(requests.Empty())).rules
    return next((one.document for one in found if one.name == request.name), None)


def _site_names(request: site_requests.ApplySites) -> list[str]:
    found = (one.get("metadata") for one in request.sites)
    return [str(one.get("name", "")) for one in found if isinstance(one, dict)]


async def _sites(control: Control, request: site_requests.ApplySites) -> Any:
    names = set(_site_names(request))
    found = (await control.list_sites(requests.Empty())).sites
    return {one.name: _by_name(one.document) for one in found if request.prune or one.name in names}


async def _site(control: Control, request: site_requests.DeleteSite) -> Any:
    return _by_name((await control.get_site(site_requests.SiteName(name=request.name))).document)


async def _directory(control: Control, site: str, name: str) -> Any:
    document = (await control.get_site(site_requests.SiteName(name=site))).document
    return _by_name(document)["spec"].get("directories", {}).get(name)


def _by_name(document: dict[str, Any]) -> dict[str, Any]:
    """The document of a site with its directories as a map, so that one that differs is named."""
    spec = dict(document["spec"])
    if "directories" in spec:
        spec["directories"] = {one["name"]: one for one in spec["directories"]}
    return {"name": document["metadata"]["name"], "spec": spec}


def _directory_name(request: site_requests.ApplyDirectory) -> str:
    return str(request.directory.get("name", ""))


async def _settings(control: Control, request: Any) -> Any:
    return (await control.get_settings(requests.Empty())).settings


def _seeds(answer: answers.SeedsAdded) -> str:
    return f"{answer.refused_count} refused" if answer.refused_count else "queued"


DESCRIBED: Final[Mapping[str, Described]] = {
    "apply_job": Described(lambda request: f"job {_applied_name(request)}", _applied_job),
    "delete_job": Described(_job_name, _job),
    "pause_job": Described(_job_name, _job),
    "resume_job": Described(_job_name, _job),
    "add_seeds": Described(_job_name, result=_seeds),
    "release_quarantine": Described(
        lambda request: f"job {request.name}: {request.host}{request.pattern}", result=lambda answer: answer.verdict
    ),
    "exclude": Described(_job_name, _job),
    "draw_sample": Described(lambda request: f"sample {request.sample}".strip(), result=lambda answer: answer.name),
    "label_row": Described(lambda request: f"sample {request.sample}", result=lambda answer: "labelled"),
    "forget": Described(_job_name, result=lambda answer: f"{answer.forgotten} URLs forgotten"),
    "apply_rules": Described(lambda request: f"rules {', '.join(_rule_names(request))}", _rules),
    "delete_rule": Described(lambda request: f"rule {request.name}", _rule),
    "apply_sites": Described(lambda request: f"sites {', '.join(_site_names(request))}", _sites),
    "delete_site": Described(lambda request: f"site {request.name}", _site),
    "apply_directory": Described(
        lambda request: f"directory {request.site}.{_directory_name(request)}",
        lambda control, request: _directory(control, request.site, _directory_name(request)),
    ),
    "delete_directory": Described(
        lambda request: f"directory {request.site}.{request.name}",
        lambda control, request: _directory(control, request.site, request.name),
    ),
    "studio_commit": Described(lambda request: "rule of the studio", result=lambda answer: f"commit {answer.commit}"),
    "replay_dead_letters": Described(
        lambda request: "dead letters",
        result=lambda answer: f"{sum(one.replayed for one in answer.dead_letters)} published again",
    ),
    "change_settings": Described(lambda request: request.member or "all members", _settings),
}
"""Each operation that changes something; a test compares it with the roles."""
