"""JSON, XML, CSV and office files: text, title, links; hostile ones cost what they may and no more."""

from __future__ import annotations

import io
import json
import struct
import time
import zipfile
from pathlib import Path

import pytest
from nephila.kernel import messages as m
from nephila.kernel.documents.job_schema import Parse
from nephila.parser.documents import csv_text, json_text, xml_text
from nephila.parser.documents.csv_text import read_csv
from nephila.parser.documents.json_text import read_json
from nephila.parser.documents.office import metadata as office
from nephila.parser.documents.office.metadata import MAX_MEMBER_BYTES, read_office
from nephila.parser.documents.xml_text import read_xml
from nephila.parser.single.extract import extract

from tests.jobs import crawl_job
from tests.parser.parser_room import Room
from tests.parser.pdfs import pdf

# ---- JSON


def test_json_is_laid_out_and_still_the_same_json() -> None:
    """Escapes become characters; numbers, order and doubled keys stay as written."""
    written = r'{"b":1.10,"a":[12345678901234567890123,"\u00e4\ud83d\ude00\\u00e4\n\u0000"],"a":{}}'
    text = read_json(written, 10).text.decode()
    assert text.replace("\n", "").replace(" ", "") == (
        r'{"b":1.10,"a":[12345678901234567890123,"ä😀\\u00e4\n\u0000"],"a":{}}'
    )
    assert text.count("\n") == 7
    assert json.loads(text) == json.loads(written)


def test_title_and_addresses_of_json() -> None:
    """Absolute URLs anywhere, relative ones where the key says so, with the title beside them."""
    document = {
        "title": "List",
        "items": [
            {"name": "A", "url": "/a", "note": "not /this", "image": "http://i.test/a.png"},
            {"url": "b?x=1", "text": "see http://no.test/ here", "next": "word"},
        ],
    }
    content = read_json(json.dumps(document), 10)
    assert (content.title, content.problem) == ("List", "")
    assert content.links == [("/a", "A"), ("http://i.test/a.png", "A"), ("b?x=1", "")]
    assert len(read_json(json.dumps(document), 2).links) == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a":', "no JSON: Input data was truncated"),
        ("callback({})", "no JSON"),
        (r'["\ud800"]', "no JSON"),
        ("[1e400]", "not looked into: Number out of range"),
        ("[" * 100_000, "not looked into: its values lie too deep"),
        ("[" * 40 + "]" * 40, "not laid out: more than 32 levels"),
        ("[" + "1," * 100_001 + "1]", "not laid out"),
        ("[" + "[]," * 300_000 + "[]]", "not laid out"),
        ('"' + "x" * (json_text.MAX_BYTES) + '"', "not looked into: more than"),
    ],
    ids=["torn", "script", "half a character", "too large", "deep", "levels", "values", "brackets", "long"],
)
def test_json_beyond_its_limits_stays_as_it_came(text: str, problem: str) -> None:
    """With the reason, soon."""
    before = time.process_time()
    content = read_json(text, 10)
    assert content.text.decode() == text
    assert content.problem.startswith(problem)
    assert time.process_time() - before < 5.0


@pytest.mark.parametrize("text", ["", "null", "5", '"word"', "[]", "{}", "[[],{}]"])
def test_json_of_hardly_anything(text: str) -> None:
    """No failure, no title, no links."""
    content = read_json(text, 10)
    assert (content.title, content.links) == ("", [])


async def test_links_of_json_are_followed_only_where_asked() -> None:
    """They are often those of an interface."""
    body = b'{"url": "http://b.test/"}'
    (record,) = (await Room().start()).send(body, content_type="application/json")
    assert isinstance(record, m.Record)
    job = crawl_job(uid="j", parse=Parse(follow=["json"]))
    links, _ = (await Room().start(job)).send(body, content_type="application/json", depth=1)
    assert isinstance(links, m.Outlinks)
    assert (links.urls, links.depth) == (b"http://b.test/", 2)


# ---- XML


def test_xml_gives_its_text_first_title_and_links() -> None:
    """References stand for characters; style sheets, pictures and parts of the same document are no links."""
    content = read_xml(
        """<?xml version="1.0"?><?xml-stylesheet href="s.xsl"?><svg xmlns:x="l"><title>A &amp; B</title>
        <style>p{}</style><a x:href="page?a=1&amp;b=2">go &lt;there&gt;</a><use href="#id"/><image href="i.png"/>
        <title>other</title>
        <![CDATA[raw <b>]]></svg>""",
        10,
    )
    assert content.text.decode().split("\n") == ["A & B", "go <there>", "other", "raw <b>"]
    assert (content.title, content.links) == ("A & B", [("page?a=1&b=2", "go <there>")])


