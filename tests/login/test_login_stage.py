"""Logins: which requests wait for them, and when a login is repeated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from nephila.downloader.http.contract import HttpRequest, HttpResponse
from nephila.downloader.middleware.job_login import JobLogin
from nephila.downloader.middleware.secrets import SecretError, from_environment
from nephila.kernel.documents.job_schema import Politeness
from nephila.kernel.documents.login_schema import Login, LoginField
from nephila.kernel.messages import FetchResult
from nephila.kernel.topics import JOBS
from nephila_login.login_form import read_login_page
from nephila_login.site_login import PAUSES_S

from tests.downloader.downloader_room import Room, answer
from tests.jobs import crawl_job

FORM = (
    b"<form action=/search><input name=q></form><form method=POST action=/session>"
    b'<input type=hidden name=csrf value="a&amp;b"><input name=user><input name=pw type=password>'
    b"<input type=checkbox name=keep><button name=go value=1>Log in</button></form>"
)
LOGIN = Login("http://a.test/login", [LoginField("user", "me"), LoginField("pw", env="NEPHILA_SECRET_PW")])


class Site:
    """A site with a login: its response to each request, and the requests it received."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.http_requests: list[HttpRequest] = []
        self.session = "s1"
        self.password = "s3cret"  # noqa: S105
        self.closed = False
        """It refuses all sessions."""

    def __call__(self, http_request: HttpRequest) -> HttpResponse:
        """The answer to one order."""
        self.http_requests.append(http_request)
        target = http_request.target
        if target.path == "/login":
            return answer(200, FORM, set_cookie="pre=1; path=/")
        if target.path == "/session":
            sent = parse_qs((http_request.body or b"").decode())
            if (
                sent.get("pw") != [self.password]
                or sent.get("csrf") != ["a&b"]
                or "pre=1" not in http_request.own_headers()["Cookie"]
            ):
                return answer(200, FORM)
            return answer(302, location="/home", set_cookie=f"sid={self.session}; Path=/; Domain=a.test")
        inside = f"sid={self.session}" in http_request.own_headers().get("Cookie", "") and not self.closed
        if target.path == "/forbidden" or not inside:
            return answer(302, location="/login?next=x")
        return answer(200, b"<p>inside", content_type="text/html")

    async def run(self) -> None:
        """Answer requests until there are none."""
        fetches = self.room.fetcher.fetches
        for _ in range(200):
            await self.room.settle()
            while fetches:
                fetch = fetches.pop(0)
                if not fetch.aborted:
                    fetch.on_done(self(fetch.request))
            self.room.clock.advance(1)

    @property
    def asked(self) -> list[str]:
        """Method and path of every request."""
        return [
            f"{'GET' if http_request.body is None else 'POST'} {http_request.target.path}"
            for http_request in self.http_requests
        ]


async def logged_in(monkeypatch: pytest.MonkeyPatch, login: Login = LOGIN, **settings: Any) -> tuple[Room, Site]:
    """A downloader whose job `j` logs in."""
    monkeypatch.setenv("NEPHILA_SECRET_PW", "s3cret")
    room = Room(**settings)
    await room.downloader.start()
    room.bus.publish(JOBS, 0, crawl_job(uid="j", login=login, politeness=Politeness(delay="1s")))
    return room, Site(room)


async def test_the_first_page_waits_for_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """Form, post, redirect, then the page; the second page needs no login, nor does another host of the site."""
    room, site = await logged_in(monkeypatch)
    room.request("http://a.test/1", url_key=b"1" * 16)
    await site.run()
    room.request("http://a.test/2", url_key=b"2" * 16)
    room.request("http://www.a.test/3", url_key=b"3" * 16)
    await site.run()
    assert site.asked == ["GET /login", "POST /session", "GET /home", "GET /1", "GET /2", "GET /3"]
    assert [page.url for page in room.pages] == ["http://a.test/1", "http://a.test/2", "http://www.a.test/3"]
    assert parse_qs((site.http_requests[1].body or b"").decode(), keep_blank_values=True) == {
        "csrf": ["a&b"],
        "user": ["me"],
        "pw": ["s3cret"],
        "go": ["1"],
    }
    assert room.downloader.in_flight == 0


