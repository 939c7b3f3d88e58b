"""`nephila explain`: reads the directory of a crawl, in whatever state it is, and changes nothing."""

from __future__ import annotations

import json
import os

import pytest
from nephila.kernel.messages import FetchKind, Outcome, Record
from nephila.kernel.runtime.clock import ManualClock
from nephila.native import parse_url
from nephila.programs.output_directory import OutputDirectory, RunFile
from nephila_control.explain.render import WIDTH

from tests.cli.crawled import store
from tests.scheduler.world import JOB, Answer, World, site


@pytest.fixture
async def out(tmp_path):
    """A crawl of http://a.test/ that was killed after its first page: row, frontier and run.json."""
    directory = tmp_path / "o"
    clock = ManualClock()
    world = await World(directory / "frontier", site({"/": ["/1", "/2"]}), clock, partitions=64).start()
    world.crawl("http://a.test/", delay_s=10.0)
    world.clock.advance(1.0)
    url = "http://a.test/"
    title = "Evil \x1b[31m[red]title"
    key = parse_url(url).fingerprint
    store(directory, [Record(JOB, key, url, 1, 1, Outcome.STORED, status=200, title=title, fetched_at=1.8e9)])
    OutputDirectory(directory).write(RunFile(state="stopped"))
    return directory


def contents(directory) -> dict[str, bytes]:
    """Every file of the crawl; what SQLite keeps beside a database that is being read is not the crawl's."""
    files = (path for path in directory.rglob("*") if path.is_file() and not path.name.endswith(("-shm", "-wal")))
    return {str(path): path.read_bytes() for path in files}


def test_a_stored_url_is_told_with_its_row(nephila, out):
    """The verdict, then aligned lines; a title cannot take over the terminal."""
    ran = nephila("explain", "A.test", "--out", str(out))
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0].startswith("Stored at 2027-01-15T08:00:00")
    assert lines[1:3] == ["", "verdict:    stored"]
    assert "row:        stored" in lines
    assert "title:      Evil [red]title" in lines
    assert lines[-1] == "fetch 1:    2027-01-15T08:00:00.000Z stored, status 200, try 1, text new: a copy was stored"
    assert "\x1b" not in ran.out


async def test_the_rule_of_a_page_is_told(nephila, out):
    """Which version of which rule read it."""
    url = "http://a.test/"
    record = Record(JOB, parse_url(url).fingerprint, url, 2, 1, Outcome.STORED, status=200, fetched_at=1.8e9)
    record.rule, record.rule_version, record.sha256 = "shop", 7, b"x" * 32
    store(out, [record])
    assert "rule:       shop, version 7" in nephila("explain", url, "--out", str(out)).out.splitlines()


def test_a_queued_url_is_told_with_its_place(nephila, out):
    """JSON holds all facts and the sentence."""
    found = json.loads(nephila("explain", "http://a.test/2", "--out", str(out), "--json").out)
    assert (found["seen"], found["state"], found["row"]) == (True, "waiting", None)
    assert (found["queued"]["position"], found["queued"]["of"]) == (2, 2)
    assert found["sentence"].startswith("Waiting: ")
    assert found["sentence"].endswith(f"; nothing runs; continue with: nephila crawl --resume --out {out}.")


def test_a_url_never_seen_is_judged(nephila, out):
    """By the scope of the stored job."""
    assert "Never found: " in nephila("explain", "http://a.test/9", "--out", str(out)).out
    assert "Not crawled: host b.test is not a seed host." in nephila("explain", "b.test", "--out", str(out)).out


def test_what_a_server_has_said_is_harmless_and_wrapped(nephila, out):
    """A content type, an address to go to and a reason of another version, full of control characters."""
    evil = "\x1b]0;x\x07\u202e\x9b31m\r\n" + "word " * 60
    for number, (outcome, fields) in enumerate(
        [
            (Outcome.DROPPED, {"reason": "content_type", "content_type": f"image/{evil}"}),
            (Outcome.DROPPED, {"reason": "redirect", "final_url": f"http://b.test/{evil}"}),
            (Outcome.FAILED, {"reason": f"new{evil}"}),
            (Outcome.STORED, {"title": evil}),
        ]
    ):
        url = f"http://a.test/evil{number}"
        store(out, [Record(JOB, parse_url(url).fingerprint, url, 1, 1, outcome, fetched_at=1.8e9, **fields)])
        text = nephila("explain", url, "--out", str(out)).out
        assert "word word word" in text
        assert not {"\x1b", "\x9b", "\x07", "\r", "\u202e"} & set(text)
        assert max(map(len, text.splitlines()[2:])) <= WIDTH


def test_asking_changes_nothing(nephila, out):
    """Not a byte of the directory, nor a torn tail that a running crawl is still writing."""
    log = next((out / "frontier").glob("*.log"))
    with log.open("ab") as file:
        file.write(b"\x10\x00\x00\x00torn")
    before = contents(out)
    assert nephila("explain", "http://a.test/1", "--out", str(out)).code == 0
    assert contents(out) == before


