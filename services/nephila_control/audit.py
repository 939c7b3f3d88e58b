"""The operations on audit samples. Rows and labels are read and written in a thread; an answered label is stored."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
from nephila.kernel.runtime.errors import UserError
from nephila.storage.ledgers.read_connection import open_for_reading
from nephila.storage.source import Source
from nephila_harvest.audit.candidates import shown, version_now
from nephila_harvest.audit.precision import StratumCount, of_all, of_stratum
from nephila_harvest.audit.recall import outcome_of
from nephila_harvest.audit.session import draw_sample, labelling_order, next_without_label, now, sample_named
from nephila_harvest.audit.store import AuditStore, Drawn, Label, NoSample, SampleInfo, open_store

from nephila_control import api, job_view, requests
from nephila_control.audit_types import (
    AuditOutcomeOf,
    DrawSample,
    GetAuditOutcome,
    GetSample,
    LabelRow,
    ProposedExpression,
    RowLabelled,
    SampleDetail,
    SampleKind,
    SampleList,
    SampleOf,
    SampleRow,
    Stratum,
    precision_of,
)
from nephila_control.part import OperationPart
from nephila_control.stored_rows import there

LISTED = 50
DRAWN_FROM = 8_000
"""Fetches from which a sample is drawn, at least: 150 ms of CPU."""
STRATA = 200
REASONS = 10
TEXT_CHARS = 20_000
_OF_EXPRESSION = ("kind", "expression", "hits", "against")


class AuditOperations(OperationPart):
    async def list_samples(self, request: requests.Empty) -> SampleList:
        return await asyncio.to_thread(sample_list, self._backend.rows)

    async def draw_sample(self, request: DrawSample) -> SampleOf:
        return await asyncio.to_thread(draw, self._backend.rows, request)

    async def get_sample(self, request: GetSample) -> SampleDetail:
        return await asyncio.to_thread(detail, self._backend.rows, request)

    async def label_row(self, request: LabelRow) -> RowLabelled:
        return await asyncio.to_thread(label, self._backend.rows, request)

    async def get_audit_outcome(self, request: GetAuditOutcome) -> AuditOutcomeOf:
        return await asyncio.to_thread(outcome, self._backend.rows, request)


def sample_list(source: Source | None) -> SampleList:
    try:
        with open_store(there(source)) as store:
            newest = store.samples()[-LISTED:][::-1]
            return SampleList(samples=[_sample(info, store.counts(info.name)) for info in newest])
    except NoSample:
        return SampleList(samples=[])


def draw(source: Source | None, request: DrawSample) -> SampleOf:
    database = there(source)
    if not job_view.is_there(database):
        raise UserError("there are no rows to draw from yet")
    values = {name: getattr(request, name) for name in ("size", "by", "kind", "seed", "job")}
    info, _ = draw_sample(database, name=request.sample, most=max(DRAWN_FROM, 4 * request.size), **values)
    with open_store(database) as store:
        return _sample(info, store.counts(info.name))


def detail(source: Source | None, request: GetSample) -> SampleDetail:
    with _opened(source, request.sample) as (store, info):
        drawn, counts = store.drawn(info.name), store.counts(info.name)
    ordered = labelling_order(drawn)
    following = next_without_label(ordered, request.number)
    number = request.number or following
    row = _row(there(source), _numbered(drawn, number)) if number else None
    position = next((position for position, entry in enumerate(ordered) if entry.number == number), 0)
    reasons = sum((count.reasons for count in counts), Counter[str]())
    return SampleDetail(
        sample=_sample(info, counts),
        row=row,
        next=following,
        back=ordered[position - 1].number if position else 0,
        skip=ordered[position + 1].number if position + 1 < len(ordered) else 0,
        strata=[_stratum(count) for count in sorted(counts, key=lambda count: -count.size) if count.sampled][:STRATA],
        reasons=dict(reasons.most_common(REASONS)),
    )


def label(source: Source | None, request: LabelRow) -> RowLabelled:
    with _opened(source, request.sample) as (store, info):
        drawn = _numbered(store.drawn(info.name), request.number)
        if drawn.candidate.version != request.version:
            raise UserError(f"number {request.number} of the sample is another version; nothing is stored")
        reason = request.reason.strip() if request.verdict == "wrong" else ""
        store.label([(drawn.candidate, Label(request.verdict, reason, request.person, now()))])
        following = next_without_label(labelling_order(store.drawn(info.name)), request.number)
        return RowLabelled(sample=_sample(info, store.counts(info.name)), next=following)


def outcome(source: Source | None, request: GetAuditOutcome) -> AuditOutcomeOf:
    try:
        with open_store(there(source)) as store:
            measured = outcome_of(store, request.pages, request.links)
    except NoSample as error:
        raise api.NotFound(str(error)) from None
    return AuditOutcomeOf(
        pages=measured.pages,
        links=measured.links,
        precision=precision_of(measured.precision),
        recall=precision_of(measured.recall),
        proposals=[
            ProposedExpression(share=share, **{name: getattr(proposal, name) for name in _OF_EXPRESSION})
            for proposal in measured.proposals
            if (share := precision_of(proposal.share)) is not None
        ],
    )


@contextmanager
def _opened(source: Source | None, name: str) -> Iterator[tuple[AuditStore, SampleInfo]]:
    try:
        with open_store(there(source)) as store:
            yield store, sample_named(store, name)
    except NoSample as error:
        raise api.NotFound(str(error)) from None


def _numbered(drawn: Sequence[Drawn], number: int) -> Drawn:
    """Rows are numbered from 1."""
    if not 1 <= number <= len(drawn):
        raise api.NotFound(f"the sample has the numbers 1 to {len(drawn):,}, not {number:,}")
    return drawn[number - 1]


def _row(source: Source, drawn: Drawn) -> SampleRow:
    with open_for_reading(source) as rows:
        content, version = shown(rows, drawn.candidate), version_now(rows, drawn.candidate)
    verdict = drawn.label or Label("", "", "", "")
    return SampleRow(
        number=drawn.number,
        stratum=drawn.stratum,
        **{name: getattr(drawn.candidate, name) for name in ("job", "url", "rule", "version")},
        title=content.title[:1000] if content is not None else "",
        text=content.text[:TEXT_CHARS] if content is not None else "",
        gone=content is None,
        changed=content is not None and version != drawn.candidate.version,
        verdict=verdict.verdict,
        reason=verdict.reason,
        person=verdict.person,
        labelled_at=verdict.at,
    )


def _sample(info: SampleInfo, counts: Sequence[StratumCount]) -> SampleOf:
    return SampleOf(
        name=info.name,
        at=info.at,
        kind=msgspec.convert(info.kind, SampleKind),
        by=info.strata,
        drawn=sum(count.sampled for count in counts),
        labelled=sum(count.labelled for count in counts),
        precision=precision_of(of_all(counts)),
    )


def _stratum(count: StratumCount) -> Stratum:
    values = {name: getattr(count, name) for name in ("name", "size", "sampled", "right", "wrong")}
    return Stratum(**values, precision=precision_of(of_stratum(count)))
