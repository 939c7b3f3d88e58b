"""A canary on private addresses against every channel of the fetch path and of a real Chromium: no hit is allowed.

usage: python -m tests.canary.canary [--tries 1000] [--no-control]

Runs in a network namespace of its own (tests/canary/world.py). Prints a table: attempts and hits per channel with the
egress guard, and beside it, as proof that the attempt is real, hits of a few attempts without it: the crawler with
--allow-private, Chromium without the gateway. Exit status 1 when a canary is hit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from urllib.parse import unquote

from nephila.downloader.dns.resolvers import make_guarded_resolver
from nephila.downloader.routing.router import DirectRouter
from nephila.kernel.runtime.clock import SystemClock
from nephila_browser.contract import FetchLimits
from nephila_browser.gateway.chromium_flags import chromium_flags
from nephila_browser.gateway.gateway import make_gateway

from tests.canary.channels import BROWSER, HTML, NAVIGATIONS, targets
from tests.canary.world import PROXY_PORT, SITE, World, enter
from tests.downloader_settings import downloader_config
from tools import chromium

CONTROL_TRIES = 4
PROXY = f"http://{SITE}:{PROXY_PORT}"
DIRECT = [
    f"--host-resolver-rules=MAP private-a.site.example 10.1.2.3, MAP *.site.example {SITE}, MAP site.example {SITE}",
    "--ignore-certificate-errors",
    "--disable-features=LocalNetworkAccessChecks,PrivateNetworkAccessSendPreflights,HttpsUpgrades",
]
"""Chromium of the control: the same machine, no gateway."""


class Table:
    """Attempts and hits by channel."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int, int, int | None]] = []

    def add(self, channel: str, tries: int, hits: int, control: int | None) -> None:
        """One channel is done; it is printed at once."""
        self.rows.append((channel, tries, hits, control))
        print(f"{channel:<44}{tries:>8}{hits:>7}{'-' if control is None else control:>12}", flush=True)

    @property
    def tries(self) -> int:
        """All attempts with the guard."""
        return sum(row[1] for row in self.rows)

    @property
    def hits(self) -> int:
        """All hits with the guard."""
        return sum(row[2] for row in self.rows)


# ---- crawler


def links(urls: list[str]) -> str:
    """A page with these links."""
    return "<title>t</title>" + "".join(f'<a href="{url}">x</a>' for url in urls)


def sitemap(urls: list[str], kind: str) -> str:
    """A sitemap, or an index of sitemaps."""
    outer = "sitemapindex" if kind == "sitemap" else "urlset"
    return f"<{outer}>" + "".join(f"<{kind}><loc>{url}</loc></{kind}>" for url in urls) + f"</{outer}>"


def respond_crawl(channel: str, urls: list[str]):  # type: ignore[no-untyped-def]
    """The site for one channel of the crawler."""

    def respond(host: str, path: str) -> tuple[int, list[str], str]:
        label = host.partition(".")[0]
        number = int(path.rpartition("/")[2] or 0) if path.rpartition("/")[2].isdigit() else 0
        if path == "/robots.txt":
            if channel == "robots redirect" and label.startswith("h"):
                return 302, [f"Location: {urls[int(label[1:])]}"], ""
            if channel == "sitemap":
                lines = "".join(f"Sitemap: {url}\n" for url in [*urls, "http://site.example/map.xml"])
                return 200, ["Content-Type: text/plain"], lines
            return 404, [HTML], ""
        if path == "/map.xml":
            return 200, ["Content-Type: text/xml"], sitemap(["http://site.example/more.xml", *urls], "sitemap")
        if path == "/more.xml":
            return 200, ["Content-Type: text/xml"], sitemap(urls, "url")
        if path.startswith("/r/"):
            return 302, [f"Location: {urls[number]}"], ""
        if path != "/":
            return 200, [HTML], "<p>page"
        if channel == "redirect":
            return 200, [HTML], links([f"http://site.example/r/{n}" for n in range(len(urls))])
        if channel == "robots redirect":
            return 200, [HTML], links([f"http://h{n}.site.example/page" for n in range(len(urls))])
        if channel == "DNS rebinding":
            return 200, [HTML], links([f"http://rebind-{n // 4}.site.example/page/{n}" for n in range(len(urls))])
        if channel in ("seed, link of a page", "proxy"):
            return 200, [HTML], links(urls)
        return 200, [HTML], "<p>start"

    return respond


