"""The overview begins with problems that need a person, the most urgent first. This module collects them from all parts
of the API."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from nephila.kernel.runtime.errors import UserError
from nephila_control import job_types, requests, rule_types, screen_types, system_types
from nephila_control.api import Control

from nephila_console.figures import count, share
from nephila_console.messages import translate as _
from nephila_console.words import ago, path, rate

RECENT_S: Final = 120.0
"""The rate now is that of this time,"""
BEFORE_S: Final = 3600.0
"""and is compared with that of this time before,"""
LEAST_S: Final = 300.0
"""or of as much as there is, but this."""
FELL_TO: Final = 0.5
"""A rate below this part of the one before has fallen."""
LEAST_RATE: Final = 0.2
"""Ends per second before: of less, the next minutes say little."""


HALF: Final = 0.5
"""A job of which more than this part of the fetches failed has half failed,"""
LEAST_FETCHES: Final = 20
"""if there were this many."""


SERVICES: Final = ("scheduler", "downloader", "parser", "storage")
ALSO: Final = {"downloader": ("fetchparse",), "parser": ("fetchparse",)}
"""Service → services that do its work too."""


class Need(NamedTuple):
    text: str
    link: str


async def needs_of(
    control: Control,
    status: system_types.Status,
    jobs: list[job_types.Job],
    health: list[rule_types.RuleHealth],
    samples: Sequence[screen_types.Sample],
) -> list[Need]:
    """Sorted by urgency, the most urgent first."""
    letters, hooks, sites, members, rules = await asyncio.gather(
        optional(control.list_dead_letters(system_types.ListDeadLetters(limit=100))),
        optional(control.list_webhooks(requests.Empty())),
        optional(control.list_directories(requests.Empty())),
        optional(control.list_members(requests.Empty())),
        optional(control.list_rules(requests.Empty())),
    )
    needs = [Need(problem, path("system")) for problem in status.problems]
    needs += _members(members.members if members is not None else [], cluster=status.kind == "cluster")
    needs += _fall(samples)
    needs += _ends(jobs)
    needs += [
        Need(
            _("Rule %(name)s no longer fits its site: %(why)s") % {"name": fit.rule, "why": fit.findings}, path("rules")
        )
        for fit in health
        if fit.degraded
    ]
    needs += [
        Need(_("Job %(name)s has stopped: %(why)s") % {"name": job.name, "why": job.held_by}, path("jobs", job.name))
        for job in jobs
        if job.state == "quota"
    ]
    needs += [
        Need(_("Job %(name)s is degraded: %(why)s") % {"name": job.name, "why": fault.cause}, path("jobs", job.name))
        for job in jobs
        for fault in job.degraded
        if fault.reason == "RuleMissing"  # a rule whose site has changed has its own line
    ]
    needs += [
        Need(
            _("Rule %(name)s is used by no job; choose jobs for it") % {"name": rule.name},
            path("rules", name=rule.name),
        )
        for rule in (rules.rules if rules is not None and jobs and status.kind != "crawl" else ())
        if not rule.jobs
    ]
    if sites is not None and (broken := sum(entry.fault for site in sites.directories for entry in site.lists)):
        text = _("1 list of a site is broken") if broken == 1 else _("%(count)s lists of sites are broken")
        needs.append(Need(text % {"count": count(broken)}, path("sites", broken="1")))
    needs += [
        Need(
            _("Webhook %(name)s gets nothing: %(why)s") % {"name": hook.name, "why": hook.error[:200]},
            path("system", "webhooks"),
        )
        for hook in (hooks.webhooks if hooks is not None else ())
        if hook.failures
    ]
    if letters is not None and letters.dead_letters:
        number = f"{len(letters.dead_letters)}{'+' if letters.next else ''}"
        needs.append(Need(_("%(count)s dead letters wait for a replay") % {"count": number}, path("system")))
    return needs


def _members(members: Sequence[system_types.Member], *, cluster: bool) -> list[Need]:
    """A need arises for each member that is silent or cannot work, and over Kafka for each service that no member of
    works."""
    needs = []
    for member in members:
        words = {"name": member.name, "service": member.service}
        if member.state == "silent":
            words["span"] = ago(max(time.time() - member.silent_since, 0))
            text = _("Member %(name)s (%(service)s) is silent; last report %(span)s ago") % words
        elif member.state == "not_ready":
            words["why"] = member.problem[:200] or _("no reason was reported")
            text = _("Member %(name)s (%(service)s) cannot work: %(why)s") % words
        else:
            continue
        needs.append(Need(text, path("system")))
    if cluster:
        working = {member.service for member in members if member.state not in ("silent", "ended")}
        needs += [
            Need(_("The service %(name)s has no member: nothing passes it") % {"name": service}, path("system"))
            for service in SERVICES
            if not working & {service, *ALSO.get(service, ())}
        ]
    return needs


def _ends(jobs: Sequence[job_types.Job]) -> list[Need]:
    """A need arises for each job that ended with nothing stored, or of which most fetches failed."""
    needs = []
    for job in jobs:
        fetches = job.stored + job.failed + job.denied + job.dropped
        numbers = {"name": job.name, "failed": count(job.failed), "denied": count(job.denied), "all": count(fetches)}
        if job.has_ended and job.state in ("idle", "limit") and fetches and not job.stored:
            text = _("Job %(name)s ended with nothing stored: %(failed)s failed, %(denied)s denied") % numbers
        elif fetches >= LEAST_FETCHES and job.failed > HALF * fetches:
            text = _("Job %(name)s: %(failed)s of %(all)s fetches failed") % numbers
        else:
            continue
        needs.append(Need(text, path("pages", job=job.name, outcome="failed" if job.failed else "denied")))
    return needs


def _fall(samples: Sequence[screen_types.Sample]) -> list[Need]:
    """A need arises if the rate has fallen while URLs are queued. The text says whether errors are the cause."""
    end = samples[-1] if samples else None
    middle = next((sample for sample in reversed(samples) if end is not None and sample.at <= end.at - RECENT_S), None)
    if end is None or middle is None or not end.queued:
        return []
    start = next(sample for sample in samples if sample.at >= middle.at - BEFORE_S)
    if middle.at - start.at < LEAST_S:
        return []
    before, now = _rate(start, middle), _rate(middle, end)
    if before < LEAST_RATE or now >= FELL_TO * before:
        return []
    rates = {"before": rate(before), "now": rate(now) if now > 0 else "0"}
    text = _("The rate fell from %(before)s to %(now)s pages/s") % rates
    failed, failed_before = _failed(middle, end), _failed(start, middle)
    if failed > failed_before + 0.2:
        shares = {"now": share(failed, 1), "before": share(failed_before, 1)}
        text += _("; %(now)s of the fetches fail, %(before)s before") % shares
        return [Need(text, path("pages", outcome="failed"))]
    return [Need(text + _("; see which hosts wait"), path("hosts"))]


def _rate(start: screen_types.Sample, end: screen_types.Sample) -> float:
    return (_ended(end) - _ended(start)) / (end.at - start.at)


def _ended(sample: screen_types.Sample) -> int:
    return sample.stored + sample.denied + sample.failed + sample.dropped


def _failed(start: screen_types.Sample, end: screen_types.Sample) -> float:
    ended = _ended(end) - _ended(start)
    return (end.failed - start.failed) / ended if ended > 0 else 0.0


async def optional(answer: Any) -> Any:
    """Returns None if this kind of system does not have the operation."""
    try:
        return await answer
    except UserError:
        return None
