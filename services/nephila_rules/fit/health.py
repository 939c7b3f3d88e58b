"""Health of a rule: a baseline for each of its fields, and the deviations from it. Pure.

Four shares of each field are tested (`drift_test`): pages with a value, values with a digit, values of a usual length,
values that differ from that of the previous page. A baseline belongs to one version of a rule; a new version learns its
own. Only fields that nearly all pages of the previous version had are tested from the first page of the new one.
Statistics go in, findings come out; the state can be stored (`encode`, `decode`).
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from nephila.kernel import messages as m

from nephila_rules.fit.drift_test import FEWER, GONE, LEARN, MEMORY, DriftTest
from nephila_rules.fit.history import History

ITEMS: Final = "(items)"
LINKS: Final = "(links)"
TYPE: Final = "type"
BUCKETS: Final = 32
MARGIN_BUCKETS: Final = 2
"""Powers of two by which a usual length may exceed the observed ones."""
_EDGE: Final = 0.02
_RECENT: Final = 8
_NEARLY_ALL: Final = 0.8
"""A field with this share under one version is tested from the first page of the next."""
_DISTINCT: Final = 0.92
"""From this share on, values count as different on every page."""
STALE_S: Final = 60.0
"""Seconds for which statistics of a replaced version are ignored: some parsers receive the new version later."""


class FieldHealth(msgspec.Struct, array_like=True):
    """Baseline and tests of one field."""

    filled: DriftTest = msgspec.field(default_factory=DriftTest)
    digits: DriftTest = msgspec.field(default_factory=DriftTest)
    not_repeated: DriftTest = msgspec.field(default_factory=DriftTest)
    length: DriftTest = msgspec.field(default_factory=DriftTest)
    lengths: list[float] = msgspec.field(default_factory=list)
    """Pages by length, in powers of two."""
    first_bucket: int = 0
    last_bucket: int = BUCKETS
    """First and last bucket of usual lengths."""
    held_lengths: list[float] = msgspec.field(default_factory=list)
    new_lengths: list[float] = msgspec.field(default_factory=list)
    """Lengths of the pages that are not in the baseline yet, as in `length`."""
    refused: float = 0.0
    """Share of the last values that are not of the field's type."""

    def add(self, stats: m.FieldStats, previous_share: float) -> bool:
        """Add statistics; True if an alarm starts or ends."""
        if stats.pages:
            part = min(stats.pages / _RECENT, 1.0)
            self.refused += (stats.refused / stats.pages - self.refused) * part
        changed = [self.filled.add(stats.pages, stats.filled, usual_before=previous_share)]
        if stats.valued:
            changed.append(self.digits.add(stats.valued, stats.digits, least=0.8, gone_only=True))
            changed.append(
                self.not_repeated.add(stats.valued, stats.valued - stats.repeated, least=_DISTINCT, gone_only=True)
            )
            changed.append(self._add_lengths(stats))
        return any(changed)

    def _add_lengths(self, stats: m.FieldStats) -> bool:
        within = stats.valued
        if self.length.pages >= LEARN:
            within = sum(stats.lengths[self.first_bucket : self.last_bucket + 1])
        changed = self.length.add(stats.valued, within)
        _sum(self.new_lengths, stats.lengths)
        if self.length.alarm:
            self.held_lengths, self.new_lengths = [], []
        elif not self.length.new_pages:
            _sum(self.lengths, self.held_lengths)
            self.held_lengths, self.new_lengths = self.new_lengths, []
            if not self.length.held_pages:
                _sum(self.lengths, self.held_lengths)
                self.held_lengths = []
            self._update_usual_lengths()
        return changed

    def _update_usual_lengths(self) -> None:
        """Usual lengths: all observed ones but the outermost few, with a margin."""
        whole = sum(self.lengths)
        if whole > MEMORY:
            self.lengths = [pages * MEMORY / whole for pages in self.lengths]
            whole = MEMORY
        edge, total, seen = _EDGE * whole, 0.0, []
        for bucket, pages in enumerate(self.lengths):
            total += pages
            if pages and total > edge and total - pages < whole - edge:
                seen.append(bucket)
        self.first_bucket, self.last_bucket = (
            (max(seen[0] - MARGIN_BUCKETS, 0), seen[-1] + MARGIN_BUCKETS) if seen else (0, BUCKETS)
        )

    def findings(self, name: str) -> Iterator[m.RuleFinding]:
        """Deviations of the field."""
        filled = self.filled
        if filled.alarm:
            missing = max(1 - filled.recent, 0.01)
            kind = GONE if filled.recent < filled.before / 4 else FEWER
            kind = TYPE if self.refused > missing / 2 else kind
            yield m.RuleFinding(name, kind, filled.before, filled.recent)
        elif filled.pages:
            for kind in ("digits", "length", "not_repeated"):
                test: DriftTest = getattr(self, kind)
                if test.alarm:
                    yield m.RuleFinding(name, "repeated" if kind == "not_repeated" else kind, test.before, test.recent)


