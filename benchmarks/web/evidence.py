"""What a judge has before it: the server's log, the manifest and, for lost rows, the crawl's table. Reading only; no
opinion.

Everything that cannot be read ends as `Unusable` with one line that names the file and the cause.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from benchmarks.web.content import canonical_target

_SAFE = "/%:@!$&'()*+,;=~|?[]{}^`\\\"<>-._"


class Unusable(Exception):
    """The input cannot be judged."""


@dataclass(frozen=True)
class Request:
    """One request as the server saw it."""

    host: str
    path: str
    start: float
    end: float
    status: int = 200
    bytes: int = 0
    conn: int = 0
    aborted: bool = False
    retry_after_s: float | None = None
    address: str = ""
    """The server's address of the request; empty in a log without it."""
    late_s: float = 0.0
    """The request may have come so much before `start`: the server itself stood still."""


@dataclass(frozen=True)
class Row:
    """One row of the table `pages`."""

    job: str
    url: str
    url_key: str
    ending: str
    title: str | None = None


@dataclass
class Case:
    """All the evidence, indexed the way the checks ask for it."""

    manifest: dict[str, Any]
    requests: list[Request]
    closed: dict[int, float] = field(default_factory=dict)
    rows: list[Row] | None = None
    delay_s: float = 1.0
    concurrency: int = 1
    slack_s: float = 0.02
    per_address: int = 4
    address_gap_s: float = 0.25

    def __post_init__(self) -> None:
        self.hosts: dict[str, dict[str, Any]] = self.manifest["hosts"]
        self.pages: dict[str, dict[str, Any]] = {normalised(p["url"]): p for p in self.manifest["pages"]}
        self.by_host: dict[str, list[Request]] = defaultdict(list)
        self.by_page: dict[str, list[Request]] = defaultdict(list)
        self.by_address: dict[str, list[Request]] = defaultdict(list)
        port = self.manifest["port"]
        for request in sorted(self.requests, key=lambda r: r.start):
            self.by_host[request.host].append(request)
            self.by_address[request.address].append(request)
            self.by_page[normalised(f"http://{request.host}:{port}{request.path}")].append(request)

    def is_rules(self, request: Request) -> bool:
        """Whether a request is for robots.txt or for the target of its redirect."""
        return request.path in self.hosts.get(request.host, {}).get("robots_paths", ["/robots.txt"])

    def open_prefix(self, host: str, path: str) -> dict[str, Any] | None:
        """The endless part of the web that a URL lies in."""
        for prefix in self.manifest["open"]:
            if prefix["host"] == host and path.startswith(prefix["prefix"]):
                return dict(prefix)
        return None


def normalised(url: str) -> str:
    """One spelling per page: no credentials, fragment or tracking; sorted parameters; ASCII host; percent-encoded."""
    parts = urlsplit(url)
    host = (parts.hostname or "").encode("idna").decode()
    port = f":{parts.port}" if parts.port else ""
    target = quote(
        canonical_target(quote((parts.path or "/"), _SAFE) + (f"?{parts.query}" if parts.query else "")), _SAFE
    )
    return f"{parts.scheme}://{host}{port}{target}"


def load_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a generated web."""
    path = path / "manifest.json" if path.is_dir() else path
    try:
        manifest = json.loads(path.read_text())
    except OSError as error:
        raise Unusable(f"manifest {path}: {error.strerror}") from None
    except ValueError as error:
        raise Unusable(f"manifest {path}: not JSON ({error})") from None
    if (
        not isinstance(manifest, dict)
        or manifest.get("version") != 1
        or not {"hosts", "pages", "open", "port"} <= manifest.keys()
    ):
        raise Unusable(f"manifest {path}: not the manifest of a bench web (version 1)")
    return manifest


def load_log(path: Path) -> tuple[list[Request], dict[int, float]]:
    """The requests and the times at which connections closed. A torn last line is what a killed server leaves; any
    other is an error.
    """
    try:
        lines = path.read_text().split("\n")
    except OSError as error:
        raise Unusable(f"log {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Unusable(f"log {path}: not text") from None
    requests: list[Request] = []
    closed: dict[int, float] = {}
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            event = json.loads(line)
            if event["event"] == "close":
                closed[event["conn"]] = event["t_close"]
            else:
                requests.append(_request(event))
        except (ValueError, KeyError, TypeError):
            if number < len(lines):
                raise Unusable(f"log {path}, line {number}: not a line of the bench server") from None
    if not requests:
        raise Unusable(f"log {path}: no request in it")
    return requests, closed


def _request(event: dict[str, Any]) -> Request:
    return Request(
        event["host"],
        event["path"],
        event["t_start"],
        event["t_end"],
        event["status"],
        event["bytes"],
        event["conn"],
        event["aborted"],
        event.get("retry_after_s"),
        event.get("address", ""),
        event.get("late_s", 0.0),
    )


def load_rows(path: Path) -> list[Row]:
    """The table `pages` of a crawl's directory or database."""
    path = path / "nephila.db" if path.is_dir() else path
    if not path.is_file():
        raise Unusable(f"database {path}: no such file")
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            found = connection.execute("SELECT job, url, url_key, outcome, reason, title FROM pages").fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise Unusable(f"database {path}: {error}") from None
    return [
        Row(str(job), url, str(key), ending(outcome, reason), title) for job, url, key, outcome, reason, title in found
    ]


def ending(outcome: str, reason: str | None) -> str:
    """An outcome in the contract's words: stored, or outcome(reason)."""
    return "stored" if outcome == "stored" else f"{outcome}({reason or ''})"
