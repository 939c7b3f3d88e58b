"""Migration: the wanted state of a job in a message of a program before 0.4, which has fields and no document.

Such messages are in commit logs and snapshots of format 5, and in records of format 1. Nothing else reads these fields,
and nothing writes them. A field of a job that is added from now on is none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from nephila.kernel.documents.field_types import duration_text, instant_text
from nephila.kernel.documents.job_schema import MODES, NEAR_COPIES, RENDERS, JobSpec
from nephila.kernel.messages import CrawlJob, Login, MainText, Parse, Politeness, Quota, QuotaPeriod, Recrawl, Strategy

V = TypeVar("V")
_STRATEGIES = {"bfs": Strategy.UNSPECIFIED, "dfs": Strategy.DFS, "best-first": Strategy.BEST_FIRST}
_MAIN_TEXTS = {
    "density": MainText.UNSPECIFIED,
    "trafilatura": MainText.TRAFILATURA,
    "all": MainText.ALL,
    "none": MainText.NONE,
}
_PERIODS = {"run": QuotaPeriod.RUN, "day": QuotaPeriod.DAY, "month": QuotaPeriod.MONTH}


def spec_before(job: CrawlJob) -> JobSpec:
    """The wanted state, but for sitemaps and feeds among the seeds: such messages do not have them."""
    spec: dict[str, Any] = {
        "seeds": [{"url": url} for url in job.seeds_before],
        "strategy": _key(_STRATEGIES, job.strategy_before),
        "politeness": _politeness(job.politeness_before or Politeness()),
        "sitemaps": job.sitemaps_before,
        "links": job.keep_links_before,
        "cookies": job.cookies_before,
        "render": _key(RENDERS, job.render_before),
        "rules": list(job.rules_before),
        "keywords": list(job.keywords_before),
    }
    if (scope := job.scope_before) is not None:
        spec["scope"] = {
            "mode": _key(MODES, scope.mode),
            "include": list(scope.include),
            "exclude": list(scope.exclude),
            "maxDepth": scope.max_depth,
            "maxPages": scope.max_pages,
        }
    if job.weight_before:
        spec["weight"] = job.weight_before
    if job.tenant:
        spec["tenant"] = job.tenant
    if job.quota_before is not None:
        spec["quota"] = _quota(job.quota_before)
    if job.site:
        spec["site"] = {"name": job.site, **({"quota": _quota(job.site_quota_before)} if job.site_quota_before else {})}
    if job.recrawl_before is not None:
        spec |= _recrawl(job.recrawl_before)
    if (windows := job.windows_before) is not None:
        spec["windows"] = list(windows.hours)
        if windows.time_zone:
            spec["timeZone"] = windows.time_zone
    if (budget := job.host_budget_before) is not None:
        spec["hostBudget"] = {
            "pages": budget.pages,
            "bytes": budget.bytes,
            "time": duration_text(budget.time_s),
            "queued": budget.queued,
        }
    if (traps := job.traps_before) is not None:
        given = {"capFetches": traps.cap_fetches, "capShare": traps.cap_share}
        spec["traps"] = {"off": traps.off, **{key: value for key, value in given.items() if value}}
    if job.parse_before is not None:
        spec["parse"] = _parse(job.parse_before)
    if job.proxy_class_before:
        spec["proxyClass"] = job.proxy_class_before
    if job.language_before:
        spec["language"] = job.language_before
    if job.max_page_bytes_before:
        spec["maxPageBytes"] = job.max_page_bytes_before
    if job.browser_before:
        spec["browser"] = msgspec.json.decode(job.browser_before)
    if job.login_before is not None:
        spec["login"] = _login(job.login_before)
    if job.schemes_before:
        spec["schemes"] = msgspec.json.decode(job.schemes_before)
    return msgspec.convert(spec, JobSpec)


def _politeness(politeness: Politeness) -> dict[str, Any]:
    hosts = []
    for one in politeness.hosts:
        host: dict[str, Any] = {"host": one.host}
        if one.delay_s >= 0:
            host["delay"] = duration_text(one.delay_s)
        if one.concurrency:
            host["concurrency"] = one.concurrency
        hosts.append(host)
    return {
        "delay": duration_text(politeness.delay_s),
        "concurrencyPerHost": politeness.concurrency_per_host or 1,
        "respectRobots": not politeness.ignore_robots,
        "adaptive": politeness.adaptive,
        "hosts": hosts,
    }


def _recrawl(recrawl: Recrawl) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if recrawl.min_s or recrawl.max_s:
        found |= {"min": duration_text(recrawl.min_s or 3600.0), "max": duration_text(recrawl.max_s or 30 * 86_400.0)}
    if recrawl.every_s:
        found["every"] = duration_text(recrawl.every_s)
    if recrawl.monitor:
        found["monitor"] = True
    if recrawl.gone_after:
        found["goneAfter"] = recrawl.gone_after
    if recrawl.refresh_at:
        found["refreshAt"] = instant_text(recrawl.refresh_at)
    if recrawl.freshness_s:
        found["freshness"] = duration_text(recrawl.freshness_s)
    spec: dict[str, Any] = {"schedule": recrawl.cron} if recrawl.cron else {}
    if recrawl.time_zone:
        spec["timeZone"] = recrawl.time_zone
    return {**spec, "recrawl": found} if found else spec


def _parse(parse: Parse) -> dict[str, Any]:
    return {
        "follow": list(parse.follow),
        "nofollow": "skip" if parse.skip_nofollow else "follow",
        "mainText": _key(_MAIN_TEXTS, parse.main_text),
        "nearCopies": _key(NEAR_COPIES, parse.near_copies),
        "requisites": parse.requisites,
    }


def _quota(quota: Quota) -> dict[str, Any]:
    return {
        "pages": quota.pages,
        "bytes": quota.bytes,
        "browserSeconds": int(quota.browser_s),
        "per": _key(_PERIODS, quota.per),
    }


def _login(login: Login) -> dict[str, Any]:
    fields = []
    for one in login.fields:
        source = {"env": one.env} if one.env else {"file": one.file} if one.file else {"value": one.value}
        fields.append({"name": one.name, **source})
    texts = {"check": login.check, "lost": login.lost}
    steps = {"steps": msgspec.json.decode(login.steps)} if login.steps else {}
    return {"url": login.url, "fields": fields, **{key: text for key, text in texts.items() if text}, **steps}


def _key(table: Mapping[str, V], value: V) -> str:
    return next((key for key, known in table.items() if known == value), next(iter(table)))
