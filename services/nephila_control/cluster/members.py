"""The members of a system report to a topic; this module keeps their last reports, and the live settings that they
read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from nephila.kernel import live_settings
from nephila.kernel.layout import LAYOUT
from nephila.kernel.messages import MemberState, MemberStatus, Setting
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import BACKUP

from nephila_control import system_types
from nephila_control.disk_trend import DiskTrend, fullest_first
from nephila_control.stores import refusing_hosts, store_row

OVERDUE, SILENT = 1.5, 3.0
"""Intervals without a report of a member, while the broker answers, after which the next one is overdue, and its state
is silent."""
FORGOTTEN_S = 86_400.0
"""A member that has not reported for so long is not listed."""
MEMBER_STATES: dict[MemberState, system_types.MemberState] = {
    MemberState.UNSPECIFIED: "starting",
    MemberState.READY: "ready",
    MemberState.NOT_READY: "not_ready",
    MemberState.DRAINING: "draining",
    MemberState.ENDED: "ended",
}


class Members:
    """Reads the topics `members` and `settings` whole."""

    def __init__(self, clock: Clock, answering_since: Callable[[], float]) -> None:
        """`answering_since`: see `LogReader.answering_since`. No member can report before."""
        self._clock = clock
        self._answering_since = answering_since
        self._members: dict[str, MemberStatus] = {}
        self._disks = DiskTrend()
        self.settings: dict[str, Any] = {}

    def on_member(self, member: MemberStatus) -> None:
        self._members[member.id] = member
        if member.disk_size_bytes:
            self._disks.note(self._clock.monotonic(), member.id, member.disk_free_bytes)

    def on_setting(self, setting: Setting) -> None:
        if setting.name == LAYOUT:
            return  # `nephila service topics grow` changes it
        if setting.deleted:
            self.settings.pop(setting.name, None)
        else:
            self.settings[setting.name] = msgspec.json.decode(setting.value)

    def stores(self) -> list[system_types.Store]:
        """Where the members of storage write rows, by member."""
        return [
            store_row(report.store, member.name, member.silent_since if member.state == "silent" else 0.0)
            for member, report in self._present()
            if report.store is not None
        ]

    def _present(self) -> Iterator[tuple[system_types.Member, MemberStatus]]:
        """Members that have not ended, and their last reports."""
        reports = {(report.service, report.member): report for report in self._members.values()}
        for member in self.list():
            if member.state != "ended":
                yield member, reports[member.service, member.name]

    def _working(self) -> Iterator[MemberStatus]:
        return (report for member, report in self._present() if member.state != "silent")

    def disks(self) -> list[system_types.Disk]:
        """Disks of the members that report one, the fullest first."""
        now, reports = self._clock.monotonic(), [report for report in self._working() if report.disk_size_bytes]
        self._disks.keep(report.id for report in reports)
        return fullest_first(
            self._disks.disk(now, report.id, report.disk_free_bytes, report.disk_size_bytes) for report in reports
        )

    def refusing_hosts(self) -> list[system_types.RefusingHost]:
        """Hosts that refuse, as schedulers report them, the longest first."""
        hosts = refusing_hosts(host for report in self._working() for host in report.refusing_hosts)
        return sorted(hosts, key=lambda host: host.since)

    def list(self) -> list[system_types.Member]:
        """Sorted by service and name."""
        owners: dict[tuple[str, int], str] = {}
        for status in sorted(self._members.values(), key=lambda status: status.at):
            owners |= dict.fromkeys(((status.service, partition) for partition in status.partitions), status.id)
        members = [self._member(status, owners) for _, status in sorted(self._members.items())]
        return [member for member in members if member.reported_s < FORGOTTEN_S]

    def failed_backup(self) -> str:
        """Returns an empty string unless the newest backup failed."""
        backup = self._members.get(BACKUP)
        if backup is None or not backup.problem:
            return ""
        hours = max(self._clock.now() - backup.at, 0.0) / 3600
        return f"the newest backup failed {hours:.1f} h ago on {backup.host}: {backup.problem}"

    def backup_age_s(self) -> float | None:
        """Seconds since the newest backup, a failed one included; None: there was none."""
        backup = self._members.get(BACKUP)
        return None if backup is None else max(self._clock.now() - backup.at, 0.0)

    def _member(self, status: MemberStatus, owners: Mapping[tuple[str, int], str]) -> system_types.Member:
        """`owners` maps (service, partition) to the member that reported it last. A silent member owns no partition,
        because its session in the group ends before it counts as silent."""
        reported_s = max(self._clock.now() - status.at, 0.0)
        silent_s = min(reported_s, self._clock.monotonic() - self._answering_since())
        overdue = 0.0 if status.state == MemberState.ENDED else silent_s / max(status.interval_s, 1.0)
        silent = overdue > SILENT
        return system_types.Member(
            name=status.member,
            service=status.service,
            state="silent" if silent else MEMBER_STATES[status.state],
            problem=status.problem,
            host=status.host,
            address=status.address,
            version=status.version,
            started_at=status.started_at,
            reported_s=round(reported_s, 3),
            silent_since=status.at if overdue > OVERDUE else 0.0,
            partitions=[]
            if silent or status.state == MemberState.ENDED
            else [partition for partition in status.partitions if owners[status.service, partition] == status.id],
            in_flight=status.in_flight,
            cpu=status.cpu,
            memory_bytes=status.memory_bytes,
            rates={rate.name: rate.per_s for rate in status.rates},
            pages=status.pages,
            bytes=status.bytes,
            admitted=status.admitted,
            bound_by=status.bound_by,
        )

    def scope_of(self, member: str, setting: str) -> live_settings.SettingScope:
        """Finds the member by name among services that read the setting. Raises `UsageError`."""
        if not member:
            return live_settings.SettingScope()
        service, slash, name = member.rpartition("/")
        members = (status for status in self._members.values() if status.member == name)
        matches = [status for status in members if service in ("", status.service)]
        if not matches and slash and any(live_settings.parse_key(key)[0] == (service, name) for key in self.settings):
            # The member has left the system, and its setting may be taken back.
            return live_settings.SettingScope(service, name)
        if not matches:
            reported = sorted({status.member for status in self._members.values()})
            none = "none has reported yet, see nephila service members"
            names = f"there are {', '.join(reported[:20])}" if reported else none
            raise UsageError(f"there is no member {member[:100]!r}; {names}")
        row = live_settings.LIVE_SETTINGS.get(setting)
        services = row.services if row is not None else ()
        readers = [status for status in matches if not services or status.service in services] or matches
        if len(readers) > 1:
            names = ", ".join(sorted(status.id for status in readers))
            raise UsageError(f"several members are called {name}: {names}; name one as SERVICE/NAME")
        return live_settings.SettingScope(readers[0].service, readers[0].member)
