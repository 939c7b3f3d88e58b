"""Evaluates stored content pages again when the keyword schemes of their job have changed, without a request.

A row has the version of the schemes by which its page was evaluated, and the platforms that led to it; a row with
others is outdated, and is evaluated from its text and the fields that are kept. A change of schemes scans the rows of
the job once; a record whose parser did not know the present schemes, or all platforms that lead to the page, is
evaluated after it is stored. Invariant: after the scan every content page of the job has the item that it would have
in a new directory. Each slice of pages is one transaction with the report that counts it, so that a crash repeats a
slice and counts nothing twice. Cost: O(rows of the job) for a change, two look-ups for a batch of pages of schemes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec
from nephila.kernel import messages as m
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.stages import CONTENT
from nephila.storage.ledgers import scheme_pages
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.ledgers.item_parts import key_of
from nephila.storage.ledgers.scheme_pages import SchemePage
from nephila.storage.rows import EvaluatedRow, Items, RowBatch, iso
from nephila.storage.sinks.jsonl import json_object

from nephila_harvest.schemes.scheme_items import ALSO, FIELDS, MATCHED, SEARCH, VERSION, ContentPage, SchemeEvaluator
from nephila_harvest.schemes.scheme_items import evaluator_of as evaluator_of_job

SLICE: Final = 200
"""Pages of one transaction; new records wait for at most one slice."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Doubt(StrEnum):
    """Why an evaluated page may have another item in a new directory."""

    OLDER_RULE = "older_rule"
    """Its fields are those of an earlier rule of the platform, and only a new fetch or its stored body can give the
    present ones."""


class EvaluationReport(msgspec.Struct):
    """What the evaluation of the stored pages of a job has changed, as one writer counted it."""

    version: int
    """Of the schemes."""
    rules: dict[str, int] = {}
    """Versions of the rules of content pages, by platform."""
    since: str = ""
    """Begin of the evaluation."""
    ended: str = ""
    """Empty while outdated rows may be left."""
    pages: int = 0
    """Stored content pages that the scan has met."""
    evaluated: int = 0
    """Those that had to be evaluated again."""
    added: int = 0
    removed: int = 0
    changed: int = 0
    """Items with other schemes, groups or keywords than before."""
    doubts: dict[Doubt, int] = {}
    """Pages among `pages`, by the reason."""


class _Job(msgspec.Struct):
    evaluator: SchemeEvaluator
    report: EvaluationReport | None = None
    """None: not read yet."""
    scanned_to: str | None = ""
    """The last key of the scan; None: no scan is due."""
    outdated: list[str] = msgspec.field(default_factory=list)


class Slice(msgspec.Struct):
    """Pages that were evaluated together."""

    job: str
    fetches: dict[str, tuple[int, str]]
    """url_key → number of the fetch and metadata of the row that was evaluated."""
    batch: RowBatch
    report: EvaluationReport
    results: Counter[str] = msgspec.field(default_factory=Counter)
    """Pages by result: added, removed, changed, same."""

    @property
    def lines(self) -> list[tuple[str, bytes, bytes, int]]:
        """(platform, key, item, version of its rule) of each item that is new or changed, or a line that it is gone."""
        changed = [
            (row_items.rule, key.encode(), data.encode(), row_items.version)
            for (_, key), row_items in self.batch.items.items()
            for data in row_items.data
        ]
        return [*changed, *((platform, _decode(line)["id"].encode(), line, 0) for platform, line in self.batch.removed)]