def test_no_entity_is_ever_expanded() -> None:
    """A billion laughs is a document without text; one that names a file is none either."""
    laughs = '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;"><!ENTITY f SYSTEM "file:///etc/passwd">]><l>&b;&f;</l>'
    assert read_xml(laughs, 10).text == b"&b;&f;"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<a>" * 100_001, "more than 100,000 tags"),
        ("<a>x</a>" * 300_000, "more than"),
        ("<a>" + "x" * xml_text.MAX_BYTES, "more than"),
        ("<a" + " b='1'" * 50_000 + ">", ""),
        ("<" * 1_000_000, ""),
        ("<!--" * 200_000, ""),
        ("<a href='" * 100_000, ""),
    ],
    ids=["deep", "many", "long", "attributes", "angles", "comments", "quotes"],
)
def test_hostile_xml_is_bounded(text: str, problem: str) -> None:
    """Depth means nothing to it; length and number of tags end it with a reason."""
    before = time.process_time()
    assert read_xml(text, 10).problem.startswith(problem)
    assert time.process_time() - before < 5.0


# ---- CSV


@pytest.mark.parametrize(
    ("text", "lines", "facts"),
    [
        ("a,b\n1,2\n", "a\tb\n1\t2", {"rows": "1", "columns": "a, b"}),
        ("x;y;z\n1,5;2;3\n", "x\ty\tz\n1,5\t2\t3", {"rows": "1", "columns": "x, y, z"}),
        ('"a,b;c";d\n"two\nlines";e', "a,b;c\td\ntwo lines\te", {"rows": "1", "columns": "a,b;c, d"}),
        ("1,2\n3,4\n", "1\t2\n3\t4", {"rows": "2"}),
        ("a\tb\n\n\n1\t2\n", "a\tb\n1\t2", {"rows": "1", "columns": "a, b"}),
        ("", "", {"rows": "0"}),
        ('"never closed\n' + "x\n" * 3, "never closed x x x", {"rows": "0", "columns": "never closed x x x"}),
    ],
)
def test_csv_gives_rows_and_names_of_columns(text: str, lines: str, facts: dict[str, str]) -> None:
    """Cells are tabs apart; what separates them is found in the first line."""
    content = read_csv(text)
    assert (content.text.decode(), content.facts, content.problem) == (lines, facts, "")


def test_csv_is_bounded_by_whole_rows() -> None:
    """Rows and characters; a cell too long ends it with a reason, and keeps what came before."""
    rows = read_csv("a,b\n" * (csv_text.MAX_ROWS + 5))
    assert (rows.text.count(b"\n") + 1, rows.problem) == (csv_text.MAX_ROWS, "more than 10,000 rows")
    long = read_csv(("x" * 99_999 + "\n") * 30)
    assert (set(map(len, long.text.split(b"\n"))), long.problem) == ({99_999}, "more than 2,000,000 characters")
    cell = read_csv("a,b\n" + "x" * 200_000 + ",1\n")
    assert cell.text == b"a\tb"
    assert cell.problem.startswith("broken after row 1")


# ---- office files

CORE = (
    '<cp:coreProperties xmlns:dc="x"><dc:title>Plan &amp; more</dc:title><dc:creator>Ann</dc:creator><cp:keywords/>'
    "<dcterms:created>2024-01-02T03:04:05Z</dcterms:created><dc:subject>s</dc:subject></cp:coreProperties>"
)
ODF = (
    "<office:meta><dc:title>Letter</dc:title><meta:initial-creator>Bob</meta:initial-creator>"
    "<meta:creation-date>2023-05-06</meta:creation-date><dc:language>de</dc:language></office:meta>"
)


def archive(members: dict[str, str], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file of these."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as file:
        for name, text in members.items():
            file.writestr(name, text)
    return out.getvalue()


DOCX = archive({"[Content_Types].xml": "<Types/>", "word/document.xml": "<w/>", "docProps/core.xml": CORE})


@pytest.mark.parametrize("front", [b"", b"PK\x03\x04 stub in front"])
def test_ooxml_tells_type_title_author_and_date(front: bytes) -> None:
    """Also where something stands in front of the archive."""
    content = read_office(front + DOCX)
    assert content.facts == {
        "type": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "subject": "s",
    }
    assert (content.title, content.author, content.published) == ("Plan & more", "Ann", "2024-01-02T03:04:05Z")
    assert (content.text, content.problem) == (b"", "")


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_opendocument_tells_the_same(packing: int) -> None:
    """Its type stands in a member of its own."""
    content = read_office(archive({"mimetype": "application/vnd.oasis.opendocument.text", "meta.xml": ODF}, packing))
    assert content.facts == {"type": "application/vnd.oasis.opendocument.text"}
    assert (content.title, content.author, content.published, content.lang) == ("Letter", "Bob", "2023-05-06", "de")


@pytest.mark.parametrize(
    "body",
    [
        DOCX[:100],
        DOCX[:-30],
        DOCX[:-22] + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 65_535, 65_535, 0, 0, 0),
        DOCX[:-22] + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 3, 3, 2**32 - 1, 2**32 - 1, 0),
        b"PK\x03\x04" + b"PK\x05\x06" * 10_000,
        archive({"docProps/core.xml": CORE}).replace(b"PK\x03\x04", b"XX\x03\x04"),
        b"PK\x03\x04" + bytes(1_000),
        DOCX.replace(b"core.xml", b"core.xm\xff"),
    ],
    ids=["head", "no end", "count", "far away", "ends", "nowhere", "zeros", "name"],
)
def test_broken_archives_never_fail(body: bytes) -> None:
    """Whatever the directory claims."""
    assert read_office(body).text == b""


