"""The operations that screens show: rows of pages and items, fetches over time, hosts. Rows are read in a thread."""

from __future__ import annotations

import asyncio

from nephila.kernel.runtime.errors import UsageError
from nephila.scheduler.engine.host_pace_changes import LIMITS

from nephila_control import item_types, screen_types, stored_rows
from nephila_control.part import OperationPart


class ScreenOperations(OperationPart):
    async def list_pages(self, request: screen_types.ListPages) -> screen_types.PageList:
        return await asyncio.to_thread(stored_rows.page_list, self._backend.rows, request, self._rows_of(request.job))

    async def search_pages(self, request: screen_types.SearchPages) -> screen_types.SearchResults:
        def search() -> screen_types.SearchResults:
            return stored_rows.search_results(self._backend.rows, request, self._rows_of(request.job))

        results = await asyncio.to_thread(search)
        if results.behind and self._shared.search_reader is not None and await self._shared.search_reader.read_on():
            results = await asyncio.to_thread(search)
        return results

    async def get_page(self, request: screen_types.GetPage) -> screen_types.PageDetail:
        jobs = self._rows_of(request.job)
        return await asyncio.to_thread(
            stored_rows.page_detail, self._backend.rows, request, jobs, self._backend.captures
        )

    async def list_links_in(self, request: screen_types.GetPage) -> screen_types.LinksIn:
        jobs = self._rows_of(request.job)
        return await asyncio.to_thread(stored_rows.links_in, self._backend.rows, request, jobs)

    async def get_screenshot(self, request: screen_types.GetScreenshot) -> screen_types.Screenshot:
        jobs = self._rows_of(request.job)
        return await asyncio.to_thread(
            stored_rows.screenshot, self._backend.rows, request, jobs, self._backend.captures
        )

    async def list_items(self, request: screen_types.ListItems) -> screen_types.ItemList:
        return await asyncio.to_thread(stored_rows.item_list, self._backend.rows, request, self._rows_of(request.job))

    async def profile_items(self, request: screen_types.ListItems) -> item_types.ItemProfile:
        jobs = self._rows_of(request.job)
        return await asyncio.to_thread(stored_rows.item_profile, self._backend.rows, request, jobs)

    async def count_outcomes(self, request: screen_types.OfJob) -> screen_types.OutcomeCounts:
        return await asyncio.to_thread(self._shared.fetch_counts.read, self._rows_of(request.job))

    async def get_series(self, request: screen_types.GetSeries) -> screen_types.Series:
        jobs = [self._job(request.job)] if request.job else list(self._backend.jobs().values())
        reports = [self._backend.report(job) for job in jobs]
        return self._backend.series.read(self._rows_of(request.job), reports, self._backend.clock, request.range)

    async def list_hosts(self, request: screen_types.ListHosts) -> screen_types.HostList:
        if request.job:
            self._job(request.job)
        return await self._backend.hosts(request)

    async def change_host(self, request: screen_types.ChangeHost) -> screen_types.HostChanged:
        most_s = LIMITS[request.action]
        if request.seconds > most_s:
            raise UsageError(f"seconds: {request.action} takes at most {most_s:g}")
        if request.action == "pause" and not request.seconds:
            raise UsageError("seconds: a pause needs a length")
        await self._backend.set_pace(request)
        return screen_types.HostChanged(name=request.name, action=request.action, seconds=request.seconds)
