"""Who may open the console, and what a page of another site can do: nothing."""

from __future__ import annotations

import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila_console.application import SCREENS
from nephila_console.sessions import IDLE_S, INVITATION_S, LONGEST_S, SESSIONS, Sessions
from nephila_control.access.caller import OWNER
from nephila_control.access.tries import MOST, WITHIN_S
from nephila_control.job_types import JobName

from tests.console.console_rig import HOST, TOKEN, console


@pytest.fixture
async def rig(tmp_path):
    """A console."""
    async with console(tmp_path) as found:
        yield found


async def test_without_a_session_only_the_login_page_is_shown(rig):
    """For every screen and every change."""
    for method, path, _ in SCREENS:
        browser = rig.browser()
        place = "/console" + path.replace("{name}", "news")
        answer = await (browser.get(place) if method == "GET" else browser.post(place, {}))
        assert browser.shown.partition("?")[0] == "/console/login" or answer.status_code == 401, place
        assert ">Log in</button>" in answer.text
        assert "news" not in answer.text.replace(place, "")
    assert (await rig.control.get_job(JobName(name="news"))).status.state == "paused"


async def test_a_one_time_address_opens_one_session(rig):
    """The cookie is not for script, not for other sites."""
    token = rig.access.sessions.invite()
    answer = await rig.browser()._request("GET", f"/console/login?token={token}", b"", {})
    assert answer.status_code == 200
    browser = rig.browser()
    used = await browser.get(f"/console/login?token={token}")
    assert used.status_code == 403
    assert not browser.cookies


async def test_the_cookie_comes_with_links_and_with_no_form_of_another_site(rig):
    """HttpOnly, SameSite=Lax, below /console, named after the port."""
    browser = rig.browser()
    seen = []
    send = browser._request

    async def noted(*args, **kwargs):
        answer = await send(*args, **kwargs)
        seen.append(answer)
        return answer

    browser._request = noted
    await browser.post("/console/login", {"token": TOKEN})
    assert list(browser.cookies) == ["nephila_8080"]
    from tests.control.http.asgi import AsgiClient

    body = f"token={TOKEN}".encode()
    headers = {"host": HOST, "content-type": "application/x-www-form-urlencoded"}
    answer = await AsgiClient(rig.application)._request("POST", "/console/login", body, headers)
    words = answer.headers["set-cookie"].lower()
    assert all(word in words for word in ("httponly", "samesite=lax", "path=/console"))


async def test_the_token_of_the_server_opens_a_session_by_a_form_only(rig):
    """In an address it would be in the history of the browser."""
    assert (await rig.browser().get(f"/console/login?token={TOKEN}")).status_code == 403
    browser = rig.browser()
    await browser.post("/console/login", {"token": TOKEN})
    assert browser.shown == "/console/"


async def test_wrong_tokens_are_limited(rig):
    """Then the right one has to wait as well."""
    browser = rig.browser()
    for _ in range(MOST):
        assert (await browser.post("/console/login", {"token": "wrong"})).status_code == 403
    answer = await browser.post("/console/login", {"token": TOKEN})
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    rig.clock.advance(WITHIN_S + 1)
    await browser.post("/console/login", {"token": TOKEN})
    assert browser.shown == "/console/"


@pytest.mark.parametrize("csrf", ["", "wrong", "ü"])
async def test_a_form_without_the_token_of_its_session_changes_nothing(rig, csrf):
    """Nor with that of another session."""
    browser = await rig.opened()
    await browser.get("/console/jobs/news")
    for action in ("resume", "delete", "edit", "pause"):
        answer = await browser.post(f"/console/jobs/news/{action}", {"csrf": csrf, "text": "x"})
        assert answer.status_code == 403
    other = await rig.opened()
    await other.get("/console/jobs/news")
    assert (await browser.post("/console/jobs/news/resume", {"csrf": other.csrf})).status_code == 403
    assert (await rig.control.get_job(JobName(name="news"))).status.state == "paused"


