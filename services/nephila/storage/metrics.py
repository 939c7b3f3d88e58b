"""Metrics of storage."""

from __future__ import annotations

from nephila.kernel.runtime.metrics import Metric
from nephila.storage.service import Storage

METRICS: tuple[Metric[Storage], ...] = (
    Metric(
        "rows",
        "Rows added by this process, by outcome. Flat while records_buffered is not 0: the database fails.",
        lambda s: s.outcomes,
        "outcome",
    ),
    Metric(
        "near_copies_total",
        "Fetched pages that are near-copies of other pages, by what was done. A rise: syndicated or generated text.",
        lambda s: s.near_copies,
        "action",
        counter=True,
    ),
    Metric(
        "changes_total",
        "Changes of pages recorded by this process, by kind. A rise of gone: a site removes pages, or blocks.",
        lambda s: s.changes,
        "change",
        counter=True,
    ),
    Metric(
        "scheme_pages_evaluated_total",
        "Stored pages evaluated by changed keyword schemes, by result: added, removed, changed, same. A rise: schemes "
        "or rules of platforms were changed.",
        lambda s: s.evaluated,
        "result",
        counter=True,
    ),
    Metric(
        "records_buffered",
        "Records received and not durable. A rise: the database is the bottleneck.",
        lambda s: s.buffered,
    ),
    Metric(
        "store_away_seconds",
        "Seconds since the database cannot be reached; 0: it serves. A rise: no row is stored, and none is lost.",
        lambda s: s.health.away_s,
    ),
    Metric(
        "store_login_refused",
        "1 while the database refuses the password, which nephila status names with the remedy. No row is stored, and "
        "none is lost.",
        lambda s: float(s.health.login_refused),
    ),
    Metric(
        "flush_rows_limit",
        "The most rows of one flush. A fall: the database does not take as many in time; see its locks and disks.",
        lambda s: s.batch_size.limit,
    ),
    Metric(
        "flush_seconds",
        "Flushes: look-up, files with fsync, database. A rise: disk or database is slow, or batches are larger.",
        lambda s: s.flush_s.value(),
        histogram=True,
    ),
    Metric(
        "database_seconds",
        "Transactions of the database, from the first row sent to the commit. A rise: the database is slow.",
        lambda s: s.database_s.value(),
        histogram=True,
    ),
    Metric(
        "disk_free_bytes",
        "Free space on the disk of the directory. A fall to 0: storage stops, and nothing is lost.",
        lambda s: s.disk.free_bytes,
    ),
    Metric(
        "disk_size_bytes",
        "Size of the disk of the directory. A rise: the volume was enlarged.",
        lambda s: s.disk.size_bytes,
    ),
)
