"""Login by an OpenID Connect provider, by a proxy, and by tokens of a role: who it is then, and what each may do."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import msgspec
import pytest
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import UsageError
from nephila_console.application import routes
from nephila_console.logins import Access
from nephila_console.oidc import LOGIN_S
from nephila_control import job_types, system_types
from nephila_control.access.access_file import AccessFile, Grant, Oidc, ProxyHeader, Token, callers, read_access
from nephila_control.access.authority import Authority
from nephila_control.access.live_access import LiveAccess
from nephila_control.http.application import application

from tests.console.console_rig import HOST, TOKEN, Browser, console
from tests.console.oidc_provider import CLIENT, SECRET, provider
from tests.control.http.asgi import AsgiClient

GRANTS = (Grant(group="crawl-admins", role="admin"), Grant(group="crawl-editors", role="editor", tenants=("acme",)))
LIES = (
    *("issuer", "audience", "one audience of two", "other party", "expired", "no end", "nonce", "no nonce"),
    *("no signature", "signed with the secret", "other key", "issuer of the document"),
)


@pytest.fixture
async def rig(tmp_path):
    """A console with its rows."""
    async with console(tmp_path) as found:
        yield found


def in_file(directory, found):
    """The access file of a server."""
    path = directory / "access.yaml"
    path.write_bytes(msgspec.json.encode(found))  # which is YAML
    return LiveAccess(str(path), "--api-access")


class Later(SystemClock):
    """The time of day, moved."""

    by = 0.0

    def now(self):
        return super().now() + self.by


@pytest.fixture
async def known(rig, tmp_path):
    """A provider, and a console that believes it."""
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    async with provider() as found:
        oidc = Oidc(
            issuer=found.url, client_id=CLIENT, client_secret_file=str(tmp_path / "secret"),
            public_url=f"http://{HOST}", grants=GRANTS,
        )  # fmt: skip
        clock = Later()
        access = Access(Authority(rig.control, ()), clock=clock, live=in_file(tmp_path, AccessFile(oidc=oidc)))
        yield found, Browser(application(None, beside=routes(access))), access, clock


async def begun(browser):
    """The provider's address, to which the browser is led."""
    client = AsgiClient(browser.application)
    answer = await client._request("GET", "/console/oidc", b"", {"host": browser.host})
    if answer.status_code != 303:
        return answer
    cookie = answer.headers["set-cookie"]
    assert all(word in cookie.lower() for word in ("httponly", "samesite=lax", "path=/console/oidc"))
    name, value = re.match(r"([^=]+)=([^;]*)", cookie).groups()
    browser.cookies[name] = value
    return answer.headers["location"]


async def back(browser, query):
    """The answer to what the provider sends the browser back with."""
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    path = f"/console/oidc/callback?{urlencode(query)}"
    answer = await AsgiClient(browser.application)._request("GET", path, b"", {"host": browser.host, "cookie": cookie})
    for name, value in answer.headers.items():
        if name == "set-cookie" and (found := re.match(r"(nephila_\d+)=([^;]+)", value)):
            browser.cookies[found[1]] = found[2]
    return answer


async def test_a_user_of_the_provider_logs_in_with_role_and_tenants(known):
    """By the first grant for a group; the way on comes from the console's own page."""
    found, browser, access, _ = known
    assert 'href="/console/oidc"' in (await browser.get("/console/login")).text
    answer = await back(browser, found.agree(await begun(browser)))
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/")
    (session,) = access.sessions._sessions.values()
    assert (session.caller.name, session.caller.role.name, set(session.caller.tenants)) == (
        "anna@acme.test", "EDITOR", {"acme"},
    )  # fmt: skip


async def test_an_address_that_is_not_verified_names_nobody(known):
    """The subject does: it is of the provider alone."""
    found, browser, access, _ = known
    found.claims["email_verified"] = False
    assert (await back(browser, found.agree(await begun(browser)))).status_code == 303
    assert [one.caller.name for one in access.sessions._sessions.values()] == ["42"]


