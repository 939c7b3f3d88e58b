"""A link to a screen arrives there after the login, and nowhere else."""

from __future__ import annotations

import pytest
from nephila_console.gate import MAX_NEXT, local_path

from tests.console.console_rig import TOKEN, console


async def test_a_login_goes_on_to_the_screen_that_was_asked_for(tmp_path):
    async with console(tmp_path) as rig:
        browser = rig.browser()
        answer = await browser.get("/console/pages?outcome=failed&q=a+b")
        assert browser.shown.startswith("/console/login?next=")
        assert 'name="next" value="/console/pages?outcome=failed&amp;q=a+b"' in answer.text
        await browser.post("/console/login", {"token": "wrong", "next": "/console/hosts"})
        await browser.post("/console/login", {"token": TOKEN, "next": "/console/hosts"})
        assert browser.shown == "/console/hosts"


@pytest.mark.parametrize(
    "value",
    ["", "/", "//evil.test", "/\\evil.test", "\\\\evil.test", "https://evil.test/console/", "javascript:alert(1)",
     "/consoleevil", "/console/../../x\n", "/console//evil.test", "/console/\tx", "/console/\\evil", "/console/login",
     "/console/login?next=/console/", "/console/logout", "/console/oidc", " /console/hosts", "/console/h\xf6sts",
     "/console/" + MAX_NEXT * "a"],
)  # fmt: skip
def test_what_is_no_screen_leads_to_the_first_one(value):
    assert local_path(value) == "/console/"


@pytest.mark.parametrize(
    "value", ["/console", "/console/", "/console/jobs/news", "/console/page?url=http%3A%2F%2Fa.test%2F"]
)
def test_a_screen_with_its_query_is_kept(value):
    assert local_path(value) == value