class SchemeEvaluation:
    """The jobs with schemes. The writer's thread calls all methods but `update_job` and `update_rule`, which only
    replace values that this thread reads."""

    def __init__(self, ledger: Ledger, writer: str, clock: Clock) -> None:
        self._ledger = ledger
        self._writer = writer
        self._clock = clock
        self._jobs: dict[str, _Job] = {}
        self._rules: dict[str, int] = {}
        self.results: Counter[str] = Counter()
        """Pages that this process evaluated, by result."""

    def update_job(self, job: m.CrawlJob) -> None:
        """Apply a new or changed job. O(keywords)."""
        schemes = spec_of(job).schemes
        if job.deleted or schemes is None:
            self._jobs.pop(job.uid, None)
            return
        evaluator = evaluator_of_job(schemes)
        earlier = self._jobs.get(job.uid)
        if earlier is None or earlier.evaluator.version != evaluator.version:
            self._jobs[job.uid] = _Job(evaluator)

    def update_rule(self, rule: m.ParseRule) -> None:
        """Apply a new or changed rule. O(jobs with schemes)."""
        self._rules[rule.name] = rule.version
        for uid, job in list(self._jobs.items()):
            if job.report is not None and job.report.rules.get(rule.name, rule.version) != rule.version:
                self._jobs[uid] = _Job(job.evaluator)

    @property
    def due(self) -> bool:
        return any(job.outdated or job.scanned_to is not None for job in list(self._jobs.values()))

    def stored(self, batch: RowBatch, records: Iterable[m.Record], present: Container[tuple[str, str]]) -> None:
        """Note which platforms lead to which pages, and mark the content pages of a batch, and those that are stored
        (`present`), whose parser did not know the present schemes or all platforms."""
        by_job: dict[str, list[m.Record]] = {}
        for record in records:
            if record.context is not None and record.context.platform and record.job in self._jobs:
                by_job.setdefault(record.job, []).append(record)
        for uid, of_job in by_job.items():
            job = self._jobs[uid]
            outdated = self._outdated(batch, uid, job, of_job, present)
            if not outdated:
                continue
            job.outdated += outdated
            # Written with the batch, so that a program that ends before the evaluation scans the rows again.
            report = self._report(uid, job)
            report.ended = ""
            batch.reports[uid, self._writer] = _encode(report).decode()

    def _outdated(
        self, batch: RowBatch, uid: str, job: _Job, records: list[m.Record], present: Container[tuple[str, str]]
    ) -> list[str]:
        """Pages to be evaluated, after new finds are added to the batch."""
        notes: dict[str, dict[str, Any]] = {}
        led: dict[str, set[str]] = {}
        before = self._before_redirects(uid, records)
        for record in records:
            assert record.context is not None
            for key in scheme_pages.leads_of(record):
                led.setdefault(key, set()).update({record.context.platform}, before.get(record.url_key.hex(), ()))
            if record.context.stage == CONTENT and (note := _note(record.meta)) is not None:
                notes[record.url_key.hex()] = note
        targets = {key_of(record.final_url) for record in records if record.final_url}
        for record in records:
            if record.final_url:
                led.setdefault(key_of(record.final_url), set()).update(led.get(record.url_key.hex(), ()))
        stored = [key for key in led if (uid, key) in present]
        for key, target in scheme_pages.redirects(self._ledger.reading, uid, stored):
            led.setdefault(key_of(target), set()).update(led[key])
            targets.add(key_of(target))
        led.pop("", None)
        platforms_of = scheme_pages.finds(self._ledger.reading, uid, [*led, *(key for key in notes if key not in led)])
        again = []
        for key, platforms in led.items():
            new = platforms - platforms_of.get(key, set())
            batch.finds += [(uid, key, platform) for platform in sorted(new)]
            if new and key not in notes and (key in targets or (uid, key) in present):
                again.append(key)
        for key, note in notes.items():
            also = (platforms_of.get(key, set()) | led.get(key, set())) - {note.get("platform", "")}
            if also or note.get(VERSION) != job.evaluator.version:
                again.append(key)
        return again

    def _before_redirects(self, uid: str, records: list[m.Record]) -> dict[str, set[str]]:
        """url_key → platforms that lead to a redirect among these records."""
        keys = [record.url_key.hex() for record in records if record.final_url]
        return scheme_pages.finds(self._ledger.reading, uid, keys) if keys else {}

    def next(self) -> Slice | None:
        """The next pages, evaluated and not yet written; None: nothing is due, or a part of the scan met no outdated
        row."""
        for uid, job in list(self._jobs.items()):
            if job.scanned_to is None and not job.outdated:
                continue
            if self._begin(uid, job):
                return self._evaluate(uid, job)
        return None

    def is_current(self, part: Slice) -> bool:
        """Whether the rows of a slice are still those that were evaluated, in the transaction of `Ledger.durable`."""
        pages = scheme_pages.read(self._ledger.reading, part.job, list(part.fetches))
        return {page.url_key: (page.fetch_no, page.meta) for page in pages} == part.fetches

    def committed(self, part: Slice) -> None:
        """The pages of a slice are durable."""
        self.results.update(part.results)

    def repeat(self, part: Slice) -> None:
        """Scan the job again: pages of a slice were stored or evaluated by others meanwhile."""
        if (job := self._jobs.get(part.job)) is not None:
            self._jobs[part.job] = _Job(job.evaluator)

    def _report(self, uid: str, job: _Job) -> EvaluationReport:
        if job.report is None:
            stored = scheme_pages.report(self._ledger.reading, uid, self._writer)
            if stored:
                job.report = msgspec.json.decode(stored, type=EvaluationReport)
            if job.report is None or job.report.version != job.evaluator.version or self._has_other_rules(job.report):
                job.report = EvaluationReport(job.evaluator.version, since=iso(self._clock.now()))
        return job.report

    def _has_other_rules(self, report: EvaluationReport) -> bool:
        return any(self._rules.get(name, version) != version for name, version in report.rules.items())

    def _begin(self, uid: str, job: _Job) -> bool:
        """Whether rows are left; the scan of a finished evaluation is not repeated."""
        if self._report(uid, job).ended and not job.outdated:
            job.scanned_to = None
        return job.scanned_to is not None or bool(job.outdated)

    def _evaluate(self, uid: str, job: _Job) -> Slice:
        report = msgspec.structs.replace(self._report(uid, job))
        report.doubts, report.rules = dict(report.doubts), dict(report.rules)
        keys = list(dict.fromkeys(job.outdated[:SLICE]))
        del job.outdated[:SLICE]
        if not keys and job.scanned_to is not None:
            keys = self._scan(uid, job, report)
            met = set(keys)
        else:
            met = {key for key in keys if job.scanned_to is not None and key > job.scanned_to}
        part = Slice(uid, {}, RowBatch(), report)
        platforms_of = scheme_pages.finds(self._ledger.reading, uid, keys)
        for page in scheme_pages.read(self._ledger.reading, uid, keys):
            platforms = platforms_of.get(page.url_key, set())
            self._add(part, job.evaluator, page, platforms, is_new=page.url_key not in met)
        if job.scanned_to is None and not job.outdated:
            report.ended = iso(self._clock.now())
        part.batch.reports[uid, self._writer] = _encode(report).decode()
        job.report = report
        return part

    def _scan(self, uid: str, job: _Job, report: EvaluationReport) -> list[str]:
        """Outdated rows of the next part of the scan."""
        assert job.scanned_to is not None
        if not job.scanned_to:
            report.pages, report.doubts = 0, {}
        keys: list[str] = []
        rows = scheme_pages.scan(self._ledger.reading, uid, job.scanned_to)
        platforms_of = scheme_pages.finds(self._ledger.reading, uid, [row.url_key for row in rows])
        for row in rows:
            if len(keys) == SLICE:
                return keys
            job.scanned_to = row.url_key
            note = _note(row.meta)
            if note is None:
                continue
            report.pages += 1
            platform = note.get("platform", "")
            if platform in self._rules:
                report.rules[platform] = self._rules[platform]
            if doubt := self._doubt(row.rule_version, platform):
                report.doubts[doubt] = report.doubts.get(doubt, 0) + 1
            if not _is_current(note, job.evaluator, platforms_of.get(row.url_key, set())):
                keys.append(row.url_key)
        if len(rows) < scheme_pages.CHUNK:
            job.scanned_to = None
        return keys

    def _doubt(self, rule_version: int, platform: str) -> Doubt | None:
        if rule_version and self._rules.get(platform, rule_version) != rule_version:
            return Doubt.OLDER_RULE
        return None

    def _add(
        self, part: Slice, evaluator: SchemeEvaluator, page: SchemePage, platforms: set[str], *, is_new: bool
    ) -> None:
        """`is_new` says that the scan has not met the page and will not meet it."""
        meta, note = json_object(page.meta), _note(page.meta)
        if not isinstance(meta, dict) or note is None or _is_current(note, evaluator, platforms):
            return
        uid, report, batch = part.job, part.report, part.batch
        before = json_object(page.items[0]) if page.items else None
        before = before if isinstance(before, dict) else None
        at = meta.get("published") or (f"{page.fetched_at[:19]}Z" if page.fetched_at else "")
        own = note.get("platform", "")
        also = tuple(sorted(platforms - {own}))
        content_page = ContentPage(page.url_key, page.url, own, page.title, page.text, at, also)
        evaluated = evaluator.evaluate(content_page, before if before is not None else note.get(FIELDS, {}))
        rest = {name: value for name, value in note.items() if name not in (MATCHED, VERSION, FIELDS, ALSO)}
        meta[SEARCH] = {**rest, **evaluated.note}
        part.fetches[page.url_key] = page.fetch_no, page.meta
        rule, version = page.rule, page.rule_version
        if evaluated.item is not None:
            rule, version = content_page.platform, version or evaluator.version
        batch.evaluated.append(EvaluatedRow(uid, page.url_key, page.url, rule, version, _encode(meta).decode()))
        report.evaluated += 1
        report.pages += is_new
        if evaluated.item == before:
            part.results["same"] += 1
            return
        items = (_encode(evaluated.item).decode(),) if evaluated.item is not None else ()
        batch.items[uid, page.url_key] = Items(rule, version, items, page.fetch_id)
        result = "added" if before is None else "removed" if evaluated.item is None else "changed"
        part.results[result] += 1
        setattr(report, result, getattr(report, result) + 1)
        if evaluated.item is None and before is not None:
            line = {name: before.get(name) for name in ("id", "resource", "url", "time")}
            batch.removed.append((content_page.platform, _encode({**line, "removed": True})))


