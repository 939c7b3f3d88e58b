"""What the operator writes into `status` of custom resources, as structs. tools/crds.py makes CRDs of them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field
from nephila.kernel.documents.struct_reader import Section

Truth = Literal["True", "False", "Unknown"]
Number = Annotated[int, Meta(ge=0, le=10**18)]
Rate = Annotated[float, Meta(gt=-1, le=10**9)]
MAX_MESSAGE = 1000
"""Characters of a message of a condition."""
MAX_REFUSED = 10
"""Refused seeds that a status lists."""


class Condition(Section, kw_only=True):
    """One condition, as Kubernetes has them."""

    type: Literal["Accepted", "Ready", "Reconciling", "Stalled", "Progressing", "Degraded"]
    """Accepted: the newest spec was valid and is the desired state of the crawler. Ready: it is in effect.
    Reconciling: it is on its way. Stalled: it cannot be in effect before the document changes. Progressing: URLs are
    queued or in flight. Degraded: it goes on with a fault. A rule no longer fits its site or its newest spec is
    refused; a rule of the job is deleted, refused or no longer fits its site."""
    status: Truth
    """True, False or Unknown."""
    reason: Annotated[str, Meta(min_length=1, max_length=100)]
    """One word for programs."""
    message: Annotated[str, Meta(max_length=MAX_MESSAGE)] = ""
    """One line for people."""
    last_transition_time: Annotated[str, Meta(max_length=40)] = ""
    """When `status` last changed."""
    observed_generation: Number = 0
    """The generation of the resource that the condition is about."""


class JobCounts(Section, kw_only=True):
    """URLs of a job."""

    queued: Number = 0
    """In the queue."""
    in_flight: Number = 0
    """Handed out and not yet finished."""
    stored: Number = 0
    """Finished: the page is stored."""
    denied: Number = 0
    """Finished: robots.txt or the egress guard denied the fetch."""
    failed: Number = 0
    """Finished: the fetch failed."""
    dropped: Number = 0
    """Finished: redirects, unwanted content types, excluded URLs, traps."""


class RefusedSeed(Section, kw_only=True):
    """A seed that was not admitted."""

    url: Annotated[str, Meta(max_length=8192)]
    """The seed."""
    reason: Annotated[str, Meta(max_length=MAX_MESSAGE)]
    """Why."""


class CrawlJobStatus(Section, kw_only=True):
    """How the job stands, written by the operator."""

    observed_generation: Number = 0
    """The newest generation that the operator has processed."""
    release: Annotated[str, Meta(max_length=253)] = ""
    """The release that has the job, as NAMESPACE/NAME; another one does not touch it."""
    state: Annotated[str, Meta(max_length=40)] = ""
    """new, running, paused, limit or idle, as `nephila jobs list` has it."""
    job_generation: Number = 0
    """The generation of the desired state in the crawler."""
    counts: JobCounts | None = None
    """URLs by state and outcome."""
    rate: Rate = 0.0
    """Finished URLs per second, over the last minute."""
    refused_seeds: Annotated[list[RefusedSeed], Meta(max_length=MAX_REFUSED)] = field(default_factory=list)
    """The first seeds that were not admitted."""
    conditions: Annotated[list[Condition], Meta(max_length=10)] = field(default_factory=list)
    """Accepted, Ready, Reconciling, Stalled, Progressing, Degraded."""


class ParseRuleStatus(Section, kw_only=True):
    """How the rule stands, written by the operator."""

    observed_generation: Number = 0
    """The newest generation that the operator has processed."""
    release: Annotated[str, Meta(max_length=253)] = ""
    """The release that has the rule, as NAMESPACE/NAME; another one does not touch it."""
    version: Number = 0
    """The version that pages are read by; 0: none yet."""
    pages: Number = 0
    """Pages that the rule has read."""
    fill_rate: Rate = 0.0
    """Share of its last pages that had items."""
    conditions: Annotated[list[Condition], Meta(max_length=10)] = field(default_factory=list)
    """Accepted, Ready, Reconciling, Stalled, Degraded."""
