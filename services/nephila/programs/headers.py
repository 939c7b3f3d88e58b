"""The options --header and --user: the hosts that get each header, and the part of it that run.json may hold.

A header without a host goes to every host only if its name is one of `EVERYWHERE`; any other may be a secret and goes
to the hosts of the seeds that the command line or the job names, and their www. twins. `@FILE` reads headers from a
file, one a line: run.json keeps the name of the file. Of a typed header that may be a secret, run.json keeps the name.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path

from nephila.downloader.http.headers import split_header
from nephila.kernel.runtime.errors import UsageError
from nephila.native import UrlError, parse_url

EVERYWHERE = frozenset(
    ("accept", "accept-encoding", "accept-language", "cache-control", "dnt", "from", "pragma", "referer", "user-agent")
)
MAX_FILE_BYTES = 1 << 20


def headers_of(lines: Iterable[str], seeds: Iterable[str]) -> tuple[str, ...]:
    """The downloader's headers, each with the hosts that it goes to. Raises `UsageError`."""
    hosts = _hosts_of(seeds)
    headers: list[str] = []
    for line in _read(lines):
        host, name, value = split_header(line)
        if not value and name.lower() not in EVERYWHERE:
            raise UsageError(f"--header {name}: give its value again, run.json keeps no secrets; @FILE is read again")
        if host or name.lower() in EVERYWHERE:
            headers.append(line)
        elif not hosts:
            raise UsageError(f"--header {name} may be a secret: say whom it is for, --header 'HOST {name}: …' (or *)")
        else:
            headers += [f"{seed_host} {name}: {value}" for seed_host in hosts]
    return tuple(headers)


def basic_auth(user: str, seeds: Iterable[str]) -> tuple[str, ...]:
    """The header of HTTP basic authentication (RFC 7617) for the hosts of the seeds, of NAME:PASSWORD or of a file with
    it. Raises `UsageError`."""
    if not user:
        return ()
    pair = next(iter(_read([user], "--user")), "") if user.startswith("@") else user
    name, colon, _ = pair.partition(":")
    if not colon:
        raise UsageError(
            f"--user {name}: give NAME:PASSWORD, with --resume too: run.json keeps no secrets; @FILE is read again"
        )
    hosts = _hosts_of(seeds)
    if not hosts:
        raise UsageError(
            "--user is for the hosts of the seeds, and none is given as a URL; see downloader.middleware.auth"
        )
    value = base64.b64encode(pair.encode()).decode()
    return tuple(f"{host} Authorization: Basic {value}" for host in hosts)


def redacted_user(user: str) -> str:
    """The value of --user as run.json keeps it: the name, or that of the file."""
    return user if user.startswith("@") else user.partition(":")[0]


def redacted(lines: Iterable[str]) -> list[str]:
    """The headers as run.json keeps them: without values that may be secrets."""
    headers = []
    for line in lines:
        if not line.startswith("@"):
            host, name, _ = split_header(line)
            if name.lower() not in EVERYWHERE:
                line = f"{host} {name}:".strip()
        headers.append(line)
    return headers


def _read(lines: Iterable[str], option: str = "--header") -> Iterable[str]:
    for line in lines:
        if not line.startswith("@"):
            yield line
            continue
        try:
            with Path(line[1:]).open("rb") as file:
                text = file.read(MAX_FILE_BYTES).decode("utf-8")
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read {option} {line}: {getattr(error, 'strerror', None) or error}") from None
        yield from (entry.strip() for entry in text.splitlines() if entry.strip() and not entry.startswith("#"))


def _hosts_of(seeds: Iterable[str]) -> list[str]:
    hosts: dict[str, None] = {}
    for url in seeds:
        try:
            host = parse_url(url).host_key
        except UrlError:
            continue
        hosts[host] = None
        hosts[host[4:] if host.startswith("www.") else f"www.{host}"] = None
    return list(hosts)
