"""What a server answers with: the routes and bodies of a generated site, or plain files under one folder per host."""

import json
import mmap
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

Action = dict[str, Any]
NOT_FOUND: Action = {"do": "body", "status": 404}
WRONG_HOST: Action = {"do": "body", "status": 421}
_TRACKING = ("utm_", "gclid", "fbclid")


class Content(Protocol):
    """Finds the action for a request and the bytes of its body."""

    addresses: list[str]

    def find(self, host: str, target: str) -> Action:
        """The action for a target of a host."""

    def body(self, action: Action) -> bytes | memoryview:
        """The stored body of an action."""


class GeneratedSite:
    """A site written by `benchmarks.web.generate`; bodies stay in the page cache."""

    def __init__(self, folder: Path) -> None:
        site = json.loads((folder / "site.json").read_text())
        self._hosts: dict[str, dict[str, Any]] = site["hosts"]
        self._routes: dict[str, dict[str, Action]] = site["routes"]
        self._open: dict[str, list[Action]] = site["open"]
        self.addresses = sorted({h["address"] for h in self._hosts.values()} | {"127.0.0.1"})
        self._bodies = b""
        path = folder / "bodies.bin"
        if path.stat().st_size:
            with path.open("rb") as file:
                self._bodies = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # type: ignore[assignment]
        self._view = memoryview(self._bodies)
        for host, actions in self._routes.items():
            for action in actions.values():
                self._inherit(host, action)

    def find(self, host: str, target: str) -> Action:
        """An exact route, else the route of the same URL without tracking and with sorted parameters, else an open
        prefix.
        """
        routes = self._routes.get(host)
        if routes is None:
            return WRONG_HOST
        action = routes.get(target) or routes.get(canonical_target(target))
        if action is not None:
            return action
        for candidate in self._open.get(host, ()):
            if target.startswith(candidate["prefix"]):
                return candidate
        return NOT_FOUND

    def body(self, action: Action) -> memoryview:
        """A slice of the mapped file; nothing is copied."""
        at = action.get("at", 0)
        return self._view[at : at + action.get("size", 0)]

    def _inherit(self, host: str, action: Action) -> None:
        """Habits of the host (latency, closing) become part of each of its actions."""
        habits = self._hosts.get(host, {})
        if habits.get("latency_s"):
            action.setdefault("latency_s", habits["latency_s"])
        if habits.get("close"):
            action.setdefault("close", True)


class Files:
    """FOLDER/<host>/<path>: a plain web; robots.txt is absent unless it is a file."""

    def __init__(self, folder: Path) -> None:
        self.addresses = ["127.0.0.1"]
        self._folder = folder.resolve()
        self._known: dict[tuple[str, str], Action] = {}

    def find(self, host: str, target: str) -> Action:
        """The file's action; remembered, so that a second look costs nothing."""
        key = (host, target)
        if key not in self._known:
            path = (self._folder / host / target.split("?")[0].lstrip("/")).resolve()
            inside = path.is_relative_to(self._folder) and path.is_file()
            self._known[key] = {"do": "body", "file": str(path)} if inside else NOT_FOUND
        return self._known[key]

    def body(self, action: Action) -> bytes:
        """The file's bytes."""
        return Path(action["file"]).read_bytes() if "file" in action else b""


def open_content(folder: Path) -> Content:
    """A generated site where there is one, else plain files."""
    return GeneratedSite(folder) if (folder / "site.json").exists() else Files(folder)


def canonical_target(target: str) -> str:
    """Path and query without tracking parameters, the rest sorted: what two spellings of one page share."""
    if "?" not in target:
        return target
    parts = urlsplit(target)
    kept = sorted((k, v) for k, v in parse_qsl(parts.query, keep_blank_values=True) if not k.startswith(_TRACKING))
    return parts.path + (f"?{urlencode(kept)}" if kept else "")
