"""Requests of Firecrawl's API: which options are honoured, which have no effect here, which are refused. Pure.

An option that would change the answer and cannot be honoured is refused with its name and the remedy; never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
import re2
from nephila.kernel.documents.job_document import crawl_job
from nephila.kernel.runtime.errors import UsageError

from nephila_doors.firecrawl.path_patterns import url_expression
from nephila_doors.scrapes import absolute_url

Format = Literal["markdown", "links", "html", "rawHtml", "json"]
FORMATS: Final[Mapping[Format, str]] = {"markdown": "m", "links": "l", "html": "h", "rawHtml": "r", "json": "j"}
"""Formats of a document, and the letter by which the id of a crawl holds them."""
DEFAULT_LIMIT: Final = 10_000
DEFAULT_TIMEOUT_S: Final = 60.0
MAX_TIMEOUT_S: Final = 300.0
MAX_URLS: Final = 1000
"""URLs of one batch."""
_WITHOUT_EFFECT: Final = frozenset((
    *("origin", "integration", "blockAds", "fastMode", "skipTlsVerification", "storeInCache", "removeBase64Images"),
    *("onlyMainContent", "maxConcurrency", "parsers", "zeroDataRetention", "deduplicateSimilarURLs", "auditMetadata"),
))  # fmt: skip
"""They speed Firecrawl's own service up, or ask for what is always so here. TLS is always verified, the main content is
always what Markdown holds, and a host has one request at a time."""
_REMEDIES: Final[Mapping[str, str]] = {
    "actions": "steps of a browser are spec.browser.steps of a CrawlJob",
    "headers": "headers of requests are --header of the program",
    "includeTags": "parts of a page are fields of a rule: nephila rules init",
    "excludeTags": "parts of a page are fields of a rule: nephila rules init",
    "mobile": "set the User-Agent of the program",
    "location": "a country is spec.proxyClass of a CrawlJob",
    "webhook": "crawls and batches have webhooks",
    "ignoreRobotsTxt": "robots.txt is obeyed; spec.politeness.respectRobots of a CrawlJob decides",
    "robotsUserAgent": "the product token of the program's User-Agent counts",
    "ignoreQueryParameters": "exclude URLs by an expression in excludePaths",
    "prompt": "there is no language model here; name the options themselves",
    "proxy": "proxies are options of the program",
}
_REMEDY: Final = "leave it out"
_QUIET: Final = re2.Options()
_QUIET.log_errors = False
_HARMLESS: Final[Mapping[str, tuple[Any, ...]]] = {
    "mobile": (False,),
    "proxy": ("basic", "auto"),
    "ignoreRobotsTxt": (False,),
    "ignoreQueryParameters": (False,),
    "headers": ({},),
    "actions": ([],),
    "includeTags": ([],),
    "excludeTags": ([],),
}
"""Values by which an option asks for what is so anyway."""


class ScrapeOptions(msgspec.Struct, frozen=True):
    formats: tuple[Format, ...] = ("markdown",)
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the format json."""
    max_age_s: float = 0.0
    timeout_s: float = DEFAULT_TIMEOUT_S
    rendered: bool = False


def scrape_options(body: Mapping[str, Any], *, beside: frozenset[str] = frozenset()) -> ScrapeOptions:
    """`beside` lists names that the caller reads. Raises `UsageError`."""
    names = {"formats", "maxAge", "timeout", "waitFor"} | beside
    _refuse_unknown(body, names)
    formats, schema = _formats(body.get("formats"))
    wait_ms = number(body, "waitFor", 0, 0, 60_000)
    return ScrapeOptions(
        formats,
        schema,
        number(body, "maxAge", 0, 0, 10**12) / 1000,
        min(number(body, "timeout", DEFAULT_TIMEOUT_S * 1000, 1, 10**9) / 1000, MAX_TIMEOUT_S),
        wait_ms > 0,
    )


def _refuse_unknown(body: Mapping[str, Any], names: set[str] | frozenset[str]) -> None:
    for name, value in body.items():
        if name in names or name in _WITHOUT_EFFECT or value is None or value in _HARMLESS.get(name, ()):
            continue
        raise UsageError(f"{name[:100]} is not supported: {_REMEDIES.get(name, _REMEDY)}")


