"""The model of a bench web: hosts, pages, what the server does for each and how a right crawler ends each.

Invariant: a page's depth does not depend on the order in which hosts answer. It holds because a page has one parent,
and all other links go to
pages a crawler has surely seen by then (ancestors and their children: see `Site.seen_by`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.web.prose import Prose

STORED = ("stored",)
DENIED = ("denied(robots)",)
NO_ROW = ("none",)
REDIRECTED = ("dropped(redirect)",)

Action = dict[str, Any]
Render = Callable[["Page", Prose], bytes]


@dataclass
class Page:
    """One URL. *accept* are the outcomes a right crawler may give it, in the contract's words; "none" = no row; * is a
    wildcard.
    """

    host: str
    path: str
    url: str
    kind: str
    accept: tuple[str, ...] = STORED
    depth: int = 0
    parent: Page | None = None
    disallowed: bool = False
    title: str = ""
    action: Action = field(default_factory=lambda: {"do": "body"})
    render: Render | None = None
    size: int = 6000
    hrefs: list[str] = field(default_factory=list)
    children: list[Page] = field(default_factory=list)
    max_bytes: int = 64 << 20

    def verdict_entry(self) -> dict[str, Any]:
        """The data for the judge."""
        entry = {
            "url": self.url,
            "host": self.host,
            "path": self.path,
            "kind": self.kind,
            "accept": list(self.accept),
            "depth": self.depth,
        }
        if self.disallowed:
            entry["disallowed"] = True
        if self.title:
            entry["title"] = self.title
        return entry | {"max_bytes": self.max_bytes}


@dataclass
class Open:
    """A prefix under which URLs have no end: every row under it must be in *accept*; the server may see at most
    *max_requests*.
    """

    host: str
    prefix: str
    kind: str
    accept: tuple[str, ...]
    max_requests: int
    action: Action


@dataclass
class Host:
    """A host name and how it behaves as a whole."""

    name: str
    address: str
    kind: str
    robots: Action = field(default_factory=lambda: {"do": "body", "status": 404})
    robots_text: bytes = b""
    robots_paths: list[str] = field(default_factory=lambda: ["/robots.txt"])
    crawl_delay_s: float = 0.0
    disallow_all: bool = False
    forbidden: bool = False
    latency_s: float = 0.0
    close: bool = False
    listening: bool = True
    home: Page | None = None


class Site:
    """A bench web under construction; `write` makes it files for the server and a manifest for the judge."""

    def __init__(self, seed: int, port: int, max_depth: int, agent: str = "nephila") -> None:
        self.seed, self.port, self.max_depth, self.agent = seed, port, max_depth, agent
        self.prose = Prose(seed)
        self.hosts: dict[str, Host] = {}
        self.pages: dict[str, Page] = {}
        self.opens: list[Open] = []
        self.seeds: list[str] = []

    def url(self, host: str, path: str) -> str:
        """The absolute URL of a path on one of our hosts."""
        return f"http://{host}:{self.port}{path}"

    def add_host(self, host: Host) -> Host:
        """A new host; its name must be new."""
        if host.name in self.hosts:
            raise ValueError(f"host {host.name} twice")
        self.hosts[host.name] = host
        return host

    def add(
        self,
        parent: Page | None,
        host: Host,
        path: str,
        kind: str,
        *,
        href: str | None = None,
        hop: bool = False,
        **changes: Any,
    ) -> Page:
        """A page that *parent* links to (by *href*, if the link is not simply its URL); *hop* = reached by redirect,
        at the parent's depth.
        """
        url = self.url(host.name, path)
        if url in self.pages:
            raise ValueError(f"page {url} twice")
        depth = 0 if parent is None else parent.depth + (0 if hop else 1)
        page = Page(host.name, path, url, kind, depth=depth, parent=parent, **changes)
        self.pages[url] = page
        if parent is None:
            self.seeds.append(url)
        elif not hop:
            parent.children.append(page)
            parent.hrefs.append(url if href is None else href)
        return page

    def seen_by(self, page: Page) -> list[Page]:
        """The pages any crawler has admitted before it reads *page*: its ancestors and all their children."""
        known: list[Page] = []
        above = page.parent
        while above is not None:
            known += [above, *above.children]
            above = above.parent
        return known

    def write(self, out: Path) -> None:
        """Write manifest.json (the judge's), site.json and bodies.bin (the server's)."""
        out.mkdir(parents=True, exist_ok=True)
        with (out / "bodies.bin").open("wb") as bodies:
            store = _BodyStore(bodies.write)
            site = self._server_side(store.put)
        (out / "site.json").write_text(json.dumps(site, indent=0, sort_keys=True))
        (out / "manifest.json").write_text(json.dumps(self.manifest(), indent=1, sort_keys=True))

    def manifest(self) -> dict[str, Any]:
        """What a judge needs: hosts, pages with their outcomes, open prefixes, and the crawl that is to be judged."""
        return {
            "version": 1,
            "seed": self.seed,
            "port": self.port,
            "seeds": self.seeds,
            "agent": self.agent,
            "max_depth": self.max_depth,
            "crawl": self.crawl_arguments(),
            "hosts": {h.name: _judged_host(h) for h in self.hosts.values()},
            "pages": [p.verdict_entry() for p in self.pages.values()],
            "open": [
                {
                    "host": o.host,
                    "prefix": o.prefix,
                    "kind": o.kind,
                    "accept": list(o.accept),
                    "max_requests": o.max_requests,
                }
                for o in self.opens
            ],
        }

    def crawl_arguments(self) -> list[str]:
        """The words after `nephila crawl` for this web."""
        words = [
            *self.seeds,
            "--scope",
            "any",
            "--include",
            r"\.web\.test",
            "--max-depth",
            str(self.max_depth),
            "--allow-private",
        ]
        for host in self.hosts.values():
            words += ["--host-map", f"{host.name}={host.address}"]
        return words

    def _server_side(self, put: Callable[[bytes], tuple[int, int]]) -> dict[str, Any]:
        routes: dict[str, dict[str, Action]] = {name: {} for name in self.hosts}
        for host in self.hosts.values():
            routes[host.name]["/robots.txt"] = _placed(host.robots, host.robots_text, put)
        for page in self.pages.values():
            body = (page.render or ordinary)(page, self.prose) if needs_body(page.action) else b""
            routes[page.host].setdefault(page.path, _placed(page.action, body, put))
        opens: dict[str, list[Action]] = {}
        for o in self.opens:
            opens.setdefault(o.host, []).append({"prefix": o.prefix, **o.action})
        hosts = {
            h.name: {"address": h.address, "latency_s": h.latency_s, "close": h.close}
            for h in self.hosts.values()
            if h.listening
        }
        return {"port": self.port, "hosts": hosts, "routes": routes, "open": opens}


class _BodyStore:
    """Appends bodies to one file and remembers where each went; equal bodies are stored once."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write, self._at, self._known = write, 0, dict[bytes, tuple[int, int]]()

    def put(self, body: bytes) -> tuple[int, int]:
        if body not in self._known:
            self._write(body)
            self._known[body] = (self._at, len(body))
            self._at += len(body)
        return self._known[body]


def needs_body(action: Action) -> bool:
    """Whether the action sends a stored body."""
    return action["do"] in ("body", "truncate", "drip")


def ordinary(page: Page, prose: Prose) -> bytes:
    """The default body: an ordinary document with the page's links."""
    page.title = page.title or prose.title()
    return prose.page(page.title, page.hrefs, page.size)


def _placed(action: Action, body: bytes, put: Callable[[bytes], tuple[int, int]]) -> Action:
    if not body:
        return action
    at, size = put(body)
    return {**action, "at": at, "size": size}


def _judged_host(host: Host) -> dict[str, Any]:
    return {
        "address": host.address,
        "kind": host.kind,
        "crawl_delay_s": host.crawl_delay_s,
        "disallow_all": host.disallow_all,
        "forbidden": host.forbidden,
        "robots_paths": host.robots_paths,
    }