async def test_neither_password_nor_cookies_leave_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another site's page needs no login and gets no cookie; nor does another job."""
    room, site = await logged_in(monkeypatch)
    room.request("http://a.test/1")
    await site.run()
    del site.http_requests[:]
    room.request("http://evil.test/", host="evil.test")
    room.request("http://nota.test/", host="nota.test")
    room.request("http://a.test/1", job="other")
    await site.run()
    assert [http_request.own_headers() for http_request in site.http_requests] == [{}, {}, {}]
    assert all(http_request.body is None for http_request in site.http_requests)


async def test_a_login_form_that_leads_elsewhere_gets_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """A form whose action is another site's ends the URL as failed(login), and nothing is posted."""
    room, site = await logged_in(monkeypatch)
    monkeypatch.setattr("test_login_stage.FORM", FORM.replace(b"/session", b"http://evil.test/steal"))
    room.request("http://a.test/1")
    await site.run()
    assert site.asked == ["GET /login"]
    assert (room.outcomes[0].result, room.outcomes[0].reason) == (FetchResult.FAILED, "login")
    assert "another site, evil.test" in room.outcomes[0].detail


async def test_wrong_credentials_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An account is not locked by a crawler: all URLs of the site end as failed(login) until the job changes."""
    room, site = await logged_in(monkeypatch)
    site.password = "another"  # noqa: S105
    for number in range(3):
        room.request(f"http://a.test/{number}", url_key=bytes([number]) * 16)
    await site.run()
    assert site.asked.count("POST /session") == 1
    assert [one.reason for one in room.outcomes] == ["login"] * 3
    assert all(one.started_at for one in room.outcomes[:1])
    assert "s3cret" not in "".join(one.detail for one in room.outcomes)
    site.password = "s3cret"  # noqa: S105
    login = Login("http://a.test/login", LOGIN.fields, check="inside")
    room.bus.publish(JOBS, 0, crawl_job(uid="j", generation=2, login=login))
    room.request("http://a.test/again")
    await site.run()
    assert [page.url for page in room.pages] == ["http://a.test/again"]


@pytest.mark.parametrize(
    "captcha",
    [
        b"<title>One step</title><form><div class=g-recaptcha data-sitekey=x></div><button>go</button></form>",
        b"<title>Just a moment...</title><script>window._cf_chl_opt = {}</script><p>Checking",
        b"<p>Type the letters</p><form action=/solve><img src=/captcha.png><input name=captcha_text></form>",
    ],
)
async def test_a_captcha_as_the_answer_of_a_login_is_a_refusal(monkeypatch: pytest.MonkeyPatch, captcha: bytes) -> None:
    """Nothing of the site is fetched, and the reason says what came."""
    room, site = await logged_in(monkeypatch)
    monkeypatch.setattr(
        Site,
        "__call__",
        lambda self, request: (
            self.http_requests.append(request) or answer(200, FORM if request.body is None else captcha)
        ),
    )
    for number in range(2):
        room.request(f"http://a.test/{number}", url_key=bytes([number]) * 16)
        await site.run()
    assert [(one.result, one.reason) for one in room.outcomes] == [(FetchResult.FAILED, "login")] * 2
    assert "is a captcha" in room.outcomes[0].detail
    assert site.asked == ["GET /login", "POST /session"]
    assert room.pages == []


async def test_a_first_page_that_leads_to_the_login_again_shows_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer looked well and had no session. No page is stored, nor the login page; the account is tried once."""
    room, site = await logged_in(monkeypatch)
    plain = Site.__call__
    monkeypatch.setattr(
        Site, "__call__", lambda self, sent: plain(self, sent) if sent.body is None else answer(200, b"<p>Thank you")
    )
    site.closed = True
    for number in range(3):
        room.request(f"http://a.test/{number}", url_key=bytes([number]) * 16)
        await site.run()
    assert [(one.result, one.reason) for one in room.outcomes] == [(FetchResult.FAILED, "login")] * 3
    assert "leads to the login again" in room.outcomes[0].detail
    site_requests = [one.target.path for one in site.http_requests]
    assert site_requests == ["/login", "/0"], "the answer to the login is not noted"


