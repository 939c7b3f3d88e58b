"""The overview begins with problems that need a person, the most urgent first. This module collects them from all parts
of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from nephila.kernel.runtime.errors import UserError
from nephila_control import job_types, requests, rule_types, screen_types, site_types, system_types
from nephila_control.api import Control

from nephila_console.figures import count, share, size, span
from nephila_console.messages import translate as _
from nephila_console.screens.rate_fall import fall
from nephila_console.words import path, rate

HALF: Final = 0.5
"""A job of which more than this part of the fetches failed has half failed,"""
LEAST_FETCHES: Final = 20
"""if there were this many."""
MORE_FAILED: Final = 0.2
"""A share of failed fetches that rose by so much is the cause of a rate that fell."""
DISK_SHARE: Final = 0.1
"""A disk with a smaller part free needs a person,"""
DISK_FULL_S: Final = 6 * 3600.0
"""and one that is full within this time."""
NAMED: Final = 5
"""Jobs, hosts or lists that have a line of their own; the rest is one line."""

SERVICES: Final = ("scheduler", "downloader", "parser", "storage")
ALSO: Final = {"downloader": ("fetchparse",), "parser": ("fetchparse",)}
"""Service → services that do its work too."""


class Need(NamedTuple):
    text: str
    """Cause in one sentence."""
    link: str
    since: float = 0.0
    """Begin of the problem, in seconds since 1970 UTC; 0: not known."""
    remedy: str = ""
    """What to do; empty where the cause says it."""


async def needs_of(
    control: Control,
    status: system_types.Status,
    jobs: list[job_types.Job],
    health: list[rule_types.RuleHealth],
    series: screen_types.Series,
) -> list[Need]:
    """Sorted by urgency, the most urgent first."""
    letters, hooks, sites, members, rules = await asyncio.gather(
        optional(control.list_dead_letters(system_types.ListDeadLetters(limit=100))),
        optional(control.list_webhooks(requests.Empty())),
        optional(control.list_directories(requests.Empty())),
        optional(control.list_members(requests.Empty())),
        optional(control.list_rules(requests.Empty())),
    )
    used_by_jobs = rules is not None and bool(jobs) and status.kind != "crawl"
    return [
        *(Need(problem, path("system")) for problem in status.problems),
        *_disks(status.disks),
        *_members(members.members if members is not None else [], cluster=status.kind == "cluster"),
        *_fall(series.recent),
        *_refusing(status.refusing_hosts),
        *_failed(jobs),
        *_rules_that_broke(health),
        *_jobs(jobs),
        *(_unused_rules(rules.rules) if used_by_jobs else ()),
        *_lists(sites.directories if sites is not None else []),
        *_webhooks(hooks.webhooks if hooks is not None else []),
        *_letters(letters),
    ]


def _disks(disks: Iterable[system_types.Disk]) -> Iterable[Need]:
    for disk in disks:
        free = disk.free_bytes / max(disk.size_bytes, 1)
        filling = disk.full_in_s is not None and disk.full_in_s < DISK_FULL_S
        if free >= DISK_SHARE and not filling:
            continue
        words = {"share": share(free, 1), "free": size(disk.free_bytes), "name": disk.member}
        text = _("Disk of %(name)s: %(share)s (%(free)s) free") if disk.member else _("Disk: %(share)s (%(free)s) free")
        text %= words
        if filling:
            text += _("; full in %(span)s at the present speed") % {"span": span(disk.full_in_s or 0)}
        remedy = _("Delete old outputs or enlarge the disk; a full disk ends the crawl, and nothing is lost.")
        yield Need(text, path("system"), remedy=remedy)


def _members(members: Sequence[system_types.Member], *, cluster: bool) -> Iterable[Need]:
    """A need arises for each member that is silent or cannot work, and over Kafka for each service that no member of
    works."""
    for member in members:
        words = {"name": member.name, "service": member.service}
        if member.state == "silent":
            remedy = _("See whether its program runs; another member has taken its partitions over.")
            text = _("Member %(name)s (%(service)s) is silent") % words
            yield Need(text, path("system"), member.silent_since, remedy)
        elif member.state == "not_ready":
            words["why"] = member.problem[:200] or _("no reason was reported")
            yield Need(_("Member %(name)s (%(service)s) cannot work: %(why)s") % words, path("system"))
    if cluster:
        working = {member.service for member in members if member.state not in ("silent", "ended")}
        for service in SERVICES:
            if not working & {service, *ALSO.get(service, ())}:
                text = _("The service %(name)s has no member: nothing passes it") % {"name": service}
                remedy = _("Start one: nephila service %(name)s") % {"name": service}
                yield Need(text, path("system"), remedy=remedy)


def _fall(samples: Sequence[screen_types.Sample]) -> Iterable[Need]:
    """A need arises if the rate has fallen while URLs are queued. The text says whether errors are the cause."""
    fell = fall(samples)
    if fell is None:
        return
    rates = {"before": rate(fell.before), "now": rate(fell.now) if fell.now > 0 else "0"}
    text = _("The rate fell from %(before)s to %(now)s pages/s") % rates
    if fell.failed_now > fell.failed_before + MORE_FAILED:
        shares = {"now": share(fell.failed_now, 1), "before": share(fell.failed_before, 1)}
        text += _("; %(now)s of the fetches fail, %(before)s before") % shares
        yield Need(text, path("pages", outcome="failed"), fell.since, _("See how they fail."))
    else:
        yield Need(text, path("hosts"), fell.since, _("See which hosts wait, and why."))


def _refusing(hosts: Sequence[system_types.RefusingHost]) -> Iterable[Need]:
    for host in hosts[:NAMED]:
        words = {"name": host.host, "count": count(host.queued)}
        text = _("Host %(name)s refuses every request; %(count)s URLs wait for it") % words
        remedy = _("See its last answers; a longer delay, a login or a proxy may help.")
        yield Need(text, path("pages", q=host.host, outcome="failed"), host.since, remedy)
    if rest := hosts[NAMED:]:
        text = _("%(count)s more hosts refuse every request") % {"count": count(len(rest))}
        yield Need(text, path("pages", outcome="failed"), rest[0].since)


def _failed(jobs: Sequence[job_types.Job]) -> Iterable[Need]:
    """A need arises for each job that ended with nothing stored, or of which most fetches failed."""
    failed = [(job, job.failure) for job in jobs if job.failure is not None]
    for job, failure in failed[:NAMED]:
        text = _("Job %(name)s has failed: %(why)s") % {"name": job.name, "why": failure.cause}
        outcome = "failed" if job.failed else "denied" if job.denied else "dropped"
        remedy = _("Open one of its pages: the verdict says what to change.")
        yield Need(text, path("pages", job=job.name, outcome=outcome), failure.since, remedy)
    if len(failed) > NAMED:
        text = _("%(count)s more jobs have failed") % {"count": count(len(failed) - NAMED)}
        yield Need(text, path("jobs", state="failed"))
    for job in jobs:
        fetches = job.ended_urls
        if job.failure is None and fetches >= LEAST_FETCHES and job.failed > HALF * fetches:
            numbers = {"name": job.name, "failed": count(job.failed), "all": count(fetches)}
            text = _("Job %(name)s: %(failed)s of %(all)s fetches failed") % numbers
            yield Need(text, path("pages", job=job.name, outcome="failed"), remedy=_("See how they fail."))


def _rules_that_broke(health: Iterable[rule_types.RuleHealth]) -> Iterable[Need]:
    for fit in health:
        if fit.degraded:
            text = _("Rule %(name)s no longer fits its site: %(why)s") % {"name": fit.rule, "why": fit.findings}
            yield Need(text, path("rules"), fit.since, _("Correct the rule in the studio."))


def _jobs(jobs: Iterable[job_types.Job]) -> Iterable[Need]:
    for job in jobs:
        if job.state == "quota":
            text = _("Job %(name)s has stopped: %(why)s") % {"name": job.name, "why": job.held_by}
            yield Need(text, path("jobs", job.name))
        for fault in job.degraded:
            if fault.reason == "RuleMissing":  # a rule whose site has changed has its own line
                text = _("Job %(name)s is degraded: %(why)s") % {"name": job.name, "why": fault.cause}
                yield Need(text, path("jobs", job.name), fault.since, fault.remedy)


def _unused_rules(rules: Iterable[rule_types.Rule]) -> Iterable[Need]:
    for rule in rules:
        if not rule.jobs:
            text = _("Rule %(name)s is used by no job; choose jobs for it") % {"name": rule.name}
            yield Need(text, path("rules", name=rule.name))


def _lists(directories: Iterable[site_types.Directory]) -> Iterable[Need]:
    """A need arises for a list of a site that was not fetched in the last run of its directory."""
    broken = [(site, entry) for site in directories for entry in site.lists if entry.fault]
    for site, entry in broken[:NAMED]:
        text = _("A list of site %(name)s cannot be fetched: %(url)s: %(why)s") % {
            "name": site.name,
            "url": entry.url,
            "why": entry.words,
        }
        yield Need(text, path("sites", only="broken", q=site.name), _instant(entry.since), entry.proposal)
    if len(broken) > NAMED:
        text = _("%(count)s more lists of sites cannot be fetched") % {"count": count(len(broken) - NAMED)}
        yield Need(text, path("sites", only="broken"))


def _webhooks(hooks: Iterable[system_types.WebhookRow]) -> Iterable[Need]:
    for hook in hooks:
        if hook.failures:
            text = _("Webhook %(name)s gets nothing: %(why)s") % {"name": hook.name, "why": hook.error[:200]}
            yield Need(text, path("system", "webhooks"), hook.failing_since)


def _letters(letters: system_types.DeadLetterList | None) -> Iterable[Need]:
    if letters is not None and letters.dead_letters:
        number = f"{len(letters.dead_letters)}{'+' if letters.next else ''}"
        text = _("%(count)s dead letters wait for a replay") % {"count": number}
        oldest = min(letter.at for letter in letters.dead_letters)
        yield Need(text, path("system"), oldest, _("Correct the cause, then replay them."))


def _instant(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
        return 0.0


async def optional(answer: Any) -> Any:
    """Returns None if this kind of system does not have the operation."""
    try:
        return await answer
    except UserError:
        return None
