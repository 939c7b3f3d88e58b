"""Documents in OpenSearch: repeated actions, refused documents, a server that is away, settings that are refused."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nephila.kernel import messages as m
from nephila.kernel.runtime.errors import TemporaryError, UsageError, UserError
from nephila.kernel.runtime.secret_files import read_secret
from nephila.storage.batch_size import BatchSize
from nephila.storage.config import StorageConfig
from nephila.storage.writer import Writer
from nephila_stores.remote import opensearch
from nephila_stores.remote.opensearch import OpenSearch, _bulks

from tests.search_server import SearchServer, running
from tests.storage.storage_rig import JOB, key, record


@pytest.fixture
def server() -> Iterator[SearchServer]:
    """A running server."""
    with running() as found:
        yield found


def opened(directory: Path, url: str, **config: Any) -> Writer:
    """An open writer that sends documents."""
    found = Writer(
        StorageConfig(directory=directory, formats=("opensearch",), opensearch_url=url, fsync=False, **config)
    )
    found.open()
    return found


def put(writer: Writer, *records: m.Record) -> None:
    """One flush."""
    writer.commit(records, [None] * len(records), [])
    writer.after_commit()


def document(server: SearchServer, number: int) -> dict[str, Any]:
    """The document of a page."""
    return server.documents[f"{JOB}:{key(number).hex()}"]


def test_a_document_has_the_row_and_the_items_by_rule(tmp_path, server):
    """Sent with user and password to the index, after each flush."""
    url = server.url.replace("http://", "http://crawler:s%20ecret@")
    writer = opened(tmp_path, url, opensearch_index="news")
    put(writer, record(1, items=[b'{"price":3}'], rule="shop"))
    found = document(server, 1)
    assert (found["title"], found["text"], found["items"]) == (
        "Page 1",
        "text of page 1\nfetch 1",
        {"shop": [{"price": 3}]},
    )
    assert server.requests[-1] == ("POST", "/news/_bulk", "Basic Y3Jhd2xlcjpzIGVjcmV0")
    writer.close()


def test_a_rotated_password_counts_from_the_next_request_on(tmp_path, server):
    """Without a restart; a file that holds no URL for a moment changes nothing."""
    file = tmp_path / "url"
    file.write_text(server.url.replace("http://", "http://a:1@"))
    writer = opened(tmp_path / "out", read_secret(str(file), "opensearch_url_file"))
    put(writer, record(1))
    file.write_text("half a U")
    put(writer, record(2))
    file.write_text(server.url.replace("http://", "http://a:2@"))
    put(writer, record(3))
    bulks = [authorization for method, _, authorization in server.requests if method == "POST"]
    assert bulks == ["Basic YTox", "Basic YTox", "Basic YToy"]
    writer.close()


def test_actions_that_are_sent_again_change_nothing(tmp_path, server, monkeypatch):
    """A stop after the request and before its offset is stored, then a newer fetch of another writer."""
    writer = opened(tmp_path, server.url)
    put(writer, record(1))
    with monkeypatch.context() as patch:
        patch.setattr(OpenSearch, "_set_sent", lambda self, offset: None)
        put(writer, record(2), record(1, 2, status=304, not_modified=True, text=b"", sha256=b"", title="", meta=""))
    before = json.dumps(server.documents, sort_keys=True), dict(server.versions)
    sent = len(server.requests)
    again = opened(tmp_path, server.url)
    again.after_commit()
    assert len(server.requests) == sent + 2
    assert (json.dumps(server.documents, sort_keys=True), server.versions) == before
    server.versions[f"{JOB}:{key(3).hex()}"] = 9
    put(again, record(3, 8))
    assert key(3).hex() not in str(server.documents)
    again.close()
    assert not (tmp_path / "opensearch-dead.jsonl").exists()


def test_a_refused_document_is_a_dead_letter_and_the_others_are_stored(tmp_path, server, caplog):
    """With the reason of the server and the document."""
    server.refused.add(f"{JOB}:{key(2).hex()}")
    writer = opened(tmp_path, server.url)
    put(writer, record(1), record(2), record(3))
    writer.close()
    assert len(server.documents) == 2
    (line,) = (tmp_path / "opensearch-dead.jsonl").read_bytes().splitlines()
    dead = json.loads(line)
    assert (dead["id"], dead["error"]) == (f"{JOB}:{key(2).hex()}", "400 reason 400")
    assert dead["document"]["title"] == "Page 2"
    assert "refused 1 documents" in caplog.text


def test_a_request_that_is_too_large_is_divided(tmp_path, server):
    """Down to a document, which is a dead letter then."""
    server.max_bytes = 2500
    writer = opened(tmp_path, server.url)
    put(writer, *(record(number) for number in range(6)), record(7, text=b"x" * 3000))
    writer.close()
    assert len(server.documents) == 6
    assert b"larger than the server accepts" in (tmp_path / "opensearch-dead.jsonl").read_bytes()


def test_a_slow_server_gets_smaller_requests(tmp_path, server, monkeypatch):
    """One that takes ten documents in the time of a request gets all fifty, each once; then requests grow again."""
    now = 0.0
    monkeypatch.setattr(opensearch, "time", SimpleNamespace(monotonic=lambda: now))
    writer = opened(tmp_path, server.url)
    (sink,) = writer._sinks
    bulk, sent = sink._client.bulk, []

    def slow(actions):
        nonlocal now
        now += 30.0 if len(actions) > 10 else len(actions) / 10
        if len(actions) > 10:
            raise TemporaryError("the server is unreachable (timed out)")
        sent.append(len(actions))
        return bulk(actions)

    sink._client.bulk = slow
    put(writer, *(record(number) for number in range(50)))
    while sum(sent) < 50:
        writer.after_commit()
    assert len(server.documents) == 50
    low = sink._bulk.limit
    put(writer, *(record(number) for number in range(50, 60)))
    assert sink._bulk.limit > low
    writer.close()


def test_a_server_that_is_away_costs_no_document(tmp_path, server, caplog):
    """503 of the server and 429 of an action: everything waits, attempts become rarer, and the end says so."""
    writer = opened(tmp_path, server.url)
    server.faults = [503]
    put(writer, record(1))
    server.busy_items = 1
    put(writer, record(2))
    put(writer, record(3))
    assert key(1).hex() not in str(server.documents)
    put(writer, record(4))
    put(writer, record(5))
    server.faults = [503]
    with pytest.raises(UserError, match=r"the rest waits in .*, run again with --resume"):
        writer.close()
    opened(tmp_path, server.url).close()
    assert len(server.documents) == 5
    assert "is overloaded (429)" in caplog.text


@pytest.mark.parametrize(
    "odd",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"<html>",
        b'{"items": 1}',
        b'{"errors": false, "items": []}',
        b'{"errors": true, "items": [1]}',
        b'{"errors": true, "items": [{}]}',
        b'{"errors": true, "items": [{"index": {"status": "x"}}]}',
        b'{"errors": true, "items": [{"index": null}]}',
        b'{"errors": "\xff", "items": []}',
        b"[" * 100_000,
        b'{"a": ' * 100_000,
    ],
)
def test_an_odd_answer_is_no_acceptance(tmp_path, server, odd, caplog):
    """The documents wait, the end of the run says why in one line, and a later run sends them."""
    writer = opened(tmp_path, server.url)
    server.odd = odd
    put(writer, record(1))
    with pytest.raises(UserError, match=r"answered .*; the rest waits in .*, run again with --resume") as caught:
        writer.close()
    assert "\n" not in str(caught.value)
    server.odd = None
    opened(tmp_path, server.url).close()
    assert len(server.documents) == 1


def test_a_document_that_is_not_in_the_answer_is_sent_again(tmp_path, server, monkeypatch):
    """A proxy that cuts an answer accepts no document."""
    writer = opened(tmp_path, server.url)
    bulk = server.bulk
    monkeypatch.setattr(server, "bulk", lambda body: {"items": bulk(body)["items"][:1]})
    put(writer, record(1), record(2))
    with pytest.raises(UserError, match="answered 1 results for 2 documents"):
        writer.close()
    server.documents.clear()
    server.versions.clear()
    monkeypatch.setattr(server, "bulk", bulk)
    opened(tmp_path, server.url).close()
    assert len(server.documents) == 2


def test_a_fetch_without_a_page_changes_its_own_fields_alone(tmp_path, server):
    """A 304 has no reason, a 404 has one; text and items stay those of the copy."""
    writer = opened(tmp_path, server.url)
    none = {"text": b"", "sha256": b"", "title": "", "meta": ""}
    put(writer, record(1, items=[b'{"n":1}'], rule="shop"), record(2, reason="first"))
    put(writer, record(1, 2, outcome=m.Outcome.FAILED, reason="http_404", status=404, **none))
    put(writer, record(2, 2, status=304, not_modified=True, **none))
    put(writer, record(3, 1, status=304, not_modified=True, fetched_at=0.0, **none))
    writer.close()
    fields = ("outcome", "reason", "status", "fetch_no", "text")
    assert [[document(server, number)[name] for name in fields] for number in (1, 2, 3)] == [
        ["failed", "http_404", 404, 2, "text of page 1\nfetch 1"],
        ["stored", "", 304, 2, "text of page 2\nfetch 1"],
        ["stored", "not_modified", 304, 1, ""],
    ]
    assert document(server, 1)["items"] == {"shop": [{"n": 1}]}
    assert document(server, 3)["fetched_at"] is None


def test_what_was_accepted_is_not_sent_again(tmp_path, server):
    """Neither by the next flush nor by the next run; the bytes of each request are bounded."""
    sent: list[int] = []
    bulk = server.bulk
    server.bulk = lambda body: sent.append(body.count(b'{"index"')) or bulk(body)  # type: ignore[method-assign]
    for start in (0, 3):
        writer = opened(tmp_path, server.url)
        for number in range(start, start + 3):
            put(writer, record(number))
        writer.close()
    assert sent == [1] * 6


def test_a_request_has_some_megabytes_and_only_what_is_committed():
    """Whole pairs of lines; the bytes behind the length are those of a flush that is not committed."""
    pairs = [(b"action %d\n" % number, b"d\n") for number in range(5)]
    committed = b"".join(action + document for action, document in pairs)
    file = io.BytesIO(b"sent before\n" + committed + b"not committed\nx\n")
    file.seek(12)
    found, positions = [], []
    for actions in _bulks(file, len(committed), BatchSize(20, 1)):
        found.append(actions)
        positions.append(file.tell())
    assert found == [pairs[:2], pairs[2:4], pairs[4:]]
    assert positions == [12 + 22, 12 + 44, 12 + 55]


def test_a_delivered_segment_is_removed(tmp_path, server, monkeypatch):
    """The next one begins at its start, also after a restart."""
    monkeypatch.setattr("nephila_stores.remote.opensearch._SEGMENT_BYTES", 1000)
    writer = opened(tmp_path, server.url)
    for number in range(8):
        put(writer, record(number))
    writer.close()
    assert len(list(tmp_path.glob("*.spool"))) == 1
    writer = opened(tmp_path, server.url)
    put(writer, record(9))
    writer.close()
    assert len(server.documents) == 9


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"url": ""}, UsageError, "the format opensearch needs a server: set storage.opensearch_url"),
        ({"url": "http://h:x"}, UsageError, "set storage.opensearch_url"),
        ({"url": "http://h", "opensearch_index": "My Index"}, UsageError, "storage.opensearch_index 'My Index' is no"),
        (
            {"url": "http://u:geheim@127.0.0.1:9"},
            UserError,
            r"opensearch_url: http://127.0.0.1:9 is unreachable .*port",
        ),
    ],
)
def test_bad_settings_are_refused_in_one_line(tmp_path, config, error, message):
    """Before the first page, without the password."""
    with pytest.raises(error, match=message) as caught:
        opened(tmp_path, **config)
    assert "\n" not in str(caught.value)
    assert "geheim" not in str(caught.value)


def test_a_wrong_password_is_said_at_the_start(tmp_path, server):
    """With the remedy."""
    server.faults = [401]
    with pytest.raises(UserError, match=r"answered 401 .*; check user and password"):
        opened(tmp_path, server.url)


def test_a_redirect_is_not_followed(tmp_path, server):
    """User and password would be sent to the server that it names."""
    with running() as other:
        server.faults, server.location = [302], f"{other.url}/"
        with pytest.raises(UserError, match="answered 302"):
            opened(tmp_path, server.url.replace("http://", "http://crawler:secret@"))
        assert other.requests == []
