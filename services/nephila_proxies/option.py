"""The option --proxy: entries of the setting `proxies`, and the part of them that run.json may hold.

run.json keeps no password: a resumed crawl needs `--proxy` again, or an entry `file PATH`, which is read again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from nephila.kernel.runtime.errors import UsageError

from nephila_proxies.endpoint import parse_endpoint

WEB, FILE = ("list", "json"), "file"
_NO_PASSWORD = "..."  # noqa: S105 - what stands in its place


def proxies_of(entries: Iterable[str]) -> tuple[str, ...]:
    """The entries of the setting. Raises `UsageError`, which does not repeat the entry: it may have a password."""
    resolved = []
    for number, entry in enumerate(entries, 1):
        word, _, rest = entry.strip().partition(" ")
        if word == FILE:
            path, _, options = rest.strip().partition(" ")
            resolved.append(f"{FILE} {os.path.abspath(path)} {options}".strip())
        elif word in WEB:
            resolved.append(entry)
        else:
            try:
                endpoint = parse_endpoint(entry, trusted=True)
            except ValueError as error:
                raise UsageError(
                    f"--proxy {number}: {error}; expected http://user:password@host:port, or 'file PATH', 'list URL'"
                ) from None
            if endpoint.password == _NO_PASSWORD:
                raise UsageError(
                    f"--proxy {endpoint.name}: give it again with its password, run.json keeps no secrets; "
                    "--proxy 'file PATH' is read again"
                )
            resolved.append(entry)
    return tuple(resolved)


def redacted(entries: Iterable[str]) -> list[str]:
    """The entries as run.json keeps them: without passwords."""
    texts = []
    for entry in entries:
        word, _, options = entry.strip().partition(" ")
        if word not in (FILE, *WEB):
            endpoint = parse_endpoint(entry)
            if endpoint.password:
                name = endpoint.name.replace("@", f":{_NO_PASSWORD}@", 1)
                entry = f"{name} {options}".strip()
        texts.append(entry)
    return texts
