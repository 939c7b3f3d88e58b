"""The messages of Nephila, generated from proto/ by tools/protogen.py; do not edit."""

from nephila.kernel.messages.addresses import AddressAnnouncement, AddressInFlight, AddressReleased, PartitionOwned
from nephila.kernel.messages.bus import Envelope, Frame, FrameEncoding
from nephila.kernel.messages.changes import PageChange
from nephila.kernel.messages.context import Context, Render
from nephila.kernel.messages.control_log import ControlChange
from nephila.kernel.messages.explain import ExplainAnswer, ExplainQuery
from nephila.kernel.messages.fetch import FetchKind, FetchOutcome, FetchRequest, FetchResult
from nephila.kernel.messages.frontier import Anchor, DeletedJob, EndedCount, EndedUrl, ForgottenUrl, FrontierBirth, FrontierClaim, FrontierCommit, FrontierFile, FrontierManifest, FrontierRecord, FrontierSnapshot, HostRecord, HostState, HostUse, HostYield, JobState, LeasedUrl, PartitionPosition, Quarantine, QueuedUrl, RobotsTxt, UrlState
from nephila.kernel.messages.jobs import CrawlJob, FetchWindows, HostBudget, HostPolicy, JobProgress, JobStatus, Login, LoginField, MainText, NearCopies, Parse, PartitionStatus, Politeness, Quota, QuotaGrant, QuotaPeriod, QuotaUse, Recrawl, Scope, ScopeMode, Strategy, Traps
from nephila.kernel.messages.members import MemberRate, MemberState, MemberStatus
from nephila.kernel.messages.parse import Capture, DeadLetter, LinkSource, Outcome, Outlinks, Page, Receipt, Receipts, Record
from nephila.kernel.messages.rule_health import FieldStats, RuleFinding, RuleStats, RuleVerdict
from nephila.kernel.messages.rules import ParseRule
from nephila.kernel.messages.seed import Seed
from nephila.kernel.messages.settings import Setting

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
    "EndedCount",
    "EndedUrl",
    "Envelope",
    "ExplainAnswer",
    "ExplainQuery",
    "FetchKind",
    "FetchOutcome",
    "FetchRequest",
    "FetchResult",
    "FetchWindows",
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
    "HostBudget",
    "HostPolicy",
    "HostRecord",
    "HostState",
    "HostUse",
    "HostYield",
    "JobProgress",
    "JobState",
    "JobStatus",
    "LeasedUrl",
    "LinkSource",
    "Login",
    "LoginField",
    "MainText",
    "MemberRate",
    "MemberState",
    "MemberStatus",
    "NearCopies",
    "Outcome",
    "Outlinks",
    "Page",
    "PageChange",
    "Parse",
    "ParseRule",
    "PartitionOwned",
    "PartitionPosition",
    "PartitionStatus",
    "Politeness",
    "Quarantine",
    "QueuedUrl",
    "Quota",
    "QuotaGrant",
    "QuotaPeriod",
    "QuotaUse",
    "Receipt",
    "Receipts",
    "Record",
    "Recrawl",
    "Render",
    "RobotsTxt",
    "RuleFinding",
    "RuleStats",
    "RuleVerdict",
    "Scope",
    "ScopeMode",
    "Seed",
    "Setting",
    "Strategy",
    "Traps",
    "UrlState",
]
