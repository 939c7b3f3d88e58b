"""Pictures of every screen of the console for docs/console.md: light and dark, wide and narrow in one PNG per screen.

    python -m tools.console_pictures [SCREEN…]    # needs Playwright, Chromium (nephila browser install) and Pillow

A crawl of a small site on five loopback addresses runs while the pictures are taken.
"""

from __future__ import annotations

import asyncio
import base64
import http.server
import os
import subprocess
import sys
import tempfile
import threading
import time
from io import BytesIO
from pathlib import Path
from typing import Any

from tools.chromium import find

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "console"
SCREENS = {
    "overview": "",
    "jobs": "jobs",
    "job": "jobs/library",
    "exclude": "jobs/library/exclude?re=%2F%5Cd%2B1%24",
    "new": "jobs/new",
    "edit": "jobs/library/edit",
    "pages": "pages",
    "search": "pages?q=silt+delta",
    "page": "page?job=library&url=http%3A%2F%2F127.0.0.1%3A{port}%2F12",
    "page-links": "page?job=library&tab=links&url=http%3A%2F%2F127.0.0.1%3A{port}%2F12",
    "page-history": "page?job=menu&tab=history&url=http%3A%2F%2F127.0.0.8%3A{port}%2Fmenu",
    "hosts": "hosts",
    "items": "items?field=price&test=above&value=20&sort=-price",
    "audit": "audit",
    "audit-sample": "audit/books",
    "sites": "sites",
    "sites-edit": "sites?edit=1",
    "rules": "rules",
    "rule": "rules?name=shop",
    "studio": "studio?url=http%3A%2F%2F127.0.0.1%3A{port}%2F14",
    "studio-save": "studio?url=http%3A%2F%2F127.0.0.1%3A{port}%2F14",
    "system": "system",
    "settings": "system/settings",
    "network": "system/network",
    "webhooks": "system/webhooks",
    "log": "log",
}
JUDGED = "rrrrwrrrrrrrrrrrrwrrrrrr"
"""Keys that are pressed on a sample before its pictures."""
CLICKED = ("Volume 14", "Author 0", "23.90")
"""What becomes fields in the pictures of the studio."""
WIDE, NARROW = {"width": 1280, "height": 860}, {"width": 375, "height": 860}
TO_THE_TOP = """() => {
  document.querySelector(".rail nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  window.scrollTo(0, 0);
}"""
PAGES = 3000
CRAWLED_S = 45
"""Seconds of crawling before the first picture."""
RULE = """apiVersion: nephila.dev/v1
kind: ParseRule
metadata: {name: shop}
spec:
  match: {url: '/\\d+$'}
  fields:
    title: {css: h1}
    price: {css: .price, type: number}
    author: {css: .author}
"""
JOBS = """apiVersion: nephila.dev/v1
kind: CrawlJob
metadata: {name: library}
spec:
  seeds: [SEEDS]
  scope: {mode: any, maxPages: 6000}
  politeness: {delay: 600ms}
  links: true
  rules: [shop]
---
apiVersion: nephila.dev/v1
kind: CrawlJob
metadata: {name: archive}
spec:
  paused: true
  seeds: ['http://127.0.0.9:PORT/0']
---
apiVersion: nephila.dev/v1
kind: CrawlJob
metadata: {name: menu}
spec:
  seeds: ['http://127.0.0.8:PORT/menu']
  recrawl: {every: 10s}
"""
SITES = """apiVersion: nephila.dev/v1
kind: Site
metadata: {name: press}
spec:
  frequency: 6h
  country: SG
  type: newspaper
  directories:
    - {name: world, url: 'http://127.0.0.6:PORT/1', score: 5}
    - {name: sport, url: 'http://127.0.0.6:PORT/2', frequency: adaptive 1h 7d}
    - {name: archive, url: 'http://127.0.0.6:PORT/3', paused: true}
"""
WEBHOOKS = """allow_addresses: [127.0.0.0/8]
webhooks:
  - name: newsroom
    url: http://127.0.0.1:PORT/hook
    changes: [new, changed]
  - {name: archive, url: 'http://127.0.0.1:9/'}
"""
STYLE = """body { margin: 0; font: 16px/1.6 Georgia, serif; color: #26313a; background: #f4f7f6 }
header { background: #1f4d4a; color: #fff; padding: 1rem 2rem; font-size: 1.3rem }
main { max-width: 40rem; margin: 2rem auto; padding: 1.5rem 2rem; background: #fff; overflow: auto }
img { float: right; width: 9rem; margin: 0 0 1rem 1.5rem } h1 { margin: 0 } .author { color: #5b6b70; margin: 0 }
.price { display: inline-block; background: #e0f0e6; color: #1d5a36; font-weight: bold; padding: .2rem 1rem }
a { color: #1f6f6a }
"""
PICTURE = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 90 120'><rect width='90' height='120' fill='#1f4d4a'/>"
    "<path d='M0 70 Q25 50 45 72 T90 66 V120 H0 Z' fill='#79b4a9'/>"
    "<circle cx='64' cy='32' r='13' fill='#f0d9a0'/></svg>"
)
SECRET = "whsec_" + base64.b64encode(bytes(32)).decode()


