"""`nephila export` into pipes, terminals and tables: columns, flat items, readers that leave early, hostile titles."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess

import pytest
from nephila.kernel.messages import Outcome, Record
from nephila.native import parse_url

from tests.cli.crawled import store
from tests.e2e.web import NEPHILA

HOSTILE = "a\x1b[31mb\x07c\u202ed\x9be"


def page(number, title="T", items=()):
    """A stored page."""
    url = f"http://a.test/{number}"
    return Record(
        "crawl", parse_url(url).fingerprint, url, 1, 1, Outcome.STORED, title=title, text=b"text " * 400,
        sha256=b"1" * 32, meta='{"description":"about","n":{"m":1}}', rule="r" if items else "",
        items=[json.dumps(item).encode() for item in items],
    )  # fmt: skip


@pytest.fixture
def directory(tmp_path):
    items = [{"price": {"amount": 3, "currency": "EUR"}, "tags": ["a"]}, {"name": "=x", "url": "u", "price": None}]
    store(tmp_path / "o", [page(0, items=items), *(page(number, HOSTILE) for number in range(1, 300))])
    return str(tmp_path / "o")


def test_columns_are_what_is_written_in_their_order(directory, nephila):
    done = nephila("export", directory, "--format", "csv", "--columns", "title, url,meta.description")
    assert done.out.splitlines()[:2] == ["title,url,meta.description", "T,http://a.test/0,about"]
    done = nephila("export", directory, "--format", "jsonl", "--columns", "url,meta.n")
    assert json.loads(done.out.splitlines()[0]) == {"url": "http://a.test/0", "meta.n": {"m": 1}}


@pytest.mark.parametrize(
    "words", [["--format", "csv", "--columns", "nosuch"], ["--format", "parquet", "--columns", "url"],
              ["--items", "--format", "csv", "--columns", "price.nosuch"]],
)  # fmt: skip
def test_unknown_columns_are_refused_with_those_there_are(directory, nephila, words):
    done = nephila("export", directory, *words)
    assert done.code == 2
    assert "--columns" in done.err
    assert len(done.err.splitlines()) == 1


def test_items_have_a_column_for_each_field(directory, nephila):
    done = nephila("export", directory, "--items", "--format", "csv")
    first, second = csv.DictReader(io.StringIO(done.out, newline=""))
    assert (first["price.amount"], first["price.currency"], first["tags"]) == ("3", "EUR", '["a"]')
    assert (second["name"], second["price.amount"]) == ("'=x", "")
    done = nephila("export", directory, "--items", "--format", "jsonl", "--columns", "url,price.amount,data.url")
    assert [json.loads(line) for line in done.out.splitlines()] == [
        {"url": "http://a.test/0", "price.amount": 3, "data.url": None},
        {"url": "http://a.test/0", "price.amount": None, "data.url": "u"},
    ]


@pytest.mark.parametrize("words", [["--format", "csv"], ["--format", "jsonl"]])
def test_a_reader_that_has_seen_enough_is_no_error(directory, words):
    """A pipe that is closed after the first bytes, and one that is closed before."""
    for lines in (1, 0):
        with subprocess.Popen(
            [*NEPHILA, "export", directory, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            if lines:
                process.stdout.readline()
            process.stdout.close()
            assert (process.stderr.read(), process.wait(60)) == (b"", 0)


def on_terminal(*words):
    """What a terminal gets."""
    leader, follower = pty.openpty()
    with subprocess.Popen([*NEPHILA, *words], stdout=follower, stderr=subprocess.DEVNULL) as process:
        os.close(follower)
        found = bytearray()
        while True:
            try:
                data = os.read(leader, 65536)
            except OSError:
                break
            if not data:
                break
            found += data
        assert process.wait(60) == 0
    os.close(leader)
    return found.decode()


def test_a_terminal_gets_no_commands_from_titles(directory):
    for words in (["--format", "csv", "--columns", "title"], ["--format", "jsonl", "--columns", "title"]):
        shown = on_terminal("export", directory, *words)
        assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(shown)
        piped = subprocess.run([*NEPHILA, "export", directory, *words], stdout=subprocess.PIPE, check=True)
        if "csv" in words:
            assert HOSTILE in piped.stdout.decode()
        else:
            assert [json.loads(line) for line in shown.splitlines()] == [
                json.loads(line) for line in piped.stdout.splitlines()
            ]
