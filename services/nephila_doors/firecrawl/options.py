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
    """What is wanted of a page."""

    formats: tuple[Format, ...] = ("markdown",)
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the format json."""
    max_age_s: float = 0.0
    timeout_s: float = DEFAULT_TIMEOUT_S
    rendered: bool = False


def scrape_options(given: Mapping[str, Any], *, beside: frozenset[str] = frozenset()) -> ScrapeOptions:
    """The options of a scrape; `beside`: names that the caller reads. Raises `UsageError`."""
    known = {"formats", "maxAge", "timeout", "waitFor"} | beside
    _refuse_unknown(given, known)
    formats, schema = _formats(given.get("formats"))
    wait_ms = number(given, "waitFor", 0, 0, 60_000)
    return ScrapeOptions(
        formats,
        schema,
        number(given, "maxAge", 0, 0, 10**12) / 1000,
        min(number(given, "timeout", DEFAULT_TIMEOUT_S * 1000, 1, 10**9) / 1000, MAX_TIMEOUT_S),
        wait_ms > 0,
    )


def _refuse_unknown(given: Mapping[str, Any], known: set[str] | frozenset[str]) -> None:
    for name, value in given.items():
        if name in known or name in _WITHOUT_EFFECT or value is None or value in _HARMLESS.get(name, ()):
            continue
        raise UsageError(f"{name[:100]} is not supported: {_REMEDIES.get(name, _REMEDY)}")


def _formats(given: Any) -> tuple[tuple[Format, ...], Mapping[str, Any] | None]:
    if given is None:
        return ("markdown",), None
    if not isinstance(given, list) or len(given) > 20:
        raise UsageError("formats is not a list of formats")
    found: dict[Format, None] = {}
    schema = None
    for one in given:
        said = one.get("type") if isinstance(one, dict) else one
        name = next((known for known in FORMATS if known == said), None)
        if name is None:
            raise UsageError(f"format {str(said)[:50]!r} is not supported: there are {', '.join(FORMATS)}")
        if name == "json":
            schema = one.get("schema") if isinstance(one, dict) else None
            if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
                raise UsageError("format json needs a schema with properties; their names are the fields of a rule")
        found[name] = None
    return tuple(found), schema


def crawl_document(job: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], ScrapeOptions]:
    """The CrawlJob of a crawl, and what is wanted of its pages. Raises `UsageError`."""
    known = frozenset((
        *("url", "limit", "maxDiscoveryDepth", "includePaths", "excludePaths", "regexOnFullURL", "sitemap", "delay"),
        *("crawlEntireDomain", "allowSubdomains", "allowExternalLinks", "scrapeOptions", "webhook"),
    ))  # fmt: skip
    _refuse_unknown(given, known)
    wanted = given.get("scrapeOptions") or {}
    if not isinstance(wanted, dict):
        raise UsageError("scrapeOptions is not an object")
    options = scrape_options(wanted)
    full = flag(given, "regexOnFullURL")
    depth = given.get("maxDiscoveryDepth")
    scope: dict[str, Any] = {
        "mode": _mode(given),
        "maxPages": int(number(given, "limit", DEFAULT_LIMIT, 1, 10**9)),
        "include": _patterns(given, "includePaths", full),
        "exclude": _patterns(given, "excludePaths", full),
    }
    if depth is not None:
        scope["maxDepth"] = int(number(given, "maxDiscoveryDepth", 0, 0, 10_000))
    sitemaps = sitemap(given)
    if sitemaps == "only":
        scope["maxDepth"] = 0
    spec: dict[str, Any] = {
        "seeds": [absolute_url(text(given, "url"))],
        "scope": scope,
        "sitemaps": sitemaps != "skip",
        "links": True,
        "render": "always" if options.rendered else "never",
    }
    if (delay := number(given, "delay", 0, 0, 86_400)) > 0:
        spec["politeness"] = {"delay": f"{delay:g}s"}
    return crawl_job(job, spec), options


def batch_document(job: str, urls: list[str], options: ScrapeOptions) -> dict[str, Any]:
    """The CrawlJob of a batch of pages."""
    scope = {"mode": "any", "maxDepth": 0}
    render = "always" if options.rendered else "never"
    return crawl_job(job, {"seeds": urls, "scope": scope, "links": True, "render": render})


MAX_DOMAINS: Final = 10


class SearchOptions(msgspec.Struct, frozen=True):
    """A search of pages that were crawled here."""

    queries: tuple[str, ...]
    """One for each host."""
    limit: int
    formats: tuple[Format, ...]
    """Empty: a hit is no document."""


def search_options(given: Mapping[str, Any]) -> SearchOptions:
    """The options of a search. It names the hosts that it is about: there is no search of the web here. Raises
    `UsageError`."""
    known = ("query", "limit", "includeDomains", "excludeDomains", "sources", "scrapeOptions", "timeout")
    _refuse_unknown(given, frozenset((*known, "ignoreInvalidURLs")))
    query = text(given, "query", 400)
    for source in given.get("sources") or ():
        if (source.get("type") if isinstance(source, dict) else source) != "web":
            raise UsageError("sources: pages that were crawled are of the source web")
    include, exclude = _domains(given, "includeDomains"), _domains(given, "excludeDomains")
    if not include and not re.search(r"(?<!\S)host:\S", query):
        raise UsageError(
            "there is no search of the web here, only of pages that were crawled: name their hosts in includeDomains, "
            "or write host:NAME in the query"
        )
    without = "".join(f" -host:{name}" for name in exclude)
    queries = tuple(f"{query} host:{name}{without}" for name in include) or (query + without,)
    scrape = given.get("scrapeOptions")
    formats = scrape_options(scrape).formats if isinstance(scrape, dict) and scrape.get("formats") else ()
    return SearchOptions(queries, int(number(given, "limit", 5, 1, 50)), formats)


def sitemap(given: Mapping[str, Any]) -> Literal["include", "skip", "only"]:
    """What sitemaps are for: URLs beside links, none, or all of them. Raises `UsageError`."""
    value = given.get("sitemap")
    if value is None or value in ("include", "skip", "only"):
        return value or "include"
    raise UsageError(f"sitemap is {str(value)[:50]!r}; it is include, skip or only")


def _domains(given: Mapping[str, Any], name: str) -> list[str]:
    found = given.get(name) or []
    if not isinstance(found, list) or len(found) > MAX_DOMAINS:
        raise UsageError(f"{name} is not a list of at most {MAX_DOMAINS} hosts")
    if not all(isinstance(one, str) and re.fullmatch(r"[A-Za-z0-9.:-]{1,253}", one) for one in found):
        raise UsageError(f"{name} has what is no host")
    return found


def _mode(given: Mapping[str, Any]) -> str:
    if flag(given, "allowExternalLinks"):
        return "any"
    if flag(given, "allowSubdomains"):
        return "domain"
    return "host" if flag(given, "crawlEntireDomain") else "prefix"


def _patterns(given: Mapping[str, Any], name: str, full: bool) -> list[str]:
    """Expressions on paths, as expressions on whole URLs. Raises `UsageError`."""
    found = given.get(name) or []
    if not isinstance(found, list) or len(found) > 100 or not all(isinstance(one, str) for one in found):
        raise UsageError(f"{name} is not a list of at most 100 expressions")
    for pattern in found:
        try:
            re2.compile(pattern, _QUIET)
        except re2.error as error:
            raise UsageError(f"{name}: {pattern[:100]!r} is not an expression of RE2: {_reason(error)}") from None
    return found if full else [url_expression(pattern) for pattern in found]


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


def text(given: Mapping[str, Any], name: str, most: int = 8000) -> str:
    """A text that has to be there. Raises `UsageError`."""
    found = given.get(name)
    if not isinstance(found, str) or not found.strip() or len(found) > most:
        raise UsageError(f"{name} is missing or not a text of at most {most:,} characters")
    return found.strip()


def urls_of(given: Mapping[str, Any]) -> list[str]:
    """The URLs of a batch. Raises `UsageError`."""
    found = given.get("urls")
    if not isinstance(found, list) or not found or len(found) > MAX_URLS or not all(isinstance(u, str) for u in found):
        raise UsageError(f"urls is not a list of 1 to {MAX_URLS:,} URLs")
    return [one.strip() for one in found]


def flag(given: Mapping[str, Any], name: str) -> bool:
    """A switch; false where it is left out. Raises `UsageError`."""
    found = given.get(name)
    if found is not None and not isinstance(found, bool):
        raise UsageError(f"{name} is {str(found)[:50]!r}, not true or false")
    return bool(found)


def number(given: Mapping[str, Any], name: str, default: float, low: float, high: float) -> float:
    """A number within bounds. Raises `UsageError`."""
    found = given.get(name)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, int | float) or not low <= found <= high:
        raise UsageError(f"{name} is {str(found)[:50]!r}, not a number from {low:g} to {high:g}")
    return found


_ID: Final = re.compile(r"(crawl|batch)-([0-9a-f]{12})[0-9a-f]{12}-([mlhrj]{1,5})")


class CrawlId(msgspec.Struct, frozen=True):
    """What the id of a crawl says. It is the name of its job, so a restart loses nothing of it."""

    kind: str
    begun: float
    """Seconds since 1970 UTC."""
    formats: tuple[Format, ...]


def id_of(kind: Literal["crawl", "batch"], begun: float, random: str, formats: tuple[Format, ...]) -> str:
    """The id of a crawl. `random`: twelve hexadecimal digits."""
    return f"{kind}-{int(begun * 1000):012x}{random}-{''.join(FORMATS[one] for one in formats)}"


def read_id(crawl: str) -> CrawlId | None:
    """None when this is no id."""
    found = _ID.fullmatch(crawl)
    if found is None:
        return None
    formats = tuple(name for name, letter in FORMATS.items() if letter in found[3])
    return CrawlId(found[1], int(found[2], 16) / 1000, formats)
