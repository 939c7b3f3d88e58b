"""A blocking iterator is read beside the event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest
from nephila.programs.read_ahead import read_ahead


async def test_all_values_in_their_order():
    """More values than are read ahead."""
    assert [value async for value in read_ahead(range(5000), ahead=7)] == list(range(5000))


async def test_what_the_source_raises_comes_after_its_values():
    """No value before the error is lost."""

    def source():
        yield from range(100)
        raise ValueError("torn")

    values = read_ahead(source(), ahead=200)
    assert [await anext(values) for _ in range(100)] == list(range(100))
    with pytest.raises(ValueError, match="torn"):
        await anext(values)


async def test_the_loop_goes_on_while_the_source_waits():
    """The first value arrives although the second never comes; the thread ends when the reader stops."""
    hold, threads = threading.Event(), []

    def source():
        threads.append(threading.current_thread())
        yield 1
        hold.wait(30)
        yield 2
        yield 3

    taken = asyncio.Queue()

    async def take():
        async for value in read_ahead(source(), ahead=1):
            taken.put_nowait(value)

    task = asyncio.ensure_future(take())
    assert await asyncio.wait_for(taken.get(), 30) == 1
    task.cancel()
    await asyncio.wait([task])
    hold.set()
    await asyncio.to_thread(threads[0].join, 30)
    assert not threads[0].is_alive()