async def test_a_login_that_check_has_shown_survives_a_forbidden_first_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other pages are fetched; the forbidden one keeps its redirect."""
    login = Login("http://a.test/login", LOGIN.fields, check="inside")
    room, site = await logged_in(monkeypatch, login)
    for _ in range(2):
        room.request("http://a.test/forbidden", url_key=b"f" * 16)
        await site.run()
    assert room.outcomes[-1].result == FetchResult.REDIRECT
    room.request("http://a.test/1", url_key=b"1" * 16)
    await site.run()
    assert room.pages[-1].url == "http://a.test/1"


def rendered(page_url: str = "http://a.test/1", unauthorized: int = 0) -> HttpResponse:
    """A page of a browser."""
    response = answer(200, b"<p>undefined", content_type="text/html")
    response.rendered, response.page_url, response.unauthorized = True, page_url, unauthorized
    return response


@pytest.mark.parametrize(
    ("response", "end"),
    [
        (lambda: rendered(unauthorized=401), "login"),
        (lambda: rendered(unauthorized=403), ""),
        (lambda: rendered("http://a.test/login?next=1"), "login"),
    ],
)
async def test_scripts_that_get_401_or_403_show_a_lost_session(
    monkeypatch: pytest.MonkeyPatch, response: Callable[[], HttpResponse], end: str
) -> None:
    """The page is given back for a login. In the new session it fails, but for 403, which a page may well have."""
    room, site = await logged_in(monkeypatch, Login("http://a.test/login", LOGIN.fields, check="inside"))
    room.request("http://a.test/0")
    await site.run()
    plain = Site.__call__
    monkeypatch.setattr(
        Site, "__call__", lambda self, sent: response() if sent.target.path == "/1" else plain(self, sent)
    )
    room.request("http://a.test/1", url_key=b"1" * 16)
    await site.run()
    assert (room.outcomes[-1].result, room.outcomes[-1].reason) == (FetchResult.UNSPECIFIED, "stale")
    room.request("http://a.test/1", url_key=b"1" * 16, attempt=2)
    await site.run()
    assert site.asked.count("POST /session") == 2
    assert room.outcomes[-1].reason == end


async def test_a_lost_session_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request redirected to the login is given back without an attempt counted; then comes a login."""
    room, site = await logged_in(monkeypatch)
    room.request("http://a.test/1")
    await site.run()
    site.session = "s2"
    room.request("http://a.test/2")
    await site.run()
    outcome = room.outcomes[-1]
    assert (outcome.result, outcome.reason, outcome.location) == (FetchResult.UNSPECIFIED, "stale", "")
    assert outcome.started_at > 0
    room.request("http://a.test/2", attempt=2)
    await site.run()
    assert room.pages[-1].url == "http://a.test/2"
    assert site.asked.count("POST /session") == 2


async def test_two_members_have_a_session_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each logs in once, and a session that ends at one of them costs the other nothing."""
    first, site = await logged_in(monkeypatch)
    second, other = await logged_in(monkeypatch)
    other.session = "s-second"
    for room, own in ((first, site), (second, other)):
        room.request("http://a.test/1")
        await own.run()
    site.session = "renewed"
    for _ in range(2):
        for room, own in ((first, site), (second, other)):
            room.request("http://a.test/2")
            await own.run()
    assert (site.asked.count("POST /session"), other.asked.count("POST /session")) == (2, 1)
    assert first.pages[-1].url == second.pages[-1].url == "http://a.test/2"


async def test_a_session_of_a_few_pages_is_renewed_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it is younger than a minute; other pages may come between the renewal and its URL."""
    room, site = await logged_in(monkeypatch)
    monkeypatch.setattr(room.clock, "advance", lambda seconds: room.clock.run_due())
    login = Login("http://a.test/login", LOGIN.fields, check="inside")
    room.bus.publish(JOBS, 0, crawl_job(uid="j", generation=2, login=login))
    for number in range(6):
        for name in (f"{number}a", f"{number}b", f"{number}c"):
            url = {"url": f"http://a.test/{name}", "url_key": name.encode() * 8}
            room.request(**url)
            await site.run()
            if room.outcomes[-1].reason == "stale":
                room.request(**url)
                await site.run()
            assert room.pages[-1].url == url["url"]
        site.session = f"session{number}"
    assert site.asked.count("POST /session") == 6


