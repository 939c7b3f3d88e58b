"""The measuring programs' own parts: a torn or doubled result is seen, a cost is a cost, an absent peer is said so."""

import gzip
import json
import socket
import sqlite3
import sys
from pathlib import Path

import pytest

from benchmarks import durable, measure, plainweb, report
from benchmarks.peers import find
from benchmarks.web import plain

URLS = [f"http://h0.bench.test:8087/p/{n}.html" for n in range(3)]


def table(out: Path, rows: list[tuple[str, str]]) -> None:
    """A database of (url, outcome) rows."""
    connection = sqlite3.connect(out / "nephila.db")
    connection.execute("CREATE TABLE pages (job, url, url_key, outcome, reason)")
    connection.executemany(
        "INSERT INTO pages VALUES ('j', ?, ?, ?, '')", [(url, str(i), o) for i, (url, o) in enumerate(rows)]
    )
    connection.commit()
    connection.close()


def warc(urls: list[str]) -> bytes:
    """A compressed WARC file with one response per URL."""
    body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + b"<p>words</p>" * 50
    records = []
    for i, url in enumerate(urls):
        head = (
            f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nContent-Length: {len(body)}\r\n"
            f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{i:012}>\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
            "Content-Type: application/http; msgtype=response\r\n\r\n"
        )
        records.append(gzip.compress(head.encode() + body + b"\r\n\r\n", mtime=0))
    return b"".join(records)


def test_whole_table(tmp_path: Path) -> None:
    """Nothing to complain about in a table with every page once."""
    table(tmp_path, [(url, "stored") for url in URLS])
    assert durable.table_complaints(tmp_path, frozenset(URLS), 3) == []


def test_broken_tables(tmp_path: Path) -> None:
    """A lost, a doubled and a failed row are each named."""
    assert durable.table_complaints(tmp_path, None, 3) == ["nephila.db is missing"]
    table(tmp_path, [(URLS[0], "stored"), (URLS[0], "stored"), (URLS[1], "failed")])
    text = " | ".join(durable.table_complaints(tmp_path, frozenset(URLS), 4))
    for part in ("3 rows, expected 4", "1 URLs have two rows", "failed()", "1 URLs lost"):
        assert part in text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"url_key":"a"}\n{"url_key":"b"}\n', ""),
        ('{"url_key":"a"}\n{"url_key":"b"}', "ends within a line"),
        ('{"url_key":"a"}\n{"url_k\n{"url_key":"b"}\n', "line 2 is torn"),
        ('{"url_key":"a"}\n{"url_key":"b"}\n{"url_key":"a"}\n', "1 pages twice"),
        ('{"url_key":"a"}\n', "1 pages, expected 2"),
    ],
)
def test_jsonl(text: str, complaint: str, tmp_path: Path) -> None:
    """Torn, doubled and missing lines are seen."""
    (tmp_path / "pages.jsonl").write_text(text)
    found = " | ".join(durable.jsonl_complaints(tmp_path, 2))
    assert complaint in found
    assert bool(found) == bool(complaint)


def test_warc(tmp_path: Path) -> None:
    """Whole files pass; a doubled record, a missing file and a torn end do not."""
    assert durable.warc_complaints(tmp_path, 1) == ["no *.warc.gz"]
    (tmp_path / "a.warc.gz").write_bytes(warc(URLS))
    assert durable.warc_complaints(tmp_path, 3) == []
    (tmp_path / "b.warc.gz").write_bytes(warc(URLS[:1]))
    assert "1 pages twice" in durable.warc_complaints(tmp_path, 3)[0]
    (tmp_path / "b.warc.gz").write_bytes(warc(["http://other.test/"])[:-20])
    assert any("ends within a record" in complaint for complaint in durable.warc_complaints(tmp_path, 4))


def test_torn_gzip_reasons(tmp_path: Path) -> None:
    """A file cut short and one with rubbish in it are told apart."""
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"x" * 999)[:-9])
    assert durable.torn_gzip(path) == "ends within a record"
    path.write_bytes(gzip.compress(b"x" * 999) + b"rubbish")
    assert durable.torn_gzip(path).startswith("broken")


