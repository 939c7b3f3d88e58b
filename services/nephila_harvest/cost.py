"""Cost of jobs, and of the tenants, sites and directories that they belong to. Pure.

Fetches, bytes, pages and items are exact: they are rows. CPU-seconds and stored bytes are known for the whole directory
only. A job gets the share of the CPU that it has in the fetched bytes, counting a fetch as `FETCH_BYTES` more, and the
share of the stored bytes that it has in the characters of text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from nephila_harvest.row_costs import JobCost

FETCH_BYTES = 20_000
"""Bytes of a page whose parsing takes about as long as the rest of a fetch."""
By = Literal["job", "tenant", "site", "directory"]


class Labels(NamedTuple):
    """What a job belongs to, and its seconds in a browser."""

    tenant: str = ""
    site: str = ""
    browser_s: float = 0.0


class Totals(NamedTuple):
    """Sums over all jobs together; None where a sum is not known."""

    cpu_s: float | None
    stored_bytes: int | None


@dataclass(slots=True)
class Cost:
    """What was spent and gained. Each measure is also given per useful item."""

    name: str
    requests: int = 0
    bytes: int = 0
    pages: int = 0
    near_copies: int = 0
    items: int = 0
    text_chars: int = 0
    useful: int = 0
    """Items of rules; pages that are no near-copies in a job without items."""
    browser_s: float = 0.0
    cpu_s: float | None = None
    stored_bytes: float | None = None
    per_useful: dict[str, float] = field(default_factory=dict)


MEASURES = ("requests", "bytes", "cpu_s", "stored_bytes", "browser_s", "text_chars")
"""Measures that are given per useful item."""


def costs(jobs: Iterable[JobCost], labels: Mapping[str, Labels], totals: Totals, by: By = "job") -> list[Cost]:
    """The costs by job, by tenant, by site, or of the jobs that belong to a site; "-" has the jobs without one."""
    by_name: dict[str, Cost] = {}
    all_jobs = list(jobs)
    work = sum(map(_work, all_jobs))
    chars = sum(job.text_chars for job in all_jobs)
    for job in all_jobs:
        label = labels.get(job.job, Labels())
        if by == "directory" and not label.site:
            continue
        name = job.job if by in ("job", "directory") else (label.tenant if by == "tenant" else label.site) or "-"
        cost = by_name.setdefault(name, Cost(name))
        cost.requests += job.fetches
        cost.bytes += job.bytes
        cost.pages += job.pages
        cost.near_copies += job.near_copies
        cost.items += job.items
        cost.text_chars += job.text_chars
        cost.useful += job.useful
        cost.browser_s += label.browser_s
        if totals.cpu_s is not None:
            cost.cpu_s = (cost.cpu_s or 0.0) + totals.cpu_s * _work(job) / max(work, 1)
        if totals.stored_bytes is not None:
            cost.stored_bytes = (cost.stored_bytes or 0.0) + totals.stored_bytes * job.text_chars / max(chars, 1)
    for cost in by_name.values():
        if cost.useful:
            values = {name: getattr(cost, name) for name in MEASURES}
            cost.per_useful = {name: value / cost.useful for name, value in values.items() if value is not None}
    return [by_name[name] for name in sorted(by_name)]


def _work(job: JobCost) -> int:
    return job.bytes + FETCH_BYTES * job.fetches
