"""Tables of proxies in HTML pages: rows with an address and a port become lines of a list. Pure, one pass, O(bytes).

The heads of columns name them where there are any; without heads the first cell that is an address counts, and the
next one that is a number. Text that scripts write or pictures show is not read.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import islice

from nephila.kernel.runtime.late_pattern import late_pattern

from nephila_proxies.endpoint import provider_of

MAX_ROWS, MAX_CELLS, MAX_CELL_CHARS = 50_000, 40, 1000
"""Later rows, further cells and longer texts are not read."""
_ROW = late_pattern(r"<tr\b", re.I)
_CELL = late_pattern(r"<t[dh]\b[^<>]*>", re.I)
_TAG = late_pattern(r"<[^<>]*>")
_END = late_pattern(r"</t[dhr]\b|</table", re.I)
_ADDRESS = late_pattern(r"(?:\d{1,3}\.){3}\d{1,3}\Z")
_WITH_PORT = late_pattern(r"([a-z0-9.-]+\.[a-z0-9-]+):(\d{1,5})\Z", re.I)
_COLUMNS = {
    "host": ("ip", "ip address", "address", "host", "hostname", "proxy", "proxy ip", "proxy address", "server"),
    "port": ("port", "proxy port"),
    "country": ("code", "country code", "cc", "country"),
    "provider": ("isp", "provider", "organization", "org", "operator", "carrier"),
    "scheme": ("type", "protocol", "protocols", "proxy type", "scheme"),
}
_SCHEMES = ("http", "https", "socks4", "socks5")


def is_page(data: bytes) -> bool:
    """Whether a list is an HTML page with a table."""
    head = data[: 1 << 20].lower()
    return b"<tr" in head and (b"<td" in head or b"<th" in head)


def lines_of_tables(text: str) -> Iterator[str]:
    """One line of `parse_endpoint` per row with an address and a port."""
    columns: dict[str, int] = {}
    for row in _rows(text):
        cells = [_text(cell) for cell in row]
        named = _columns(cells)
        if named:
            columns = named
        elif line := _line(cells, columns):
            yield line


def _rows(text: str) -> Iterator[list[str]]:
    start: int | None = None
    for row in islice(_ROW.finditer(text), MAX_ROWS):
        if start is not None:
            yield _CELL.split(text[start : row.start()], MAX_CELLS)[1:]
        start = row.end()
    if start is not None:
        yield _CELL.split(text[start:], MAX_CELLS)[1:]


def _text(cell: str) -> str:
    cell = cell[:MAX_CELL_CHARS]
    end = _END.search(cell)
    return " ".join(html.unescape(_TAG.sub(" ", cell[: end.start()] if end else cell)).split())


def _columns(cells: list[str]) -> dict[str, int]:
    """Name → number of the columns, if these cells are their heads."""
    columns: dict[str, int] = {}
    for number, cell in enumerate(cells):
        for name, words in _COLUMNS.items():
            if cell.lower() in words:
                columns.setdefault(name, number)
    return columns if "host" in columns else {}


def _line(cells: list[str], columns: dict[str, int]) -> str:
    """The line of a row; empty: it has no address or no port."""

    def named(name: str) -> str:
        number = columns.get(name, -1)
        return cells[number] if 0 <= number < len(cells) else ""

    at = next((number for number, cell in enumerate(cells) if _ADDRESS.match(cell)), -1)
    host, port = (cells[at], "") if at >= 0 else (named("host"), "")
    if at < 0 and (pair := next((match for cell in cells if (match := _WITH_PORT.match(cell))), None)):
        host, port = pair[1], pair[2]
    if not port:
        port = named("port") or next((cell for cell in cells[at + 1 :] if cell.isascii() and cell.isdigit()), "")
    if not host or not port:
        return ""
    words = named("scheme").lower() or next((cell.lower() for cell in cells if cell.lower() in _SCHEMES), "")
    scheme = next((word for word in reversed(_SCHEMES) if word in words), "http")
    country = named("country") or next((cell for cell in cells if len(cell) == 2 and cell.isupper()), "")
    # As in the answers of providers, "https" means an http proxy with CONNECT.
    line = f"{'http' if scheme == 'https' else scheme}://{host}:{port}"
    if len(country) == 2 and country.isascii() and country.isalpha():
        line = f"{line} country={country}"
    provider = provider_of(named("provider"))
    return f"{line} provider={provider}" if provider else line
