"""Broken links of a crawl: from which page, to which URL, with which status or reason.

A link is broken when its target ended as failed, itself or at the end of its redirects. Links whose target has no row
were not fetched: they are external, or were left in the queue. Needs the table `links` (`--links`).
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.errors import UserError
from nephila.native import parse_url
from nephila.storage.ledgers.read_connection import ReadConnection, open_for_reading
from nephila.storage.source import Source, display_name

MAX_HOPS: Final = 3
"""Redirects that are followed in the table."""
COLUMNS: Final = ("from_url", "to_url", "status", "reason", "anchor", "external", "kind")
LINK, REQUISITE, FRAGMENT = "link", "requisite", "fragment"
"""Kinds of broken links."""


class BrokenLink(NamedTuple):
    """One row of the export."""

    from_url: str
    to_url: str
    status: int
    """Of the target, or of the end of its redirects; 0: there was no answer."""
    reason: str
    anchor: str
    external: bool
    """Found by a check of links that the crawl did not follow."""
    kind: str = LINK


class CheckedLink(NamedTuple):
    """The result of one request to a URL that the crawl did not fetch."""

    url: str
    status: int
    reason: str
    """Empty: it is not broken."""


def broken_links(source: Source, job: str | None = None, *, needs_links: bool = True) -> Iterator[BrokenLink]:
    """All broken links to URLs that the crawl has fetched, in the order of their pages. Raises `UserError` when no link
    is stored and `needs_links`. O(links)."""
    only = "AND links.job = :job" if job is not None else ""
    hops = "".join(
        f" LEFT JOIN pages AS hop{n} ON hop{n}.job = hop{n - 1}.job AND hop{n - 1}.reason = '{Reason.REDIRECT}'"
        f" AND hop{n}.url = hop{n - 1}.final_url"
        for n in range(1, MAX_HOPS + 1)
    )
    failed = " OR ".join(f"hop{n}.outcome = 'failed'" for n in range(MAX_HOPS + 1))
    last = "".join(f" WHEN hop{n}.outcome = 'failed' THEN hop{n}.{{0}}" for n in range(MAX_HOPS + 1))
    query = (
        f"SELECT source.url, links.to_url, CASE{last.format('status')} END, CASE{last.format('reason')} END,"
        " links.anchor FROM links"
        " JOIN pages AS source ON source.job = links.job AND source.url_key = links.from_key"
        f" JOIN pages AS hop0 ON hop0.job = links.job AND hop0.url_key = links.to_key{hops}"
        f" WHERE ({failed}) {only} ORDER BY source.url, links.to_url, links.anchor"
    )
    with open_for_reading(source) as connection:
        if needs_links:
            check_links_stored(connection, source)
        for from_url, to_url, status, reason, anchor in connection.execute(query, {"job": job}):
            yield BrokenLink(from_url, to_url, int(status), reason, anchor, False)


def unfetched_links(source: Source, job: str | None = None) -> Iterator[tuple[str, str, str]]:
    """(page, URL, anchor) of each link whose target has no row."""
    only = "AND links.job = :job" if job is not None else ""
    query = (
        "SELECT source.url, links.to_url, links.anchor FROM links"
        " JOIN pages AS source ON source.job = links.job AND source.url_key = links.from_key"
        " LEFT JOIN pages AS target ON target.job = links.job AND target.url_key = links.to_key"
        f" WHERE target.url IS NULL {only} ORDER BY source.url, links.to_url, links.anchor"
    )
    with open_for_reading(source) as connection:
        check_links_stored(connection, source)
        yield from connection.execute(query, {"job": job})


def ends_of(source: Source, job: str | None, urls: Iterable[str]) -> dict[str, CheckedLink]:
    """How the crawl has ended these URLs, or the ends of their redirects; URLs without a row are left out. O(URLs)."""
    ends: dict[str, CheckedLink] = {}
    with open_for_reading(source) as connection:
        for url in dict.fromkeys(urls):
            row = _end(connection, job, parse_url(url).fingerprint.hex())
            if row is not None:
                _, outcome, status, reason = row
                ends[url] = CheckedLink(url, int(status), reason if outcome == "failed" else "")
    return ends


def stored_ends(source: Source, job: str | None, keys: Iterable[str]) -> dict[str, str]:
    """Key → key of the page that was stored for it, by its redirects. O(keys)."""
    with open_for_reading(source) as connection:
        rows = ((key, _end(connection, job, key)) for key in keys)
        return {key: row[0] for key, row in rows if row is not None and row[1] == "stored"}


def _end(connection: ReadConnection, job: str | None, key: str) -> tuple[str, str, int, str] | None:
    """Key, outcome, status and reason of a row, or of the end of its redirects."""
    only = "AND job = :job" if job is not None else ""
    query = f"SELECT outcome, status, reason, final_url FROM pages WHERE url_key = :key {only} LIMIT 1"
    row = None
    for _ in range(MAX_HOPS + 1):
        columns = connection.execute(query, {"key": key, "job": job}).fetchone()
        if columns is None:
            return row
        outcome, status, reason, final_url = columns
        row = (key, outcome, status, reason)
        if reason != Reason.REDIRECT or not final_url:
            return row
        key = parse_url(final_url).fingerprint.hex()
    return row


def check_links_stored(connection: ReadConnection, source: Source, job: str | None = None) -> None:
    """Raises `UserError` when no link is stored, of one job or of any."""
    only = "WHERE job = :job" if job is not None else ""
    if connection.execute(f"SELECT 1 FROM links {only} LIMIT 1", {"job": job}).fetchone() is None:
        raise UserError(f"{display_name(source)} has no links; crawl with --links (spec.links of a job) to store them")
