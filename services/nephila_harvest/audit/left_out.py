"""Links that a crawl has not stored, as candidates of an audit: with them a sample says what was missed.

Only links to hosts with stored pages count: what lies on other hosts is outside of what the crawl is about. Needs the
table `links` (`--links`). The reason of a link is that of its row, else where it lies: deeper than all rows, or not
admitted (excluded, outside of the scope, or still queued when the crawl ended).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from nephila.storage.ledgers.read_connection import ReadConnection

from nephila_harvest.audit.sampling import LINK, Candidate

VERSION: Final = "left out"
"""A label counts for a link as long as it is left out."""
_PARENTS: Final = 5


def left_out(connection: ReadConnection, job: str) -> Iterator[Candidate]:
    """The links of a job, or of all jobs, whose target is not stored. O(links log links)."""
    only = "AND l.job = :only" if job else ""
    hosts: dict[str, set[str]] = {}
    deepest: dict[str, int] = {}
    for name, url, depth in connection.execute(
        f"SELECT job, url, depth FROM pages l WHERE outcome = 'stored' {only}", {"only": job}
    ):
        hosts.setdefault(name, set()).add(_host(url))
        deepest[name] = max(deepest.get(name, 0), depth)
    query = (
        "SELECT l.job, l.to_key, MIN(l.to_url), MIN(p.depth), MIN(t.outcome), MIN(t.reason) FROM links l"
        " JOIN pages p ON p.job = l.job AND p.url_key = l.from_key"
        " LEFT JOIN pages t ON t.job = l.job AND t.url_key = l.to_key"
        f" WHERE (t.url_key IS NULL OR t.outcome <> 'stored') AND l.to_key <> '' {only}"
        " GROUP BY l.job, l.to_key ORDER BY l.job, l.to_key"
    )
    for name, key, url, depth, outcome, reason in connection.execute(query, {"only": job}):
        if _host(url) in hosts.get(name, ()):
            why = f"{outcome}({reason})" if outcome else "not admitted"
            if not outcome and depth >= deepest[name]:
                why = "too deep"
            yield Candidate(name, key, "", LINK, VERSION, url, why)


def anchors(connection: ReadConnection, candidate: Candidate) -> tuple[str, list[str]]:
    """The text of a link, and pages that have it."""
    query = (
        "SELECT l.anchor, p.url FROM links l JOIN pages p ON p.job = l.job AND p.url_key = l.from_key"
        f" WHERE l.job = :job AND l.to_key = :key ORDER BY p.depth, p.url LIMIT {_PARENTS}"
    )
    rows = connection.execute(query, {"job": candidate.job, "key": candidate.url_key}).fetchall()
    return next((anchor for anchor, _ in rows if anchor), ""), list(dict.fromkeys(url for _, url in rows))


def is_left_out(connection: ReadConnection, candidate: Candidate) -> bool:
    """Whether the target of a link is still not stored."""
    query = "SELECT 1 FROM pages WHERE job = :job AND url_key = :key AND outcome = 'stored'"
    return connection.execute(query, {"job": candidate.job, "key": candidate.url_key}).fetchone() is None


def _host(url: str) -> str:
    return urlsplit(url).netloc.lower().removeprefix("www.")
