"""Samples and labels as rows: in DIR/audit.db, or as tables of the database on a server.

The tables are apart from those of the crawl, so that a re-crawl, `--fresh` or a running writer does not touch them. A
label counts for one version of a page or item: it applies in every sample that has drawn this version. Queries are
valid for SQLite and PostgreSQL.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from nephila.kernel.runtime.errors import UserError
from nephila.storage.faults import sqlite_fault
from nephila.storage.source import Source, require_driver

from nephila_harvest.audit.precision import StratumCount
from nephila_harvest.audit.sampling import Candidate, Sample

FILE = "audit.db"
OTHERS = "(others)"
"""Stratum of all that have no place in a sample: a crawl of many hosts has far more strata than a sample has rows."""
_VALUE = re.compile(r"(?<!:):(\w+)")
_KEY = "job TEXT NOT NULL, url_key TEXT NOT NULL, rule TEXT NOT NULL, ordinal INTEGER NOT NULL, version TEXT NOT NULL"
_TABLES = (
    "CREATE TABLE IF NOT EXISTS audit_samples (name TEXT PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL,"
    " strata TEXT NOT NULL, seed TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS audit_strata (sample TEXT NOT NULL, stratum TEXT NOT NULL, size INTEGER NOT NULL,"
    " PRIMARY KEY (sample, stratum))",
    f"CREATE TABLE IF NOT EXISTS audit_sampled (sample TEXT NOT NULL, number INTEGER NOT NULL, stratum TEXT NOT NULL,"
    f" {_KEY}, url TEXT NOT NULL, PRIMARY KEY (sample, number))",
    f"CREATE TABLE IF NOT EXISTS audit_labels ({_KEY}, verdict TEXT NOT NULL, reason TEXT NOT NULL,"
    " person TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (job, url_key, rule, ordinal, version))",
)
_SAME = " AND ".join(f"s.{name} = l.{name}" for name in ("job", "url_key", "rule", "ordinal", "version"))


class NoSample(UserError):
    """There is no sample, or none of this name."""


class SampleInfo(NamedTuple):
    """A sample, without what was drawn."""

    name: str
    at: str
    """ISO 8601, UTC."""
    kind: str
    """pages or items."""
    strata: str
    seed: str


class Label(NamedTuple):
    """A verdict on one version of a page or item."""

    verdict: str
    """right or wrong."""
    reason: str
    person: str
    at: str


class Drawn(NamedTuple):
    """One row of a sample, with its label."""

    number: int
    stratum: str
    candidate: Candidate
    label: Label | None


class AuditStore:
    """Reads and writes the tables; every method is a transaction of its own."""

    def __init__(self, connection: Any, *, postgres: bool) -> None:
        self._connection = connection
        self._postgres = postgres

    def _execute(self, query: str, values: Mapping[str, Any] | None = None) -> Any:
        text = _VALUE.sub(r"%(\1)s", query) if self._postgres else query
        return self._connection.execute(text, values or {})

    def _write(self, statements: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        self._connection.execute("BEGIN")
        try:
            for query, values in statements:
                self._execute(query, values)
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def create_tables(self) -> None:
        """Create the tables that do not exist."""
        for statement in _TABLES:
            self._execute(statement)

    def add(self, info: SampleInfo, sample: Sample) -> None:
        """Store a sample. Raises `UserError` for a name that exists."""
        if any(earlier.name == info.name for earlier in self.samples()):
            raise UserError(f"a sample {info.name!r} exists; choose another --name")
        statements: list[tuple[str, Mapping[str, Any]]] = [
            ("INSERT INTO audit_samples VALUES (:name, :at, :kind, :strata, :seed)", info._asdict())
        ]
        sizes = {stratum: sample.sizes[stratum] for stratum in sample.drawn}
        if others := sum(sample.sizes.values()) - sum(sizes.values()):
            sizes[OTHERS] = others
        for stratum, size in sizes.items():
            values = {"sample": info.name, "stratum": stratum, "size": size}
            statements.append(("INSERT INTO audit_strata VALUES (:sample, :stratum, :size)", values))
        number = 0
        insert = (
            "INSERT INTO audit_sampled VALUES"
            " (:sample, :number, :stratum, :job, :url_key, :rule, :ordinal, :version, :url)"
        )
        for stratum, drawn in sorted(sample.drawn.items()):
            for candidate in drawn:
                number += 1
                values = {"sample": info.name, "number": number, "stratum": stratum, **candidate._asdict()}
                del values["page_rule"]
                statements.append((insert, values))
        self._write(statements)

    def samples(self) -> list[SampleInfo]:
        """All samples, oldest first."""
        rows = self._execute("SELECT name, at, kind, strata, seed FROM audit_samples ORDER BY at, name").fetchall()
        return [SampleInfo(*row) for row in rows]

    def drawn(self, sample: str) -> list[Drawn]:
        """The rows of a sample in the order of their numbers, with their labels."""
        query = (
            "SELECT s.number, s.stratum, s.job, s.url_key, s.rule, s.ordinal, s.version, s.url, l.verdict, l.reason,"
            f" l.person, l.at FROM audit_sampled s LEFT JOIN audit_labels l ON {_SAME}"
            " WHERE s.sample = :sample ORDER BY s.number"
        )
        rows = []
        for number, stratum, *rest in self._execute(query, {"sample": sample}).fetchall():
            *key, verdict, reason, person, at = rest
            label = Label(verdict, reason, person, at) if verdict is not None else None
            rows.append(Drawn(number, stratum, Candidate._make((*key, "")), label))
        return rows

    def label(self, labels: Sequence[tuple[Candidate, Label]]) -> None:
        """Store labels, all or none; an earlier label of the same version is replaced."""
        query = (
            "INSERT INTO audit_labels VALUES"
            " (:job, :url_key, :rule, :ordinal, :version, :verdict, :reason, :person, :at)"
            " ON CONFLICT (job, url_key, rule, ordinal, version) DO UPDATE SET"
            " verdict = excluded.verdict, reason = excluded.reason, person = excluded.person, at = excluded.at"
        )
        statements: list[tuple[str, Mapping[str, Any]]] = []
        for candidate, label in labels:
            values = {**candidate._asdict(), **label._asdict()}
            del values["page_rule"], values["url"]
            statements.append((query, values))
        self._write(statements)

    def counts(self, sample: str) -> list[StratumCount]:
        """The labels of a sample by stratum, in the order of the strata's names; those without a row are OTHERS."""
        query = "SELECT stratum, size FROM audit_strata WHERE sample = :sample ORDER BY stratum"
        strata = {name: StratumCount(name, size) for name, size in self._execute(query, {"sample": sample}).fetchall()}
        query = (
            "SELECT s.stratum, l.verdict, l.reason, count(*) FROM audit_sampled s"
            f" LEFT JOIN audit_labels l ON {_SAME} WHERE s.sample = :sample GROUP BY s.stratum, l.verdict, l.reason"
        )
        for stratum, verdict, reason, number in self._execute(query, {"sample": sample}).fetchall():
            count = strata[stratum]
            count.sampled += number
            if verdict == "right":
                count.right += number
            elif verdict is not None:
                count.wrong += number
                count.reasons[reason or "(no reason)"] += number
        return list(strata.values())


