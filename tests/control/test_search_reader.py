"""The search index is read on behind a search that found it behind: at once where it is small, else beside."""

from __future__ import annotations

import asyncio

from nephila_control import search_reader
from nephila_control.search_reader import SearchReader
from nephila_stores.search.search import search

from tests.storage.storage_rig import record, running


async def stored(directory, count):
    """Pages with a word."""
    async with running(directory) as rig:
        for number in range(count):
            rig.send(record(number, url=f"http://a.test/{number}", text=b"the fox"))
        await rig.storage.flush()


async def test_a_small_crawl_is_read_before_the_answer(tmp_path):
    """The caller waits; a later one finds nothing to do."""
    await stored(tmp_path, 5)
    reader = SearchReader(tmp_path)
    assert await reader.read_on()
    assert (search(tmp_path, "fox").total, search(tmp_path, "fox").behind) == (5, 0)


async def test_a_large_crawl_is_read_beside(tmp_path, monkeypatch):
    """A second search does not wait, and between the steps there is a pause."""
    monkeypatch.setattr("nephila_stores.search.sqlite_index.BATCH", 2)
    monkeypatch.setattr(search_reader, "STEP_S", 0.0)
    monkeypatch.setattr(search_reader, "WAIT_S", 0.0)
    await stored(tmp_path, 5)
    waiting: list[asyncio.Future[None]] = []
    waits = asyncio.Event()

    async def pause(seconds):
        waiting.append(asyncio.get_running_loop().create_future())
        waits.set()
        await waiting[-1]

    reader = SearchReader(tmp_path, pause)
    assert await reader.read_on()
    totals = []
    for _ in range(2):
        await waits.wait()
        waits.clear()
        totals.append(search(tmp_path, "fox").total)
        assert not await reader.read_on()
        waiting[-1].set_result(None)
    await reader._task
    assert [*totals, search(tmp_path, "fox").total] == [2, 4, 5]


async def test_rows_that_are_gone_end_it(tmp_path):
    """The next search says what is wrong."""
    assert await SearchReader(tmp_path).read_on()
