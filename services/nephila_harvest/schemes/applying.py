"""Applies schemes to a program or system: rules of the platforms, the job with the schemes, then the new searches.
Deletes schemes from it.

The job document holds the applied state: what is planned is the difference to it. Until the last search is queued the
job is marked incomplete; after an interruption the next apply plans all searches again, and those that are known are
not queued twice. Invariant: the documents are checked before anything is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

import msgspec
from nephila.kernel.documents.job_document import crawl_job
from nephila.kernel.documents.scheme_schema import Schemes
from nephila.kernel.fragment_routes import ROUTE, form_of
from nephila.kernel.runtime.errors import UserError, suggest
from nephila.kernel.stages import NAVIGATION

from nephila_harvest.schemes import documents, planner
from nephila_harvest.schemes.documents import Documents
from nephila_harvest.schemes.planner import NavigationSeed
from nephila_harvest.schemes.platform_rules import rule_names

JOB = "schemes"
"""Name of the job, where the files have no CrawlJob."""
DEFAULTS: dict[str, Any] = {"scope": {"mode": "any", "maxDepth": 1}, "traps": {"off": True}}
"""Settings of a job of schemes, for keys that its document does not have: content pages may be on any host, and their
links are not followed."""


class SchemeBackend(Protocol):
    """A program or system, as far as schemes need it."""

    async def job(self, name: str) -> dict[str, Any] | None:
        """The document of a job; None if there is none."""

    async def apply_rules(self, rules: list[dict[str, Any]]) -> None:
        """Create or change rules, all or none."""

    async def apply_job(self, document: dict[str, Any]) -> None:
        """Create or change the job."""

    async def delete_job(self, name: str) -> None:
        """Delete the job; its rows stay."""

    async def add_seeds(self, name: str, seeds: list[NavigationSeed], *, last: bool) -> list[tuple[str, str]]:
        """Queue searches; returns refused URLs with the reason."""


@dataclass(slots=True)
class AppliedScheme:
    """What an apply changed."""

    job: str
    new: bool
    schemes: list[str]
    searches: int = 0
    """Searches that were queued."""
    refused: list[tuple[str, str]] = field(default_factory=list)
    state: Schemes = field(default_factory=Schemes)
    """The schemes of the job now."""
    rules: dict[str, int] = field(default_factory=dict)
    """Version of the rule of content pages of each platform that was applied."""


@dataclass(slots=True)
class StateChange:
    """A desired state and the state before it."""

    job: str
    document: dict[str, Any]
    state: Schemes
    before: Schemes | None
    new: bool

    def seeds(self) -> Iterator[NavigationSeed]:
        """The searches that the state before does not have."""
        return planner.plan(self.state, self.before)


def job_name(scheme_documents: Documents, name: str = "") -> str:
    """Name of the job of some documents."""
    return name or (scheme_documents.jobs[0].name if scheme_documents.jobs else JOB)


def state_of(document: dict[str, Any] | None) -> Schemes | None:
    """The schemes of a job document."""
    section = (document or {}).get("spec", {}).get("schemes")
    return msgspec.convert(section, Schemes) if section is not None else None


def change_of(scheme_documents: Documents, stored: dict[str, Any] | None, name: str) -> StateChange:
    """The change that documents make to a job. Raises `UsageError`; nothing is changed."""
    before = state_of(stored)
    documents.check(scheme_documents, before)
    state = planner.merged(before, scheme_documents.named_schemes, scheme_documents.named_platforms)
    if scheme_documents.jobs:
        spec = {**scheme_documents.jobs[0].content["spec"]}
    elif stored is not None:
        spec = {**stored["spec"]}
    else:
        spec = {**DEFAULTS}
    for section in DEFAULTS:
        spec[section] = {**DEFAULTS[section], **spec.get(section, {})}
    if any(platform.search.method == "POST" for platform in state.platforms):
        # The form is part of the identity of a search, as its route.
        parse = spec.get("parse", {})
        spec["parse"] = {**parse, "follow": [*dict.fromkeys([*parse.get("follow", ()), ROUTE])]}
    own = {name for platform in state.platforms for name in rule_names(platform.name)}
    spec["rules"] = [*sorted(own), *(rule for rule in spec.get("rules", ()) if rule not in own)]
    spec["schemes"] = msgspec.to_builtins(state)
    spec.setdefault("seeds", [])
    document = crawl_job(name, spec)
    return StateChange(name, document, state, before, stored is None)


async def apply(target: SchemeBackend, scheme_documents: Documents, name: str, batch: int) -> AppliedScheme:
    """Apply the documents; `batch`: searches of one request. Raises `UsageError` before anything is changed."""
    change = change_of(scheme_documents, await target.job(name), name)
    answer = AppliedScheme(name, change.new, [scheme.name for scheme in scheme_documents.schemes])
    answer.state, answer.rules = change.state, scheme_documents.content_rule_versions
    if scheme_documents.rules:
        await target.apply_rules(scheme_documents.rules)
    await target.apply_job(_with(change.document, incomplete=True))
    for seeds in batches(change.seeds(), batch):
        answer.refused += await target.add_seeds(name, seeds, last=False)
        answer.searches += len(seeds)
    await target.add_seeds(name, [], last=True)
    await target.apply_job(change.document)
    return answer


async def delete(target: SchemeBackend, scheme: str, name: str) -> list[str]:
    """Delete a scheme of a job, and the job with its last scheme; returns the schemes that stay. Raises `UserError`.

    Platforms and rules stay: pages that are in flight are still read with them.
    """
    document = await target.job(name)
    state = state_of(document)
    if document is None or state is None or not state.schemes:
        raise UserError(f"the job {name!r} has no schemes; see nephila schemes apply")
    left = [named for named in state.schemes if named.name != scheme]
    if len(left) == len(state.schemes):
        hint = suggest(scheme, (named.name for named in state.schemes))
        raise UserError(f"the job {name!r} has no scheme {scheme[:200]!r}; {hint}")
    if not left:
        await target.delete_job(name)
    else:
        section = msgspec.to_builtins(Schemes(left, state.platforms, state.incomplete))
        await target.apply_job({**document, "spec": {**document["spec"], "schemes": section}})
    return [named.name for named in left]


def batches(seeds: Iterable[NavigationSeed], size: int) -> Iterator[list[NavigationSeed]]:
    """The seeds in lists of at most `size`."""
    rest = iter(seeds)
    while part := list(islice(rest, size)):
        yield part


def context_of(seed: NavigationSeed) -> dict[str, Any]:
    """The context of a search."""
    context = {"stage": NAVIGATION, "scheme": seed.scheme, "platform": seed.platform, "group": seed.group}
    return {**context, "form": form_of(seed.url) is not None}


def _with(document: dict[str, Any], *, incomplete: bool) -> dict[str, Any]:
    spec = document["spec"]
    return {**document, "spec": {**spec, "schemes": {**spec["schemes"], "incomplete": incomplete}}}
