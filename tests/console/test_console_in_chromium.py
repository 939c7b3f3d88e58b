"""The console in Chromium: a way from the one-time address to a changed job, by keyboard, and on a small screen."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from nephila_control.http.server import tcp_server
from nephila_control.job_types import JobName

from tests.console.console_rig import console
from tests.e2e.web import NEPHILA

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("chromium")]
HOSTILE = (
    "</title><script>document.title='canary'</script>"
    "<img src=http://foreign.test/x onerror=\"document.title='canary'\">"
)
SCREENS = ("", "jobs", "jobs/new", "jobs/news", "jobs/news/edit", "pages", "page?url=http%3A%2F%2Fa.test%2F7",
           "page?url=http%3A%2F%2Fa.test%2F7&tab=links", "hosts", "hosts/a.test", "items", "sites", "rules",
           "items?field=price&test=above&value=1", "jobs?select=all", "bulk?do=weight&job=news", "jobs/news?tab=pages",
           "jobs/news?tab=hosts", "jobs/news?tab=errors", "jobs/news?tab=document",
           "system", "audit")  # fmt: skip
SMALL_TEXT = """() => [...document.querySelectorAll("body *")].filter((element) =>
  element.checkVisibility() && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) &&
  parseFloat(getComputedStyle(element).fontSize) *
    (element.ownerSVGElement ? element.ownerSVGElement.getScreenCTM().a : 1) < 11
).map((element) => element.outerHTML.slice(0, 120))"""
"""Elements whose text is less than 11 pixels high on the screen."""
NARROW_NAMES = """() => [...document.querySelectorAll("main table.list tbody tr > th[scope=row]")]
  .filter((cell) => cell.getBoundingClientRect().width < 128).map((cell) => cell.outerHTML.slice(0, 120))"""
"""Names of rows that have less than 8 rem."""

TOUCHING = """() => {
  const pairs = [], boxes = "main, main [data-part], main section, main .head, main .actions, main form";
  for (const box of document.querySelectorAll(boxes)) {
    const parts = [...box.children].filter((part) => part.checkVisibility() && part.getBoundingClientRect().height > 0);
    for (let i = 1; i < parts.length; i++) {
      const before = parts[i - 1].getBoundingClientRect(), after = parts[i].getBoundingClientRect();
      const below = after.top - before.bottom, beside = after.left - before.right;
      if ((below < -1 ? beside : below) < 1) pairs.push(parts[i - 1].outerHTML + parts[i].outerHTML);
    }
  }
  return pairs;
}"""
"""Neighbours without a gap."""


@asynccontextmanager
async def chromium_page(path: str, **options: Any) -> AsyncIterator[Any]:
    """A page of Chromium, and what it complained about and asked other hosts for."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = await (await browser.new_context(**options)).new_page()
        page.set_default_timeout(60_000)
        page.complaints, page.foreign = [], []
        page.on("console", lambda one: page.complaints.append(one.text) if one.type == "error" else None)
        page.on("pageerror", lambda one: page.complaints.append(str(one)))
        page.on("request", lambda one: "127.0.0.1" in one.url or page.foreign.append(one.url))
        yield page
        await browser.close()


async def test_no_text_of_a_stranger_runs_and_no_other_host_is_asked(tmp_path, chromium):
    """On any screen, in the dark and on a screen of 375 pixels, where nothing is wider than the screen."""
    async with console(tmp_path, HOSTILE) as rig:
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        base = f"http://127.0.0.1:{server.port}/console/"
        small = {"width": 375, "height": 700}
        async with chromium_page(chromium, viewport=small, color_scheme="dark") as page:
            await page.goto(f"{base}login?token={rig.access.sessions.invite()}")
            for screen in SCREENS:
                await page.goto(base + screen)
                assert await page.title() != "canary"
                assert await page.evaluate("document.documentElement.scrollWidth") <= 375, screen
                assert await page.evaluate("document.querySelectorAll('main script, main img').length") == 0
                assert await page.evaluate(SMALL_TEXT) == [], screen
                assert await page.evaluate(NARROW_NAMES) == [], screen
            assert page.complaints == []
            assert page.foreign == []
        await server.close()


@pytest.mark.parametrize("width", [375, 1440])
async def test_texts_can_be_read_and_nothing_touches_its_neighbour(tmp_path, chromium, width):
    """Texts have 11 pixels, names of rows 8 rem, and neighbours a gap."""
    async with console(tmp_path) as rig:
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        base = f"http://127.0.0.1:{server.port}/console/"
        async with chromium_page(chromium, viewport={"width": width, "height": 900}) as page:
            await page.goto(f"{base}login?token={rig.access.sessions.invite()}")
            for screen in SCREENS:
                await page.goto(base + screen)
                for fault in (SMALL_TEXT, NARROW_NAMES, TOUCHING):
                    assert await page.evaluate(fault) == [], screen
        await server.close()


