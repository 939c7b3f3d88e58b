"""The pool of browsers: how many run, when they are replaced, what a crash or a hang costs."""

from __future__ import annotations

import asyncio

import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila_browser.engine import RenderedPage, RenderError
from nephila_browser.pool import HANG_S, HARD_LIMIT, WATCH_S, BrowserPool

from tests.browser.fake_engine import FakeEngine, task


class Rig:
    """A pool over fake browsers."""

    def __init__(self, processes: int = 1, pages: int = 2, max_uses: int = 0, max_memory_bytes: int = 0) -> None:
        self.engine = FakeEngine()
        self.clock = ManualClock()
        self.pool = BrowserPool(
            self.engine,
            self.clock,
            processes=processes,
            pages=pages,
            max_uses=max_uses,
            max_memory_bytes=max_memory_bytes,
        )

    async def begin(self, url: str = "http://a.test/") -> asyncio.Task[RenderedPage]:
        """A page that has got as far as it can."""
        rendering = asyncio.ensure_future(self.pool.render(task(url)))
        await settle()
        return rendering


async def settle() -> None:
    """Let all tasks run until they wait."""
    for _ in range(30):
        await asyncio.sleep(0)


async def test_pages_share_a_process_up_to_its_limit_and_the_next_one_waits() -> None:
    rig = Rig(processes=1, pages=2)
    pages = [await rig.begin(f"http://a.test/{number}") for number in range(3)]
    (browser,) = rig.engine.started
    assert len(browser.pages) == 2
    browser.complete()
    await settle()
    assert pages[0].done()
    assert browser.urls[-1] == "http://a.test/2"
    browser.complete()
    browser.complete() if len(browser.pages) == 1 else browser.pages[1].set_result(RenderedPage(html=b""))
    await settle()
    assert all(page.done() for page in pages)
    assert (rig.pool.pages, rig.pool.processes, rig.pool.launched) == (3, 1, 1)
    await rig.pool.close()


async def test_a_second_process_is_started_only_when_the_first_has_no_free_page() -> None:
    rig = Rig(processes=2, pages=1)
    first = await rig.begin()
    assert len(rig.engine.started) == 1
    second = await rig.begin()
    assert len(rig.engine.started) == 2
    for browser in rig.engine.started:
        browser.complete()
    await asyncio.gather(first, second)
    third = await rig.begin()
    assert len(rig.engine.started) == 2
    rig.engine.started[0].complete()
    await third
    await rig.pool.close()
    assert all(browser.closed for browser in rig.engine.started)
    assert rig.engine.closed


async def test_a_process_is_replaced_after_its_uses_and_not_before_its_last_page_ended() -> None:
    rig = Rig(pages=2, max_uses=2)
    pages = [await rig.begin(), await rig.begin()]
    (first,) = rig.engine.started
    first.complete()
    await settle()
    assert not first.closed
    first.complete()
    await asyncio.gather(*pages)
    await settle()
    assert first.closed
    assert rig.pool.retired == {"uses": 1}
    assert rig.pool.crashes == 0
    page = await rig.begin()
    assert len(rig.engine.started) == 2
    rig.engine.started[1].complete()
    await page
    await rig.pool.close()


async def test_cpu_of_processes_that_have_ended_counts() -> None:
    rig = Rig(max_uses=1)
    for _ in range(2):
        page = await rig.begin()
        rig.engine.started[-1].cpu = 2.5
        rig.engine.started[-1].complete()
        await page
        await settle()
    page = await rig.begin()
    rig.engine.started[-1].complete()
    assert rig.pool.cpu_s() == 2.5 + 2.5 + 1.0
    await page
    await rig.pool.close()
    assert rig.pool.cpu_s() == 6.0


async def test_a_process_that_has_grown_too_large_is_replaced() -> None:
    rig = Rig(max_memory_bytes=1000)
    page = await rig.begin()
    rig.engine.started[0].memory = 1001
    rig.engine.started[0].complete()
    await page
    await settle()
    assert rig.engine.started[0].closed
    assert rig.pool.retired == {"memory": 1}
    assert rig.pool.processes == 0
    await rig.pool.close()


async def test_a_page_with_more_memory_than_its_share_ends_at_once_and_others_live() -> None:
    rig = Rig(pages=2, max_memory_bytes=1000)
    good, greedy = await rig.begin("http://a.test/good"), await rig.begin("http://a.test/greedy")
    (browser,) = rig.engine.started
    browser.memory, browser.largest = 8000, 7900
    rig.clock.advance(WATCH_S)
    with pytest.raises(RenderError) as failed:
        await greedy
    assert failed.value.reason == "browser_memory"
    assert not good.done()
    rig.clock.advance(WATCH_S)
    assert not browser.closed
    browser.complete()
    assert (await good).html == b"<p>done"
    await settle()
    assert browser.closed, "a browser whose page was killed takes no new pages"
    assert (rig.pool.retired, rig.pool.crashes) == ({"memory": 1}, 0)
    await rig.pool.close()


