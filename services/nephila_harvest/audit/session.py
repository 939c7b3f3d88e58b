"""What the command and the console do with a sample: draw one, find one, show what a person judges next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.storage.ledgers.read_connection import open_for_reading
from nephila.storage.source import Source, display_name

from nephila_harvest.audit.candidates import items, pages
from nephila_harvest.audit.left_out import left_out
from nephila_harvest.audit.pool import KINDS as POOLED
from nephila_harvest.audit.pool import pool
from nephila_harvest.audit.sampling import STRATA, Sample, draw
from nephila_harvest.audit.store import AuditStore, Drawn, NoSample, SampleInfo, open_store

KINDS: Final = {"pages": pages, "items": items, "links": left_out}
"""What a sample may be drawn from: stored pages, items of rules, links whose target is not stored."""


def draw_sample(
    source: Source, *, size: int, by: str, kind: str, name: str, seed: str, job: str, most: int = 0
) -> tuple[SampleInfo, Sample]:
    """Draw and store a sample. `name`: empty for the instant; `job`: empty for all; `most`: pages and items are drawn
    from so many fetches, and sizes of strata are estimates, 0: from all. Raises `UserError`. O(rows) without `most`
    and for links."""
    if by not in STRATA:
        raise UsageError(f"by {by!r} is none of {', '.join(STRATA)}")
    with open_for_reading(source) as rows:
        part = pool(rows, kind, job, seed, most) if most and kind in POOLED else None
        if part is None:
            drawn = draw(partial(KINDS[kind], rows, job), by, size, seed)
        else:
            drawn = draw(lambda: iter(part.candidates), by, size, seed).scaled(part.stands_for)
    if not drawn.sizes:
        hint = " (a crawl keeps them with --links)" if kind == "links" else ""
        raise UserError(f"{display_name(source)} has no {kind} to draw from{hint}")
    info = SampleInfo(name or now(), now(), kind, by, seed)
    with open_store(source, create=True) as store:
        store.add(info, drawn)
    return info, drawn


def sample_named(store: AuditStore, name: str) -> SampleInfo:
    """The sample of a name, or the newest. Raises `NoSample`."""
    samples = store.samples()
    for sample in reversed(samples):
        if not name or sample.name == name:
            return sample
    if not samples:
        raise NoSample("there is no sample; draw one with: nephila audit sample")
    raise NoSample(f"there is no sample {name!r}; samples: {', '.join(sample.name for sample in samples[-10:])}")


def labelling_order(drawn: Iterable[Drawn]) -> list[Drawn]:
    """The strata in turn, each in proportion to its part of the sample: whenever a person stops, all strata have
    labels."""
    strata: dict[str, list[Drawn]] = {}
    for row in drawn:
        strata.setdefault(row.stratum, []).append(row)
    placed = [
        ((index + 0.5) / len(rows), row.number, row) for rows in strata.values() for index, row in enumerate(rows)
    ]
    return [row for _, _, row in sorted(placed, key=lambda entry: entry[:2])]


def next_without_label(ordered: Sequence[Drawn], number: int = 0) -> int:
    """The number of the first row without a label behind the one with this number, then of the first one at all; 0: all
    have one."""
    position = next((position for position, row in enumerate(ordered, 1) if row.number == number), 0)
    return next((row.number for row in (*ordered[position:], *ordered[:position]) if row.label is None), 0)


def now() -> str:
    """The instant, ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