class Site(http.server.BaseHTTPRequestHandler):
    """A tree of pages with some errors and a forbidden part."""

    def log_message(self, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """One page."""
        number = int(self.path[1:]) if self.path[1:].isdecimal() else -1
        if self.path == "/robots.txt":
            self._answer(200, "User-agent: *\nDisallow: /private/\n", "text/plain")
        elif self.path == "/menu":
            dishes = ("Soup of the day with bread", "Noodles with mushrooms", "Rice with vegetables", "Apple cake")
            today = dishes[int(time.time()) // 10 % 4]
            rest = "<p>Open from eleven in the morning until ten at night.<p>Please book a table for large groups."
            self._answer(200, f"<title>Menu</title><main><h1>Menu</h1><p>Today: {today}.{rest}</main>", "text/html")
        elif self.path == "/library.css":
            self._answer(200, STYLE, "text/css")
        elif self.path == "/volume.svg":
            self._answer(200, PICTURE, "image/svg+xml")
        elif number < 0 or number % 17 == 16:
            self._answer(404, "gone", "text/plain")
        else:
            author = f"<p class=author>Author {number % 7}" if number % 3 else ""
            links = [
                f"<a href=/{child}>Part {child}</a>" for child in (2 * number + 1, 2 * number + 2) if child < PAGES
            ]
            text = "Rivers carry silt and gravel to the sea, and the delta grows by some metres each year. " * 4
            self._answer(
                200,
                f"<!doctype html><title>Volume {number} of the library</title><link rel=stylesheet href=/library.css>"
                f"<header>The library</header><main><img src=/volume.svg alt=Cover><h1>Volume {number}</h1>{author}"
                f"<p class=price>{number % 90 + 9}.90<p>{text}<p>{' '.join(links)} <a href=/private/{number}>staff</a>",
                "text/html",
            )

    def do_POST(self) -> None:
        """A delivery of a webhook."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200, "", "text/plain")

    def _answer(self, status: int, text: str, kind: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


async def pictures(address: str, port: int, names: list[str]) -> None:
    """Takes and writes them. Each screen is loaded once: the same page is then light and dark, wide and narrow."""
    from playwright.async_api import async_playwright

    base = address.partition("login")[0]
    FOLDER.mkdir(exist_ok=True)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find(), args=["--no-sandbox"])
        page = await browser.new_page()
        page.set_default_timeout(120_000)
        await page.goto(address)
        if any(name.startswith("audit") for name in names):
            await _judge(page, base)
        writing = []
        for name in names:
            await page.set_viewport_size(WIDE)
            await page.goto(base + SCREENS[name].format(port=port))
            if name.startswith("studio"):
                await _make_rule(page, name)
            writing.append(asyncio.create_task(asyncio.to_thread(_write, name, await _shots(page))))
        await browser.close()
        await asyncio.gather(*writing)


async def _shots(page: Any) -> list[bytes]:
    shots = []
    for size in (WIDE, NARROW):
        await page.set_viewport_size(size)
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)
            await page.evaluate(TO_THE_TOP)
            shots.append(await page.screenshot())
    return shots


def _write(name: str, shots: list[bytes]) -> None:
    """Writes the four pictures of a screen as one."""
    from PIL import Image

    images = [Image.open(BytesIO(shot)).convert("RGB") for shot in shots]
    total = Image.new("RGB", (sum(image.width for image in images) + 60, WIDE["height"] + 20), "#8a8f96")
    left = 10
    for image in images:
        total.paste(image, (left, 10))
        left += image.width + 13
    small = total.resize((total.width // 2, total.height // 2), Image.Resampling.LANCZOS)
    small.quantize(200, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        FOLDER / f"{name}.png", optimize=True
    )
    print(FOLDER / f"{name}.png", (FOLDER / f"{name}.png").stat().st_size)


async def _judge(page: Any, base: str) -> None:
    """Draw a sample and judge some of its pages by the keyboard."""
    await page.goto(base + "audit")
    await page.get_by_label("Name").fill("books")
    await page.get_by_role("button", name="Draw").click()
    for key in JUDGED:
        async with page.expect_navigation():
            await page.keyboard.press(key)


async def _make_rule(page: Any, name: str) -> None:
    """Click values of the page in the frame; for `studio-save` go on to the rule."""
    for text in CLICKED:
        before = page.url
        await page.frame_locator("iframe.styled").get_by_text(text, exact=True).click()
        await page.wait_for_url(lambda url, before=before: "pick" not in url and url != before)
    await page.frame_locator("iframe.styled").locator("[data-nephila-field]").first.wait_for()
    if name == "studio-save":
        await page.get_by_role("link", name="Save…").click()
        await page.wait_for_url("**/save")


def main() -> None:
    """See the module."""
    names = sys.argv[1:] or list(SCREENS)
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), Site)
    port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    nephila = [sys.executable, "-m", "nephila"]
    with tempfile.TemporaryDirectory() as folder:
        seeds = ", ".join(f"'http://127.0.0.{number}:{port}/0'" for number in range(1, 6))
        (Path(folder) / "jobs.yaml").write_text(JOBS.replace("SEEDS", seeds).replace("PORT", str(port)))
        (Path(folder) / "rules" / "shop").mkdir(parents=True)
        (Path(folder) / "rules" / "shop" / "rule.yaml").write_text(RULE)
        (Path(folder) / "sites.yaml").write_text(SITES.replace("PORT", str(port)))
        (Path(folder) / "hooks.yaml").write_text(WEBHOOKS.replace("PORT", str(port)))
        up = [*nephila, "up", "--out", "crawls", "--allow-private", "--quiet", "--rules", "rules", "--workers", "0"]
        secrets = {f"NEPHILA_WEBHOOK_{name}_SECRET": SECRET for name in ("NEWSROOM", "ARCHIVE")}
        up += ["--format", "sqlite,raw", "--webhooks", "hooks.yaml"]
        with subprocess.Popen(up, cwd=folder, env={**os.environ, **secrets}) as program:
            try:
                apply = [*nephila, "jobs", "apply", "-f", "jobs.yaml", "--out", "crawls"]
                while program.poll() is None and subprocess.run(apply, cwd=folder).returncode:
                    time.sleep(1)
                began = time.monotonic()
                sites = [*nephila, "sites", "apply", "-f", "sites.yaml", "--sites", "crawls/sites.db"]
                subprocess.run(sites, cwd=folder, check=True)
                time.sleep(max(CRAWLED_S - (time.monotonic() - began), 0))
                console = [*nephila, "console", "--out", "crawls", "--no-browser"]
                with subprocess.Popen(console, cwd=folder, stdout=subprocess.PIPE, text=True) as served:
                    assert served.stdout is not None
                    asyncio.run(pictures(served.stdout.readline().strip(), port, names))
                    served.terminate()
            finally:
                program.terminate()


if __name__ == "__main__":
    main()
