"""Converts a CrawlJob document to the message that all services read.

The same document is a file for `nephila crawl` and `nephila jobs apply`, JSON of the control API, and a custom
resource. Invariants: each error is one line with file:line:column; the defaults are those of the command line; a
document that is read from `content` again is the same job. The caller reads files of seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from nephila.kernel.documents import cron, document_files
from nephila.kernel.documents import job_schema as schema
from nephila.kernel.documents.browser_schema import Browser
from nephila.kernel.documents.field_types import instant_s, seconds
from nephila.kernel.documents.struct_reader import read
from nephila.kernel.documents.yaml import Node, from_builtins
from nephila.kernel.fragment_routes import ROUTE
from nephila.kernel.messages import (
    CrawlJob,
    FetchWindows,
    HostBudget,
    HostPolicy,
    Login,
    LoginField,
    Parse,
    Politeness,
    Quota,
    Recrawl,
    Render,
    Scope,
    Traps,
)

LOGOUT = r"(?i)([/=:_.?&]|user)(log|sign)[-_]?(out|off)([/?&=#.]|$)"
"""URLs that end a session when they are fetched."""


@dataclass(frozen=True, slots=True)
class JobDocument:
    """A valid document."""

    content: dict[str, Any]
    """The document as JSON values, without defaults; `from_json` reads it again."""
    job: CrawlJob
    """The job, generation 0; its seeds are the plain URLs of the document."""
    sources: tuple[tuple[str, str], ...]
    """The other seeds in order: (file, sitemap or feed; name or URL)."""
    sinks: tuple[str, ...]
    location: str

    @property
    def name(self) -> str:
        """The job's name and uid."""
        return self.job.uid


def load(data: bytes, name: str) -> list[JobDocument]:
    """The jobs of a file, at least one. Raises `UsageError` in one line that begins with file:line:column."""
    return document_files.load(data, name, from_node, "job", "CrawlJob")


def from_json(content: Any, place: str = "job") -> JobDocument:
    """The job of parsed JSON. Raises `UsageError` that names the key."""
    return from_node(from_builtins(content, place))


def distinct(found: Iterable[JobDocument]) -> list[JobDocument]:
    """The documents as a list. Raises `UsageError` if two of them have the same name."""
    return document_files.distinct(found, "job")


def from_node(node: Node) -> JobDocument:
    """The job of a YAML node. Raises `UsageError` with the place."""
    document = read(node, schema.CrawlJob)
    seeds = [seed.source for seed in document.spec.seeds]
    job = _job(document.metadata.name, document.spec, [value for kind, value in seeds if kind == "url"])
    protect_session(job)
    keep_routes(job)
    return JobDocument(
        msgspec.to_builtins(document),
        job,
        tuple(seed for seed in seeds if seed[0] != "url"),
        tuple(dict.fromkeys(sink.type for sink in document.spec.sinks)),
        node.location,
    )


def protect_session(job: CrawlJob) -> None:
    """Exclude links that log out from a job that keeps cookies: a fetch of such a link would end its session."""
    if not (job.cookies or job.login is not None):
        return
    scope = job.scope = job.scope or Scope(max_depth=-1)
    if LOGOUT not in scope.exclude:
        scope.exclude = [*scope.exclude, LOGOUT]


def keep_routes(job: CrawlJob) -> None:
    """Routes are pages in a job that renders: only a browser can tell them apart."""
    if job.render > Render.NEVER:
        parse = job.parse = job.parse or Parse()
        if ROUTE not in parse.follow:
            parse.follow = [*parse.follow, ROUTE]


def keywords(words: Iterable[str]) -> list[str]:
    """Keywords as the message has them: lower case, blanks collapsed, each once."""
    return list(dict.fromkeys(text for word in words if (text := " ".join(word.lower().split()))))


def _job(name: str, spec: schema.JobSpec, seeds: list[str]) -> CrawlJob:
    scope, budget, traps, parse = spec.scope, spec.host_budget, spec.traps, spec.parse
    return CrawlJob(
        uid=name,
        name=name,
        seeds=seeds,
        scope=Scope(schema.MODES[scope.mode], scope.include, scope.exclude, scope.max_depth, scope.max_pages),
        politeness=_politeness(spec.politeness),
        keep_links=spec.links,
        paused=spec.paused,
        strategy=schema.STRATEGY_NUMBERS[spec.strategy],
        keywords=keywords(spec.keywords),
        recrawl=_recrawl(spec),
        windows=FetchWindows(list(dict.fromkeys(spec.windows)), _zone(spec)) if spec.windows else None,
        host_budget=HostBudget(budget.pages, budget.bytes, seconds(budget.time), budget.queued)
        if budget != schema.HostBudget()
        else None,
        traps=Traps(traps.off, traps.cap_fetches, traps.cap_share) if traps != schema.Traps() else None,
        weight=spec.weight,
        tenant=spec.tenant,
        site=spec.site.name if spec.site is not None else "",
        quota=_quota(spec.quota),
        site_quota=_quota(spec.site.quota) if spec.site is not None else None,
        sitemaps=spec.sitemaps,
        rules=list(dict.fromkeys(spec.rules)),
        parse=Parse(
            list(dict.fromkeys(parse.follow)),
            parse.nofollow == "skip",
            schema.MAIN_TEXTS[parse.main_text],
            schema.NEAR_COPIES[parse.near_copies],
            parse.requisites,
        )
        if parse != schema.Parse()
        else None,
        cookies=spec.cookies,
        render=schema.RENDERS[spec.render],
        browser=msgspec.json.encode(spec.browser).decode() if spec.browser != Browser() else "",
        login=_login(spec.login) if spec.login else None,
        proxy_class=spec.proxy_class,
        language=spec.language,
        max_page_bytes=spec.max_page_bytes,
        schemes=msgspec.json.encode(spec.schemes).decode() if spec.schemes is not None else "",
    )


def _quota(quota: schema.Quota) -> Quota | None:
    if not (quota.pages or quota.bytes or quota.browser_seconds):
        return None
    return Quota(quota.pages, quota.bytes, quota.browser_seconds, schema.QUOTA_PERIODS[quota.per])


def _login(login: schema.Login) -> Login:
    fields = [LoginField(field.name, field.value, field.env, field.file) for field in login.fields]
    steps = msgspec.json.encode(login.steps).decode() if login.steps else ""
    return Login(login.url, fields, login.check, login.lost, steps)


def _politeness(politeness: schema.Politeness) -> Politeness:
    return Politeness(
        seconds(politeness.delay),
        politeness.concurrency_per_host,
        not politeness.respect_robots,
        politeness.adaptive,
        [
            HostPolicy(host.host, seconds(host.delay) if host.delay is not None else -1.0, host.concurrency or 0)
            for host in politeness.hosts
        ],
    )


def _recrawl(spec: schema.JobSpec) -> Recrawl | None:
    if spec.recrawl is None and not spec.schedule:
        return None
    recrawl = spec.recrawl or schema.Recrawl()
    shortest, longest, every = (seconds(text or "0") for text in (recrawl.min, recrawl.max, recrawl.every))
    return Recrawl(
        shortest,
        longest,
        every,
        cron=spec.schedule,
        monitor=recrawl.monitor,
        gone_after=recrawl.gone_after,
        refresh_at=instant_s(recrawl.refresh_at) if recrawl.refresh_at else 0.0,
        freshness_s=seconds(recrawl.freshness) if recrawl.freshness else 0.0,
        time_zone=_zone(spec) if spec.schedule else "",
    )


def _zone(spec: schema.JobSpec) -> str:
    return spec.time_zone if spec.time_zone != cron.UTC else ""
