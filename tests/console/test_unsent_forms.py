"""A form that is sent with an ended session is sent after the login, and changes nothing before."""

from __future__ import annotations

import html
import re

import pytest
from nephila_control.job_types import JobName, ListJobs

from tests.console.console_rig import TOKEN, Browser, console

NEW = {"url": "http://a.test/", "name": "late", "pages": "5"}


@pytest.fixture
async def rig(tmp_path):
    async with console(tmp_path) as opened:
        yield opened


def hidden(text: str) -> dict[str, str]:
    """The hidden fields of a page."""
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', text)
    return {html.unescape(name): html.unescape(value) for name, value in fields}


async def jobs(rig) -> list[str]:
    return [job.name for job in (await rig.control.list_jobs(ListJobs())).jobs]


async def ended(rig) -> Browser:
    """A browser with a page whose session has ended."""
    browser = await rig.opened()
    await browser.get("/console/jobs/new")
    browser.cookies.clear()
    return browser


async def test_a_form_is_sent_after_the_login_by_a_token(rig):
    browser = await ended(rig)
    answer = await browser.post("/console/jobs", NEW)
    assert (answer.status_code, await jobs(rig)) == (401, ["news"])
    wrong = await browser.post("/console/login", {**hidden(answer.text), "token": "wrong"})
    assert wrong.status_code == 403
    again = await browser.post("/console/login", {**hidden(wrong.text), "token": TOKEN})
    assert (again.status_code, await jobs(rig)) == (200, ["news"])
    fields = hidden(again.text)
    assert {name: fields[name] for name in NEW} == NEW
    assert 'action="/console/jobs"' in again.text
    await browser.post("/console/jobs", fields)
    assert await jobs(rig) == ["late", "news"]


async def test_a_form_waits_for_a_login_in_another_tab(rig):
    """As by a one-time address, which carries no form."""
    browser = await ended(rig)
    kept = hidden((await browser.post("/console/jobs", NEW)).text)
    assert (await browser.post("/console/login", kept)).status_code == 200
    browser.cookies = (await rig.opened()).cookies
    fields = hidden((await browser.post("/console/login", kept)).text)
    await browser.post("/console/jobs", fields)
    assert await jobs(rig) == ["late", "news"]


async def test_a_form_of_another_session_is_sent_by_a_click_only(rig):
    browser = await rig.opened()
    await browser.get("/console/jobs/news")
    answer = await browser.post("/console/jobs/news/resume", {"csrf": "x" * 32})
    assert answer.status_code == 403
    assert (await rig.control.get_job(JobName(name="news"))).status.state == "paused"
    await browser.post("/console/jobs/news/resume", hidden(answer.text))
    assert (await rig.control.get_job(JobName(name="news"))).status.state != "paused"


@pytest.mark.parametrize("action", ["//evil.test/", "https://evil.test/console/", "javascript:x", "/api/v1/jobs"])
async def test_a_login_carries_no_form_to_another_place(rig, action):
    browser = rig.browser()
    answer = await browser.post("/console/login", {"unsent": action, "unsent.a": "<b>", "token": TOKEN})
    assert 'action="/console/"' in answer.text
    assert action not in answer.text
    assert "<b>" not in answer.text


async def test_a_form_of_another_site_is_not_carried(rig):
    answer = await rig.browser().post("/console/jobs", NEW, {"origin": "http://evil.test"})
    assert answer.status_code == 403
    assert "late" not in answer.text


async def test_a_logout_without_a_session_is_no_form_to_keep(rig):
    browser = rig.browser()
    await browser.post("/console/logout", {})
    assert browser.shown == "/console/login"
