"""The Python API: `nephila.crawl`, `nephila.fetch`, `nephila.extract`, `nephila.search`; docs/python.md.

A thin layer over what `nephila crawl` runs: the same options, services, politeness and files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from nephila.api.crawl import AHEAD, Crawl, End, OnPage
from nephila.api.options import Rules
from nephila.api.page import Link, Page, page_of
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.runtime.extensions import extension
from nephila.programs.options import Options
from nephila.storage.read.search_answer import Found, Fragment, Hit

__all__ = [
    "Crawl", "End", "Found", "Fragment", "Hit", "Link", "Options", "Page", "UsageError", "UserError", "crawl",
    "extract", "fetch", "search",
]  # fmt: skip


def crawl(
    *seeds: str,
    out: str | Path | None = None,
    resume: bool = False,
    fresh: bool = False,
    refresh: bool = False,
    retry_failed: bool = False,
    rules: Rules | None = None,
    on_page: OnPage | None = None,
    ahead: int = AHEAD,
    all_outcomes: bool = False,
    found_links: bool = True,
    **options: Unpack[Options],
) -> Crawl:
    """Crawl from URLs or a job.yaml and yield each page when it is fetched, by `for` or `async for`.

    `out` keeps the result and makes the crawl resumable; without it a temporary directory is used and removed.
    `resume`, `fresh`, `refresh` and `retry_failed` are those of the command; pages that a server
    reports as unchanged (304) are not yielded again.
    `rules`: a rule file, a directory of rules, or rules as mappings; they fill `page.items`. `on_page` is called with
    each page before it is yielded; the links that it returns are followed as well. `ahead`: URLs fetched ahead of
    the page in hand; a slow consumer slows the crawl. `all_outcomes`: also URLs that were denied, failed or dropped.
    `found_links=False`: only links that `page.follow` and `on_page` add are followed, and those of sitemaps and feeds.
    Raises `UsageError` and `UserError`, here or where the pages are taken.
    """
    return Crawl(
        seeds,
        out=None if out is None else Path(out),
        resume=resume,
        fresh=fresh,
        refresh=refresh,
        retry_failed=retry_failed,
        rules=rules,
        on_page=on_page,
        ahead=ahead,
        all_outcomes=all_outcomes,
        found_links=found_links,
        options=options,
    )


def fetch(url: str, *, rules: Rules | None = None, **options: Unpack[Options]) -> Page:
    """One page, with redirects followed. robots.txt and the egress guard apply as in a crawl; one attempt.

    Raises `UserError` with the cause in one line. For more than a few pages of a host use `crawl`, which
    keeps the pace.
    """
    chosen: Options = {"max_depth": 0, "delay": 0.0, "max_wait": 0.0, "retries": 0, **options}
    pages = list(
        Crawl(
            (url,),
            out=None,
            resume=False,
            rules=rules,
            on_page=None,
            ahead=4,
            all_outcomes=True,
            found_links=False,
            options=chosen,
        )
    )
    stored = [page for page in pages if page.outcome == "stored"]
    if stored:
        return stored[-1]
    if not pages:
        raise UserError(f"{url}: no answer")
    last = pages[-1]
    raise UserError(f"{last.url}: {last.outcome}({last.reason}){f', status {last.status}' if last.status else ''}")


def extract(html: str | bytes, url: str = "", *, content_type: str = "", charset: str = "") -> Page:
    """The page of a document that is in memory; nothing is fetched.

    `url` is the address of the document; relative links are left out without it. `content_type` ("" = HTML) and
    `charset` are as the server sent them. Raises `ValueError` when `url` is neither empty nor absolute http(s).
    """
    from nephila.kernel.pages.mime import media_type
    from nephila.parser.single.extract import extract as extract_document

    body = html.encode("utf-8", "replace") if isinstance(html, str) else html
    media, declared = media_type(content_type)
    charset = "utf-8" if isinstance(html, str) else charset or declared
    return page_of(extract_document(body, url, media, charset, markdown=True), body, media, charset)


def search(
    words: str, out: str | Path, *, job: str | None = None, skip: int = 0, limit: int = 20, fresh: bool = False
) -> Found:
    """Pages of a crawl by words of title, URL and text, the best first; docs/search.md.

    `out`: the directory of a crawl that runs or has ended, or the URL of a database. The index is made by the first
    search, and reads on by each one. `fresh`: make it again. Raises `UsageError` for a search that cannot be read,
    `UserError`.
    """
    from nephila.programs.output_directory import find_rows

    source, only = find_rows(str(out))
    chosen = job or only
    pages: Found = extension("search")(
        source, words, jobs=[chosen] if chosen else None, skip=skip, limit=limit, fresh=fresh
    )
    return pages
