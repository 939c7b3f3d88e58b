"""THE ROUTE: every topic, who publishes it, who reads it, and what travels on it.

    CLI ──jobs, seeds──▶ scheduler ──requests──▶ downloader ──pages──▶ parser ──records──▶ storage
                          ▲  ▲ ▲──────outcomes──────┘                    │                   │
                          │  └───────────────────outlinks────────────────┘                   │
                          └──────────────────────receipts────────────────────────────────────┘

All keyed topics have the same number of partitions; a message's partition is the top bits of its URL's fingerprint and
is set explicitly when it is published.
"""

from __future__ import annotations

from dataclasses import dataclass

from nephila.kernel import messages as m


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    """A named stream of one kind of message."""

    name: str
    message: type
    source: str
    readers: tuple[str, ...]


JOBS = Topic("jobs", m.CrawlJob, "cli", ("scheduler", "downloader", "parser", "storage"))
SEEDS = Topic("seeds", m.Seed, "cli", ("scheduler",))
REQUESTS = Topic("requests", m.FetchRequest, "scheduler", ("downloader",))
OUTCOMES = Topic("outcomes", m.FetchOutcome, "downloader", ("scheduler",))
PAGES = Topic("pages", m.Page, "downloader", ("parser", "raw"))
OUTLINKS = Topic("outlinks", m.Outlinks, "parser", ("scheduler",))
RECORDS = Topic("records", m.Record, "parser, scheduler", ("storage",))
RECEIPTS = Topic("receipts", m.Receipts, "storage", ("scheduler",))
DEAD = Topic("dead", m.DeadLetter, "any", ("operator",))

TOPICS = (JOBS, SEEDS, REQUESTS, OUTCOMES, PAGES, OUTLINKS, RECORDS, RECEIPTS, DEAD)

DEFAULT_PARTITIONS = 64
