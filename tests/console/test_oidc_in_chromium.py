"""Login by an OpenID Connect provider in Chromium: from the login page over the provider to the overview, and out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila_console.application import routes
from nephila_console.logins import Access
from nephila_control.access.access_file import AccessFile, Grant, Oidc
from nephila_control.access.authority import Authority
from nephila_control.access.live_access import CHECK_S, LiveAccess
from nephila_control.http.application import application
from nephila_control.http.server import tcp_server

from tests.console.console_rig import console
from tests.console.oidc_provider import CLIENT, SECRET, Provider, provider
from tests.console.test_console_in_chromium import chromium_page

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("chromium")]
GRANTS = (Grant(group="crawl-admins", role="admin"), Grant(group="crawl-readers", role="viewer"))


@asynccontextmanager
async def served(directory: Path) -> AsyncIterator[tuple[str, Provider]]:
    """The address of a console that believes a provider. It is of another site than the provider: browsers keep strict
    cookies back on the way between them. The access file gets its section once the port is known, as it runs."""
    (directory / "secret").write_text(SECRET)
    path, clock = directory / "access.yaml", ManualClock()
    path.write_text("{}")
    async with console(directory) as rig, provider() as found:
        live = LiveAccess(str(path), "--api-access", clock)
        authority = Authority(rig.control, (), live)
        app = application(rig.control, authority=authority, beside=routes(Access(authority, live=live)))
        server = tcp_server(app, "127.0.0.1", 0, "--api")
        await server.open()
        base = f"http://localhost:{server.port}"
        oidc = Oidc(
            issuer=found.url, client_id=CLIENT, client_secret_file=str(directory / "secret"), public_url=base,
            grants=GRANTS,
        )  # fmt: skip
        path.write_bytes(msgspec.json.encode(AccessFile(oidc=oidc)))
        clock.advance(CHECK_S)
        try:
            yield f"{base}/console/", found
        finally:
            await server.close()


async def log_in(page: Any, base: str) -> None:
    """From the login page to what the provider's user sees."""
    await page.goto(base)
    assert page.url.startswith(f"{base}login")
    await page.get_by_role("link", name="Log in with the account of your organisation").click()
    await page.wait_for_url("**/authorize?**")
    await page.get_by_role("button", name="Log in as the user").click()


async def test_a_user_logs_in_over_the_provider_and_out(tmp_path, chromium):
    """To the overview; the role comes from the groups; no screen after the logout, and none by the back button."""
    async with served(tmp_path) as (base, found), chromium_page(chromium) as page:
        found.claims["groups"] = ["crawl-admins"]
        await log_in(page, base)
        await page.wait_for_url(base)
        assert "Overview" in await page.title()
        rail = page.locator("header")
        assert await rail.get_by_text("anna@acme.test").count() == 1
        assert await rail.locator('[title="admin"]').count() == 1
        await page.goto(f"{base}log")
        assert await page.locator("h1").inner_text() == "Who changed what"
        cookies = await page.context.cookies(base)
        assert [(one["httpOnly"], one["sameSite"]) for one in cookies] == [(True, "Lax")]
        await page.get_by_role("button", name="Log out").click()
        await page.wait_for_url("**/console/login")
        assert await page.context.cookies(base) == []
        await page.go_back()
        await page.reload()
        assert page.url.startswith(f"{base}login")


async def test_the_role_comes_from_the_claims(tmp_path, chromium):
    """A reader sees no way to change; who is in no group that the file names does not get in."""
    async with served(tmp_path) as (base, found), chromium_page(chromium) as page:
        found.claims["groups"] = ["crawl-readers"]
        await log_in(page, base)
        await page.wait_for_url(base)
        await page.goto(f"{base}jobs/news")
        assert await page.get_by_role("button", name="Resume").count() == 0
        answer = await page.goto(f"{base}log")
        assert answer.status == 403
        await page.goto(base)
        await page.get_by_role("button", name="Log out").click()
        await page.wait_for_url("**/console/login")
        found.claims["groups"] = ["strangers"]
        await log_in(page, base)
        await page.wait_for_url("**/oidc/callback**")
        assert await page.get_by_text("no grant of the access file is for this user").count() == 1
        assert await page.context.cookies(base) == []
        await page.goto(f"{base}jobs")
        assert page.url.startswith(f"{base}login")