def _formats(value: Any) -> tuple[tuple[Format, ...], Mapping[str, Any] | None]:
    if value is None:
        return ("markdown",), None
    if not isinstance(value, list) or len(value) > 20:
        raise UsageError("formats is not a list of formats")
    formats: dict[Format, None] = {}
    schema = None
    for entry in value:
        kind = entry.get("type") if isinstance(entry, dict) else entry
        name = next((choice for choice in FORMATS if choice == kind), None)
        if name is None:
            raise UsageError(f"format {str(kind)[:50]!r} is not supported: there are {', '.join(FORMATS)}")
        if name == "json":
            schema = entry.get("schema") if isinstance(entry, dict) else None
            if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
                raise UsageError("format json needs a schema with properties; their names are the fields of a rule")
        formats[name] = None
    return tuple(formats), schema


def crawl_document(job: str, body: Mapping[str, Any]) -> tuple[dict[str, Any], ScrapeOptions]:
    """Builds the CrawlJob of a crawl and the options of its pages. Raises `UsageError`."""
    names = frozenset((
        *("url", "limit", "maxDiscoveryDepth", "includePaths", "excludePaths", "regexOnFullURL", "sitemap", "delay"),
        *("crawlEntireDomain", "allowSubdomains", "allowExternalLinks", "scrapeOptions", "webhook"),
    ))  # fmt: skip
    _refuse_unknown(body, names)
    scrape = body.get("scrapeOptions") or {}
    if not isinstance(scrape, dict):
        raise UsageError("scrapeOptions is not an object")
    options = scrape_options(scrape)
    full = flag(body, "regexOnFullURL")
    depth = body.get("maxDiscoveryDepth")
    scope: dict[str, Any] = {
        "mode": _mode(body),
        "maxPages": int(number(body, "limit", DEFAULT_LIMIT, 1, 10**9)),
        "include": _patterns(body, "includePaths", full),
        "exclude": _patterns(body, "excludePaths", full),
    }
    if depth is not None:
        scope["maxDepth"] = int(number(body, "maxDiscoveryDepth", 0, 0, 10_000))
    sitemaps = sitemap(body)
    if sitemaps == "only":
        scope["maxDepth"] = 0
    spec: dict[str, Any] = {
        "seeds": [absolute_url(text(body, "url"))],
        "scope": scope,
        "sitemaps": sitemaps != "skip",
        "links": True,
        "render": "always" if options.rendered else "never",
    }
    if (delay := number(body, "delay", 0, 0, 86_400)) > 0:
        spec["politeness"] = {"delay": f"{delay:g}s"}
    return crawl_job(job, spec), options


def batch_document(job: str, urls: list[str], options: ScrapeOptions) -> dict[str, Any]:
    """Builds the CrawlJob of a batch of pages."""
    scope = {"mode": "any", "maxDepth": 0}
    render = "always" if options.rendered else "never"
    return crawl_job(job, {"seeds": urls, "scope": scope, "links": True, "render": render})


MAX_DOMAINS: Final = 10


class SearchOptions(msgspec.Struct, frozen=True):
    queries: tuple[str, ...]
    """Each host has one query."""
    limit: int
    formats: tuple[Format, ...]
    """Hits carry no documents if this is empty."""


def search_options(body: Mapping[str, Any]) -> SearchOptions:
    """A search has to name its hosts: there is no search of the web here. Raises `UsageError`."""
    names = ("query", "limit", "includeDomains", "excludeDomains", "sources", "scrapeOptions", "timeout")
    _refuse_unknown(body, frozenset((*names, "ignoreInvalidURLs")))
    query = text(body, "query", 400)
    for source in body.get("sources") or ():
        if (source.get("type") if isinstance(source, dict) else source) != "web":
            raise UsageError("sources: pages that were crawled are of the source web")
    include, exclude = _domains(body, "includeDomains"), _domains(body, "excludeDomains")
    if not include and not re.search(r"(?<!\S)host:\S", query):
        raise UsageError(
            "there is no search of the web here, only of pages that were crawled: name their hosts in includeDomains, "
            "or write host:NAME in the query"
        )
    without = "".join(f" -host:{name}" for name in exclude)
    queries = tuple(f"{query} host:{name}{without}" for name in include) or (query + without,)
    scrape = body.get("scrapeOptions")
    formats = scrape_options(scrape).formats if isinstance(scrape, dict) and scrape.get("formats") else ()
    return SearchOptions(queries, int(number(body, "limit", 5, 1, 50)), formats)