@pytest.mark.parametrize("lie", LIES)
async def test_an_answer_that_is_not_for_this_login_opens_nothing(known, lie):
    """Each check of the standard, one by one."""
    found, browser, access, _ = known
    found.wrong = lie
    address = await begun(browser)
    if lie == "issuer of the document":
        assert address.status_code == 502
        return
    answer = await back(browser, found.agree(address))
    assert answer.status_code == 403, answer.text
    assert not access.sessions._sessions


async def test_another_browser_cannot_be_logged_in(known):
    """A page that sends a person to the callback with the attacker's code (login CSRF)."""
    found, browser, access, clock = known
    query = found.agree(await begun(browser))
    other = Browser(browser.application)
    assert (await back(other, query)).status_code == 403
    await begun(other)
    assert (await back(other, query)).status_code == 403
    assert (await back(browser, {**query, "state": "x"})).status_code == 403
    clock.by = LOGIN_S + 2
    assert (await back(browser, query)).status_code == 403
    assert not access.sessions._sessions


async def test_a_code_counts_once(known):
    """The provider refuses it again."""
    found, browser, _, _ = known
    query = found.agree(await begun(browser))
    assert (await back(browser, query)).status_code == 303
    assert (await back(browser, query)).status_code == 403


async def test_a_refusal_and_a_user_without_a_grant_are_told(known):
    """In words, escaped."""
    found, browser, access, _ = known
    query = found.agree(await begun(browser))
    answer = await back(browser, {"state": query["state"], "error": "access_denied", "error_description": "<b>no"})
    assert (answer.status_code, "<b>no" in answer.text, "access_denied" in answer.text) == (403, False, True)
    found.claims["groups"] = "readers"
    answer = await back(browser, found.agree(await begun(browser)))
    assert answer.status_code == 403
    assert "no grant" in answer.text
    assert not access.sessions._sessions


async def test_a_provider_that_is_away_is_told(known):
    """Not as an error of this program; what the provider says about itself is asked once an hour."""
    found, browser, access, _ = known
    await begun(browser)
    await begun(browser)
    assert found.asked == 1
    access.oidc._provider = None
    access.oidc._config = Oidc(issuer="http://127.0.0.1:1", client_id="x", public_url=f"http://{HOST}")
    answer = await begun(browser)
    assert answer.status_code == 502


# ---- a proxy


@pytest.fixture
def proxied(rig, tmp_path):
    """A console behind a proxy at 127.0.0.1, which is where the tests' requests come from."""

    def made(*networks):
        header = ProxyHeader(proxies=networks, user="x-user", groups="x-groups", grants=GRANTS)
        access = Access(Authority(rig.control, ()), live=in_file(tmp_path, AccessFile(header=header)))
        return Browser(application(None, beside=routes(access))), access

    return made


ADMIN = {"x-user": "bob", "x-groups": "staff, crawl-admins"}


async def ask(browser, path, headers):
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    answer = await AsgiClient(browser.application)._request(
        "GET", path, b"", {"host": browser.host, "cookie": cookie, **headers}
    )
    if found := re.match(r"(nephila_\d+)=([^;]+)", answer.headers.get("set-cookie", "")):
        browser.cookies[found[1]] = found[2]
    return answer


async def test_a_proxy_says_who_it_is(proxied):
    """In each request: another user, or none, ends the session."""
    browser, access = proxied("127.0.0.0/8")
    assert (await ask(browser, "/console/login", ADMIN)).headers["location"] == "/console/"
    assert (await ask(browser, "/console/jobs", ADMIN)).status_code == 200
    cookies = dict(browser.cookies)
    for other in ({**ADMIN, "x-user": "eve"}, {**ADMIN, "x-groups": "crawl-editors"}, {}):
        browser.cookies = dict(cookies)
        assert (await ask(browser, "/console/jobs", other)).status_code == 303
        browser.cookies.clear()
        await ask(browser, "/console/login", ADMIN)
        cookies = dict(browser.cookies)
    assert all(one.caller.name == "bob" for one in access.sessions._sessions.values())


