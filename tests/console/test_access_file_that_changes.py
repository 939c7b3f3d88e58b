"""The access file of a running server is taken when it changes; one with a mistake is not, and the console says so."""

from __future__ import annotations

import logging
import os

import pytest
import yaml
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UsageError
from nephila_console.application import routes
from nephila_console.logins import Access
from nephila_control.access.authority import Authority, administrator
from nephila_control.access.live_access import CHECK_S, LiveAccess
from nephila_control.http.application import application

from tests.console.console_rig import TOKEN, Browser, console
from tests.control.http.asgi import AsgiClient

FIRST, SECOND = "first-0123456789abcdef", "second-0123456789abcdef"


class Server:
    """A server with an access file."""

    def __init__(self, rig, path):
        self.path, self.clock, self.written = path, ManualClock(), 0
        self.write(tokens=[{"name": "ann", "role": "admin", "token": FIRST}])
        self.live = LiveAccess(str(path), "--api-access", self.clock)
        authority = Authority(rig.control, administrator(TOKEN), self.live, self.clock)
        self.access = Access(authority, (), self.clock, self.live)
        self.application = application(rig.control, authority=authority, beside=routes(self.access))

    def write(self, text="", **content):
        """Replace the file, as editors and Kubernetes do; times of files are coarse."""
        self.written += 1
        new = self.path.with_suffix(".new")
        new.write_text(text or yaml.safe_dump(content))
        os.utime(new, (self.written, self.written))
        new.replace(self.path)

    def later(self):
        """After the next look at the files."""
        self.clock.advance(CHECK_S)

    async def status(self, token):
        """The status of a request to the API."""
        client = AsgiClient(self.application)
        return (await client._request("GET", "/api/v1/status", b"", {"authorization": f"Bearer {token}"})).status_code

    async def logged_in(self, token):
        """A browser with a session."""
        browser = Browser(self.application)
        await browser.get("/console/login")
        await browser.post("/console/login", {"token": token})
        assert browser.shown == "/console/", browser.shown
        return browser


@pytest.fixture
async def server(tmp_path):
    """With a token of its own and one in the file."""
    async with console(tmp_path) as rig:
        yield Server(rig, tmp_path / "access.yaml")


async def test_a_changed_file_is_taken_without_a_restart(server):
    """New tokens count, old ones do not, and their sessions end; others stay."""
    ann, owner = await server.logged_in(FIRST), await server.logged_in(TOKEN)
    server.write(tokens=[{"name": "ann", "role": "admin", "token": SECOND}])
    assert await server.status(FIRST) == 200
    server.later()
    assert (await server.status(FIRST), await server.status(SECOND), await server.status(TOKEN)) == (401, 200, 200)
    await ann.get("/console/jobs")
    assert ann.shown.startswith("/console/login?next=")
    await owner.get("/console/jobs")
    assert owner.shown == "/console/jobs"


async def test_a_session_whose_role_has_changed_ends(server):
    """Also with the same token."""
    ann = await server.logged_in(FIRST)
    server.write(tokens=[{"name": "ann", "role": "viewer", "token": FIRST}])
    server.later()
    await ann.get("/console/jobs")
    assert ann.shown.startswith("/console/login?next=")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"tokens: [{{name: x, role: admin, token: {SECOND}", "is not YAML (line 1"),
        (f"tokens: [{{name: x, role: king, token: {SECOND}}}]", "tokens[0].role"),
        ("tokens: [{name: x, role: admin, token: short}]", "at least 16 characters"),
        ("tokens: [{name: x, role: admin, token_file: /gone}]", "cannot read"),
    ],
)
async def test_a_file_with_a_mistake_changes_nothing(server, caplog, text, words):
    """One line in the log, and one on the overview; both without a secret. The next file without a mistake is taken."""
    caplog.set_level(logging.WARNING)
    ann = await server.logged_in(FIRST)
    server.write(text)
    for _ in range(3):
        server.later()
        assert (await server.status(FIRST), await server.status(SECOND)) == (200, 401)
    assert words in server.live.problem
    assert [words in one.message for one in caplog.records if "not used" in one.message] == [True]
    assert SECOND not in caplog.text
    overview = (await ann.get("/console/")).text
    assert "The access file is not used" in overview
    assert SECOND not in overview
    server.write(tokens=[{"name": "bob", "role": "viewer", "token": SECOND}])
    server.later()
    assert (await server.status(FIRST), await server.status(SECOND)) == (401, 200)
    assert server.live.problem == ""
    bob = await server.logged_in(SECOND)
    server.write("tokens: 1")
    server.later()
    assert "The access file is not used" not in (await bob.get("/console/")).text


async def test_a_changed_secret_in_a_file_of_its_own_is_taken(server, tmp_path):
    """And one that is missing for a moment, as while it is replaced."""
    secret = tmp_path / "ann"
    secret.write_text(f"{FIRST}\n")
    server.write(tokens=[{"name": "ann", "role": "admin", "token_file": str(secret)}])
    server.later()
    assert await server.status(FIRST) == 200
    secret.unlink()
    server.later()
    assert await server.status(FIRST) == 200
    assert "cannot read" in server.live.problem
    secret.write_text(f"{SECOND}\n")
    server.later()
    assert (await server.status(FIRST), await server.status(SECOND), server.live.problem) == (401, 200, "")


async def test_a_provider_comes_and_goes(server):
    """The login page offers what the file has."""
    browser = Browser(server.application)
    assert "/console/oidc" not in (await browser.get("/console/login")).text
    provider = {"issuer": "https://login.test", "client_id": "x", "public_url": "https://crawl.test"}
    server.write(oidc=provider, header={"proxies": ["192.0.2.0/24"]})
    server.later()
    assert "/console/oidc" in (await browser.get("/console/login")).text
    browser.host = "crawl.test"
    assert (await browser.get("/console/login")).status_code == 200
    server.write(tokens=[{"name": "ann", "role": "admin", "token": FIRST}])
    server.later()
    assert (await browser.get("/console/login")).status_code == 421


def test_a_server_does_not_start_with_a_file_that_cannot_be_used(tmp_path):
    """As before."""
    (tmp_path / "a.yaml").write_text("tokens: 1")
    with pytest.raises(UsageError, match="tokens"):
        LiveAccess(str(tmp_path / "a.yaml"), "--api-access")