@pytest.mark.parametrize(
    "headers", [{"origin": "http://evil.test"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}]
)
async def test_a_form_of_another_site_is_refused(rig, headers):
    """Even with the right token, and at the login."""
    browser = await rig.opened()
    await browser.get("/console/jobs/news")
    assert (await browser.post("/console/jobs/news/resume", {}, headers)).status_code == 403
    assert (await browser.post("/console/login", {"token": TOKEN}, headers)).status_code == 403


async def test_a_body_that_is_no_form_is_refused(rig):
    """A page of another site may send text/plain without a question to the server."""
    browser = await rig.opened()
    answer = await browser.post("/console/jobs/news/resume", {}, {"content-type": "text/plain"})
    assert answer.status_code == 415
    answer = await browser.post("/console/jobs", {"text": "x" * (3 << 20)})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        *((one, True) for one in ("127.0.0.1:1", "localhost", "[::1]:8080", "10.0.0.7", "console.test:443")),
        *((one, False) for one in ("evil.test", "evil.test:8080", "127.0.0.1.evil.test", "", "a b", "[::1", "x:0")),
    ],
)
async def test_a_name_that_is_not_the_servers_is_refused(rig, host, allowed):
    """A foreign name that resolves to this address sees not even the login page."""
    browser = rig.browser()
    browser.host = host
    answer = await browser.get("/console/login")
    assert answer.status_code == (200 if allowed else 421)
    assert answer.headers["x-frame-options"] == "DENY"
    assert allowed or "<form" not in answer.text


async def test_logging_out_ends_the_session(rig):
    """A copy of the cookie is worth nothing then."""
    browser = await rig.opened()
    copy = rig.browser()
    copy.cookies = dict(browser.cookies)
    answer = await browser.post("/console/logout", {})
    assert browser.shown.partition("?")[0] == "/console/login", answer.text
    await copy.get("/console/")
    assert copy.shown.partition("?")[0] == "/console/login"


async def test_the_api_takes_no_session_and_the_console_no_bearer_token(rig):
    """A cookie on the API would need CSRF tokens there."""
    browser = await rig.opened()
    assert (await browser.get("/api/v1/jobs")).status_code == 401
    stranger = rig.browser()
    await stranger.get("/console/", {"authorization": f"Bearer {TOKEN}"})
    assert stranger.shown.partition("?")[0] == "/console/login"


def test_sessions_end():
    """When they are not used, and after some hours in any case; a page that loads itself is no use."""
    clock = ManualClock()
    sessions = Sessions(clock)
    opened = sessions.redeem(sessions.invite())
    clock.advance(IDLE_S - 1)
    assert sessions.find(opened, used=False) is not None
    clock.advance(2)
    assert sessions.find(opened) is None
    opened, begun = sessions.redeem(sessions.invite()), clock.monotonic()
    while clock.monotonic() < begun + LONGEST_S - IDLE_S / 2:
        assert sessions.find(opened) is not None
        clock.advance(IDLE_S / 2)
    clock.advance(IDLE_S / 2 + 1)
    assert sessions.find(opened) is None


def test_an_address_that_nobody_opened_is_void_after_an_hour():
    """As one that was opened."""
    clock = ManualClock()
    sessions = Sessions(clock)
    token = sessions.invite()
    clock.advance(INVITATION_S + 1)
    assert sessions.redeem(token) == ""
    assert sessions.redeem("") == ""
    assert sessions.find("") is None


def test_the_number_of_sessions_is_bounded():
    """The one that was idle longest gives way."""
    clock = ManualClock()
    sessions = Sessions(clock)
    first = sessions.open(OWNER, "invitation")
    for _ in range(SESSIONS):
        clock.advance(0.001)
        last = sessions.open(OWNER, "invitation")
    assert sessions.find(first) is None
    assert sessions.find(last) is not None
