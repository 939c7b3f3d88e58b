"""`nephila audit sample --links` and `recall`: what a crawl left out is drawn, labelled and counted."""

from __future__ import annotations

import hashlib
import json

import pytest
from nephila.kernel import messages as m
from nephila.kernel.messages import Outcome
from nephila_control import api, audit
from nephila_control.audit_types import DrawSample, GetAuditOutcome, GetSample, LabelRow

from tests.command_fixtures import Run
from tests.harvest.audit.label_files import change_rows
from tests.storage.storage_rig import JOB, record, running


def links(*urls: str) -> m.Outlinks:
    """Links of a page, as the parser packs them."""
    whole = b"".join(url.encode() for url in urls)
    ends, at = [], 0
    for url in urls:
        at += len(url)
        ends.append(at)
    return m.Outlinks(
        JOB,
        fingerprints=b"".join(hashlib.md5(url.encode()).digest() for url in urls),
        urls=whole,
        url_ends=b"".join(end.to_bytes(4, "little") for end in ends),
        anchors=b"more" * len(urls),
        anchor_ends=b"".join((4 * n).to_bytes(4, "little") for n in range(1, len(urls) + 1)),
        flags=bytes(len(urls)),
    )


@pytest.fixture
async def place(database_url, tmp_path):
    """Forty pages, of which those of /p/1x are not wanted; twenty links to the archive, which were missed; twenty links
    to other hosts; one page that robots.txt forbids."""
    missed = [f"http://h1.test/archive/{n}.html" for n in range(20)]
    others = [f"http://other.test/{n}" for n in range(20)]
    async with running(tmp_path / "crawl", store=database_url) as rig:
        rig.send(*(record(n, url=f"http://h1.test/p/{n}.html", depth=1) for n in range(38)))
        rig.send(record(38, url="http://h1.test/", depth=0, links=links(*missed[:10], *others)))
        rig.send(record(39, url="http://h1.test/deep", depth=2, links=links(*missed[10:], "http://h1.test/p/1.html")))
        forbidden = record(40, url="http://h1.test/secret", outcome=Outcome.DENIED, reason="robots", text=b"", meta="")
        rig.send(forbidden)
        await rig.storage.flush()
    return database_url or str(tmp_path / "crawl")


def test_links_give_recall_and_expressions(nephila: Run, place, tmp_path):
    """Twenty of the wanted pages were left out; links to other hosts do not count."""
    nephila("audit", "sample", "--out", place, "--name", "pages")
    drawn = json.loads(
        nephila("audit", "sample", "--out", place, "--links", "--by", "reason", "--name", "links", "--json").out
    )
    assert drawn["kind"] == "links"
    assert drawn["sizes"]["not admitted"] == 10
    assert drawn["sizes"]["too deep"] >= 10
    assert "other.test" not in str(drawn)
    file = tmp_path / "labels.csv"
    for name, verdict in (
        ("pages", lambda url: "wrong" if "/p/1" in url else "right"),
        ("links", lambda url: "wrong" if "/archive/" in url else "right"),
    ):
        nephila("audit", "label", "--out", place, "--sample", name, "--template", str(file))
        change_rows(file, lambda _, row, verdict=verdict: {**row, "verdict": verdict(row["url"])})
        assert nephila("audit", "label", "--out", place, "--sample", name, "--file", str(file)).code == 0
    found = json.loads(nephila("audit", "recall", "--out", place, "--json").out)
    assert found["precision"]["estimate"] == pytest.approx(29 / 40)
    assert found["recall"]["estimate"] == pytest.approx(29 / 49, abs=0.01)
    assert found["recall"]["low"] < 29 / 49 < found["recall"]["high"]
    (include,) = [one for one in found["proposals"] if one["kind"] == "include"]
    assert "archive" in include["expression"]
    assert include["hits"] == 20
    shown = nephila("audit", "recall", "--out", place).out
    assert "recall:" in shown
    assert include["expression"] in shown


def test_without_links_there_is_no_recall(nephila: Run, place):
    """Nor is a name of another kind taken."""
    nephila("audit", "sample", "--out", place, "--name", "pages")
    found = nephila("audit", "recall", "--out", place)
    assert "recall:    no label" in found.out
    assert "audit sample --links" in found.err
    assert "no sample 'pages' of links" in nephila("audit", "recall", "--out", place, "--links", "pages").err
    assert nephila("audit", "sample", "--out", place, "--links", "--items").code == 2


async def test_the_operations_have_the_same(tmp_path):
    """A link is shown with its text and the pages that have it."""
    async with running(tmp_path) as rig:
        rig.send(record(1, url="http://h1.test/", depth=0, links=links("http://h1.test/a/1")))
        await rig.storage.flush()
    with pytest.raises(api.NotFound, match="no sample"):
        audit.outcome(tmp_path, GetAuditOutcome())
    drawn = audit.draw(tmp_path, DrawSample(sample="l", kind="links", by="reason"))
    assert (drawn.kind, drawn.drawn) == ("links", 1)
    row = audit.detail(tmp_path, GetSample(sample="l")).row
    assert (row.url, row.title, row.stratum, row.changed) == ("http://h1.test/a/1", "more", "too deep", False)
    assert row.text.splitlines() == ["not stored; linked from:", "http://h1.test/"]
    audit.label(tmp_path, LabelRow(sample="l", number=1, version=row.version, verdict="wrong"))
    found = audit.outcome(tmp_path, GetAuditOutcome())
    assert (found.links, found.pages, found.recall) == ("l", "", None)
    async with running(tmp_path) as rig:
        url = "http://h1.test/a/1"
        rig.send(record(2, url=url, url_key=hashlib.md5(url.encode()).digest()))
        await rig.storage.flush()
    assert audit.detail(tmp_path, GetSample(sample="l", number=1)).row.gone