def test_a_running_crawl_may_be_asked(nephila, out):
    """Its process holds the directory; the sentence does not send anyone to --resume."""
    with OutputDirectory(out).locked():
        OutputDirectory(out).write(RunFile(state="running"))
        ran = nephila("explain", "http://a.test/2", "--out", str(out))
    assert ran.code == 0
    assert "--resume" not in ran.out


def test_a_crawl_that_was_killed_is_not_running(nephila, out):
    """run.json says running, but no process of that number lives."""
    OutputDirectory(out).write(RunFile(state="running"))
    (out / ".lock").write_text(f"{2**22 + 1}\n")
    assert "continue with: nephila crawl --resume" in nephila("explain", "http://a.test/2", "--out", str(out)).out


def test_a_log_replaced_meanwhile_is_read_again(nephila, out, monkeypatch):
    """A running crawl deletes segments when it has written a snapshot."""
    from nephila.scheduler.durability.commit_log import CommitLog

    recover = CommitLog.recover
    calls = []

    def disturbed(log):
        calls.append(1)
        if len(calls) == 1:
            raise FileNotFoundError(2, os.strerror(2), "00000001.log")
        return recover(log)

    monkeypatch.setattr(CommitLog, "recover", disturbed)
    assert nephila("explain", "http://a.test/2", "--out", str(out)).code == 0
    assert len(calls) == 2


def test_mistakes_are_explained(nephila, out, tmp_path):
    """No crawl there, no URL, no http URL: one line each."""
    ran = nephila("explain", "http://a.test/", "--out", str(tmp_path / "none"))
    assert (ran.code, ran.err) == (1, f"nephila: {tmp_path / 'none'} holds no crawl; name its directory with --out\n")
    assert nephila("explain").code == 2
    ran = nephila("explain", "ftp://a.test/", "--out", str(out))
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    segment = next((out / "frontier").glob("*.log"))
    segment.write_bytes(b"something else")
    ran = nephila("explain", "http://a.test/", "--out", str(out))
    assert (ran.code, ran.err.count("\n")) == (1, 1)


def test_links_that_were_left_out_are_told(nephila, out):
    """A URL may stand beyond the last link that is taken of a page: nobody says then that no page links to it."""
    url = "http://a.test/"
    record = Record(JOB, parse_url(url).fingerprint, url, 2, 1, Outcome.STORED, status=200, fetched_at=1.8e9)
    record.meta = '{"links_left_out": "1234"}'
    store(out, [record])
    sentence = nephila("explain", "http://a.test/9", "--out", str(out)).out.splitlines()[0]
    assert sentence.startswith("Never found: ")
    assert "1 pages have more links than the limit per page, 1,234 more" in sentence
    assert "1,234" not in nephila("explain", url, "--out", str(out)).out.splitlines()[0]


async def explained_robots(nephila, tmp_path, body, path, agent="nephila"):
    """The line `robots:` about a path, by the log of a crawl that runs no more."""
    pages = site({"/": []})
    directory = tmp_path / "o"
    world = World(
        directory / "frontier",
        lambda request: Answer(body=body) if request.kind is FetchKind.ROBOTS else pages(request),
        ManualClock(),
        partitions=64,
        agent=agent,
    )
    await world.start()
    world.crawl("http://a.test/", robots=True)
    world.clock.advance(9.0)
    OutputDirectory(directory).write(RunFile(state="stopped", agent=agent))
    said = nephila("explain", f"http://a.test{path}", "--out", str(directory)).out
    return next(line for line in said.splitlines() if line.startswith("robots:"))


async def test_the_line_of_the_group_that_the_crawl_obeyed_is_named(nephila, tmp_path):
    """The name may have come from the environment of the crawl: run.json holds it."""
    body = b"User-agent: *\nDisallow: /x\n\nUser-agent: examplebot\nDisallow: /y\n"
    said = await explained_robots(nephila, tmp_path, body, "/y", agent="examplebot")
    assert said.endswith("denied by line 5: Disallow: /y")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/é", "denied by line 2: Disallow: /é"),
        ("/d/", "allowed by line 4: Allow: /d/index.html (which allows its directory too)"),
        ("/d/index.html", "allowed by line 4: Allow: /d/index.html"),
        ("/d/x", "denied by line 3: Disallow: /d"),
        ("/other", "allowed (no rule matches)"),
    ],
)
async def test_the_line_of_robots_txt_that_matches_is_named(nephila, tmp_path, path, says):
    body = "User-agent: *\nDisallow: /é\nDisallow: /d\nAllow: /d/index.html\n".encode()
    assert (await explained_robots(nephila, tmp_path, body, path)).endswith(says)
