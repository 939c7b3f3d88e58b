"""The console over one program with stored rows, and a browser without script for it."""

from __future__ import annotations

import asyncio
import html
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from nephila.kernel.messages import Outcome
from nephila.kernel.runtime.clock import ManualClock
from nephila.native import parse_url
from nephila.programs.control_port import Parts
from nephila_console.application import routes
from nephila_console.logins import Access
from nephila_control.access.authority import Authority, administrator
from nephila_control.access.caller import Caller
from nephila_control.access.roles import Role
from nephila_control.audit_types import DrawSample
from nephila_control.http.application import application
from nephila_control.job_types import ApplyJob
from nephila_control.local.backend import LocalBackend
from nephila_control.local.rule_store import RuleStore
from nephila_control.operations import Operations
from nephila_control.rule_types import ApplyRules

from tests.console import shop
from tests.control.documents import document, rule
from tests.control.http.asgi import Answer, AsgiClient
from tests.downloader_settings import downloader_config
from tests.scheduler.world import World, site
from tests.storage.storage_rig import key, record, running

TOKEN = "0123456789abcdef-the-token"  # noqa: S105 - of a test
HOST = "127.0.0.1:8080"


@dataclass
class Browser:
    """A person's browser: it keeps cookies, follows redirects and fills the CSRF token of the last page in."""

    application: object
    cookies: dict[str, str] = field(default_factory=dict)
    host: str = HOST
    csrf: str = ""
    shown: str = ""
    """Address of the last page."""

    async def get(self, path: str, headers: dict[str, str] | None = None) -> Answer:
        """GET, with redirects; a fragment stays in the browser."""
        return await self._request("GET", path.partition("#")[0], b"", headers or {})

    async def post(self, path: str, fields: dict[str, str], headers: dict[str, str] | None = None) -> Answer:
        """Send a form with the token of the last page; `csrf` among the fields replaces it."""
        body = urlencode({"csrf": self.csrf, **fields}).encode()
        sent = {"content-type": "application/x-www-form-urlencoded", **(headers or {})}
        return await self._request("POST", path, body, sent)

    async def _request(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        given = {"host": self.host, **({"cookie": cookie} if cookie else {}), **headers}
        answer = await AsgiClient(self.application)._request(method, path, body, given)
        self.shown = path
        if found := re.match(r"([^=]+)=([^;]*)", answer.headers.get("set-cookie", "")):
            self.cookies[found[1]] = found[2].strip('"')
        is_page = answer.headers.get("content-type", "").startswith("text/html")
        if is_page and (found := re.search(r'name="csrf" value="([^"]+)"', answer.text)):
            self.csrf = html.unescape(found[1])
        if answer.status_code == 303:
            return await self._request("GET", answer.headers["location"], b"", headers={})
        return answer


@dataclass
class ConsoleRig:
    """One console."""

    application: object
    control: Operations
    access: Access
    clock: ManualClock
    turning: asyncio.Future[None]
    """Lets the scheduler work; a bench ends it."""

    def browser(self) -> Browser:
        """One that is not logged in."""
        return Browser(self.application)

    async def opened(self) -> Browser:
        """One with a session."""
        browser = self.browser()
        answer = await browser.get(f"/console/login?token={self.access.sessions.invite()}")
        assert answer.status_code == 200
        return browser

    def of_role(self, role: Role) -> Browser:
        """One with a session of this role."""
        browser = self.browser()
        browser.cookies["nephila_8080"] = self.access.sessions.open(Caller("vera", role), "invitation")
        return browser


@asynccontextmanager
async def console(
    directory: Path, text: str = "Title", url: str = "http://a.test/7", **fetching: Any
) -> AsyncIterator[ConsoleRig]:
    """A program with a paused job, a rule, rows, links and items; `text` is in all that comes from the web.
    `fetching`: settings of the downloader, for pages that the studio fetches."""
    async with running(directory) as storage:
        values = {"job": "news", "title": text, "text": text.encode("utf-8", "replace"), "meta": '{"shell":"x"}'}
        own = parse_url(url).fingerprint
        storage.send(record(7, url=url, url_key=own, **values))
        storage.send(record(8, url="http://a.test/8", job="news", title="", outcome=Outcome.FAILED, reason="http_404"))
        await storage.storage.flush()
    with closing(sqlite3.connect(directory / "nephila.db")) as database:
        database.execute(
            "UPDATE pages SET title = ?, meta = json_object('m', ?) WHERE outcome = 'stored'", (text, text)
        )
        database.execute("INSERT INTO links VALUES ('news', ?, ?, ?, ?)", (own.hex(), url, key(8).hex(), text))
        item = ("news", own.hex(), "shop", 1, 0)
        database.execute("INSERT INTO items VALUES (?, ?, ?, ?, ?, json_object('name', ?, 'price', 3))", (*item, text))
        database.commit()
    shop.write(directory, {**shop.pages(), **hostile(text)})
    world = await World(directory / "frontier", site({"/0": []})).start()
    parts = Parts(world.bus, world.clock, world.scheduler, downloader=downloader_config(**fetching))
    backend = LocalBackend(parts, directory, ("sqlite",), rules=RuleStore(directory, world.bus))
    control = Operations(backend)
    turning = asyncio.ensure_future(_turn(world))
    await control.apply_rules(ApplyRules(rules=[rule()]))
    await control.apply_job(ApplyJob(job=document(paused=True)))
    await control.draw_sample(DrawSample(sample="first", size=5))
    clock = ManualClock()
    authority = Authority(control, administrator(TOKEN), clock=clock)
    allowed = Access(authority, ("console.test",), clock)
    app = application(control, authority=authority, beside=routes(allowed))
    try:
        yield ConsoleRig(app, control, allowed, clock, turning)
    finally:
        turning.cancel()


def hostile(text: str) -> dict[str, str]:
    """Pages of the shop that have the text as markup and as data."""
    found = shop.product(30).replace("Table 30", text)
    return {f"{shop.HOST}/p/{30 + number}": found for number in range(2)}


async def _turn(world: World) -> None:
    """Let the scheduler work."""
    while True:
        world.clock.run_due()
        await asyncio.sleep(0)
