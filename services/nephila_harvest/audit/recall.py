"""What two samples say together: how much of what is wanted was stored, and which expressions would change it."""

from __future__ import annotations

from typing import NamedTuple

from nephila_harvest.audit.expressions import Proposal, proposals
from nephila_harvest.audit.precision import Interval, of_all, recall
from nephila_harvest.audit.store import AuditStore, NoSample, SampleInfo


class AuditOutcome(NamedTuple):
    """Precision and recall of a crawl with their intervals, and proposals. None: labels are missing."""

    pages: str
    """Name of the sample of stored pages; empty: there is none."""
    links: str
    """Name of the sample of links that are not stored."""
    precision: Interval | None
    recall: Interval | None
    proposals: list[Proposal]


def outcome_of(store: AuditStore, pages: str = "", links: str = "") -> AuditOutcome:
    """The newest samples of both kinds, or those of these names. Raises `NoSample`."""
    pages_sample, gone = _newest(store, "pages", pages), _newest(store, "links", links)
    stored = store.counts(pages_sample.name) if pages_sample is not None else []
    left_out = store.counts(gone.name) if gone is not None else []
    good, bad = _urls(store, pages_sample, "right"), _urls(store, pages_sample, "wrong")
    rightly, missed = _urls(store, gone, "right"), _urls(store, gone, "wrong")
    return AuditOutcome(
        pages_sample.name if pages_sample is not None else "",
        gone.name if gone is not None else "",
        of_all(stored),
        recall(stored, left_out),
        # A link that is rightly left out needs no further exclusion: only wrong pages do.
        [*proposals("exclude", bad, good + missed), *proposals("include", missed, bad + rightly)],
    )


def _newest(store: AuditStore, kind: str, name: str) -> SampleInfo | None:
    samples = [sample for sample in store.samples() if sample.kind == kind and name in ("", sample.name)]
    if name and not samples:
        raise NoSample(f"there is no sample {name!r} of {kind}")
    return samples[-1] if samples else None


def _urls(store: AuditStore, info: SampleInfo | None, verdict: str) -> list[str]:
    if info is None:
        return []
    return [
        row.candidate.url for row in store.drawn(info.name) if row.label is not None and row.label.verdict == verdict
    ]