CRAWLS = ("seed, link of a page", "redirect", "robots redirect", "sitemap", "DNS rebinding", "proxy")


async def crawl(world: World, channel: str, urls: list[str], private: bool) -> int:
    """Hits of one crawl."""
    world.respond = respond_crawl(channel, urls)
    before = world.total
    world.site_requests.clear()
    with tempfile.TemporaryDirectory(prefix="nephila-canary-") as folder:
        words = ["http://site.example/", *(urls if channel.startswith("seed") else ())]
        options = [
            "--scope",
            "any",
            "--delay",
            "0",
            "--sitemap",
            "--max-time",
            "60",
            "--quiet",
            "--out",
            f"{folder}/out",
        ]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "nephila", "crawl", *words, *options, *(["--allow-private"] if private else []),
            env={
                **os.environ,
                "NEPHILA_DOWNLOADER__DNS__SERVERS": json.dumps([world.dns.address]),
                "NEPHILA_DOWNLOADER__HTTP__CONNECT_TIMEOUT_S": "2",
                "NEPHILA_DOWNLOADER__HTTP__HEADERS_TIMEOUT_S": "2",
                "NEPHILA_DOWNLOADER__LIMITS__ADDRESS_GAP_S": "0",
                "NEPHILA_SCHEDULER__ADDRESS_GAP_S": "0",
                **({"NEPHILA_DOWNLOADER__PROXIES__SOURCES": json.dumps([PROXY])} if channel == "proxy" else {}),
            },
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        await process.wait()
    if not world.site_requests["/"]:
        raise RuntimeError(f"the crawl of {channel} did not reach its site")
    if channel == "proxy" and not world.proxied:
        raise RuntimeError("the crawl did not use its proxy")
    return world.total - before


# ---- browser


def respond_page(page: str):  # type: ignore[no-untyped-def]
    """The site for one page of the browser."""

    def respond(host: str, path: str) -> tuple[int, list[str], str]:
        del host
        path, _, query = path.partition("?")
        if path == "/to":
            return 302, [f"Location: {unquote(query).strip(chr(34))}"], ""
        if path == "/worker.js":
            code = "self.addEventListener('install', () => fetch(unescape(location.search.slice(1)), {mode:'no-cors'}))"
            return 200, ["Content-Type: text/javascript"], code
        return (200, [HTML], page) if path == "/page" else (404, [HTML], "")

    return respond


class Browser:
    """A Chromium whose pages load one after the other, each in a context of its own."""

    def __init__(self, world: World, playwright, gateway, wait_s: float) -> None:  # type: ignore[no-untyped-def]
        self._world = world
        self._playwright = playwright
        self._gateway = gateway
        self._wait_s = wait_s
        self._count = 0

    async def open(self) -> None:
        """Start Chromium; without a gateway it dials by itself."""
        flags = DIRECT
        if self._gateway is not None:
            self._address = await self._gateway.start()
            flags = chromium_flags(self._address)
        self._chromium = await self._playwright.chromium.launch(
            executable_path=chromium.find(), args=["--no-sandbox", "--disable-dev-shm-usage", *flags]
        )

    async def close(self) -> None:
        """End Chromium."""
        await self._chromium.close()

    async def hits(self, page: str, url: str = "https://site.example/page") -> int:
        """Load a page and count what it reaches."""
        world, gateway = self._world, self._gateway
        world.respond = respond_page(page)
        before = world.total
        world.site_requests.clear()
        options = {}
        self._count += 1
        if gateway is not None:
            user, password = gateway.register(f"f{self._count}", FetchLimits(document_url=url, obey_robots=False))
            server = f"http://{self._address.host}:{self._address.port}"
            options = {"proxy": {"server": server, "username": user, "password": password}}
        context = await self._chromium.new_context(ignore_https_errors=gateway is None, **options)
        try:
            tab = await context.new_page()
            try:
                await tab.goto(url, wait_until="commit", timeout=10_000)
            except Exception as error:
                if "ERR_" not in str(error) and "Timeout" not in str(error):
                    raise
            await asyncio.sleep(self._wait_s)  # what a page starts by itself announces no end
        finally:
            await context.close()
            if gateway is not None:
                gateway.result(f"f{self._count}")
        if page and not world.site_requests["/page"]:
            raise RuntimeError("the page was not loaded")
        return world.total - before


