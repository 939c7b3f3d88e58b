"""From the message CrawlJob back to a CrawlJob document: what the API shows, and what a command line submits.

Invariant: the document that is made of a message reads as the same message (`job_document.from_json`), but for seeds
that are not URLs: sitemaps and feeds are messages of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from nephila.kernel.documents.field_types import API_VERSION, instant_text
from nephila.kernel.documents.job_schema import MAIN_TEXTS, MODES, NEAR_COPIES, QUOTA_PERIODS, RENDERS, STRATEGY_NUMBERS
from nephila.kernel.messages import CrawlJob, Login, Parse, Politeness, Quota, Recrawl

V = TypeVar("V")


def to_document(job: CrawlJob, sources: Iterable[tuple[str, str]] = ()) -> dict[str, Any]:
    """The document of a job. `sources`: (sitemap or feed, URL) of its other seeds."""
    spec: dict[str, Any] = {
        "paused": job.paused,
        "seeds": [*({"url": url} for url in job.seeds), *({kind: url} for kind, url in sources)],
        "strategy": _key(STRATEGY_NUMBERS, job.strategy),
        "politeness": _politeness(job.politeness or Politeness()),
        "sitemaps": job.sitemaps,
        "links": job.keep_links,
        "cookies": job.cookies,
        "render": _key(RENDERS, job.render),
        "rules": list(job.rules),
        "keywords": list(job.keywords),
    }
    if (scope := job.scope) is not None:
        spec["scope"] = {
            "mode": _key(MODES, scope.mode),
            "include": list(scope.include),
            "exclude": list(scope.exclude),
            "maxDepth": scope.max_depth,
            "maxPages": scope.max_pages,
        }
    if job.weight:
        spec["weight"] = job.weight
    if job.tenant:
        spec["tenant"] = job.tenant
    if job.quota is not None:
        spec["quota"] = _quota(job.quota)
    if job.site:
        spec["site"] = {"name": job.site, **({"quota": _quota(job.site_quota)} if job.site_quota else {})}
    if job.recrawl is not None:
        spec |= _recrawl(job.recrawl)
    if (windows := job.windows) is not None:
        spec["windows"] = list(windows.hours)
        if windows.time_zone:
            spec["timeZone"] = windows.time_zone
    if (budget := job.host_budget) is not None:
        spec["hostBudget"] = {
            "pages": budget.pages,
            "bytes": budget.bytes,
            "time": _duration(budget.time_s),
            "queued": budget.queued,
        }
    if (traps := job.traps) is not None:
        given = {"capFetches": traps.cap_fetches, "capShare": traps.cap_share}
        spec["traps"] = {"off": traps.off, **{key: value for key, value in given.items() if value}}
    if job.parse is not None:
        spec["parse"] = _parse(job.parse)
    if job.proxy_class:
        spec["proxyClass"] = job.proxy_class
    if job.language:
        spec["language"] = job.language
    if job.max_page_bytes:
        spec["maxPageBytes"] = job.max_page_bytes
    if job.browser:
        spec["browser"] = msgspec.json.decode(job.browser)
    if job.login is not None:
        spec["login"] = _login(job.login)
    if job.schemes:
        spec["schemes"] = msgspec.json.decode(job.schemes)
    return {"apiVersion": API_VERSION, "kind": "CrawlJob", "metadata": {"name": job.uid}, "spec": spec}


def _politeness(politeness: Politeness) -> dict[str, Any]:
    hosts = []
    for one in politeness.hosts:
        host: dict[str, Any] = {"host": one.host}
        if one.delay_s >= 0:
            host["delay"] = _duration(one.delay_s)
        if one.concurrency:
            host["concurrency"] = one.concurrency
        hosts.append(host)
    return {
        "delay": _duration(politeness.delay_s),
        "concurrencyPerHost": politeness.concurrency_per_host or 1,
        "respectRobots": not politeness.ignore_robots,
        "adaptive": politeness.adaptive,
        "hosts": hosts,
    }


def _recrawl(recrawl: Recrawl) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if recrawl.min_s or recrawl.max_s:
        found |= {"min": _duration(recrawl.min_s), "max": _duration(recrawl.max_s)}
    if recrawl.every_s:
        found["every"] = _duration(recrawl.every_s)
    if recrawl.monitor:
        found["monitor"] = True
    if recrawl.gone_after:
        found["goneAfter"] = recrawl.gone_after
    if recrawl.refresh_at:
        found["refreshAt"] = instant_text(recrawl.refresh_at)
    if recrawl.freshness_s:
        found["freshness"] = _duration(recrawl.freshness_s)
    spec: dict[str, Any] = {"schedule": recrawl.cron} if recrawl.cron else {}
    if recrawl.time_zone:
        spec["timeZone"] = recrawl.time_zone
    return {**spec, "recrawl": found} if found else spec


def _parse(parse: Parse) -> dict[str, Any]:
    return {
        "follow": list(parse.follow),
        "nofollow": "skip" if parse.skip_nofollow else "follow",
        "mainText": _key(MAIN_TEXTS, parse.main_text),
        "nearCopies": _key(NEAR_COPIES, parse.near_copies),
        "requisites": parse.requisites,
    }


def _quota(quota: Quota) -> dict[str, Any]:
    return {
        "pages": quota.pages,
        "bytes": quota.bytes,
        "browserSeconds": int(quota.browser_s),
        "per": _key(QUOTA_PERIODS, quota.per),
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


def _duration(seconds: float) -> str:
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"
