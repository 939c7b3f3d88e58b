"""The operations on the program or system: its state, members, settings, changes and messages that failed."""

from __future__ import annotations

import asyncio

from nephila.kernel import live_settings
from nephila.kernel.runtime.errors import UsageError

from nephila_control import event_types, requests, stored_rows, system_types
from nephila_control.changes import TableChanges
from nephila_control.job_report import system_status
from nephila_control.part import OperationPart
from nephila_control.system_views import configuration, first_proxies, webhooks


class SystemOperations(OperationPart):
    async def list_changes(self, request: system_types.ListChanges) -> system_types.ChangeList:
        return await TableChanges(self._backend.rows, self._rows_of(request.job)).list_changes(request)

    async def list_dead_letters(self, request: system_types.ListDeadLetters) -> system_types.DeadLetterList:
        return await self._backend.letters.page(request)

    async def replay_dead_letters(self, request: system_types.ReplayDeadLetters) -> system_types.ReplayedList:
        return await self._backend.letters.replay(request)

    async def list_members(self, request: requests.Empty) -> system_types.MemberList:
        return system_types.MemberList(members=self._backend.members())

    async def status(self, request: requests.Empty) -> system_types.Status:
        status = system_status(self._backend, self._shared.started)
        await self._backend.complete(status)
        return status

    async def list_events(self, request: event_types.ListEvents) -> event_types.EventList:
        self._backend.look()
        return self._backend.events.read(request)

    async def get_settings(self, request: requests.Empty) -> system_types.Settings:
        return system_types.Settings(settings=dict(sorted(self._backend.settings().items())))

    async def change_settings(self, request: system_types.ChangeSettings) -> system_types.Settings:
        changes = {
            live_settings.key_of(self._backend.scope_of(request.member, name), name): value
            for name, value in request.settings.items()
        }
        if problems := [text for change in changes.items() if (text := live_settings.check(*change))]:
            raise UsageError("; ".join(problems))
        await self._backend.put_settings(changes)
        return await self.get_settings(requests.Empty())

    async def get_configuration(self, request: system_types.ListConfiguration) -> system_types.Configuration:
        return configuration(self._backend.configuration(), request)

    async def get_network(self, request: requests.Empty) -> system_types.Network:
        return first_proxies(await self._backend.network())

    async def list_topics(self, request: requests.Empty) -> system_types.TopicList:
        return system_types.TopicList(topics=await self._backend.topics())

    async def list_webhooks(self, request: requests.Empty) -> system_types.WebhookList:
        return await asyncio.to_thread(webhooks, stored_rows.there(self._backend.rows))

    async def list_control_log(self, request: system_types.ListControlLog) -> system_types.ControlLog:
        return await self._backend.log.read(request)