def test_what_of_an_archive_is_not_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metadata that is a bomb, entries without end."""
    core = "<a><dc:title>T</dc:title>" + " " * 300_000 + "</a>"
    content = read_office(archive({"[Content_Types].xml": "", "word/x": "", "docProps/core.xml": core}))
    assert (content.title, content.problem) == ("T", "its metadata is longer than 262,144 bytes")
    monkeypatch.setattr(office, "MAX_ENTRIES", 3)
    content = read_office(archive({f"word/{n}": "" for n in range(5)}))
    assert content.problem == "not looked at beyond 3 entries"


def test_zip_bomb_is_unpacked_no_further_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gigabyte of metadata costs a quarter of a megabyte; a million members are not looked at."""
    seen: list[int] = []
    real = office.unpacked
    monkeypatch.setattr(office, "unpacked", lambda *a: seen.append(len(found := real(*a))) or found)
    title = "<dc:title>" + "x" * (64 << 20)
    read_office(archive({"[Content_Types].xml": "", "docProps/core.xml": title}))
    assert seen == [MAX_MEMBER_BYTES]
    monkeypatch.setattr(office, "MAX_ENTRIES", 100)
    many = archive({f"m{number}": "" for number in range(200)} | {"docProps/core.xml": CORE})
    assert read_office(many).title == ""


async def test_documents_become_rows() -> None:
    """Text, title and what else is said stand in the row."""
    room = await Room().start()
    room.send(DOCX, content_type="application/octet-stream")
    await room.parser.drain(60.0)
    record = room.log[-1]
    assert isinstance(record, m.Record)
    meta = json.loads(record.meta)
    assert (record.title, record.text, meta["author"], meta["sniffed_type"]) == (
        "Plan & more",
        b"",
        "Ann",
        "application/zip",
    )
    record = room.record(b"a;b\n1;2", content_type="text/csv")
    assert (record.text, json.loads(record.meta)["columns"], len(record.text_hash)) == (b"a\tb\n1\t2", "a, b", 8)
    record = room.record(b"<doc><title>T</title>words</doc>", content_type="application/xml")
    assert (record.title, record.text) == ("T", b"T\nwords")
    await room.parser.close()


# ---- one document, without a crawl


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (pdf("Hello", info="/Title(T)", link="/x"), "", {"kind": "pdf", "title": "T", "text": "Hello", "pages": "1"}),
        (b'{"title":"T"}', "application/json", {"kind": "json", "title": "T", "text": '{\n  "title": "T"\n}'}),
        (b"<d><title>T</title></d>", "text/xml", {"kind": "xml", "title": "T"}),
        (b"a,b\n1,2", "text/csv", {"kind": "csv", "rows": "1", "columns": "a, b"}),
        (DOCX, "", {"kind": "office", "author": "Ann"}),
        (b"%PDF-1.4 torn", "", {"kind": "pdf", "problem": "broken: not a whole PDF", "text": ""}),
        (b"words", "text/plain", {"kind": "text", "text": "words"}),
        (b"\x89PNG\r\n\x1a\n", "", {"kind": "binary", "text": ""}),
    ],
    ids=["pdf", "json", "xml", "csv", "office", "torn pdf", "text", "picture"],
)
def test_extract_reads_every_kind(body: bytes, content_type: str, expected: dict[str, str]) -> None:
    """As the service would; what could not be read says why."""
    found = extract(body, "http://a.test/", content_type)
    assert {name: found.get(name) for name in expected} == expected


def test_extract_reads_sitemaps_and_feeds() -> None:
    """Links with dates; without a URL, relative ones are left out."""
    feed = b"<rss><channel><title>F</title><item><link>/a</link><title>A</title><pubDate>2024-01-02</pubDate></item>"
    found = extract(feed, "http://a.test/")
    assert (found["kind"], found["title"]) == ("rss", "F")
    assert found["links"] == [{"url": "http://a.test/a", "text": "A", "nofollow": False, "lastmod": 1704153600.0}]
    assert extract(feed, "")["links"] == []
    sitemap = b"<urlset><url><loc>http://a.test/x</loc></url></urlset>"
    assert [link["url"] for link in extract(sitemap, "")["links"]] == ["http://a.test/x"]


def test_address_over_text_of_a_pdf_is_a_link() -> None:
    """With the text below it."""
    found = extract(pdf("Read on", link="/x"), "http://a.test/d/")
    assert found["links"] == [{"url": "http://a.test/x", "text": "Read on", "nofollow": False}]


def test_all_sources_are_read(tmp_path: Path) -> None:
    """The command finds the kind by the file's name or its bytes."""
    from nephila.parser.single.extract import type_by_name

    names = ("a.json", "a.csv", "a.xml", "a.txt", "a.html", "a.pdf", "a.docx")
    found = [type_by_name(tmp_path / name) for name in names]
    assert found == ["application/json", "text/csv", "application/xml", "text/plain", "", "", ""]