@contextmanager
def open_store(source: Source, *, create: bool = False) -> Iterator[AuditStore]:
    """The audit of a crawl's directory or database. Raises `NoSample` where there is none and `create` is false."""
    with _postgres(source, create=create) if isinstance(source, str) else _sqlite(source, create=create) as store:
        yield store


@contextmanager
def _sqlite(directory: Path, *, create: bool) -> Iterator[AuditStore]:
    path = directory / FILE
    if not create and not path.is_file():
        raise NoSample(f"{directory} has no sample; draw one with: nephila audit sample --out {directory}")
    connection = None
    try:
        connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        store = AuditStore(connection, postgres=False)
        store.create_tables()
        yield store
    except sqlite3.Error as error:
        raise sqlite_fault(error, path) from error
    finally:
        if connection is not None:
            connection.close()


@contextmanager
def _postgres(url: str, *, create: bool) -> Iterator[AuditStore]:
    require_driver()
    from nephila_stores.postgres.link import connect, translate_errors

    connection = connect(url)
    try:
        with translate_errors(url):
            store = AuditStore(connection, postgres=True)
            if not create and not connection.execute("SELECT to_regclass('audit_samples') IS NOT NULL").fetchone()[0]:  # type: ignore[index]
                raise NoSample("this database has no sample; draw one with: nephila audit sample --out URL")
            store.create_tables()
            yield store
    finally:
        connection.close()