async def test_the_headers_of_others_mean_nothing(proxied):
    """A person who reaches the server past the proxy, and a user without a grant."""
    browser, access = proxied("10.0.0.0/8", "2001:db8::1")
    assert "location" not in (await ask(browser, "/console/login", ADMIN)).headers
    near, _ = proxied("127.0.0.1")
    assert "location" not in (await ask(near, "/console/login", {**ADMIN, "x-groups": "staff"})).headers
    assert not access.sessions._sessions


# ---- roles on the screens


async def opened(rig, role, tenants=()):
    tokens = callers(AccessFile(tokens=(Token(name=role, role=role, token=TOKEN, tenants=tenants),)), "test")
    authority = Authority(rig.control, tokens)
    browser = Browser(application(rig.control, authority=authority, beside=routes(Access(authority))))
    await browser.post("/console/login", {"token": TOKEN})
    assert browser.shown == "/console/"
    return browser


async def test_a_viewer_changes_nothing_by_console_and_api(rig):
    """It is not shown what it may not do, and is refused when it does it nevertheless."""
    browser = await opened(rig, "viewer")
    answer = await browser.get("/console/jobs/news")
    assert answer.status_code == 200
    assert "/console/jobs/news/resume" not in answer.text
    assert (await browser.post("/console/jobs/news/resume", {})).status_code == 403
    client = AsgiClient(browser.application)
    headers = {"authorization": f"Bearer {TOKEN}", "host": HOST}
    answer = await client._request("POST", "/api/v1/jobs/news/resume", b"", headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert (await client._request("GET", "/api/v1/jobs", b"", headers)).status_code == 200
    assert (await rig.control.get_job(job_types.JobName(name="news"))).status.state == "paused"


async def test_an_editor_changes_jobs_and_is_in_the_log(rig):
    """But not the settings."""
    browser = await opened(rig, "editor")
    await browser.get("/console/jobs/news")
    assert (await browser.post("/console/jobs/news/resume", {})).status_code == 200
    assert (await browser.post("/console/system/settings", {"name": "speed", "value": "1"})).status_code == 403
    (entry,) = (await rig.control.list_control_log(system_types.ListControlLog())).entries
    assert (entry.who, entry.operation, entry.subject) == ("editor", "resume_job", "job news")


async def test_a_tenant_sees_no_job_of_others_on_any_screen(rig):
    """The one job there is belongs to nobody."""
    browser = await opened(rig, "viewer", ("acme",))
    for path in (
        "/",
        "/jobs",
        "/jobs/news",
        "/pages",
        "/pages?q=title",
        "/items",
        "/hosts",
        "/rules",
        "/sites",
        "/system",
    ):
        answer = await browser.get(f"/console{path}")
        assert answer.status_code in (200, 403, 404), path
        shown = answer.text.replace('value="/console/jobs/news', "")
        assert "a.test" not in shown, path
        assert "news<" not in shown, path


# ---- the access file


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tokens: [{name: a, role: owner, token: 0123456789abcdef}]", "role"),
        ("tokens: [{name: a, role: admin}]", "either token or token_file"),
        ("tokens: [{name: a, role: admin, token: short}]", "at least 16"),
        ("tokens: [{name: a, rolle: admin}]", "rolle"),
        (
            "tokens: [{name: a, role: admin, token: 0123456789abcdef}, {name: a, role: admin, token: x}]",
            "twice",
        ),
        ("tokens: [{name: a, role: admin, tenants: [A b], token: 0123456789abcdef}]", "tenants"),
        ("oidc: {issuer: 'http://login.test', client_id: x, public_url: 'https://c.test'}", "oidc.issuer"),
        ("oidc: {issuer: 'https://login.test', client_id: x}", "public_url"),
        ("header: {proxies: [proxy.test]}", "no address"),
        ("header: {proxies: []}", "proxies"),
        ("tokens: [", "is not YAML"),
        ("[]", "object"),
    ],
)
def test_a_mistake_in_the_access_file_is_one_line(tmp_path, text, says):
    """It names the field; nothing is served."""
    path = tmp_path / "access.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=says) as error:
        callers(read_access(str(path), "--api-access"), "--api-access")
    assert "\n" not in str(error.value)