async def test_a_process_that_grows_by_no_single_page_is_retired_and_its_pages_complete() -> None:
    rig = Rig(pages=2, max_memory_bytes=1000)
    page = await rig.begin()
    (browser,) = rig.engine.started
    browser.memory, browser.largest = 1100, 400
    rig.clock.advance(WATCH_S)
    await settle()
    assert not page.done()
    other = await rig.begin()
    assert len(rig.engine.started) == 1, "the process is full, and one more is not allowed"
    browser.complete()
    await page
    await settle()
    assert browser.closed
    rig.engine.started[1].complete()
    await other
    await rig.pool.close()


async def test_a_process_far_above_its_memory_is_killed_and_its_page_fails_in_the_second_one() -> None:
    """No renderer has the memory: the browser itself has grown, by one of its pages."""
    rig = Rig(pages=2, max_memory_bytes=1000)
    page = await rig.begin()
    for number in range(2):
        rig.engine.started[number].memory = int(1000 * HARD_LIMIT) + 1
        rig.clock.advance(WATCH_S)
        await settle()
    with pytest.raises(RenderError) as failed:
        await page
    assert failed.value.reason == "browser_memory"
    assert all(browser.closed for browser in rig.engine.started)
    assert (rig.pool.retired, rig.pool.crashes) == ({"memory": 2}, 0)
    await rig.pool.close()


async def test_memory_is_read_only_while_pages_are_rendered() -> None:
    rig = Rig(max_memory_bytes=1000)
    page = await rig.begin()
    rig.engine.started[0].complete()
    await page
    rig.clock.advance(WATCH_S)
    rig.engine.started[0].memory = 5000
    rig.clock.advance(10 * WATCH_S)
    await settle()
    assert not rig.engine.started[0].closed
    await rig.pool.close()


async def test_pages_of_a_crashed_process_are_rendered_again_in_another_one() -> None:
    rig = Rig(pages=2)
    pages = [await rig.begin("http://a.test/1"), await rig.begin("http://a.test/2")]
    rig.engine.started[0].crash()
    await settle()
    second = rig.engine.started[1]
    assert sorted(second.urls) == ["http://a.test/1", "http://a.test/2"]
    assert rig.engine.started[0].closed, "what is left of the process group is killed"
    second.complete(b"<p>one")
    second.pages[1].set_result(RenderedPage(html=b"<p>two"))
    found = await asyncio.gather(*pages)
    assert sorted(page.html for page in found) == [b"<p>one", b"<p>two"]
    assert rig.pool.crashes == 1
    await rig.pool.close()


async def test_a_page_that_ends_two_processes_fails_and_others_continue() -> None:
    rig = Rig(pages=1)
    bad = await rig.begin("http://a.test/bad")
    rig.engine.started[0].crash()
    await settle()
    rig.engine.started[1].crash()
    with pytest.raises(RenderError) as failed:
        await bad
    assert failed.value.reason == "browser"
    good = await rig.begin()
    rig.engine.started[2].complete()
    assert (await good).html == b"<p>done"
    await rig.pool.close()


async def test_a_process_that_hangs_is_killed_and_its_page_times_out() -> None:
    rig = Rig(pages=1)
    page = await rig.begin()
    rig.clock.advance(30.0 + HANG_S - 0.1)
    await settle()
    assert not page.done()
    rig.clock.advance(0.2)
    with pytest.raises(RenderError) as failed:
        await page
    assert failed.value.reason == "render_timeout"
    assert rig.pool.retired == {"hang": 1}
    assert rig.pool.crashes == 1
    await settle()
    assert rig.engine.started[0].closed
    await rig.pool.close()


async def test_a_browser_that_does_not_start_fails_its_page_and_is_tried_again() -> None:
    rig = Rig()
    rig.engine.broken = "no such file"
    with pytest.raises(RenderError) as failed:
        await rig.pool.render(task())
    assert (failed.value.reason, failed.value.detail) == ("browser", "no such file")
    rig.engine.broken = ""
    page = await rig.begin()
    rig.engine.started[0].complete()
    await page
    await rig.pool.close()


async def test_an_aborted_page_frees_its_slot() -> None:
    rig = Rig(pages=1)
    first = await rig.begin("http://a.test/1")
    second = await rig.begin("http://a.test/2")
    first.cancel()
    await settle()
    assert rig.engine.started[0].urls == ["http://a.test/1", "http://a.test/2"]
    rig.engine.started[0].complete()
    await second
    await rig.pool.close()
