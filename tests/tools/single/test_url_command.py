"""`nephila url`: the identity of URLs, one or a million."""

from __future__ import annotations

import hashlib
import json

import pytest
from nephila_tools.single.batch import lines


def md5(data: bytes) -> str:
    """The hash that identity is made of."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def batch(nephila, *rows: object, command: str = "parse") -> list[dict]:
    """Answers to the rows; strings are sent as they are."""
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    ran = nephila("url", command, "--batch", stdin=text.encode())
    assert (ran.code, ran.err) == (0, "")
    return [json.loads(line) for line in ran.out.splitlines()]


def test_parse_shows_all_parts(nephila):
    """The href keeps the fragment, the canonical URL has neither fragment nor tracking, and the order is stable."""
    ran = nephila("url", "parse", "HTTP://Example.ORG:80/a/../b?z=1&a=2&utm_source=x#f", "--json")
    assert ran.code == 0
    assert json.loads(ran.out) == {
        "href": "http://example.org/b?z=1&a=2&utm_source=x#f",
        "host_key": "example.org",
        "canonical": "http://example.org/b?a=2&z=1",
        "url_key": md5(b"example.org")[:8] + md5(b"http://example.org/b?a=2&z=1")[:24],
        "partition": 6,
    }


def test_parse_for_people_is_aligned(nephila):
    """One `key: value` line each."""
    out = nephila("url", "parse", "x", "--base", "https://a.test:8443/y/").out
    assert out.splitlines()[:2] == ["href:      https://a.test:8443/y/x", "host key:  a.test:8443"]


def test_key_is_the_same_for_all_spellings(nephila):
    """32 hex digits and nothing else."""
    first = nephila("url", "key", "http://EXAMPLE.org").out
    assert first == nephila("url", "key", "http://example.org:80/#top").out
    assert len(first.strip()) == 32


def test_other_schemes_have_an_href_only(nephila):
    """Nothing but http and https is crawled, so nothing else has a key."""
    assert batch(nephila, {"url": "mailto:a@b"}, {"url": "ftp://h/p"}) == [
        {"href": "mailto:a@b"},
        {"href": "ftp://h/p"},
    ]
    ran = nephila("url", "key", "mailto:a@b")
    assert (ran.code, ran.err) == (1, "nephila: mailto:a@b: only http and https URLs have a url_key\n")


def test_every_line_of_a_batch_is_answered_in_order(nephila):
    """A line that is no question gets an error of its own; the others are not touched."""
    answers = batch(nephila, {"url": "http://a/"}, "{broken", {"url": 1}, "", {"url": "http://["}, {"url": "http://b/"})
    assert [sorted(answer)[0] for answer in answers] == ["canonical", "error", "error", "error", "error", "canonical"]
    assert answers[5]["host_key"] == "b"


def test_a_batch_line_may_bring_its_base(nephila):
    """Its own base goes before --base."""
    ran = nephila(
        "url", "parse", "--batch", "--base", "http://a/", stdin=b'{"url":"x"}\n{"url":"x","base":"http://b/"}'
    )
    assert [json.loads(line)["href"] for line in ran.out.splitlines()] == ["http://a/x", "http://b/x"]


def test_lone_surrogates_become_replacement_characters(nephila):
    """JSON may escape half a character; a URL is made of whole ones."""
    (answer,) = batch(nephila, r'{"url": "http://a/\ud800\ud83d\ude00"}')
    assert answer["href"] == "http://a/%EF%BF%BD%F0%9F%98%80"


def test_a_key_batch_answers_with_keys(nephila):
    """The same order, the key alone."""
    assert batch(nephila, {"url": "http://a/"}, command="key") == [{"url_key": "0cc175b9d2e30d023bacb13655cf2f69"}]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("url", "parse"), 2, "which URL?"),
        (("url", "parse", "http://["), 1, "http://[: "),
        (("url", "parse", "http://a/", "--batch"), 2, "not both"),
        (("url", "parse", "http://a/", "--partitions", "3"), 2, "power of two"),
        (("url",), 2, "Missing command"),
    ],
)
def test_mistakes_are_explained(nephila, arguments, code, text):
    """Usage is 2, a URL that does not parse is 1."""
    ran = nephila(*arguments)
    assert ran.code == code
    assert text in ran.err


def test_a_refused_url_is_json_too(nephila):
    """With --json the reason is on standard output, where the caller reads."""
    ran = nephila("url", "parse", "http://[", "--json")
    assert ran.code == 1
    assert set(json.loads(ran.out)) == {"error"}


class Slow:
    """A stream that gives one chunk per read and notes the reads."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = list(chunks)
        self.events: list[object] = []

    def read1(self, size: int) -> bytes:
        """The next chunk."""
        self.events.append("read")
        return self.chunks.pop(0) if self.chunks else b""


def test_whoever_asks_and_waits_is_answered():
    """What has been answered is flushed before each read that may block; a line may come in pieces."""
    stream = Slow(b"first\nha", b"lf", b" second\n", b"last")
    for line in lines(stream, lambda: stream.events.append("flush")):  # type: ignore[arg-type]
        stream.events.append(line)
    step = ["flush", "read"]
    assert stream.events == [*step, b"first", *step, *step, b"half second", *step, *step, b"last"]