async def test_a_page_recovers_from_a_restart_of_its_server(tmp_path, chromium):
    """It says since when its figures are old, and its session goes on."""
    async with console(tmp_path) as rig:
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        port = server.port
        async with chromium_page(chromium) as page:
            await page.goto(f"http://127.0.0.1:{port}/console/login?token={rig.access.sessions.invite()}")
            stale = page.locator("#stale")
            await server.close()
            await stale.wait_for(state="visible")
            server = tcp_server(rig.application, "127.0.0.1", port, "--listen")
            await server.open()
            await stale.wait_for(state="hidden")
            assert "/login" not in page.url
        await server.close()


async def test_a_page_notices_a_server_that_hangs(tmp_path, chromium, monkeypatch):
    """The connection stays and brings nothing."""
    monkeypatch.setattr("nephila_console.live.EVERY_S", 3600.0)
    async with console(tmp_path) as rig:
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        async with chromium_page(chromium) as page:
            await page.clock.install()
            async with page.expect_request("**/console/live?**"):
                await page.goto(f"http://127.0.0.1:{server.port}/console/login?token={rig.access.sessions.invite()}")
            await page.clock.run_for(15_000)
            assert await page.locator("#stale").is_hidden()
            for _ in range(6):  # the silence begins with the first event, which may come late
                await page.clock.run_for(10_000)
                if await page.locator("#stale").is_visible():
                    break
            assert await page.locator("#stale").is_visible()
            async with page.expect_request("**/console/live?**"):
                await page.clock.run_for(5_000)
        await server.close()


def test_a_job_is_created_and_changed_by_keyboard(tmp_path, chromium):
    """Key / finds it; a mistake in its document is selected by its line; the job is deleted after a question."""

    async def work(address: str) -> None:
        async with chromium_page(chromium) as page:
            await journey(page, address)

    with subprocess.Popen([*NEPHILA, "up", "--out", "o"], cwd=tmp_path, stdout=subprocess.PIPE) as up:
        assert up.stdout is not None
        up.stdout.readline()
        command = [*NEPHILA, "console", "--out", "o", "--no-browser"]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as served:
            assert served.stdout is not None
            try:
                asyncio.run(work(served.stdout.readline().strip()))
            finally:
                served.terminate()
                up.terminate()


async def journey(page: Any, address: str) -> None:
    """From an empty program to a job that is deleted."""
    await page.goto(address)
    assert "token" not in page.url
    await page.get_by_role("link", name="Create a job").click()
    await page.wait_for_function("document.activeElement.id === 'url'")
    await page.keyboard.type("http://127.0.0.1:9/")
    await page.get_by_label("Pages at most").fill("5")
    await page.get_by_label("Name", exact=True).fill("mine")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/jobs/mine?notice=created")
    await page.keyboard.press("/")
    await page.keyboard.type("mine")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/console/jobs/mine")
    await page.get_by_role("link", name="Edit").click()
    text = page.locator("#text")
    wrong = (await text.input_value()).replace("spec:\n", "spec:\n  maxpages: 5\n")
    await text.fill(wrong)
    await page.get_by_role("button", name="Save").click()
    mark = page.locator("[data-line]").first
    assert "line" in await mark.inner_text()
    await mark.click()
    selected = (
        "document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionEnd)"
    )
    assert await page.evaluate(selected) == "  maxpages: 5"
    await text.fill(wrong.replace("  maxpages: 5\n", "  language: de\n"))
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url("**/jobs/mine?notice=changed")
    await page.get_by_role("link", name="Delete job").click()
    await page.get_by_role("button", name="Delete the job").click()
    await page.wait_for_url("**/jobs?notice=deleted")
    assert page.foreign == []


async def test_jobs_are_ticked_and_resumed_by_keyboard_and_fresh_figures_leave_the_ticks(tmp_path, chromium):
    async with console(tmp_path) as rig:
        server = tcp_server(rig.application, "127.0.0.1", 0, "--listen")
        await server.open()
        base = f"http://127.0.0.1:{server.port}/console/"
        async with chromium_page(chromium) as page:
            await page.goto(f"{base}login?token={rig.access.sessions.invite()}")
            await page.goto(f"{base}jobs")
            await page.focus("input[name=job]")
            await page.keyboard.press("Space")
            await page.evaluate("document.activeElement.blur()")
            async with page.expect_event("console", lambda line: line.text == "part", timeout=60_000):
                await page.evaluate(
                    """() => new EventSource("/console/live?at=" + encodeURIComponent(location.pathname))
                    .addEventListener("part", () => console.log("part"))"""
                )
            assert await page.locator("input[name=job]:checked").count() == 1
            await page.focus("button[value=resume]")
            await page.keyboard.press("Enter")
            await page.wait_for_selector("text=This will be done")
            await page.focus("main form[method=post] button")
            await page.keyboard.press("Enter")
            await page.wait_for_selector("text=1 job: done")
        await server.close()
    assert (await rig.control.get_job(JobName(name="news"))).status.state != "paused"
