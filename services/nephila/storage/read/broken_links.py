"""Broken links of a crawl: from which page, to which URL, with which status or reason.

A link is broken when its target ended as failed, itself or at the end of its redirects. Links whose target has no row
were not fetched: they are external, or were left in the queue. Needs the table `links` (`--links`).
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.errors import UserError
from nephila.storage.ledgers.read_connection import ReadConnection, open_for_reading
from nephila.storage.source import Source, display_name

MAX_HOPS: Final = 3
"""Redirects that are followed in the table."""
COLUMNS: Final = ("from_url", "to_url", "status", "reason", "anchor", "external")


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


class CheckedLink(NamedTuple):
    """The result of one request to a URL that the crawl did not fetch."""

    url: str
    status: int
    reason: str
    """Empty: it is not broken."""


def broken_links(source: Source, job: str | None = None) -> Iterator[BrokenLink]:
    """All broken links to URLs that the crawl has fetched, in the order of their pages. Raises `UserError` when no link
    is stored. O(links)."""
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
        _check_links(connection, source)
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
        _check_links(connection, source)
        yield from connection.execute(query, {"job": job})


def _check_links(connection: ReadConnection, source: Source) -> None:
    if connection.execute("SELECT 1 FROM links LIMIT 1", {}).fetchone() is None:
        raise UserError(f"{display_name(source)} has no links; crawl with --links (spec.links of a job) to store them")
