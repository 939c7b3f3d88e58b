"""One page in a browser: navigation, waits, steps, captures. The context is closed afterwards, with all it stored.

Dialogs are dismissed, downloads refused, popups closed and service workers refused; permissions are not granted.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from nephila.downloader.http.contract import SiteCookie
from nephila.kernel.documents.browser_schema import Wait
from nephila.kernel.documents.field_types import seconds
from nephila.kernel.messages import Capture
from nephila.kernel.net.public_suffix import site_of
from nephila.kernel.reasons.table import Reason
from playwright.async_api import Browser, BrowserContext, Page, Request, Response, Route
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from nephila_browser.contract import GatewayAddress
from nephila_browser.engine import RenderedPage, RenderError, RenderTask, WebStorage
from nephila_browser.steps import run_steps

MAX_XHR: Final = 100
MAX_XHR_BYTES: Final = 16 << 20
"""Limits of the JSON captured of one page."""
MAX_SCREENSHOT_PX: Final = 16_000
"""Height of a screenshot; Chromium cannot paint more than 16,384 rows."""
CLOSE_S: Final = 5.0
WAIT_SHARE: Final = 0.5
"""Part of the time of a page in which it has to be idle; the rest is for steps, content and captures."""
CONTENT_TRIES: Final = 10
CONTENT_RETRY_S: Final = 0.2
REFUSE_SERVICE_WORKERS: Final = """
if (self.ServiceWorkerContainer)
  ServiceWorkerContainer.prototype.register = () =>
    Promise.reject(new DOMException('service workers are refused', 'SecurityError'));
"""
"""Playwright's own refusal leaves the promise open or gives it no value, and pages that wait for it stay empty."""
RESTORE_STORAGE: Final = """stored => {
  const own = stored[location.origin];
  if (own) for (const [area, items] of [[localStorage, own.local], [sessionStorage, own.session]])
    for (const [key, value] of Object.entries(items)) if (area.getItem(key) === null) area.setItem(key, value);
}"""
READ_STORAGE: Final = """() => {
  try {
    return {[location.origin]: {local: {...localStorage}, session: {...sessionStorage}}};
  } catch { return {}; }
}"""
SETTLE_S: Final = 10.0
QUIET_S: Final = 0.5
QUIET_TICKS: Final = 5
_MEDIA = re.compile(r"\.(mp4|m4v|webm|ogv|mov|avi|m3u8|mpd|ts|mp3|m4a|aac|ogg|oga|opus|wav|flac)([?#]|$)", re.I)
_IMAGE = re.compile(r"\.(png|jpe?g|gif|webp|avif|ico|bmp|svg)([?#]|$)", re.I)
_FONT = re.compile(r"\.(woff2?|ttf|otf|eot)([?#]|$)", re.I)
_PATTERNS = {"media": _MEDIA, "image": _IMAGE, "font": _FONT}


class PageCrashedError(Exception):
    """The process of the page ended; other pages of the browser continue."""


async def render_page(
    browser: Browser, gateway: GatewayAddress, blocked: frozenset[str], task: RenderTask
) -> RenderedPage:
    """Render one page. Raises `RenderError`, `PageCrashedError`, or Playwright's error when the browser is gone."""
    async with _context(browser, gateway, blocked, task) as context:
        page: Page | None = None
        try:
            async with asyncio.timeout(task.timeout_s):
                page = await _open(context)
                return await _unless_crashed(page, task)
        except TimeoutError:
            # Without its document the page is still the blank one: the server is slow. With it, the page itself is.
            came = page is not None and page.url != "about:blank"
            reason = Reason.RENDER_TIMEOUT if came else Reason.TIMEOUT
            raise RenderError(reason, f"render: not complete after {task.timeout_s:g} s") from None


