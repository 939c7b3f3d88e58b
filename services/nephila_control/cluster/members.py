"""The members of a system as they report, and the live settings that they read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from nephila.kernel import live_settings
from nephila.kernel.layout import LAYOUT
from nephila.kernel.messages import MemberState, MemberStatus, Setting
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import BACKUP

from nephila_control import system_types

OVERDUE, SILENT = 1.5, 3.0
"""Intervals since the last report of a member after which the next one is overdue, and its state is silent."""
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
    """The topics `members` and `settings`, read whole."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._members: dict[str, MemberStatus] = {}
        self.settings: dict[str, Any] = {}
        """Live settings by key."""

    def on_member(self, member: MemberStatus) -> None:
        """A report."""
        self._members[member.id] = member

    def on_setting(self, setting: Setting) -> None:
        """A setting was changed."""
        if setting.name == LAYOUT:
            return  # `nephila service topics grow` changes it
        if setting.deleted:
            self.settings.pop(setting.name, None)
        else:
            self.settings[setting.name] = msgspec.json.decode(setting.value)

    def list(self) -> list[system_types.Member]:
        """Members by service and name."""
        owners: dict[tuple[str, int], str] = {}
        for one in sorted(self._members.values(), key=lambda one: one.at):
            owners |= dict.fromkeys(((one.service, partition) for partition in one.partitions), one.id)
        members = [self._member(one, owners) for _, one in sorted(self._members.items())]
        return [one for one in members if one.reported_s < FORGOTTEN_S]

    def failed_backup(self) -> str:
        """The line of the newest backup if it failed."""
        backup = self._members.get(BACKUP)
        if backup is None or not backup.problem:
            return ""
        hours = max(self._clock.now() - backup.at, 0.0) / 3600
        return f"the newest backup failed {hours:.1f} h ago on {backup.host}: {backup.problem}"

    def _member(self, one: MemberStatus, owners: Mapping[tuple[str, int], str]) -> system_types.Member:
        """`owners`: (service, partition) → the member that was the last to report it. A member that is silent has lost
        its partitions: its session is shorter."""
        reported_s = max(self._clock.now() - one.at, 0.0)
        overdue = 0.0 if one.state == MemberState.ENDED else reported_s / max(one.interval_s, 1.0)
        silent = overdue > SILENT
        return system_types.Member(
            name=one.member,
            service=one.service,
            state="silent" if silent else MEMBER_STATES[one.state],
            problem=one.problem,
            host=one.host,
            address=one.address,
            version=one.version,
            started_at=one.started_at,
            reported_s=round(reported_s, 3),
            silent_since=one.at if overdue > OVERDUE else 0.0,
            partitions=[]
            if silent or one.state == MemberState.ENDED
            else [partition for partition in one.partitions if owners[one.service, partition] == one.id],
            in_flight=one.in_flight,
            cpu=one.cpu,
            memory_bytes=one.memory_bytes,
            rates={rate.name: rate.per_s for rate in one.rates},
            pages=one.pages,
            bytes=one.bytes,
            admitted=one.admitted,
            bound_by=one.bound_by,
        )

    def scope_of(self, member: str, setting: str) -> live_settings.SettingScope:
        """The member of that name, of a service that reads the setting. Raises `UsageError`."""
        if not member:
            return live_settings.SettingScope()
        service, slash, name = member.rpartition("/")
        found = [one for one in self._members.values() if one.member == name and service in ("", one.service)]
        if not found and slash and any(live_settings.parse_key(key)[0] == (service, name) for key in self.settings):
            return live_settings.SettingScope(
                service, name
            )  # it has left the system, and its setting may be taken back
        if not found:
            known = sorted({one.member for one in self._members.values()})
            raise UsageError(
                f"there is no member {member[:100]!r}; "
                + (
                    f"there are {', '.join(known[:20])}"
                    if known
                    else "none has reported yet, see nephila service members"
                )
            )
        row = live_settings.LIVE_SETTINGS.get(setting)
        readers = [one for one in found if row is None or not row.services or one.service in row.services] or found
        if len(readers) > 1:
            names = ", ".join(sorted(one.id for one in readers))
            raise UsageError(f"several members are called {name}: {names}; name one as SERVICE/NAME")
        return live_settings.SettingScope(readers[0].service, readers[0].member)