def test_cost_of_a_child_tree(tmp_path: Path) -> None:
    """CPU burnt by a grandchild counts; a page's share is milliseconds."""
    burn = "n = sum(i * i for i in range(2_000_000))"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}]); sys.exit(3)"
    cost = measure.run([sys.executable, "-c", nested], measure.cores()[1], log=tmp_path / "log")
    assert cost.code == 3
    assert cost.cpu_user_s > 0.05
    assert cost.per_page(1000) == pytest.approx(cost.cpu_s)
    assert cost.per_page(0) == float("inf")
    assert cost.peak_rss_mb > 3


def test_absent_peers_are_said_so(tmp_path: Path) -> None:
    """A peer that is not there has no command, and a hint how to get it."""
    peers = find(tmp_path, None, tmp_path / "no-binary")
    assert [p.name for p in peers] == ["scrapy", "crawlee", "colly", "spider-rs"]
    assert all(not p.command and p.hint for p in peers)


def test_a_web_on_disk_is_known(tmp_path: Path) -> None:
    """Its URLs and its port are read from its files; a folder without a web is one clear line."""
    plain.generate(tmp_path, pages=9, hosts=2, port=8123, seed=1, size=2000, links=5)
    web = plainweb.read(tmp_path)
    assert web.port == 8123
    assert web.urls == {plain.page_url(n, 2, 8123) for n in range(9)}
    assert web.hosts == ["h0.bench.test", "h1.bench.test"]
    with pytest.raises(SystemExit, match="no plain web"):
        plainweb.read(tmp_path / "nothing")


@pytest.fixture
def web(tmp_path: Path) -> plainweb.PlainWeb:
    """A small web on a port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    plain.generate(tmp_path / "web", pages=3, hosts=1, port=port, seed=1, size=500, links=2)
    return plainweb.read(tmp_path / "web")


def test_a_bench_knows_its_own_server(tmp_path: Path, web: plainweb.PlainWeb) -> None:
    """By a token that is no request in the log."""
    with plainweb.Serving(web, tmp_path / "run", log=tmp_path / "log") as serving:
        assert plainweb.is_own(web.port, serving._token)
        assert not plainweb.is_own(web.port, "another")
    assert not plainweb.is_own(web.port, serving._token)
    assert "GET" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize("log", [False, True])
def test_a_bench_refuses_a_server_that_is_not_its_own(tmp_path: Path, web: plainweb.PlainWeb, log: bool) -> None:
    """Also where it counts no requests: the figures would be those of another web."""
    foreign, taken = socket.create_server(("127.0.0.1", web.port)), "is taken by another program"
    with foreign, pytest.raises(SystemExit, match=taken):
        plainweb.Serving(web, tmp_path / "run", log=tmp_path / "log" if log else None).__enter__()


def test_a_bench_refuses_a_server_that_took_its_port_at_the_start(
    tmp_path: Path, web: plainweb.PlainWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What answers has not the token of the server that was started."""
    serving = plainweb.Serving(web, tmp_path / "run", log=tmp_path / "log")
    other = [*serving._command()[:-3], "other", "--log", str(tmp_path / "log")]
    monkeypatch.setattr(serving, "_command", lambda: other)
    with pytest.raises(SystemExit, match="is not the one that the bench has started"):
        serving.__enter__()
    assert not plainweb.listening(web.port)


def test_raw_results_name_the_machine(tmp_path: Path) -> None:
    """A figure without its machine and its date is worth nothing."""
    document = json.loads(report.save("x", {"runs": [1]}, tmp_path).read_text())
    assert document["runs"] == [1]
    assert document["machine"]["cores"] >= 1
    assert document["date"].endswith("Z")
    assert report.table(("a", "b"), [("x", 1.23456), ("long", 7)]).splitlines()[2] == "long     7"
