"""`nephila report`: one HTML file that asks for nothing, whatever is written in titles, URLs and link texts."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from nephila.kernel.messages import Outcome, Record
from nephila.native import parse_url
from nephila.programs.output_directory import OutputDirectory, RunFile
from nephila_console.figures import share, size, span
from nephila_tools.report.charts import timeline
from nephila_tools.report.facts import BINS, BROKEN, Timeline, gather
from nephila_tools.report.markup import link

from tests.cli.crawled import store
from tests.links import outlinks

EVIL = '"><script>alert(1)</script><img src=http://evil.test/x onerror=alert(2)>\x1b[31m\u202e</title></style>'
VOID = {"meta", "br", "img", "link", "hr", "input"}


class Checked(HTMLParser):
    """Reads a document; remembers its tags and what they refer to, and that all of them are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.open, self.words = set(), [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name in ("href", "src", "action", "data", "srcset", "poster", "xlink:href"):
                assert (tag, name) == ("a", "href")
                self.links.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def said(self):
        """All words, with single blanks."""
        return " ".join(" ".join(self.words).split())


def links_of(parent, targets):
    """The packed links of a page, all with a hostile text."""
    key = parse_url(parent).fingerprint
    return outlinks(*targets, job="crawl", anchors=[EVIL] * len(targets), parent_key=key, parent_url=parent)


def record(url, outcome=Outcome.STORED, reason="", at=1_800_000_000.0, links=None, **fields):
    """A row."""
    key = parse_url(url).fingerprint
    fields = {"size_bytes": 5000, "sha256": b"1" * 32, "content_type": "text/html", **fields}
    if outcome is not Outcome.STORED:
        fields = {**fields, "sha256": b"", "size_bytes": 0}
    return Record("crawl", key, url, 1, 1, outcome, reason, fetched_at=at, links=links, **fields)


def crawled(directory, *, links):
    """Hostile pages, a broken link on one of them, items of a hostile rule."""
    front, broken = "http://a.test/", "http://a.test/gone?q=%22%3E%3Cscript%3E"
    store(
        directory,
        [
            record(front, title=EVIL, links=links_of(front, [broken]) if links else None),
            record(
                "http://a.test/b",
                title="B",
                at=1_800_000_090.0,
                meta='{"fetch_s":"2.500","a":"b"}',
                rule="r<b>",
                items=[b"{}", b"{}"],
                depth=1,
            ),
            record(broken, Outcome.FAILED, "http_404", 1_800_000_030.0, depth=1),
            record("http://b.test/" + "x" * 3000, Outcome.DENIED, "robots", 1_800_000_060.0),
        ],
    )
    OutputDirectory(directory).write(
        RunFile(
            seeds=[front, EVIL], options={"header": ["Authorization: secret"], "exclude": [EVIL], "contact": EVIL},
            degraded_rules={"r": EVIL}, reason="done", state="finished", left=3,
        )
    )  # fmt: skip


@pytest.mark.parametrize("links", [True, False])
def test_a_report_is_one_harmless_file(tmp_path, nephila, links):
    crawled(tmp_path / "o", links=links)
    done = nephila("report", str(tmp_path / "o"))
    assert done.code == 0, done.err
    text = (tmp_path / "o" / "report.html").read_text()
    found = Checked(text)
    assert not {"script", "img", "iframe", "object", "embed", "link", "form", "base", "b<script>"} & found.tags
    assert not {"\x1b", "\u202e"} & set(text)
    assert "secret" not in text
    assert all(one.startswith("http://") for one in found.links)
    assert "default-src 'none'" in text
    assert str(tmp_path) not in text
    for words in (
        "2 pages from 1 host were stored",
        "1 URL could not be fetched",
        "404 Not Found",
        "2 items",
        "Slowest pages",
        "2.5 s",
    ):
        assert words in found.said
    if links:
        assert "on http://a.test/ “" in found.said
    else:
        assert "nephila crawl --links" in found.said


def test_a_report_goes_where_it_is_told(tmp_path, nephila):
    crawled(tmp_path / "o", links=True)
    assert nephila("report", str(tmp_path / "o"), "-o", str(tmp_path / "r.html")).code == 0
    assert "</html>" in (tmp_path / "r.html").read_text()
    refused = nephila("report", str(tmp_path / "o"), "-o", str(tmp_path / "no" / "r.html"))
    assert (refused.code, len(refused.err.splitlines())) == (1, 1)
    assert nephila("report", str(tmp_path / "none")).code == 1
    assert not (tmp_path / "o" / "report.html").exists()


def test_a_crawl_without_a_row_has_a_report(tmp_path, nephila):
    store(tmp_path / "o", [])
    assert nephila("report", str(tmp_path / "o")).code == 0
    Checked((tmp_path / "o" / "report.html").read_text())


def test_lists_are_bounded_and_say_so(tmp_path, nephila):
    rows = [record(f"http://a.test/{n}", Outcome.FAILED, "timeout") for n in range(BROKEN + 50)]
    store(tmp_path / "o", rows)
    facts = gather(tmp_path / "o", None)
    assert (len(facts.broken), facts.broken_total) == (BROKEN, BROKEN + 50)
    assert nephila("report", str(tmp_path / "o")).code == 0
    assert "50 more URLs" in Checked((tmp_path / "o" / "report.html").read_text()).said


@pytest.mark.parametrize("length_s", [0.0, 3.0, 100.0, 9000.0, 400_000.0, 1e7])
def test_time_is_shown_in_few_round_steps(tmp_path, length_s):
    rows = [record(f"http://a.test/{n}", at=1_800_000_000.5 + length_s * n / 20) for n in range(21)]
    store(tmp_path / "o", rows)
    data = gather(tmp_path / "o", None).timeline
    assert sum(sum(step.values()) for step in data.counts) == 21
    assert len(data.counts) <= BINS + 1
    assert data.step_s == int(data.step_s)
    Checked(timeline(data))
    assert timeline(Timeline()) == ""


def test_figures_are_written_for_people():
    assert [size(n) for n in (0, 1023, 2048, 5_000_000, 3 << 40)] == [
        "0 bytes",
        "1,023 bytes",
        "2.0 KB",
        "4.8 MB",
        "3.0 TB",
    ]
    assert [span(s) for s in (0.04, 5, 61, 3700, 90_000)] == ["40 ms", "5 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]
    assert [share(*n) for n in ((0, 5), (1, 100_000), (1, 30), (5, 5))] == ["0 %", "< 0.1 %", "3.3 %", "100 %"]


def test_only_web_addresses_are_links():
    assert "<a " not in link("javascript:alert(1)")
    assert 'href="http://a.test/?a=1&amp;b=%22"' in link("http://a.test/?a=1&b=%22")
