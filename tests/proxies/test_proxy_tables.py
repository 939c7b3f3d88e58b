"""Tables of proxies in HTML pages, and lists that are too long or hostile: bounded, and off the event loop."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path

import pytest
from nephila_proxies.pool import MAX_PROXIES, ProxyPool
from nephila_proxies.sources import (
    MAX_LIST_BYTES,
    MAX_SKIPPED,
    FileSource,
    SourceError,
    parse_json,
    parse_lines,
)

WITH_HEADS = b"""<html><nav><table><tr><td>Home<td>FAQ</table></nav>
<table class="t"><thead><tr><th>IP Address</th><th>Port</th><th>Code</th><th>Country</th><th>Https</th></tr></thead>
<tr><td>203.0.113.9</td><td>8080</td><td>DE</td><td class='hm'>Germany</td><td>yes</td></tr>
<TR><TD><b>203.0.113.10</b></TD><TD> 3128 </TD><TD>US</TD><TD>United States</TD><TD>no</TD></TR>
<tr><td>203.0.113.11</td><td>99999</td><td>US</td></tr></table>"""
WITHOUT_HEADS = b"""<table><tr><td>1</td><td>198.51.100.4</td><td>1080</td><td>SOCKS5</td><td>FR</td></tr>
<tr><td>2</td><td>198.51.100.5</td><td>80</td><td>HTTPS</td><td>NL</td></tr>
<tr><td>3</td><td>198.51.100.6</td><td>80</td><td>SOCKS4</td></tr></table>"""
WITH_PAIRS = (
    b"<table><tr><td>&nbsp;proxy.example.org:3128</td><td>x</td></tr><tr><td><a href=#>203.0.113.7:81</a></table>"
)


@pytest.mark.parametrize(
    ("page", "names", "skipped"),
    [
        (WITH_HEADS, ["http://203.0.113.9:8080 de", "http://203.0.113.10:3128 us"], 1),
        (WITHOUT_HEADS, ["socks5://198.51.100.4:1080 fr", "http://198.51.100.5:80 nl"], 1),
        (WITH_PAIRS, ["http://proxy.example.org:3128 ", "http://203.0.113.7:81 "], 0),
    ],
)
def test_rows_with_address_and_port_are_proxies(page: bytes, names: list[str], skipped: int) -> None:
    """With heads of columns, without them, and with both in one cell."""
    found = parse_lines(page, "", "", trusted=False)
    assert [f"{one.name} {one.country}" for one in found.endpoints] == names
    assert found.skipped == skipped


def test_a_column_names_the_provider() -> None:
    """ISP of a table, as one word."""
    page = b"<table><tr><th>IP<th>Port<th>ISP</tr><tr><td>203.0.113.9<td>80<td>Big Net Ltd.</td></tr></table>"
    assert [one.provider for one in parse_lines(page, "", "", trusted=False).endpoints] == ["big-net-ltd."]


@pytest.mark.parametrize("line", [b"# <tr", b"# <td> <th>"])
def test_a_list_with_a_part_of_a_table_is_a_list(line: bytes) -> None:
    """A table has rows and cells."""
    found = parse_lines(line + b"\n203.0.113.7:81\n", "", "", trusted=False)
    assert [one.name for one in found.endpoints] == ["http://203.0.113.7:81"]


def test_a_page_without_a_proxy_is_an_error() -> None:
    """A login page in the place of the list must not empty the pool."""
    with pytest.raises(ValueError, match="no table with addresses and ports"):
        parse_lines(b"<table><tr><td>Please log in</td></tr></table>", "", "", trusted=False)


@pytest.mark.parametrize(
    "data",
    [
        b"203.0.113.1:x\n" * 1_200_000,
        b"x" * MAX_LIST_BYTES,
        b"<table>" + b"<tr><td>" * 2_000_000,
        b"<table><tr>" + b"<td " * 4_000_000,
        b"<table><tr><td>" + b"<" * (MAX_LIST_BYTES - 20),
    ],
)
def test_a_hostile_list_costs_little(data: bytes) -> None:
    """Memory: three times the list. Time: a bounded number of lines, rows and cells."""
    tracemalloc.start()
    try:
        found = parse_lines(data, "", "", trusted=False)
        assert not found.endpoints
        assert found.skipped <= MAX_SKIPPED
    except ValueError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 3.2 * MAX_LIST_BYTES


def test_a_long_list_is_cut() -> None:
    """Each proxy once, at most so many; the rest of the list is not read."""
    data = b"".join(b"203.0.%d.%d:80\n" % (number >> 8, number & 255) for number in range(30_000))
    found = parse_lines(data * 2, "", "", trusted=False)
    assert (len(found.endpoints), found.cut) == (MAX_PROXIES, True)
    found = parse_lines(b"203.0.113.1:80\n" * 100_000, "", "", trusted=False)
    assert (len(found.endpoints), found.cut) == (1, False)
    items = (
        b'{"data":[' + b",".join(b'{"ip":"203.0.113.1","port":%d}' % (1 + n % 60_000) for n in range(70_000)) + b"]}"
    )
    found = parse_json(items, "data", "", "")
    assert (len(found.endpoints), found.cut) == (MAX_PROXIES, True)


def test_the_pool_is_bounded_over_all_lists() -> None:
    """What it does not take is counted."""
    pool = ProxyPool()
    data = b"".join(b"203.0.%d.%d:80\n" % (number >> 8, number & 255) for number in range(MAX_PROXIES))
    assert pool.replace("one", parse_lines(data, "", "", trusted=False).endpoints) == 0
    assert (
        pool.replace("two", parse_lines(data.replace(b":80", b":81"), "", "", trusted=False).endpoints) == MAX_PROXIES
    )
    assert len(pool) == MAX_PROXIES
    pool.check()


async def test_the_event_loop_is_free_while_a_list_is_read(tmp_path: Path) -> None:
    """Other callbacks run meanwhile."""
    path = tmp_path / "proxies.txt"
    path.write_bytes(b"203.0.113.1:x\n" * 100_000)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.ensure_future(count())
    found = await FileSource(str(path), "", "").read()
    other.cancel()
    assert found is not None
    assert found.skipped == MAX_SKIPPED
    assert turns > 10


async def test_a_file_that_is_a_page_without_proxies_keeps_its_proxies(tmp_path: Path) -> None:
    """`SourceError`: the keeper leaves the pool as it is."""
    path = tmp_path / "proxies.html"
    path.write_bytes(b"<table><tr><td>gone</td></tr></table>")
    with pytest.raises(SourceError):
        await FileSource(str(path), "", "").read()