async def test_a_login_that_is_not_renewed_pauses_its_site(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its requests are given back with the rest of the pause; after the last try they fail. Other sites continue."""
    room, site = await logged_in(monkeypatch)
    room.request("http://a.test/1")
    await site.run()
    site.session, site.password = "s2", "changed"
    room.request("http://a.test/2")
    await site.run()
    assert room.outcomes[-1].reason == "stale"
    for tries in range(1, len(PAUSES_S) + 1):
        room.request("http://a.test/2")
        room.request("http://a.test/3", url_key=b"3" * 16)
        room.request("http://b.test/", url_key=b"b" * 16)
        await site.run()
        *_, first, second = [one for one in room.outcomes if one.host == "a.test"]
        for one in (first, second):
            assert (one.result, one.reason, one.started_at) == (FetchResult.UNSPECIFIED, "login", 0.0)
            assert 0 < one.retry_after_s <= PAUSES_S[tries - 1]
        assert sum(one.host == "b.test" for one in room.outcomes) == tries
        assert site.asked.count("POST /session") == 1 + tries
        room.clock.advance(PAUSES_S[tries - 1])
    assert "its site pauses 60 s" in caplog.text
    room.request("http://a.test/2")
    await site.run()
    assert (room.outcomes[-1].result, room.outcomes[-1].reason) == (FetchResult.FAILED, "login")
    assert "is not renewed after 4 tries" in room.outcomes[-1].detail
    room.request("http://a.test/4")
    await site.run()
    assert site.asked.count("POST /session") == 5


async def test_a_pause_ends_with_the_first_login_that_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The site is fetched again, and the tries are counted from the start."""
    room, site = await logged_in(monkeypatch)
    for _ in range(3):
        site.password = "s3cret"  # noqa: S105
        room.request("http://a.test/1")
        await site.run()
        assert room.pages[-1].url == "http://a.test/1"
        site.session += "x"
        site.password = "down"  # noqa: S105
        for _ in range(3):
            room.request("http://a.test/1")
            await site.run()
            room.clock.advance(PAUSES_S[-1])
        assert room.outcomes[-1].reason == "login"


async def test_a_changed_job_cancels_the_login_of_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that waits for the old login waits for the new one instead."""
    room, site = await logged_in(monkeypatch)
    room.request("http://a.test/1")
    await room.settle()
    (old,) = room.fetcher.fetches
    login = Login("http://a.test/login", LOGIN.fields, check="inside")
    room.bus.publish(JOBS, 0, crawl_job(uid="j", generation=2, login=login))
    await room.settle()
    assert old.aborted
    await site.run()
    assert site.asked == ["GET /login", "POST /session", "GET /home", "GET /1"]
    assert [page.url for page in room.pages] == ["http://a.test/1"]


async def test_requests_that_are_aborted_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request without a response, such as one of a revoked partition, is removed when newer ones come."""
    monkeypatch.setattr("nephila_login.site_login.MAX_SENT", 10)
    room, site = await logged_in(monkeypatch, per_host=0, per_address=0)
    room.request("http://a.test/1")
    await site.run()
    for number in range(50):
        room.request(f"http://a.test/{number}", url_key=number.to_bytes(16, "big"))
    await room.settle()
    login = room.downloader.chain.find(JobLogin).login
    assert len(login._sessions["j"].sent) == 10


@pytest.mark.parametrize("answer_of_witness", [302, 401])
async def test_a_renewal_that_an_unknown_captcha_answers_is_refused(
    monkeypatch: pytest.MonkeyPatch, answer_of_witness: int
) -> None:
    """No page ends as a redirect, the login page is no content, and no further login is sent."""
    room, site = await logged_in(monkeypatch)
    room.request("http://a.test/1")
    await site.run()
    usual = site.__call__

    def captcha(http_request: HttpRequest) -> HttpResponse:
        if http_request.target.path == "/session":
            site.http_requests.append(http_request)
            return answer(200, b"<form>Which of these pictures has a bus? <input name=a></form>")
        if http_request.target.path == "/1" and answer_of_witness == 401:
            return answer(401)
        return usual(http_request)

    monkeypatch.setattr(Site, "__call__", lambda _, http_request: captcha(http_request))
    site.session = "lost"
    for number in range(2, 6):
        for _ in range(5):
            room.request(f"http://a.test/{number}", url_key=bytes([number]) * 16)
            await site.run()
            if room.outcomes[-1].reason != "stale":
                break
        outcome = room.outcomes[-1]
        assert (outcome.result, outcome.reason) == (FetchResult.FAILED, "login")
        assert "captcha" in outcome.detail
    assert site.asked.count("POST /session") == 2
    assert room.pages[-1].url == "http://a.test/1"


async def test_a_page_that_is_gone_refuses_no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page that an earlier session has served answers 404 now: the next ones are served."""
    room, site = await logged_in(monkeypatch)
    room.request("http://a.test/1")
    await site.run()
    usual = site.__call__
    monkeypatch.setattr(
        Site, "__call__", lambda _, request: answer(404) if request.target.path == "/1" else usual(request)
    )
    for url, end in (("/forbidden", FetchResult.REDIRECT), ("/2", FetchResult.FETCHED)):
        for _ in range(3):
            room.request(f"http://a.test{url}", url_key=url.encode()[:2] * 8)
            await site.run()
            if room.outcomes[-1].reason != "stale":
                break
        assert room.outcomes[-1].result == end


async def test_renewals_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that always lead to the login cost one renewal each, and five of them are the end of it."""
    room, site = await logged_in(monkeypatch)
    room.request("http://a.test/1")
    await site.run()
    for number in range(12):
        for _ in range(3):
            room.request("http://a.test/forbidden", url_key=bytes([number]) * 16)
            await site.run()
            if room.outcomes[-1].reason != "stale":
                break
        assert room.outcomes[-1].result == FetchResult.REDIRECT
    assert site.asked.count("POST /session") == 1 + 5


async def test_a_first_login_that_meets_a_dead_network_pauses_its_site(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its URLs are given back for each pause, without a counted attempt. Then they fail with the network's reason."""
    room, site = await logged_in(monkeypatch)
    for pause_s in PAUSES_S:
        room.request("http://a.test/1")
        await room.settle()
        room.fetcher.fetches.pop(0).on_done(answer(reason="timeout", detail="no answer"))
        await room.settle()
        room.request("http://a.test/2", url_key=b"2" * 16)
        await room.settle()
        assert room.fetcher.fetches == []
        for one in room.outcomes[-2:]:
            assert (one.result, one.reason, one.started_at) == (FetchResult.UNSPECIFIED, "login", 0.0)
            assert 0 < one.retry_after_s <= pause_s
        room.clock.advance(pause_s)
    assert "the login at a.test fails: login at a.test: no answer; its site pauses 60 s" in caplog.text
    room.request("http://a.test/1")
    await room.settle()
    room.fetcher.fetches.pop(0).on_done(answer(reason="timeout", detail="no answer"))
    await room.settle()
    assert (room.outcomes[-1].result, room.outcomes[-1].reason) == (FetchResult.FAILED, "timeout")
    room.request("http://a.test/2", url_key=b"2" * 16)
    await room.settle()
    assert (room.outcomes[-1].reason, room.fetcher.fetches) == ("timeout", [])
    room.clock.advance(31)
    room.request("http://a.test/3")
    await site.run()
    assert [page.url for page in room.pages] == ["http://a.test/3"]


@pytest.mark.parametrize("charset", ["undefined", "idna", "base64", "no-such-charset"])
async def test_a_login_page_in_an_impossible_charset_is_read_as_utf_8(
    monkeypatch: pytest.MonkeyPatch, charset: str
) -> None:
    """Python has codecs that raise for each text."""
    room, site = await logged_in(monkeypatch)
    room.request("http://a.test/1")
    await room.settle()
    form = answer(200, FORM, set_cookie="pre=1; path=/")
    form.charset = charset
    room.fetcher.fetches.pop(0).on_done(form)
    await site.run()
    assert [page.url for page in room.pages] == ["http://a.test/1"]


async def test_a_login_with_an_unexpected_error_is_not_repeated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The URLs end with a reason, and the site gets no request for each of them."""
    room, _ = await logged_in(monkeypatch)
    monkeypatch.setattr("nephila_login.site_login.read_login_page", lambda page, encoding: 1 / 0)
    room.request("http://a.test/1")
    await room.settle()
    room.fetcher.fetches.pop(0).on_done(answer(200, FORM))
    await room.settle()
    room.clock.advance(5)
    await room.settle()
    room.request("http://a.test/2")
    await room.settle()
    assert [one.reason for one in room.outcomes] == ["internal", "internal"]
    assert room.fetcher.fetches == []


async def test_a_request_that_is_given_back_leaves_the_login_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drain during a login: the outcome comes once, nothing hangs."""
    room, site = await logged_in(monkeypatch)
    room.request("http://a.test/1")
    await room.settle()
    await room.downloader.close()
    await site.run()
    assert [one.result for one in room.outcomes] == [FetchResult.UNSPECIFIED]
    assert room.downloader.in_flight == 0


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (LoginField("pw", env="NEPHILA_SECRET_NONE"), "is not set"),
        (LoginField("pw", file="../pw"), "outside the secrets directory"),
        (LoginField("pw", file="none"), "No such file"),
    ],
)
async def test_a_job_names_no_other_secrets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, field: LoginField, words: str
) -> None:
    """Variables of one prefix and files of one directory: who may submit a job must not read all others."""
    (tmp_path / "pw").write_text("secret")
    (tmp_path / "inside").mkdir()
    login = Login("http://a.test/login", [LoginField("user", "me"), field])
    room, site = await logged_in(monkeypatch, login, secrets=str(tmp_path / "inside"))
    room.request("http://a.test/1")
    await site.run()
    assert site.asked == ["GET /login"]
    assert words in room.outcomes[0].detail


def test_a_variable_of_another_prefix_is_no_secret() -> None:
    """Also where a document that names it was not checked."""
    with pytest.raises(SecretError, match="does not begin with NEPHILA_SECRET_"):
        from_environment("HOME")


async def test_a_secret_of_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its line end is no part of it."""
    (tmp_path / "pw").write_text("s3cret\n")
    login = Login("http://a.test/login", [LoginField("user", "me"), LoginField("pw", file="pw")])
    room, site = await logged_in(monkeypatch, login, secrets=str(tmp_path))
    room.request("http://a.test/1")
    await site.run()
    assert len(room.pages) == 1


def test_the_form_is_the_one_with_the_fields() -> None:
    """Of several the one with a password; a page without is none; rubbish breaks nothing."""
    form = read_login_page(FORM.decode()).login_form(["user", "pw"])
    assert form is not None
    assert (form.action, form.method) == ("/session", "post")
    assert read_login_page(FORM.decode()).login_form(["email"]) is None
    for page in ("<form ", '<form a="', "<form><input name='user", "<!--", "<form><input name=a>", "<form a=b "):
        assert read_login_page(page * 10_000).login_form(["user"]) is None