def combined(reports: Sequence[EvaluationReport]) -> EvaluationReport | None:
    """The report of all writers together on the schemes that were applied last; None without one."""
    if not reports:
        return None
    newest = max(reports, key=lambda report: report.since)
    same = [report for report in reports if report.version == newest.version]
    doubts: dict[Doubt, int] = {}
    for report in same:
        for doubt, number in report.doubts.items():
            doubts[doubt] = max(doubts.get(doubt, 0), number)
    return EvaluationReport(
        newest.version,
        {name: version for report in same for name, version in report.rules.items()},
        min(report.since for report in same),
        max(report.ended for report in same) if all(report.ended for report in same) else "",
        # Each writer scans all rows, and each row is evaluated by one of them.
        max(report.pages for report in same),
        sum(report.evaluated for report in same),
        sum(report.added for report in same),
        sum(report.removed for report in same),
        sum(report.changed for report in same),
        doubts,
    )


def _is_current(note: dict[str, Any], evaluator: SchemeEvaluator, platforms: set[str]) -> bool:
    also = platforms - {note.get("platform", "")}
    return note.get(VERSION) == evaluator.version and set(note.get(ALSO, ())) == also


def _note(meta: str) -> dict[str, Any] | None:
    """The note of a content page that was evaluated; None for other pages."""
    if f'"{SEARCH}"' not in meta:
        return None
    content = json_object(meta)
    note = content.get(SEARCH) if isinstance(content, dict) else None
    return note if isinstance(note, dict) and MATCHED in note else None
