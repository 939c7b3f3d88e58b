"""Facts about a page as tokens beside its words, so that an index answers a filter in the same walk: job, host, day.

Invariant: a host has a token for itself and for each domain above it; a day one for itself, its month and its year, so
that a span of days is a few tokens. Pure.
"""

from __future__ import annotations

from datetime import date, timedelta
from hashlib import blake2b
from typing import Final

from nephila_stores.search.query import Query

FIRST: Final = "1990-01-01"
"""No page is older."""
MAX_SPAN: Final = 120
"""Tokens of a span of days, at most: 30 days, 11 months, the years, 11 months, 30 days."""


def job_token(job: str) -> str:
    """The token of a job."""
    return "xj" + _digest(job)


def host_token(host: str) -> str:
    """The token of a host or domain."""
    return "xh" + _digest(host)


def facets(job: str, host: str, at: str) -> str:
    """The tokens of a page; `at`: ISO 8601, or empty."""
    tokens = [job_token(job)]
    name, _, port = host.partition(":")
    labels = name.split(".")
    tokens += [host_token(".".join(labels[start:])) for start in range(min(len(labels), 20))]
    if port:
        tokens.append(host_token(host))
    if len(at) >= 10:
        tokens += ["xd" + at[:4], "xd" + at[:4] + at[5:7], "xd" + at[:4] + at[5:7] + at[8:10]]
    return " ".join(tokens)


def days(query: Query) -> list[str]:
    """Tokens of which a page of a search has one; empty for pages of any day."""
    return span(query.since, query.until) if query.since or query.until else []


def span(since: str, until: str) -> list[str]:
    """Tokens of which one is in each page of these days."""
    day, last = date.fromisoformat(since or FIRST), date.fromisoformat(until or "2099-12-31")
    tokens: list[str] = []
    while day <= last:
        year_end, month_end = date(day.year, 12, 31), _month_end(day)
        if (day.month, day.day) == (1, 1) and year_end <= last:
            tokens.append(f"xd{day.year}")
            day = year_end
        elif day.day == 1 and month_end <= last:
            tokens.append(f"xd{day:%Y%m}")
            day = month_end
        else:
            tokens.append(f"xd{day:%Y%m%d}")
        day += timedelta(1)
    return tokens


def _month_end(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1) - timedelta(1)


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def host_of(url: str) -> str:
    """The host of a URL with its port."""
    return url.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2].lower()
