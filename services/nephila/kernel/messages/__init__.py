"""The messages of Nephila, generated from proto/ by tools/protogen.py; do not edit."""

from nephila.kernel.messages.addresses import AddressAnnouncement, AddressInFlight, AddressReleased, PartitionOwned
from nephila.kernel.messages.bus import Envelope, Frame, FrameEncoding
from nephila.kernel.messages.changes import PageChange
from nephila.kernel.messages.context import Context, Render
from nephila.kernel.messages.explain import ExplainAnswer, ExplainQuery
from nephila.kernel.messages.fetch import FetchKind, FetchOutcome, FetchRequest, FetchResult
from nephila.kernel.messages.frontier import Anchor, DeletedJob, DomainState, EndedCount, EndedUrl, ForgottenUrl, FrontierBirth, FrontierClaim, FrontierCommit, FrontierFile, FrontierManifest, FrontierRecord, FrontierSnapshot, HostRecord, HostState, HostUse, HostYield, JobState, LeasedUrl, PartitionPosition, Quarantine, QueuedUrl, RobotsTxt, UrlState
from nephila.kernel.messages.jobs import CrawlJob, JobProgress, JobStatus, NearCopies, PartitionStatus, QuotaGrant, QuotaUse, ScopeMode
from nephila.kernel.messages.members import MemberRate, MemberState, MemberStatus, RefusingHost, StoreState, StoreStatus
from nephila.kernel.messages.parse import Capture, DeadLetter, LinkSource, Outcome, Outlinks, Page, Receipt, Receipts, Record
from nephila.kernel.messages.rule_health import FieldStats, RuleFinding, RuleStats, RuleVerdict
from nephila.kernel.messages.rules import ParseRule
from nephila.kernel.messages.seed import Seed
from nephila.kernel.messages.settings import ControlChange, Setting

__all__ = [
    "AddressAnnouncement",
    "AddressInFlight",
    "AddressReleased",
    "Anchor",
    "Capture",
    "Context",
    "ControlChange",
    "CrawlJob",
    "DeadLetter",
    "DeletedJob",
    "DomainState",
    "EndedCount",
    "EndedUrl",
    "Envelope",
    "ExplainAnswer",
    "ExplainQuery",
    "FetchKind",
    "FetchOutcome",
    "FetchRequest",
    "FetchResult",
    "FieldStats",
    "ForgottenUrl",
    "Frame",
    "FrameEncoding",
    "FrontierBirth",
    "FrontierClaim",
    "FrontierCommit",
    "FrontierFile",
    "FrontierManifest",
    "FrontierRecord",
    "FrontierSnapshot",
    "HostRecord",
    "HostState",
    "HostUse",
    "HostYield",
    "JobProgress",
    "JobState",
    "JobStatus",
    "LeasedUrl",
    "LinkSource",
    "MemberRate",
    "MemberState",
    "MemberStatus",
    "NearCopies",
    "Outcome",
    "Outlinks",
    "Page",
    "PageChange",
    "ParseRule",
    "PartitionOwned",
    "PartitionPosition",
    "PartitionStatus",
    "Quarantine",
    "QueuedUrl",
    "QuotaGrant",
    "QuotaUse",
    "Receipt",
    "Receipts",
    "Record",
    "RefusingHost",
    "Render",
    "RobotsTxt",
    "RuleFinding",
    "RuleStats",
    "RuleVerdict",
    "ScopeMode",
    "Seed",
    "Setting",
    "StoreState",
    "StoreStatus",
    "UrlState",
]