def sitemap(body: Mapping[str, Any]) -> Literal["include", "skip", "only"]:
    """Sitemaps give URLs beside links, none, or all of them. Raises `UsageError`."""
    value = body.get("sitemap")
    if value is None or value in ("include", "skip", "only"):
        return value or "include"
    raise UsageError(f"sitemap is {str(value)[:50]!r}; it is include, skip or only")


def _domains(body: Mapping[str, Any], name: str) -> list[str]:
    hosts = body.get(name) or []
    if not isinstance(hosts, list) or len(hosts) > MAX_DOMAINS:
        raise UsageError(f"{name} is not a list of at most {MAX_DOMAINS} hosts")
    if not all(isinstance(host, str) and re.fullmatch(r"[A-Za-z0-9.:-]{1,253}", host) for host in hosts):
        raise UsageError(f"{name} has what is no host")
    return hosts


def _mode(body: Mapping[str, Any]) -> str:
    if flag(body, "allowExternalLinks"):
        return "any"
    if flag(body, "allowSubdomains"):
        return "domain"
    return "host" if flag(body, "crawlEntireDomain") else "prefix"


def _patterns(body: Mapping[str, Any], name: str, full: bool) -> list[str]:
    """Translates expressions on paths into expressions on whole URLs. Raises `UsageError`."""
    patterns = body.get(name) or []
    if not isinstance(patterns, list) or len(patterns) > 100 or not all(isinstance(text, str) for text in patterns):
        raise UsageError(f"{name} is not a list of at most 100 expressions")
    for pattern in patterns:
        try:
            re2.compile(pattern, _QUIET)
        except re2.error as error:
            raise UsageError(f"{name}: {pattern[:100]!r} is not an expression of RE2: {_reason(error)}") from None
    return patterns if full else [url_expression(pattern) for pattern in patterns]


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


def text(body: Mapping[str, Any], name: str, most: int = 8000) -> str:
    """Raises `UsageError` if the text is missing, blank or too long."""
    value = body.get(name)
    if not isinstance(value, str) or not value.strip() or len(value) > most:
        raise UsageError(f"{name} is missing or not a text of at most {most:,} characters")
    return value.strip()


def urls_of(body: Mapping[str, Any]) -> list[str]:
    """Raises `UsageError`."""
    urls = body.get("urls")
    if not isinstance(urls, list) or not urls or len(urls) > MAX_URLS or not all(isinstance(u, str) for u in urls):
        raise UsageError(f"urls is not a list of 1 to {MAX_URLS:,} URLs")
    return [url.strip() for url in urls]


def flag(body: Mapping[str, Any], name: str) -> bool:
    """A missing switch is false. Raises `UsageError`."""
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise UsageError(f"{name} is {str(value)[:50]!r}, not true or false")
    return bool(value)


def number(body: Mapping[str, Any], name: str, default: float, low: float, high: float) -> float:
    """Raises `UsageError` for a number out of bounds."""
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise UsageError(f"{name} is {str(value)[:50]!r}, not a number from {low:g} to {high:g}")
    return value


_ID: Final = re.compile(r"(crawl|batch)-([0-9a-f]{12})[0-9a-f]{12}-([mlhrj]{1,5})")


class CrawlId(msgspec.Struct, frozen=True):
    """The id is the name of the job, so a restart loses nothing of it."""

    kind: str
    begun: float
    """Seconds since 1970 UTC."""
    formats: tuple[Format, ...]


def id_of(kind: Literal["crawl", "batch"], begun: float, random: str, formats: tuple[Format, ...]) -> str:
    """`random` is twelve hexadecimal digits."""
    return f"{kind}-{int(begun * 1000):012x}{random}-{''.join(FORMATS[name] for name in formats)}"


def read_id(crawl: str) -> CrawlId | None:
    """Returns None for a text that is no id."""
    match = _ID.fullmatch(crawl)
    if match is None:
        return None
    formats = tuple(name for name, letter in FORMATS.items() if letter in match[3])
    return CrawlId(match[1], int(match[2], 16) / 1000, formats)