async def _unless_crashed(page: Page, task: RenderTask) -> RenderedPage:
    """The page, unless its process ends: its calls might wait for their time limits."""
    crashed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    page.on("crash", lambda _: None if crashed.done() else crashed.set_result(None))
    rendering = asyncio.ensure_future(_render(page, task))
    rendering.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        await asyncio.wait((rendering, crashed), return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not rendering.done():
            rendering.cancel()
            await asyncio.wait((rendering,))
    if crashed.done():
        raise PageCrashedError
    return rendering.result()


@contextlib.asynccontextmanager
async def _context(
    browser: Browser, gateway: GatewayAddress, blocked: frozenset[str], task: RenderTask
) -> AsyncIterator[BrowserContext]:
    user, password = task.credentials
    context = await browser.new_context(
        proxy={"server": f"http://{gateway.host}:{gateway.port}", "username": user, "password": password},
        user_agent=task.user_agent,
        service_workers="block",
        accept_downloads=False,
        viewport={"width": 1280, "height": 900},
    )
    try:
        await context.add_init_script(REFUSE_SERVICE_WORKERS)
        if task.storage:
            await context.add_init_script(f"({RESTORE_STORAGE})({msgspec.json.encode(task.storage).decode()})")
        for kind in blocked:
            if kind in _PATTERNS:
                await context.route(_PATTERNS[kind], lambda route: route.abort("blockedbyclient"))
        yield context
    finally:
        # A page that never stops its scripts may block this; the pool then kills the process.
        with contextlib.suppress(PlaywrightError, TimeoutError):
            await asyncio.wait_for(context.close(), CLOSE_S)


async def _add_cookies(context: BrowserContext, cookies: Sequence[SiteCookie]) -> list[SiteCookie]:
    """Begin with cookies; returns those that Chromium has accepted."""
    entries: list[Any] = [
        {
            "name": cookie.name,
            "value": cookie.value,
            "domain": cookie.domain if cookie.host_only else f".{cookie.domain}",
            "path": cookie.path,
            "secure": cookie.secure,
            **({} if math.isinf(cookie.expires_at) else {"expires": cookie.expires_at}),
        }
        for cookie in cookies
    ]
    if not entries:
        return []
    try:
        await context.add_cookies(entries)
    except PlaywrightError:
        accepted = []
        for cookie, entry in zip(cookies, entries, strict=True):
            with contextlib.suppress(PlaywrightError):
                await context.add_cookies([entry])
                accepted.append(cookie)
        return accepted
    return list(cookies)


DOCUMENT: Final = """requested => {
    const base = document.querySelector("base[href]"), here = location.href.split("#")[0];
    if (here !== new URL(requested).href.split("#")[0]) {
        if (base) base.setAttribute("href", base.href);
        else {
            const own = document.createElement("base");
            own.setAttribute("href", here);
            (document.head || document.documentElement).prepend(own);
        }
    }
    if (document.characterSet !== "UTF-8")
        for (const link of document.querySelectorAll("a[href], area[href]"))
            if (/[?][^#]*[^\\x00-\\x7f]/.test(link.getAttribute("href"))) link.setAttribute("href", link.href);
    const embed = (within, depth) => {
        for (const frame of [...within.querySelectorAll("iframe:not([srcdoc])")].slice(0, 20)) {
            let inner = null;
            try { inner = frame.contentDocument; } catch {}
            if (!inner || !inner.body || !inner.body.childNodes.length) continue;
            if (depth < 3) embed(inner, depth + 1);
            for (const link of inner.querySelectorAll("a[href], area[href]")) link.setAttribute("href", link.href);
            const text = inner.documentElement.outerHTML;
            if (text.length < 1 << 18) frame.setAttribute("srcdoc", text);
        }
    };
    embed(document, 1);
    const shadowRoots = [], todo = [document], root = document.documentElement;
    while (todo.length && shadowRoots.length < 10000)
        for (const element of todo.pop().querySelectorAll("*"))
            if (element.shadowRoot) { shadowRoots.push(element.shadowRoot); todo.push(element.shadowRoot); }
    if (!shadowRoots.length || !root.getHTML) return "";
    const doctype = document.doctype ? new XMLSerializer().serializeToString(document.doctype) : "";
    const start = root.cloneNode(false).outerHTML.slice(0, -"</html>".length);
    return doctype + start + root.getHTML({shadowRoots}) + "</html>";
}"""
"""Where scripts have changed the URL of the page, its links resolve against the last one: it gets a <base>. Links with
a query beyond ASCII are written as the browser requests them: the stored document is in UTF-8, their queries are in the
encoding of the page. Frames of the same origin are written into their `srcdoc`, so they are part of text and
links; `_embed_frames_of_site` does so with other frames of the site.
Returns the document with its open shadow roots declared; "" if it has none."""


FRAME: Final = """() => {
    for (const link of document.querySelectorAll("a[href], area[href]")) link.setAttribute("href", link.href);
    const text = document.body && document.body.childNodes.length ? document.documentElement.outerHTML : "";
    return text.length < 1 << 18 ? text : "";
}"""
MAX_FRAMES: Final = 20
FRAME_S: Final = 1.0
"""Seconds for one frame of another origin; its process may be busy."""


async def _embed_frames_of_site(page: Page) -> None:
    """Write frames of other origins of the page's site into their `srcdoc`, the inner ones first. Scripts of the page
    cannot read those; the browser can."""
    own = urlsplit(page.url)
    for frame in reversed(page.frames[1 : MAX_FRAMES + 1]):
        url, parent = urlsplit(frame.url), frame.parent_frame
        if not url.hostname or site_of(url.hostname) != site_of(own.hostname or ""):
            continue
        if parent is not None and url.netloc == urlsplit(parent.url).netloc == own.netloc:
            continue  # the page reads it
        with contextlib.suppress(PlaywrightError, TimeoutError):  # it navigates, or is gone
            async with asyncio.timeout(FRAME_S):
                if text := await frame.evaluate(FRAME):
                    element = await frame.frame_element()
                    await element.evaluate("(element, text) => element.setAttribute('srcdoc', text)", text)


async def _cookies(context: BrowserContext) -> list[SiteCookie]:
    return [
        SiteCookie(
            cookie["name"],
            cookie["value"],
            cookie["domain"].removeprefix("."),
            not cookie["domain"].startswith("."),
            cookie["path"],
            cookie["secure"],
            cookie["expires"] if cookie["expires"] > 0 else math.inf,
        )
        for cookie in await context.cookies()
    ]


async def _open(context: BrowserContext) -> Page:
    page = await context.new_page()

    def on_page(popup: Page) -> None:
        closing = asyncio.ensure_future(popup.close())
        closing.add_done_callback(lambda done: done.cancelled() or done.exception())

    context.on("page", on_page)
    return page


async def _render(page: Page, task: RenderTask) -> RenderedPage:
    instructions = task.instructions
    kinds = instructions.browser.capture
    responses: list[Response] = []
    began = await _add_cookies(page.context, task.cookies)
    in_flight: set[Request] = set()
    if task.login is not None:
        page.on("request", lambda request: in_flight.add(request))
        page.on("requestfinished", lambda request: in_flight.discard(request))
        page.on("requestfailed", lambda request: in_flight.discard(request))
    if "xhr" in kinds:
        page.on("response", lambda response: _note(responses, response))
    try:
        await page.goto(task.url, wait_until="commit", timeout=task.timeout_s * 1000)
    except PlaywrightTimeout:
        raise RenderError(Reason.TIMEOUT, "render: no response of the document") from None
    except PlaywrightError as error:
        if page.is_closed():
            raise
        raise RenderError(Reason.NAVIGATION, _first_line(error)) from None
    await _wait(page, instructions.browser.wait, task.timeout_s * WAIT_SHARE)
    await run_steps(page, instructions.steps, task.login)
    if task.login is not None:
        await _settle(page, in_flight)
    await _embed_frames_of_site(page)
    html = ""
    with contextlib.suppress(PlaywrightError):  # a page that navigates: its next document is read as it is
        html = str(await page.evaluate(DOCUMENT, task.url))
    html = html or await _content(page)
    rendered = RenderedPage(html=html.encode("utf-8", "replace"), url=page.url)
    if task.keep_cookies:
        rendered.first_cookies, rendered.cookies = began, await _cookies(page.context)
    if task.login is not None:
        rendered.storage = msgspec.convert(await page.evaluate(READ_STORAGE), dict[str, WebStorage])
    if responses:
        rendered.captures += await _bodies(responses)
    if "screenshot" in kinds:
        rendered.captures.append(await _screenshot(page))
    if "pdf" in kinds:
        rendered.captures.append(Capture("pdf", page.url, "application/pdf", await page.pdf()))
    return rendered


async def _content(page: Page) -> str:
    """The document. While a page navigates there is none: further navigations are refused, so the last one stays."""
    try:
        return await page.content()
    except PlaywrightError:
        if page.is_closed():
            raise
    await page.route("**/*", _refuse_navigation)
    for number in range(1, CONTENT_TRIES + 1):
        try:
            return await page.content()
        except PlaywrightError as error:
            if page.is_closed():
                raise
            if number == CONTENT_TRIES:
                raise RenderError(Reason.BROWSER, f"the page navigates without end: {_first_line(error)}") from None
            await asyncio.sleep(CONTENT_RETRY_S)
    raise AssertionError


async def _refuse_navigation(route: Route) -> None:
    """Chromium keeps the document when a navigation is aborted."""
    with contextlib.suppress(PlaywrightError):
        if route.request.is_navigation_request():
            await route.abort("aborted")
        else:
            await route.continue_()


async def _wait(page: Page, wait: Wait, longest_s: float) -> None:
    limit_ms = min(seconds(wait.timeout), longest_s) * 1000
    state = {"idle": "networkidle", "load": "load", "dom": "domcontentloaded"}[wait.until]
    with contextlib.suppress(PlaywrightTimeout):  # a page that is never idle is read as it is
        await page.wait_for_load_state(state, timeout=limit_ms)  # type: ignore[arg-type]
    if wait.selector:
        try:
            await page.wait_for_selector(f"css={wait.selector}", state="attached", timeout=limit_ms)
        except PlaywrightTimeout:
            raise RenderError(Reason.STEP, f"wait: no element {wait.selector} in {wait.timeout}") from None
    if time_s := seconds(wait.time):
        await asyncio.sleep(time_s)


async def _settle(page: Page, in_flight: set[Request]) -> None:
    """Wait until no request is in flight for half a second, and the document is loaded; at most `SETTLE_S`."""
    with contextlib.suppress(TimeoutError, PlaywrightTimeout):
        async with asyncio.timeout(SETTLE_S):
            quiet = 0
            while quiet < QUIET_TICKS:
                await asyncio.sleep(QUIET_S / QUIET_TICKS)
                quiet = 0 if in_flight else quiet + 1
            await page.wait_for_load_state("load")


def _note(responses: list[Response], response: Response) -> None:
    is_json = "json" in response.headers.get("content-type", "")
    if is_json and len(responses) < MAX_XHR and response.request.resource_type in ("xhr", "fetch"):
        responses.append(response)


async def _bodies(responses: list[Response]) -> list[Capture]:
    """The bodies of responses; one that the browser no longer has is left out."""
    captures, left = [], MAX_XHR_BYTES
    for response in responses:
        with contextlib.suppress(PlaywrightError):
            body = await response.body()
            left -= len(body)
            if left < 0:
                break
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            captures.append(Capture("xhr", response.url, media_type, body))
    return captures


async def _screenshot(page: Page) -> Capture:
    height = await page.evaluate("document.documentElement.scrollHeight")
    whole = isinstance(height, int | float) and height <= MAX_SCREENSHOT_PX
    return Capture("screenshot", page.url, "image/png", await page.screenshot(full_page=whole))


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:300]
