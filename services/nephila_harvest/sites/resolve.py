"""Resolves a directory to the values that hold for it, and to the CrawlJob document of one run. Pure.

Order of precedence: the directory, its site, the sites that this one inherits from, the site `default`, the built-in
defaults. The job watches the seeds (`recrawl.monitor`); a run is a new `recrawl.refreshAt`. Pages that belong to a
directory nested below are excluded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from nephila.kernel.documents.field_types import instant_text
from nephila.kernel.documents.job_document import JobDocument, crawl_job, from_json
from nephila.kernel.runtime.errors import UsageError, UsageErrors

from nephila_harvest.sites.settings import nested, paths
from nephila_harvest.sites.site_documents import DirectoryDocument, SiteDocument, Sites
from nephila_harvest.sites.surt import expression, surt

DEFAULTS: dict[str, Any] = {
    "score": 1.0,
    "frequency": "1d",
    "topPages": 0,
    "paused": False,
    "scope.mode": "prefix",
    "politeness.delay": "1s",
    "politeness.concurrencyPerHost": 1,
    "scope.maxDepth": -1,
    "render": "never",
}
"""Values without which no directory is resolved; all other settings have the defaults of a CrawlJob."""
TEXTS = ("country", "type", "description")
"""Settings for people."""
PLANNED = ("score", "start", "frequency", "timeZone", "freshness", "topPages", "paused", *TEXTS)
"""Settings of the plan and for people; the job has all others."""
GONE_AFTER = 100
"""A watched page that is away comes back more often than not: the document names it as current."""
BUILT_IN = "built-in default"


class Value(NamedTuple):
    """A value that holds, and its origin."""

    value: Any
    origin: str
    """directory NAME, site NAME, or built-in default."""
    location: str = ""
    """file:line:column of the key."""


def values(sites: Sites, site: SiteDocument, directory: DirectoryDocument | None) -> dict[str, Value]:
    """The settings that hold for a directory, or for a site's URLs outside of its directories."""
    settings: dict[str, Value] = {}
    for path in paths():
        owned = sites.value(site, directory, path)
        if owned is not None:
            leaf, owner, part = owned
            origin = f"directory {owner.name}.{part.name}" if part is not None else f"site {owner.name}"
            settings[path] = Value(leaf.value, origin, leaf.location)
        elif path == "seeds" and directory is not None:
            settings[path] = Value([{"url": directory.url}], f"directory {site.name}.{directory.name} (url)")
        elif path in DEFAULTS:
            settings[path] = Value(DEFAULTS[path], BUILT_IN)
    return settings


def job(sites: Sites, name: str, started_at: float, max_pages: int = 0, *, paused: bool = False) -> JobDocument:
    """The job of one run of a directory. `max_pages`: pages that may be stored at its end, 0 = no limit. `paused`: a
    person has paused the job, and it stays so. Raises
    `UsageError` where keys of several origins do not fit together."""
    site, directory = sites.directories[name]
    settings = {path: value.value for path, value in values(sites, site, directory).items()}
    score = settings["score"]
    spec = nested({path: value for path, value in settings.items() if path not in PLANNED})
    scope = spec.setdefault("scope", {})
    others = [expression(prefix) for prefix in sites.nested.get(name, ())]
    if others:
        scope["exclude"] = [*scope.get("exclude", ()), *others]
    if max_pages:
        scope["maxPages"] = min(scope.get("maxPages") or max_pages, max_pages)
    if settings["topPages"] and spec.get("keywords"):
        spec.setdefault("strategy", "best-first")
    if settings.get("windows") and "timeZone" in settings:
        spec["timeZone"] = settings["timeZone"]
    spec["weight"] = round(score, 4)
    if paused:
        spec["paused"] = True
    spec["site"] = {"name": site.name}
    if "quota" in site.settings:
        spec["site"]["quota"] = site.settings["quota"].value
    spec["recrawl"] = {"monitor": True, "goneAfter": GONE_AFTER, "refreshAt": instant_text(started_at)}
    if settings.get("freshness"):
        spec["recrawl"]["freshness"] = settings["freshness"]
    document = crawl_job(name, spec)
    return from_json(document, f"{directory.location}: job")


def by_score(sites: Sites) -> dict[str, dict[str, Value]]:
    """Name → settings of directories in the order in which they are shown: the highest score first, then by name."""
    settings = {name: values(sites, *directory) for name, directory in sites.directories.items()}
    return dict(sorted(settings.items(), key=lambda item: (-item[1]["score"].value, item[0])))


def check(sites: Sites) -> None:
    """Raise `UsageError` where a directory has no valid job; its `others` are the further errors. O(directories)."""
    errors = UsageErrors()
    for name in sites.directories:
        with errors:
            document = job(sites, name, 0.0)
            if document.files:
                raise UsageError(f"{document.location}: seeds: a site has no files of seeds; list the URLs")
    errors.raise_all()


class SettingOrigins(NamedTuple):
    """Which directory a URL belongs to, and which value holds from which origin."""

    url: str
    surt: str
    site: str
    directory: str
    """Name of the job; empty: the URL is in no directory."""
    prefix: str
    values: dict[str, Value]


def explain(sites: Sites, url: str) -> SettingOrigins:
    """The settings for a URL. Raises `UrlError`."""
    key = surt(url)
    site, name, prefix = sites.find(key)
    if site is None:
        return SettingOrigins(url, key, "", "", "", {})
    directory = sites.directories[name][1] if name else None
    return SettingOrigins(url, key, site.name, name, prefix, values(sites, site, directory))
