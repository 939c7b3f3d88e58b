"""Packed links of the lines of a seed file: the URLs of `parse_url`, line by line, and no line lost."""

from __future__ import annotations

import random
import struct
from types import ModuleType

import pytest

PLAIN = [
    "http://a.test/",
    "HTTPS://B.test:443/x?b=2&a=1",
    "  https://c.test:8080/%7Eu?utm_source=x \r",
    "http://a.test",
]
ODD = ["c.test", "http://a.test/#/route", "http://u:p@a.test/", "http://ä.test/", "http://a b.test/", "ftp://a.test/"]
VOID = ["", "# a comment", " \t"]


def read(core: ModuleType, text: bytes) -> tuple[list[tuple[str, str, bytes]], list[bytes], int]:
    """(URL, host key, fingerprint) of the packed links, the other lines, and the number of all lines."""
    rows, others, lines, at = [], [], 0, 0
    while at < len(text):
        keys, urls, ends, spans, count, end, odd = core.seed_links(text, at)
        assert count > 0
        assert end > at
        for number, first, last in odd:
            assert text[at:first].count(b"\n") == number
            others.append(text[first:last])
        lines, start = lines + count, 0
        for n, stop in enumerate(struct.unpack(f"<{len(ends) // 4}I", ends)):
            first, last = struct.unpack_from("<2I", spans, 8 * n)
            rows.append((urls[start:stop].decode(), urls[first:last].decode(), keys[16 * n : 16 * n + 16]))
            start = stop
        at = end
    return rows, others, lines


@pytest.mark.parametrize("seed", range(5))
def test_every_line_is_packed_or_left_over(core: ModuleType, seed: int) -> None:
    """Plain URLs as `parse_url` has them, each once in a piece; other lines as they stand; none for an empty one."""
    rng = random.Random(seed)
    lines = rng.choices([*PLAIN, *ODD, *VOID, *(f"http://h{n}.test/{n}?z=1&a={n}" for n in range(200))], k=3000)
    rows, others, count = read(core, "\n".join(lines).encode())
    assert count == len(lines) - (not lines[-1])
    assert [line.decode().strip() for line in others] == [line for line in lines if line in ODD]
    expected = {core.parse_url(line.strip()).fingerprint: line for line in lines if line not in [*ODD, *VOID]}
    assert {row[2] for row in rows} == set(expected)
    for url, host, key in rows:
        parts = core.parse_url(expected[key].strip())
        assert (url, host) == (parts.href, parts.host_key)


def test_a_call_ends_after_a_thousand_links(core: ModuleType) -> None:
    """The rest is read by further calls; a URL that stands there twice is one link of a call. So does one after a
    thousand other lines."""
    text = "".join(f"http://h{n}.test/\n" * 2 for n in range(1500)).encode()
    keys, _, _, _, lines, end, odd = core.seed_links(text, 0)
    assert odd == []
    assert (len(keys) // 16, lines, text[:end].count(b"\n")) == (1000, 1999, 1999)
    assert len(read(core, text)[0]) == 1501
    odd = core.seed_links(b"http://a.test/\n" + b"a.test\n" * 1500, 0)[-1]
    assert (len(odd), odd[0], odd[-1][0]) == (1000, (1, 15, 22), 1000)


def test_a_bad_line_ends_no_packed_thousand(core: ModuleType) -> None:
    """The lines behind it are in the same message."""
    lines = [f"http://h{n}.test/" if n % 3 else "no url" for n in range(1200)]
    keys, *_, odd = core.seed_links("\n".join(lines).encode(), 0)
    assert (len(keys) // 16, len(odd)) == (800, 400)


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"\n", b"\r\n\r\n", b"#", b"\xff\xfe", b"http://"),
        *(b"http://a.test/" + b"x" * 9000, b"http://a.test/" + b'"' * 3000),
    ],
)
def test_lines_without_a_link(core: ModuleType, text: bytes) -> None:
    assert read(core, text)[0] == []


def test_a_start_behind_the_end(core: ModuleType) -> None:
    assert core.seed_links(b"http://a.test/", 99)[0] == b""
