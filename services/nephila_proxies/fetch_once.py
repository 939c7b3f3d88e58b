"""One fetch outside of the pipeline, awaited: the requests of proxy lists and proxy checks."""

from __future__ import annotations

import asyncio

from nephila.downloader.http.contract import Fetcher, HttpRequest, HttpResponse


async def fetch_once(fetcher: Fetcher, request: HttpRequest) -> HttpResponse:
    """The response of a request; a cancelled caller aborts the fetch."""
    done: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()
    handle = fetcher.fetch(request, lambda response: None if done.done() else done.set_result(response))
    try:
        return await done
    except asyncio.CancelledError:
        handle.abort()
        raise
