"""Requests to forget URLs: which URLs they mean, and how these have ended by their rows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import islice

import re2
from nephila.kernel.documents.field_types import check_expression
from nephila.kernel.documents.job_document import keeps_routes, spec_of
from nephila.kernel.fragment_routes import parse_for, parse_routed
from nephila.kernel.messages import CrawlJob, Outcome
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.seeds import url_errors
from nephila.storage.read import ended_urls
from nephila.storage.source import ENVIRONMENT, Source

from nephila_control import job_types
from nephila_control.job_view import is_there

MAX_URLS = 1_000_000
"""URLs of one request; a wider expression is several requests."""


def check(request: job_types.ForgetUrls) -> None:
    """Raises `UsageError` for a request that names nothing, or an invalid URL or expression."""
    for number, url in enumerate(request.urls):
        with url_errors(url, f"urls[{number}]: "):
            parse_routed(url)
    if not request.urls and not request.match:
        raise UsageError("say which URLs to forget: some URLs, or an expression (--match RE)")
    try:
        if request.match:
            check_expression(request.match)
    except ValueError as error:
        raise UsageError(f"--match {request.match[:100]!a} {error}") from None


async def urls_to_forget(
    source: Source | None, job: CrawlJob, request: job_types.ForgetUrls
) -> list[tuple[str, Outcome]]:
    """Returns each URL with its outcome. `source` is None without a database of rows. Raises `UsageError`."""
    check(request)
    if source is not None:
        return await asyncio.to_thread(named_urls, source, job, request)
    if request.match:
        raise UsageError(f"an expression is looked up in the database of the rows: set {ENVIRONMENT}, or give URLs")
    return without_rows(request.urls)


def named_urls(source: Source, job: CrawlJob, request: job_types.ForgetUrls) -> list[tuple[str, Outcome]]:
    """Returns each URL of a request once, with the outcome of its row if there is one. Reads the rows of the job: about
    1 s per 100,000. Raises `UsageError` for more than MAX_URLS."""
    routes = keeps_routes(spec_of(job))
    left = {parse_for(routes, url).fingerprint: url for url in request.urls}
    expression = re2.compile(request.match) if request.match else None

    def ended() -> Iterator[tuple[str, Outcome]]:
        for key, url, outcome in ended_urls.outcomes(source, job.uid):
            if left.pop(key, None) is not None or (expression is not None and expression.search(url)):
                yield url, outcome

    matches = list(islice(ended(), MAX_URLS + 1)) if is_there(source) else []
    if len(matches) > MAX_URLS:
        raise UsageError(f"--match {request.match[:100]!a} matches more than {MAX_URLS:,} URLs; take a narrower one")
    return matches + without_rows(left.values())


def without_rows(urls: Iterable[str]) -> list[tuple[str, Outcome]]:
    return [(url, Outcome.UNSPECIFIED) for url in urls]
