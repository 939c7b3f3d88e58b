"""THE ROUTE: every topic, who publishes it, who reads it, and what travels on it.

    control ─jobs, seeds─▶ scheduler ──requests──▶ downloader ──pages──▶ parser ──records──▶ storage
                            ▲  ▲ ▲──────outcomes──────┘                    │                   │
                            │  └───────────────────outlinks────────────────┘                   │
                            └──────────────────────receipts────────────────────────────────────┘

A message's partition is the top bits of its URL's fingerprint, of `rule-stats` those of the MD5 of the rule's name, and
is set explicitly when it is published. Many topics have fewer partitions than the system, lanes: messages of partition
p travel in lane p mod their number, so a record holds those of several. `frontier` is read by no group: it is the log
of a partition's owner, which its successor replays. A compacted topic holds the whole desired state of things by their
keys on one partition: every member reads all of it before it works.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from nephila.kernel import messages as m


class Waiting(IntEnum):
    """Who waits for the messages of a topic, the most urgent first."""

    HOST = 0
    """A host, for its next request."""
    LINKS = 1
    """The links of a page: no host, as long as others are queued."""
    ROW = 2
    """A row and its receipt: nothing but the window of URLs without receipt."""


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    """A named stream of one kind of message."""

    name: str
    message: type
    writers: tuple[str, ...]
    """Services and packages that publish it."""
    readers: tuple[str, ...]
    """Groups that subscribe to it over a broker: those of the services, `judge` and `exchange` in a parser's program,
    `program` in every program, and `control`."""
    key: str = ""
    """Attribute that names the thing a message describes: the topic is compacted by it. Empty: a log."""
    expires_s: float = 0.0
    """Of a compacted topic: a message older than this is deleted though none replaces it; 0: never."""
    retention_s: float = 7 * 86_400.0
    """How long a log is kept over a broker; a reader that is further behind than this refuses to go on."""
    leased: bool = False
    """Losing a message is harmless: its lease repeats it, or it is not needed. So its offset is committed when read."""
    laned: bool = False
    """It has lanes. A reader that keeps state of partitions owns all partitions of its lanes."""
    waiting: Waiting = Waiting.HOST
    """Who waits for these messages: over a broker a reader that no other waits for fetches them in larger batches."""

    @property
    def owned(self) -> bool:
        """Whether its reader keeps state of partitions and owns whole lanes: such topics have the same lanes."""
        return self.laned and "scheduler" in self.readers

    def partitions(self, keyed: int, lanes: int) -> int:
        """How many partitions it has in a new system with so many partitions and lanes."""
        return 1 if self.key else min(keyed, lanes) if self.laned else keyed


JOBS = Topic(
    "jobs",
    m.CrawlJob,
    ("control", "programs", "scheduler"),
    ("scheduler", "downloader", "browser", "parser", "storage", "exchange", "program", "control"),
    key="uid",
)
RULES = Topic(
    "rules",
    m.ParseRule,
    ("control", "rules"),
    ("parser", "judge", "browser", "storage", "control"),
    key="name",
)
SEEDS = Topic("seeds", m.Seed, ("control", "programs", "scheduler"), ("scheduler",), laned=True)
REQUESTS = Topic(
    "requests", m.FetchRequest, ("scheduler",), ("downloader",), retention_s=3600.0, leased=True, laned=True
)
REQUESTS_BROWSER = Topic(
    "requests.browser", m.FetchRequest, ("scheduler",), ("browser",), retention_s=3600.0, leased=True, laned=True
)
"""Requests that a browser has to render, or may have to; the plain downloaders do not read them."""
OUTCOMES = Topic("outcomes", m.FetchOutcome, ("downloader", "scheduler"), ("scheduler",), laned=True)
PAGES = Topic("pages", m.Page, ("downloader",), ("parser", "raw"), laned=True, waiting=Waiting.LINKS)
EXCHANGES = Topic("exchanges", m.Page, ("downloader",), ("raw",), laned=True, waiting=Waiting.LINKS)
"""Answers that are not pages (3xx, 4xx, robots.txt, ...), for sinks that keep raw pages; only with raw capture."""
OUTLINKS = Topic("outlinks", m.Outlinks, ("parser", "scheduler"), ("scheduler",), laned=True)
RECORDS = Topic("records", m.Record, ("parser", "scheduler", "tools"), ("storage",), laned=True, waiting=Waiting.ROW)
RECEIPTS = Topic("receipts", m.Receipts, ("storage", "scheduler"), ("scheduler",), laned=True)
FRONTIER = Topic("frontier", m.FrontierRecord, ("scheduler",), ())
RULE_STATS = Topic(
    "rule-stats", m.RuleStats, ("rules",), ("parser",), retention_s=3600.0, leased=True, laned=True, waiting=Waiting.ROW
)
RULE_VERDICTS = Topic("rule-verdicts", m.RuleVerdict, ("rules",), ("parser", "judge", "control"), key="rule")
JOB_STATUS = Topic("job-status", m.JobStatus, ("scheduler",), ("scheduler", "exchange", "control"), key="uid")
PROGRESS = Topic("progress", m.JobProgress, ("scheduler",), ("scheduler",), key="id")
ADDRESSES = Topic("addresses", m.AddressAnnouncement, ("scheduler",), ("scheduler",), key="member")
EXPLAIN_QUERIES = Topic("explain-queries", m.ExplainQuery, ("control",), ("scheduler",), key="slot")
EXPLAIN_ANSWERS = Topic("explain-answers", m.ExplainAnswer, ("scheduler",), ("control",), key="slot")
SETTINGS = Topic("settings", m.Setting, ("cluster", "control"), ("program", "control"), key="name")
BACKUP = "backup"
"""Id and service of the message of `members` that says how the newest backup of the system ended."""
MEMBERS = Topic("members", m.MemberStatus, ("cluster", "tools"), ("control",), key="id", expires_s=86_400.0)
CONTROL_LOG = Topic("control-log", m.ControlChange, ("control",), ("control",), key="id", expires_s=90 * 86_400.0)
"""Who changed what over the control API."""
CHANGES = Topic("changes", m.PageChange, ("storage",), (), waiting=Waiting.ROW)
"""The change feed for readers outside of the system; no service reads it."""
DEAD = Topic("dead", m.DeadLetter, ("cluster", "kernel"), (), retention_s=30 * 86_400.0)
"""Written by the bus for every service; `nephila service dead` reads it."""

TOPICS = (
    *(JOBS, RULES, SEEDS, REQUESTS, OUTCOMES, PAGES, OUTLINKS, RECORDS, RECEIPTS, FRONTIER, JOB_STATUS, PROGRESS),
    *(ADDRESSES, EXPLAIN_QUERIES, EXPLAIN_ANSWERS, DEAD, RULE_STATS, RULE_VERDICTS, EXCHANGES),
    *(REQUESTS_BROWSER, SETTINGS, MEMBERS, CHANGES, CONTROL_LOG),
)


def requests_topic(request: m.FetchRequest) -> Topic:
    """The topic of a request: pages of jobs that render go to the downloaders with a browser."""
    return REQUESTS_BROWSER if request.render > m.Render.NEVER else REQUESTS


DEFAULT_PARTITIONS = 64
DEFAULT_LANES = 16
