"""Where rows are written to, as the API lists it: in one program and over Kafka. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from nephila.kernel.messages import RefusingHost, StoreState, StoreStatus
from nephila.storage.health import remedy

from nephila_control import system_types
from nephila_control.explain.explain import utc

STATES: dict[StoreState, system_types.StoreState] = {
    StoreState.UNSPECIFIED: "opening",
    StoreState.WORKING: "working",
    StoreState.SLOW: "slow",
    StoreState.AWAY: "away",
    StoreState.FAILED: "failed",
}
SILENT_REMEDY = "see nephila service members; rows wait on the broker, and none is lost"


def store_row(status: StoreStatus, member: str = "", silent_since: float = 0.0) -> system_types.Store:
    """`silent_since`: last report of its member, which does not report any more; 0.0: it does."""
    row = system_types.Store(
        member=member,
        place=status.place,
        state="refused" if status.login_refused else STATES[status.state],
        since=status.since,
        cause=status.cause,
        remedy=remedy(status),
        rows_waiting=status.rows_waiting,
        flushed_at=status.flushed_at,
        batch_rows=status.batch_rows,
    )
    if silent_since:
        row.state, row.since, row.cause, row.remedy = "silent", silent_since, "no report", SILENT_REMEDY
    return row


def store_text(row: system_types.Store) -> str:
    """The state of a store in one line."""
    name = f"storage {row.member}" if row.member else "storage"
    text = f"{name}: {row.place} {'password refused' if row.state == 'refused' else row.state}"
    if row.since:
        text += f" since {utc(row.since)}"
    if row.cause:
        text += f" ({row.cause})"
    flushed = f"last flush {utc(row.flushed_at)}" if row.flushed_at else "no flush yet"
    text += f"; {row.rows_waiting:,} rows wait, {flushed}"
    return f"{text}; {row.remedy}" if row.remedy else text


def refusing_hosts(hosts: Iterable[RefusingHost]) -> list[system_types.RefusingHost]:
    return [system_types.RefusingHost(host=host.host, since=host.since, queued=host.queued) for host in hosts]


def store_problems(rows: list[system_types.Store]) -> list[str]:
    """A line for each store that keeps rows waiting."""
    return [store_text(row) for row in rows if row.remedy]
