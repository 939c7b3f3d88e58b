"""The steps of a page: declarative actions, each with a limit. The table `ACTIONS` has one function per action."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from nephila.downloader.http.target import TargetUrl
from nephila.kernel.documents.browser_schema import LoginStep, Step
from nephila.kernel.documents.field_types import seconds
from nephila.kernel.net.public_suffix import site_of
from nephila.kernel.reasons.table import Reason
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page
from playwright.async_api import TimeoutError as PlaywrightTimeout

from nephila_browser.engine import LoginValues, RenderError

GROW_S = 2.0
"""Longest wait for new elements after a scroll."""
_ELEMENTS = "document.getElementsByTagName('*').length"
_MORE_ELEMENTS = "before => document.getElementsByTagName('*').length > before"
_SCROLL_PART = """() => {
  const boxes = [document.scrollingElement || document.documentElement];
  for (const box of document.querySelectorAll("*")) {
    if (boxes.length > 10) break;
    if (box.scrollHeight > box.clientHeight + 50 && box.clientHeight > 100 &&
        /auto|scroll|overlay/.test(getComputedStyle(box).overflowY)) boxes.push(box);
  }
  let height = 0, moved = false;
  for (const box of boxes) {
    const before = box.scrollTop;
    box.scrollTop += Math.max(Math.floor(box.clientHeight * 0.9), 100);
    moved = moved || box.scrollTop > before;
    height += box.scrollHeight;
  }
  return [height, moved];
}"""
"""One part of a scroll, of the page and of the boxes in it that scroll by themselves: lazy parts load when they come
into view. Returns the height of all, and whether anything has moved."""
_PARTS = 100
"""Parts of one scroll, at most."""
_PART_S = 0.05
_MORE_HEIGHT = f"before => ({_SCROLL_PART})()[0] > before"


async def run_steps(page: Page, steps: Sequence[Step], login: LoginValues | None = None) -> None:
    """Run the steps in order; `login`: what steps of a login write. Raises `RenderError` with the reason step where a
    step cannot be done."""
    for number, step in enumerate(steps, 1):
        try:
            if login is not None and isinstance(step, LoginStep) and step.field:
                _check_site(page.url, login.url, number)
                await _fill(page, step, login.values[step.field])
            else:
                await ACTIONS[step.action](page, step)
        except PlaywrightTimeout:
            if not step.optional:
                target = getattr(step, step.action)
                why = await _why_not(page, target, step)
                raise RenderError(Reason.STEP, f"step {number}: {step.action} {target!r}: {why}") from None


def _check_site(url: str, login_url: str, number: int) -> None:
    try:
        page, login = TargetUrl(url), TargetUrl(login_url)
    except ValueError:
        raise RenderError(Reason.STEP, f"step {number}: the page has no URL: no secret is written") from None
    if site_of(page.host) != site_of(login.host):
        raise RenderError(Reason.STEP, f"step {number}: the page is of another site, {page.host}: no secret is written")
    if login.scheme == "https" and page.scheme != "https":
        raise RenderError(Reason.STEP, f"step {number}: the page is not https: no secret is written")


async def _why_not(page: Page, target: str, step: Step) -> str:
    matches = 0
    with contextlib.suppress(PlaywrightError):
        matches = await page.locator(f"css={target}").count()
    if not matches:
        return f"no element matches in {step.timeout}"
    return f"{matches} match, the first is hidden, covered or disabled for {step.timeout}"


def _ms(step: Step) -> float:
    return seconds(step.timeout) * 1000


async def _click(page: Page, step: Step) -> None:
    await page.locator(f"css={step.click}").first.click(timeout=_ms(step))


async def _type(page: Page, step: Step) -> None:
    await _fill(page, step, step.text)


async def _fill(page: Page, step: Step, text: str) -> None:
    await page.locator(f"css={step.type}").first.fill(text, timeout=_ms(step))


async def _select(page: Page, step: Step) -> None:
    await page.locator(f"css={step.select}").first.select_option(step.value, timeout=_ms(step))


async def _scroll(page: Page, step: Step) -> None:
    """Down to the end of the page and of its boxes, so many times, until nothing new comes."""
    for _ in range(step.scroll):
        for _ in range(_PARTS):
            height, moved = await page.evaluate(_SCROLL_PART)
            if not moved:
                break
            await asyncio.sleep(_PART_S)
        if not await _grows(page, _MORE_HEIGHT, height, min(GROW_S, seconds(step.timeout)), polling=200):
            return


async def _wait(page: Page, step: Step) -> None:
    await page.wait_for_selector(f"css={step.wait}", state="attached", timeout=_ms(step))


async def _pause(page: Page, step: Step) -> None:
    await asyncio.sleep(seconds(step.pause))


async def _more(page: Page, step: Step) -> None:
    """The first click has to find its element; later the element may be gone, or bring nothing new."""
    button = page.locator(f"css={step.more}").first
    for number in range(step.max):
        before = await page.evaluate(_ELEMENTS)
        try:
            await button.click(timeout=_ms(step) if number == 0 else min(_ms(step), GROW_S * 1000))
        except PlaywrightTimeout:
            if number == 0:
                raise
            return
        if not await _grows(page, _MORE_ELEMENTS, before, seconds(step.timeout)):
            return


async def _grows(
    page: Page, condition: str, before: int, timeout_s: float, polling: float | Literal["raf"] = "raf"
) -> bool:
    """Whether the condition holds in time; `polling`: milliseconds between two looks, or at each frame."""
    try:
        await page.wait_for_function(condition, arg=before, timeout=timeout_s * 1000, polling=polling)
    except PlaywrightTimeout:
        return False
    return True


ACTIONS: dict[str, Callable[[Page, Step], Awaitable[None]]] = {
    "click": _click,
    "type": _type,
    "select": _select,
    "scroll": _scroll,
    "wait": _wait,
    "pause": _pause,
    "more": _more,
}
