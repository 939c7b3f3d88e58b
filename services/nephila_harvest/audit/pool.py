"""A part of the pages or items of a large crawl, from which a sample is drawn in bounded time.

Invariant: the part is the fetches whose URLs have the hashes that follow the seed's, so each page is in it with the
same probability, regardless of its host; the part of a later crawl with the same seed has the same pages as far as it
reaches. nephila.db has an index in this order; PostgreSQL reads the table `fetches` and sorts it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple

from nephila.storage.ledgers.read_connection import ReadConnection
from nephila.storage.ledgers.schema import HISTORY
from nephila.storage.read.steps import SPAN

from nephila_harvest.audit.candidates import item_version, page_version
from nephila_harvest.audit.sampling import Candidate

KINDS: Final = ("pages", "items")
_PART: Final = (
    f"(SELECT job, url_key, fetch_no FROM fetches WHERE {HISTORY} >= :low AND {HISTORY} < :high"
    f" ORDER BY {HISTORY} LIMIT :most) AS f"
    " JOIN pages AS p ON p.job = f.job AND p.url_key = f.url_key AND p.fetch_no = f.fetch_no"
)
_PAGES: Final = f"SELECT p.job, p.url_key, p.url, p.rule, p.text_hash, p.sha256 FROM {_PART} WHERE p.outcome = 'stored'"
_ITEMS: Final = (
    f"SELECT p.job, p.url_key, p.url, i.rule, i.ordinal, i.data FROM {_PART}"
    " JOIN items AS i ON i.job = p.job AND i.url_key = p.url_key WHERE 1 = 1"
)
_COUNT: Final = f"SELECT count(*) FROM {_PART.partition(' JOIN')[0]}"
_END: Final = "g"
"""Behind all hexadecimal digits."""


class Pool(NamedTuple):
    """What a sample is drawn from."""

    candidates: list[Candidate]
    stands_for: float
    """Pages or items of the crawl for each of them."""


def pool(connection: ReadConnection, kind: str, job: str, seed: str, most: int) -> Pool | None:
    """Candidates of a kind among `most` fetches, of a job or of all; None where there are no more fetches than that.
    O(most log rows)."""
    first, last = connection.execute(SPAN, {}).fetchone()
    fetches = last - first + 1 if last else 0
    if fetches <= most:
        return None
    start = blake2b(seed.encode(errors="surrogatepass"), digest_size=4).hexdigest()
    candidates: list[Candidate] = []
    left = most
    for low, high in ((start, _END), ("", start)):
        values: dict[str, str | int] = {"low": low, "high": high, "most": left, "only": job}
        candidates += _candidates(connection, kind, values)
        left -= connection.execute(_COUNT, values).fetchone()[0]
    return Pool(candidates, fetches / most)


def _candidates(connection: ReadConnection, kind: str, values: dict[str, str | int]) -> list[Candidate]:
    only = " AND p.job = :only" if values["only"] else ""
    if kind == "pages":
        return [
            Candidate(job, key, "", -1, page_version(text_hash, sha256), url, rule or "")
            for job, key, url, rule, text_hash, sha256 in connection.execute(_PAGES + only, values)
        ]
    return [
        Candidate(job, key, rule, ordinal, item_version(data), url, rule)
        for job, key, url, rule, ordinal, data in connection.execute(_ITEMS + only, values)
    ]