class RuleHealth(msgspec.Struct, array_like=True):
    """Health of the newest version of one rule."""

    version: int = 0
    pages: int = 0
    fields: dict[str, FieldHealth] = msgspec.field(default_factory=dict)
    previous_shares: dict[str, float] = msgspec.field(default_factory=dict)
    """Field → lower bound of its share under the previous version."""
    since: float = 0.0
    """Start of the alarm, seconds since 1970 UTC; 0: healthy."""
    retired: dict[int, float] = msgspec.field(default_factory=dict)
    """Replaced versions and the time of their replacement."""
    history: History = msgspec.field(default_factory=History)

    def add(self, stats: m.RuleStats, now: float) -> bool:
        """Add the counts of a parser; True if the verdict may have changed. O(fields)."""
        if stats.version != self.version:
            if stats.version in self.retired and now - self.retired[stats.version] < STALE_S:
                return False
            self._start_version(stats.version, now)
            self._add(stats, now)
            return True
        return self._add(stats, now)

    def _add(self, stats: m.RuleStats, now: float) -> bool:
        self.pages += stats.pages
        names = [field.field for field in stats.fields if field.field == ITEMS or not field.field.startswith("(")]
        self.history.add(stats, names, now)
        changed = False
        for field_stats in stats.fields:
            field = self.fields.get(field_stats.field)
            if field is None:
                field = self.fields[field_stats.field] = FieldHealth()
            changed |= field.add(field_stats, self.previous_shares.get(field_stats.field, 0.0))
        if changed:
            self.since = (self.since or now) if self.findings() else 0.0
        return changed

    def _start_version(self, version: int, now: float) -> None:
        for name, field in self.fields.items():
            # A field that this version has not learned keeps the share of the version before.
            if field.filled.pages >= LEARN:
                self.previous_shares[name] = field.filled.p0 if field.filled.p0 >= _NEARLY_ALL else 0.0
        if self.version:
            self.retired = {
                **{retired_version: at for retired_version, at in self.retired.items() if now - at < STALE_S},
                self.version: now,
            }
        self.version, self.pages, self.fields, self.since = version, 0, {}, 0.0

    def findings(self) -> list[m.RuleFinding]:
        """All deviations, missing fields first."""
        deviations = [finding for name, field in self.fields.items() for finding in field.findings(name)]
        return sorted(deviations, key=lambda deviation: (deviation.kind != GONE, deviation.field.startswith("(")))

    @property
    def fill_rate(self) -> float:
        """Share of the last pages with items."""
        field = self.fields.get(ITEMS)
        return field.filled.recent if field is not None else 0.0


def _sum(total: list[float], more: Sequence[float]) -> None:
    total += [0.0] * (len(more) - len(total))
    for bucket, pages in enumerate(more):
        total[bucket] += pages


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(RuleHealth).decode
