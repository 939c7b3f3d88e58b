"""The country of an address, from a local file with ranges: "first,last,DE" as DB-IP exports it, or "network,DE"."""

from __future__ import annotations

import csv
import ipaddress
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path

from nephila.kernel.runtime.errors import UsageError


class Countries:
    """Ranges in order of their first address. A look-up is O(log ranges)."""

    def __init__(self, rows: Iterable[list[str]] = ()) -> None:
        self._ranges: dict[int, list[tuple[int, int, str]]] = {4: [], 6: []}
        for row in rows:
            if len(row) < 2 or row[0].startswith("#"):
                continue
            if "/" in row[0]:
                network = ipaddress.ip_network(row[0])
                first, last = network.network_address, network.broadcast_address
            else:
                first, last = ipaddress.ip_address(row[0]), ipaddress.ip_address(row[1])
            self._ranges[first.version].append((int(first), int(last), row[-1].strip().lower()))
        for ranges in self._ranges.values():
            ranges.sort()
        self._starts = {version: [row[0] for row in ranges] for version, ranges in self._ranges.items()}

    def find(self, address: str) -> str:
        """Two letters in lower case; empty when no range contains the address."""
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return ""
        at = bisect_right(self._starts[parsed.version], int(parsed)) - 1
        if at < 0:
            return ""
        _, last, country = self._ranges[parsed.version][at]
        return country if int(parsed) <= last else ""


def load_countries(path: str) -> Countries:
    """The ranges of a file; an empty path: none. Raises `UsageError`."""
    if not path:
        return Countries()
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            return Countries(csv.reader(file))
    except (OSError, ValueError) as error:
        raise UsageError(f"proxies.countries {path}: {error}") from None
