"""Block pages: which responses count as one, and how the fetch ends."""

from __future__ import annotations

import gzip
import tarfile
import time

import pytest
from block_page_samples import BLOCKED, ORDINARY, Sample
from nephila.downloader.middleware.block_pages import LOGIN_PAGE, block_page_of
from nephila.kernel import messages as m
from nephila.kernel.documents.login_schema import Login, LoginField
from nephila.kernel.messages import FetchResult
from nephila.kernel.topics import JOBS

from tests.acceptance import locate
from tests.downloader.downloader_room import Room, answer
from tests.jobs import crawl_job


def judged(sample: Sample) -> str:
    """The verdict on a response."""
    return block_page_of(sample.status, sample.headers, sample.content_type, sample.body.encode(), sample.path)


@pytest.mark.parametrize("sample", BLOCKED, ids=lambda sample: sample.name)
def test_block_pages_are_recognised(sample: Sample) -> None:
    """Of all the products, with the status that they send."""
    assert judged(sample)


@pytest.mark.parametrize("sample", ORDINARY, ids=lambda sample: sample.name)
def test_ordinary_responses_are_not(sample: Sample) -> None:
    """Scripts of the same products, pages about bans, plain errors, captchas of forms."""
    assert judged(sample) == ""


def test_the_detail_names_the_product() -> None:
    """For the row and the log."""
    found = {sample.name: judged(sample) for sample in BLOCKED}
    assert found["Imperva frame"] == "a challenge or ban of Imperva"
    assert found["a ban with status 200"] == "a ban text: your ip address 203.0.113.7 has been blocked"
    assert found["a login page instead of content"] == LOGIN_PAGE
    assert found["a captcha of the site"] == "a captcha"


def test_pages_of_others_are_content() -> None:
    """Of 798 pages of other people's collections, one is judged to be a block page, and it is one (Anubis)."""
    pages = [(one.name, gzip.decompress(one.read_bytes())) for one in sorted(locate("wcxb-dev/html").iterdir())]
    with tarfile.open(locate("readability-test-pages/test-pages.tar.xz")) as archive:
        for one in archive:
            if one.isfile() and one.name.endswith(".html"):
                file = archive.extractfile(one)
                assert file is not None
                pages.append((one.name, file.read()))
    assert len(pages) > 700
    found = [(name, why) for name, body in pages if (why := block_page_of(200, {}, "text/html", body, "/a"))]
    assert found == [("0551.html.gz", "a challenge or ban of Anubis")]


@pytest.mark.parametrize("unit", [b"<script>", b"<!--", b"<", b"<title>", b"<input ", b"your ip "])
def test_hostile_pages_cost_little(unit: bytes) -> None:
    """Open tags without an end, in every state of the patterns: linear time."""
    body = b"<title>blocked</title>you have been blocked" + unit * (40_000 // len(unit))
    before = time.process_time()
    block_page_of(403, {}, "text/html", body, "/a")
    block_page_of(200, {}, "text/html", body[:32_000], "/a")
    assert time.process_time() - before < 0.5


CHALLENGE = BLOCKED[0].body.encode()
JOB = crawl_job(uid="j", name="j")


async def test_a_block_page_ends_the_fetch_as_blocked() -> None:
    """No page is published; status and detail stay on the outcome."""
    room = Room()
    await room.downloader.start()
    room.request("http://a.test/x")
    await room.settle()
    room.reply(0, answer(200, BLOCKED[7].body.encode(), content_type="text/html"))
    await room.settle()
    outcome = room.outcomes[0]
    assert (outcome.result, outcome.reason, outcome.status) == (FetchResult.FAILED, "blocked", 200)
    assert outcome.detail == "a challenge or ban of Imperva"
    assert not room.pages


@pytest.mark.parametrize("coding", ["", "gzip", "br of nobody"])
async def test_the_body_of_an_error_is_read(coding: str) -> None:
    """With its content coding; an unknown coding leaves the status as the reason."""
    room = Room()
    await room.downloader.start()
    room.request("http://a.test/x")
    await room.settle()
    response = answer(403, content_type="text/html", content_encoding=coding)
    response.error_body = gzip.compress(CHALLENGE)[:-4] if coding == "gzip" else CHALLENGE
    if coding == "br of nobody":
        response.error_body = gzip.compress(CHALLENGE)
    room.reply(0, response)
    await room.settle()
    assert room.outcomes[0].reason == ("http_403" if coding == "br of nobody" else "blocked")


async def test_a_robots_txt_is_judged_by_its_status() -> None:
    """RFC 9309: 4xx allows everything, whatever the text."""
    room = Room()
    await room.downloader.start()
    room.request("http://a.test/robots.txt", kind=m.FetchKind.ROBOTS, job="")
    await room.settle()
    response = answer(403, content_type="text/html")
    response.error_body = CHALLENGE
    room.reply(0, response)
    await room.settle()
    assert room.outcomes[0].reason == "http_403"


@pytest.mark.parametrize(
    ("seed", "login", "reason"),
    [(False, False, "blocked"), (True, False, ""), pytest.param(False, True, "", marks=pytest.mark.whole)],
)
async def test_a_login_page_counts_where_nobody_logs_in(seed: bool, login: bool, reason: str) -> None:
    """Not for a seed, which may be a login page, and not for a job with a login, which renews its session."""
    room = Room()
    await room.downloader.start()
    wanted = Login("http://other.test/login", [LoginField("user", "me")]) if login else None
    job = crawl_job(uid="j", name="j", login=wanted)
    room.bus.publish(JOBS, 0, job)
    room.request("http://a.test/x", seed=seed)
    await room.settle()
    room.reply(0, answer(200, BLOCKED[-1].body.encode(), content_type="text/html"))
    await room.settle()
    assert room.outcomes[0].reason == reason
    assert room.outcomes[0].detail == (LOGIN_PAGE if reason else "")
    assert room.outcomes[0].cause == ("login_page" if reason else "")


async def test_detection_can_be_off() -> None:
    """`detect_blocks`: everything is content."""
    room = Room(detect_blocks=False)
    await room.downloader.start()
    room.request("http://a.test/x")
    await room.settle()
    room.reply(0, answer(200, BLOCKED[7].body.encode(), content_type="text/html"))
    await room.settle()
    assert len(room.pages) == 1
