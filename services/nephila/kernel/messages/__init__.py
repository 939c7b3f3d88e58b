"""The messages of Nephila, generated from proto/ by tools/protogen.py; do not edit."""

from nephila.kernel.messages.fetch import FetchKind, FetchOutcome, FetchRequest, FetchResult
from nephila.kernel.messages.frontier import Anchor, EndedCount, EndedUrl, FrontierCommit, FrontierSnapshot, HostState, LeasedUrl, QueuedUrl, RobotsTxt, SeenSnapshot
from nephila.kernel.messages.jobs import CrawlJob, Politeness, Scope, ScopeMode
from nephila.kernel.messages.parse import DeadLetter, Outcome, Outlinks, Page, Receipt, Receipts, Record
from nephila.kernel.messages.seed import Seed

__all__ = [
    "Anchor",
    "CrawlJob",
    "DeadLetter",
    "EndedCount",
    "EndedUrl",
    "FetchKind",
    "FetchOutcome",
    "FetchRequest",
    "FetchResult",
    "FrontierCommit",
    "FrontierSnapshot",
    "HostState",
    "LeasedUrl",
    "Outcome",
    "Outlinks",
    "Page",
    "Politeness",
    "QueuedUrl",
    "Receipt",
    "Receipts",
    "Record",
    "RobotsTxt",
    "Scope",
    "ScopeMode",
    "Seed",
    "SeenSnapshot",
]
