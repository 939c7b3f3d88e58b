"""Pictures that items name, for the table of items.

The viewer's browser asks no other host: this program fetches the picture as it fetches the files of a page in the
studio. Only a URL that stands in a field of a stored item is fetched, so the operation is no open proxy.
"""

from __future__ import annotations

import asyncio

from nephila.kernel.runtime.errors import UsageError
from nephila_rules.studio.work import StudioProcess

from nephila_control import item_types, stored_rows, studio_types
from nephila_control.api import Control
from nephila_control.backend import Backend
from nephila_control.part import OperationPart, Shared
from nephila_control.studio_files import StudioFiles


class ItemPictureOperations(OperationPart):
    def __init__(self, backend: Backend, shared: Shared, whole: Control) -> None:
        super().__init__(backend, shared, whole)
        self._files = StudioFiles(backend.single_fetches, StudioProcess(), backend.clock)

    async def get_item_picture(self, request: item_types.GetItemPicture) -> studio_types.StudioFile:
        jobs = self._rows_of(request.job)
        url = await asyncio.to_thread(stored_rows.item_field, self._backend.rows, request, jobs)
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"field: {request.field[:100]!a} of this item is no URL")
        return await self._files.picture(url)
