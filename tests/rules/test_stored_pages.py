"""A stored page is for rules what it was for the crawl: the same facts, so that trying a rule says what comes of it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import JOBS, PAGES, RECORDS, RULES
from nephila.parser.config import ParserConfig
from nephila.parser.service import build
from nephila_rules.run_rule import RuleRunner
from nephila_rules.stored_pages import StoredPage, pages_of
from nephila_stores import raw_file as rawfile

from tests.jobs import crawl_job
from tests.rules.execution.rule_rig import URL, rule

SPEC = """
match: {url: '^https://a'}
fields:
  url: {page: url}
  title: {page: title}
  lang: {page: lang}
  text: {page: text}
  type: {page: content_type}
  at: {page: fetched_at, type: date}
  encoding: {page: encoding}
"""
AT = 1_795_255_200.0
HTML = b"<html lang=de><title>A  page</title><nav><a href=/>x</a></nav><p>The first paragraph of a page.<p>Another."


def in_a_crawl(page: m.Page) -> list[bytes]:
    """Items as the service makes them."""

    async def run() -> list[bytes]:
        clock = ManualClock()
        bus = LocalBus(clock)
        records: list[m.Record] = []

        def on_record(delivery: Delivery) -> None:
            records.append(delivery.message)
            delivery.ack()

        bus.subscribe(RECORDS, "test", on_record, credits=10)
        parser = build(ParserConfig(), bus, clock)
        await parser.start()
        document = rule(SPEC)
        bus.publish(RULES, 0, m.ParseRule("r", document.text, document.rule.version))
        bus.publish(JOBS, 0, crawl_job(uid="j", rules=["r"]))
        bus.publish(PAGES, 0, page)
        await parser.drain(30.0)
        await parser.close()
        return list(records[0].items)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("body", "content_type", "charset"),
    [
        (HTML, "text/html", ""),
        (b'{"title": "Of JSON", "n": 1}', "application/json", ""),
        ("<a><title>Grüße</title></a>".encode("latin-1"), "application/xml", "iso-8859-1"),
        ("Wörter".encode("utf-16"), "text/plain", ""),
        (b"\xff\xfe\x00", "", ""),
        (b"", "text/html", ""),
    ],
    ids=["html", "json", "xml", "text", "binary", "empty"],
)
def test_the_facts_of_a_stored_page_are_those_of_the_crawl(body: bytes, content_type: str, charset: str) -> None:
    """Title, language, text, time: what `rules test` and `rules apply` show is what a crawl stores."""
    page = m.Page(job="j", url_key=bytes(16), url=URL, status=200, content_type=content_type, charset=charset)
    page.body, page.fetched_at, page.fetch_no = body, AT, 1
    with RuleRunner() as runner:
        found = runner.run(rule(SPEC), StoredPage(URL, content_type, charset, body, "page", AT))
    assert found.items == in_a_crawl(page)


def test_when_a_kept_body_was_fetched(tmp_path: Path) -> None:
    """Its file says so."""
    import gzip

    path = tmp_path / "raw-00000.gz"
    head = rawfile.RawPageHead(url=URL, content_type="text/html", fetched_at=AT)
    path.write_bytes(gzip.compress(rawfile.member(head, HTML)))
    (page,) = pages_of(path)
    facts: dict[str, Any] = page.document.facts
    assert facts["fetched_at"] == "2026-11-21T10:00:00Z"
    assert facts["title"] == "A page"


@pytest.mark.parametrize("name", ["page.html", "a.warc", "raw-00000.gz"])
def test_a_fifo_is_no_page(tmp_path: Path, name: str) -> None:
    """It would be read until someone writes to it."""
    os.mkfifo(tmp_path / name)
    with pytest.raises(UserError, match="it is no regular file"):
        list(pages_of(tmp_path / name))
