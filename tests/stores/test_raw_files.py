"""Files of fetched bodies: whole, truncated, damaged and hostile ones."""

from __future__ import annotations

import gzip
import hashlib
import random

import pytest
from nephila_stores import raw_file as rawfile
from nephila_stores.raw_file import DamagedMember, RawPage, RawPageHead, member, read


def pages(*bodies):
    """One member per page."""
    return [
        gzip.compress(member(RawPageHead(url=f"http://a.test/{number}", sha256=str(number)), body), mtime=0)
        for number, body in enumerate(bodies)
    ]


def test_pages_come_back_in_order(tmp_path):
    """Bodies byte for byte, line ends and NULs included."""
    bodies = [b"", b"one\ntwo\n", b"\0\xff" * 100_000, random.Random(4).randbytes(300_000)]
    path = tmp_path / "raw-00000.gz"
    path.write_bytes(b"".join(pages(*bodies)))
    assert [found.body for found in read(path)] == bodies
    assert gzip.decompress(path.read_bytes()).startswith(b'{"url":"http://a.test/0"')


def test_a_file_that_ends_anywhere_gives_what_stands_before(tmp_path):
    """A killed writer leaves a damaged last member, which is reported."""
    whole = pages(b"a" * 500, b"b" * 500)
    data = b"".join(whole)
    path = tmp_path / "raw-00000.gz"
    for end in range(len(whole[0]) + 3, len(data)):
        path.write_bytes(data[:end])
        first, torn = read(path)
        assert first.body == b"a" * 500
        assert isinstance(torn, DamagedMember)
        assert torn.offset == len(whole[0])


def test_damage_costs_the_page_it_is_in(tmp_path):
    """Any changed byte of the second of three members leaves the first and the third readable."""
    one, two, three = pages(b"a" * 500, bytes(range(256)) * 4, b"c" * 500)
    path = tmp_path / "raw-00000.gz"
    rng = random.Random(7)
    for _ in range(200):
        at = rng.randrange(len(two))
        broken = two[:at] + bytes((two[at] ^ rng.randrange(1, 256),)) + two[at + 1 :]
        path.write_bytes(one + broken + three)
        found = [item for item in read(path) if isinstance(item, RawPage)]
        assert (found[0].body, found[-1].body) == (b"a" * 500, b"c" * 500)
    path.write_bytes(one + b"\0" * 100_000 + three)
    assert len(list(read(path))) == 2


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"no line at all", "does not begin with a line of JSON"),
        (b"[]\n", "first line cannot be read"),
        (b"x" * 100_000 + b"\n", "does not begin with a line of JSON"),
    ],
)
def test_a_member_of_another_kind_is_reported(tmp_path, content, expected):
    """Any gzip file may have such a name."""
    path = tmp_path / "raw-00000.gz"
    path.write_bytes(gzip.compress(content))
    (torn,) = read(path)
    assert expected in torn.why


def test_a_bomb_is_left_out(tmp_path, monkeypatch):
    """At most the allowed size of a body is unpacked."""
    monkeypatch.setattr(rawfile, "MAX_BODY_BYTES", 1 << 20)
    path = tmp_path / "raw-00000.gz"
    path.write_bytes(gzip.compress(member(RawPageHead(url="x"), b"0" * (5 << 20))) + pages(b"after")[0])
    torn, after = read(path)
    assert "larger than" in torn.why
    assert after.body == b"after"


def test_a_body_that_is_not_the_one_fetched_is_reported(tmp_path):
    """Otherwise rules applied to it would delete existing items."""
    path = tmp_path / "raw-00000.gz"
    right = RawPageHead(url="http://a.test/1", sha256=hashlib.sha256(b"one").hexdigest())
    path.write_bytes(b"".join(gzip.compress(member(right, body), mtime=0) for body in (b"", b"one")))
    torn, kept = read(path)
    assert isinstance(torn, DamagedMember)
    assert torn.why == "its body is not the one that was fetched"
    assert kept == RawPage(right, b"one")


def test_a_body_kept_elsewhere_is_fetched_from_there(tmp_path):
    """By name and offset; missing bodies and files outside of the directory are reported."""
    (tmp_path / "secret").write_bytes(pages(b"secret")[0])
    (first,) = pages(b"the body")
    (tmp_path / "raw-00000.gz").write_bytes(first)
    heads = [
        RawPageHead(url="http://a.test/x", sha256="0", kept_in=name, kept_at=at)
        for name, at in (("raw-00000.gz", 0), ("raw-00000.gz", 7), ("raw-00009.gz", 0), ("../raw/secret", 0), ("", 0))
    ]
    path = tmp_path / "raw-00001.gz"
    path.write_bytes(b"".join(gzip.compress(member(head, b"")) for head in heads))
    found = list(read(path))
    assert found[0].body == b"the body"
    assert found[0].head.url == "http://a.test/x"
    assert [type(one) for one in found[1:4]] == [DamagedMember] * 3
    assert found[4].body == b""
