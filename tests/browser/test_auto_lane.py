"""`render: auto`: which lane serves a page, what is learnt from two copies, and what a failing lane teaches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nephila.downloader.browser_port import VERDICT_FILE
from nephila.downloader.http.contract import HttpRequest
from nephila.downloader.http.route import NO_ROUTE
from nephila.downloader.http.target import TargetUrl
from nephila.kernel import messages as m
from nephila.kernel.documents.job_schema import Politeness
from nephila.kernel.runtime.clock import ManualClock
from nephila_browser.auto.evidence import PROBE_EVERY, PROBE_MOST
from nephila_browser.auto.verdict_file import VerdictFile
from nephila_browser.auto.verdicts import (
    FOLDER_WINDOW,
    QUORUM,
    Lane,
    Verdicts,
    WordsAndLinks,
    describe,
    needs_browser,
    pattern_of,
)
from nephila_browser.lane import BrowserLane

from tests.downloader.downloader_room import FakeFetcher, answer
from tests.jobs import crawl_job

PLAIN = b"<html><title>t</title><body><div id=app></div>"
FULL = b"<html><title>t</title><body><p>" + b" ".join(b"word%d" % n for n in range(50)) + b"<a href=/x>x</a>"


def content(body: bytes) -> WordsAndLinks:
    """What is compared of a page."""
    return WordsAndLinks(body, "http://a.test/", "utf-8")


def test_a_page_needs_a_browser_if_its_words_or_links_are_missing_without_one() -> None:
    assert needs_browser(content(PLAIN), content(FULL))
    assert not needs_browser(content(FULL), content(FULL + b"<p>word1 and more"))
    assert not needs_browser(content(FULL), content(PLAIN)), "a browser that shows less is not needed"
    assert needs_browser(content(FULL), content(FULL + b"".join(b"<a href=/n%d>word1</a>" % n for n in range(5))))


@pytest.mark.parametrize(
    ("url", "pattern"),
    [
        ("http://a.test/", "http://a.test/"),
        ("http://a.test/item/17/detail", "http://a.test/item/*/detail"),
        ("http://a.test/about#/x", "http://a.test/about"),
        ("http://a.test/s?q=1&b=2&q=3", "http://a.test/s?b&q"),
    ],
)
def test_pages_of_one_template_share_a_pattern(url: str, pattern: str) -> None:
    assert pattern_of(url) == pattern


def learn(verdicts: Verdicts, urls: list[str], *, needed: bool) -> None:
    """Comparisons of pages."""
    for url in urls:
        assert verdicts.choose("j", url) is Lane.BOTH
        verdicts.record("j", url, needed=needed)


def test_a_verdict_comes_from_two_equal_samples_and_is_compared_more_seldom_while_it_is_confirmed() -> None:
    verdicts, url = Verdicts(), "http://a.test/1"
    learn(verdicts, [url] * QUORUM, needed=False)
    gaps, since = [], 0
    for _ in range(1000):
        since += 1
        if verdicts.choose("j", url) is Lane.BOTH:
            verdicts.record("j", url, needed=False)
            gaps.append(since)
            since = 0
    assert gaps[:6] == [10, 20, 40, 80, 160, PROBE_MOST]
    assert verdicts.choose("other", url) is Lane.BOTH
    verdicts.forget("j")
    assert len(verdicts) == 0


def test_two_samples_that_differ_need_a_third() -> None:
    verdicts, url = Verdicts(), "http://a.test/1"
    learn(verdicts, [url], needed=True)
    learn(verdicts, [url], needed=False)
    learn(verdicts, [url], needed=True)
    assert verdicts.choose("j", url) is Lane.BROWSER


def test_a_site_that_changes_gets_another_verdict_after_two_comparisons() -> None:
    verdicts, url = Verdicts(), "http://a.test/1"
    learn(verdicts, [url] * QUORUM, needed=False)
    assert [verdicts.choose("j", url) for _ in range(PROBE_EVERY)].count(Lane.BOTH) == 1
    verdicts.record("j", url, needed=True)
    learn(verdicts, [url], needed=True)  # the contradiction has the next page compared too
    assert verdicts.choose("j", url) is Lane.BROWSER


def test_pages_whose_names_are_words_share_the_verdict_of_their_folder() -> None:
    """A page in the folder that contradicts it has its siblings sampled one by one again."""
    verdicts = Verdicts()
    names = [f"http://a.test/news/story-{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    learn(verdicts, names[:FOLDER_WINDOW], needed=False)
    lanes = [verdicts.choose("j", name) for name in names[FOLDER_WINDOW:15]]
    assert lanes == [Lane.CHECKED] * (PROBE_EVERY - 1) + [Lane.BOTH]
    assert verdicts.choose("j", "http://a.test/shop/story-a") is Lane.BOTH
    assert describe(verdicts.stored(), "j", names[20]).startswith("http: 0 of the last 5 pages compared")
    verdicts.record("j", names[14], needed=True)
    assert verdicts.choose("j", names[16]) is Lane.BOTH
    assert describe(verdicts.stored(), "j", names[14]).startswith("both: 1 of the last 1 pages compared")


def test_routes_and_pages_with_steps_need_no_sample() -> None:
    verdicts = Verdicts()
    assert verdicts.choose("j", "http://a.test/#/a") is Lane.BROWSER
    assert verdicts.choose("j", "http://a.test/", has_steps=True) is Lane.BROWSER


class Rig:
    """A lane over two fetchers that a test answers."""

    def __init__(self, verdicts: str = "") -> None:
        from nephila_browser.instructions import Instructions

        self.plain, self.rendered, self.clock = FakeFetcher(), FakeFetcher(), ManualClock()
        rendered: Any = self.rendered
        self.instructions = Instructions()
        self.lane = BrowserLane(self.plain, rendered, self.instructions, Verdicts(), VerdictFile(verdicts), self.clock)
        self.responses: list[bytes] = []
        self.handle: Any = None

    def fetch(self, url: str = "http://a.test/1", render: m.Render = m.Render.AUTO) -> None:
        """Start a page."""
        origin = m.FetchRequest("j", b"k" * 16, url, "a.test", fetch_no=1, render=render)
        request = HttpRequest(TargetUrl(url), NO_ROUTE, origin=origin)
        self.handle = self.lane.fetch(request, lambda response: self.responses.append(response.body))

    def answer_both(self, plain: bytes, rendered: bytes) -> None:
        """Both lanes have the page."""
        self.plain.fetches[-1].on_done(answer(200, plain, content_type="text/html"))
        self.clock.advance(0)
        found = answer(200, rendered, content_type="text/html")
        found.rendered = True
        self.rendered.fetches[-1].on_done(found)


def test_samples_use_both_lanes_and_the_better_copy_counts() -> None:
    rig = Rig()
    for _ in range(QUORUM):
        rig.fetch()
        rig.answer_both(PLAIN, FULL)
    assert rig.responses == [FULL] * QUORUM
    rig.fetch()
    assert len(rig.plain.fetches) == QUORUM
    assert len(rig.rendered.fetches) == QUORUM + 1
    assert rig.lane.chosen == {"both": QUORUM, "browser": 1}


def test_a_page_with_little_text_is_compared_although_its_folder_needs_no_browser() -> None:
    """An application among articles: its shell is short."""
    rig = Rig()
    article = FULL + b" ".join(b"more%d" % n for n in range(50))
    for number in range(FOLDER_WINDOW):
        rig.fetch(f"http://a.test/story-{'abcdefgh'[number]}")
        rig.answer_both(article, article)
    rig.fetch("http://a.test/another")
    rig.plain.fetches[-1].on_done(answer(200, article, content_type="text/html"))
    rig.fetch("http://a.test/application")
    rig.answer_both(PLAIN, FULL)
    assert rig.responses[-2:] == [article, FULL]
    assert rig.lane.chosen == {"both": FOLDER_WINDOW + 1, "http": 1}


async def test_verdicts_survive_a_restart_and_explain_names_them(tmp_path: Path) -> None:
    """A damaged file is ignored."""
    path = str(tmp_path / VERDICT_FILE)
    rig = Rig(path)
    for _ in range(QUORUM):
        rig.fetch()
        rig.answer_both(PLAIN, FULL)
    await rig.lane.close()
    again = Rig(path)
    again.fetch("http://a.test/2")
    assert again.lane.chosen == {"browser": 1}
    stored = VerdictFile(path).load()
    assert describe(stored, "j", "http://a.test/7").startswith("browser: 2 of the last 2 pages compared needed")
    assert describe(stored, "j", "http://a.test/other/") == ""
    (tmp_path / VERDICT_FILE).write_text("[")
    assert len(Rig(path).lane.verdicts) == 0


def test_the_second_copy_waits_for_the_delay_of_the_host() -> None:
    rig = Rig()
    rig.instructions.on_job(crawl_job(uid="j", politeness=Politeness(delay="3s")))
    rig.fetch()
    rig.plain.fetches[0].on_done(answer(200, FULL, content_type="text/html"))
    rig.clock.advance(2.9)
    assert not rig.rendered.fetches
    rig.clock.advance(0.2)
    assert len(rig.rendered.fetches) == 1


def test_nothing_is_learnt_where_a_lane_fails() -> None:
    rig = Rig()
    rig.fetch()
    rig.plain.fetches[0].on_done(answer(404, b"", content_type="text/html"))
    rig.fetch()
    rig.plain.fetches[1].on_done(answer(200, FULL, content_type="text/html"))
    rig.clock.advance(0)
    rig.rendered.fetches[0].on_done(answer(0, b"", reason="browser"))
    assert rig.responses == [b"", FULL]
    assert rig.lane.verdicts.compared == 0


def test_an_aborted_sample_stops_in_either_lane() -> None:
    rig = Rig()
    rig.fetch()
    rig.handle.abort()
    assert rig.plain.fetches[0].aborted
    rig.fetch()
    rig.plain.fetches[1].on_done(answer(200, FULL, content_type="text/html"))
    rig.handle.abort()
    rig.clock.advance(10)
    assert not rig.rendered.fetches


def test_robots_txt_and_sitemaps_are_fetched_plainly_and_always_means_the_browser() -> None:
    rig = Rig()
    rig.fetch("http://a.test/sitemap.xml", m.Render.ALWAYS)
    rig.fetch("http://a.test/page", m.Render.ALWAYS)
    assert [fetch.request.target.path for fetch in rig.plain.fetches] == ["/sitemap.xml"]
    assert [fetch.request.target.path for fetch in rig.rendered.fetches] == ["/page"]


@pytest.mark.parametrize("data", [b'[{"job": "\xff"}]', b"[" * 100_000, b"", b"{}"])
def test_a_damaged_file_of_verdicts_is_learnt_again(tmp_path, caplog, data):
    """One line in the log."""
    path = tmp_path / VERDICT_FILE
    path.write_bytes(data)
    assert VerdictFile(str(path)).load() == []
    assert "are not read" in caplog.text