def _few(tries: int) -> int:
    """Attempts of a channel with one page for each."""
    return max(tries // 4, 4)


async def browser_channels(world: World, table: Table, tries: int, control: bool) -> None:
    """All channels of the browser."""
    from playwright.async_api import async_playwright

    secure = ("service worker", "WebTransport")  # offered to pages over https only
    config = downloader_config(
        dns__servers=(world.dns.address,), dns__resolver="aiodns", tls_verify=False, connect_timeout_s=2
    )
    clock = SystemClock()
    router = DirectRouter(make_guarded_resolver(config.dns, clock))
    gateway = make_gateway(config.http, config.browser.host_rate, clock, router)
    async with async_playwright() as playwright:
        guarded = Browser(world, playwright, gateway, 1.5)
        await guarded.open()
        direct = Browser(world, playwright, None, 1.5)
        if control:
            await direct.open()
        urls = targets("http", "browser-document", tries)
        hits = sum([await guarded.hits("", url) for url in urls[: _few(tries)]])
        proof = await direct.hits("", urls[0]) if control else None
        table.add("browser: document", _few(tries), hits, proof)
        for number, (channel, page) in enumerate(BROWSER.items()):
            scheme = "https" if channel in secure else "http"
            at = f"{scheme}://site.example/page"
            urls = targets(scheme, f"browser-{number}", tries)
            hits = await guarded.hits(page(urls), at)
            proof = await direct.hits(page(urls[:CONTROL_TRIES]), at) if control else None
            table.add(f"browser: {channel}", tries, hits, proof)
        for channel, leave in NAVIGATIONS.items():
            few = _few(tries)
            urls = targets("http", "browser-navigation", few)
            hits = sum([await guarded.hits(leave(url), "http://site.example/page") for url in urls])
            proof = await direct.hits(leave(urls[0]), "http://site.example/page") if control else None
            table.add(f"browser: {channel}", few, hits, proof)
        await guarded.close()
        if control:
            await direct.close()
    await gateway.close()
    await router.close()


async def run(tries: int, control: bool) -> Table:
    """All channels; some `tries` attempts altogether."""
    table = Table()
    each = max(8, -(-tries // (len(CRAWLS) + len(BROWSER) + 1)))
    print(f"{'channel':<44}{'tries':>8}{'hits':>7}{'unguarded':>12}")
    async with World() as world:
        for channel in CRAWLS:
            hits = await crawl(world, channel, targets("http", "crawl", each), False)
            proof = await crawl(world, channel, targets("http", "crawl", CONTROL_TRIES), True) if control else None
            table.add(f"crawl: {channel}", each, hits, proof)
        await browser_channels(world, table, each, control)
        if table.hits:
            print("hit:", dict(world.hits))
    print(f"{'all':<44}{table.tries:>8}{table.hits:>7}")
    return table


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tries", type=int, default=1000, help="attempts over all channels")
    parser.add_argument("--no-control", action="store_true", help="no attempts without the guard")
    options = parser.parse_args()
    enter("tests.canary.canary")
    table = asyncio.run(run(options.tries, not options.no_control))
    return 1 if table.hits else 0


if __name__ == "__main__":
    sys.exit(main())
