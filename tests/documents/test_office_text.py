"""Text of office files that other programs have written, read in the child process."""

from __future__ import annotations

import datetime
import io
import zipfile

import docx
import odfdo
import openpyxl
import pptx
import pytest
from nephila.native import markdown
from nephila.parser.single.extract import extract
from pptx.util import Inches

from tests.parser.parser_room import Room

TYPES = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


def read(body: bytes) -> dict[str, str]:
    """Answer of `nephila extract`."""
    return extract(body, "https://a.test/files/", "application/octet-stream", markdown=True)


def words() -> bytes:
    """A text of python-docx."""
    document = docx.Document()
    document.core_properties.title = "Report"
    document.add_heading("Yearly report", 0)
    document.add_heading("Sales", 1)
    document.add_paragraph("Wörter und 数字.")
    document.add_paragraph("one", style="List Bullet")
    document.add_paragraph("two", style="List Number")
    table = document.add_table(2, 2)
    for place in range(4):
        table.cell(place // 2, place % 2).text = f"cell {place}"
    document.add_heading("Details", 2)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def test_words_have_headings_lists_and_tables() -> None:
    """In the order of the text."""
    found = read(words())
    assert found["title"] == "Report"
    assert found["text"].splitlines() == [
        "Yearly report",
        "Sales",
        "Wörter und 数字.",
        "one",
        "two",
        "cell 0\tcell 1",
        "cell 2\tcell 3",
        "Details",
    ]
    assert "# Sales\n\nWörter und 数字.\n\n- one\n- two\n\n| cell 0 | cell 1 |\n| --- | --- |" in found["markdown"]
    assert found["markdown"].endswith("## Details")
    assert "problem" not in found


def test_slides_have_titles_points_tables_and_notes() -> None:
    """In the order of the presentation."""
    deck = pptx.Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "Start"
    first.placeholders[1].text = "point a\npoint b"
    first.notes_slide.notes_text_frame.text = "say hello"
    second = deck.slides.add_slide(deck.slide_layouts[5])
    second.shapes.title.text = "Table"
    table = second.shapes.add_table(1, 2, Inches(1), Inches(2), Inches(3), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    out = io.BytesIO()
    deck.save(out)
    found = read(out.getvalue())
    assert found["text"].splitlines() == ["Start", "point a", "point b", "say hello", "Table", "left\tright"]
    assert found["markdown"].startswith("## Start\n\n- point a\n- point b")


def test_sheets_have_values_as_people_read_them() -> None:
    """Dates, whole numbers and the names of sheets; empty sheets are left out."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Prices"
    sheet.append(["name", "price", "since"])
    sheet.append(["tea", 3.5, datetime.date(2026, 1, 2)])
    sheet.append(["salt", 2, True])
    book.create_sheet("Empty")
    out = io.BytesIO()
    book.save(out)
    found = read(out.getvalue())
    assert found["text"].splitlines() == ["Prices", "name\tprice\tsince", "tea\t3.5\t2026-01-02", "salt\t2\tTRUE"]


def test_open_document_text_and_sheet() -> None:
    """Headings, lists and tables of a text; cells of a sheet."""
    text = odfdo.Document("text")
    text.body.clear()
    table = odfdo.Table("T")
    table.set_values([[1, "x"], [2, "y"]])
    for part in (odfdo.Header(2, "Kopf"), odfdo.Paragraph("Ein  Absatz"), odfdo.List(["eins", "zwei"]), table):
        text.body.append(part)
    out = io.BytesIO()
    text.save(out)
    found = read(out.getvalue())
    assert found["text"].splitlines() == ["Kopf", "Ein Absatz", "eins", "zwei", "1\tx", "2\ty"]
    assert found["markdown"].startswith("## Kopf\n\nEin Absatz\n\n- eins\n- zwei\n\n| 1 | x |")


def test_chapters_of_a_book_are_pages() -> None:
    """In the order of the spine."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        root = '<container><rootfiles><rootfile full-path="OEBPS/a.opf"/></rootfiles></container>'
        book.writestr("META-INF/container.xml", root)
        items = '<manifest><item id="one" href="1.xhtml"/><item id="two" href="2%20.xhtml"/></manifest>'
        spine = '<spine><itemref idref="two"/><itemref idref="one"/></spine>'
        book.writestr("OEBPS/a.opf", f"<package>{items}{spine}</package>")
        book.writestr("OEBPS/1.xhtml", "<html><body><h1>First</h1><p>It begins.</p></body></html>")
        book.writestr("OEBPS/2 .xhtml", "<html><body><h1>Preface</h1><p>Before it.</p></body></html>")
    found = read(out.getvalue())
    assert found["text"].splitlines() == ["Preface", "Before it.", "First", "It begins."]
    assert found["markdown"].startswith("# Preface")


async def test_a_row_of_a_crawl_has_the_text() -> None:
    """With links, metadata and Markdown."""
    room = await Room().start()
    room.send(words(), content_type=TYPES["docx"])
    await room.parser.drain(60.0)
    (record,) = [one for one in room.log if hasattr(one, "structure")]
    assert record.title == "Report"
    assert "Wörter und 数字." in record.text.decode()
    made = markdown(record.structure, record.text, "http://a.test/")
    assert made.startswith(b"# Yearly report")
    assert record.text_hash
    assert not room.dead
    await room.parser.close()


def archive(kind: str, **members: bytes) -> bytes:
    """An archive that shows the kind, with members whose name has __ for /."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        if kind.startswith("application/vnd.oasis"):
            made.writestr("mimetype", kind)
        else:
            made.writestr("[Content_Types].xml", "<Types/>")
        for name, data in members.items():
            made.writestr(name.replace("__", "/") + ".xml", data)
    return out.getvalue()


W = b'<w:document xmlns:w="w"><w:body>%s</w:body></w:document>'
ODT = "application/vnd.oasis.opendocument.text"
LAUGHS = b"<!DOCTYPE w:document [<!ENTITY a0 'ha'>" + b"".join(
    b"<!ENTITY a%d '%s'>" % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 30)
)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (archive("", word__document=W % (b"<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 3 + b" " * (200 << 20))), "x\nx\nx"),
        (archive("", word__document=LAUGHS + b"]>" + W % b"<w:p><w:r><w:t>&a29;</w:t></w:r></w:p>"), ""),
        (
            archive(
                "",
                word__document=b'<!DOCTYPE w:document [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
                + W % b"<w:p><w:r><w:t>a&a;b</w:t></w:r></w:p>",
            ),
            "a",
        ),
        (archive("", word__document=W % (b"<w:p>" * 5_000)), ""),
        (archive(ODT, content=b'<o:body xmlns:o="o">' + b"<o:list><o:list-item>" * 100_000), ""),
        (archive("", word__document=b"\xff\xfe<"), ""),
        (
            archive(
                ODT,
                content=b'<o:body xmlns:o="o" xmlns:t="t"><t:table><t:table-row>'
                b'<t:table-cell t:number-columns-repeated="99999999"><t:p>z</t:p></t:table-cell>'
                b"</t:table-row></t:table></o:body>",
            ),
            "\t".join("z" * 1),
        ),
    ],
    ids=["padding", "laughs", "file", "deep", "deeper", "no xml", "repeated"],
)
def test_hostile_files_end_within_their_bounds(body: bytes, text: str) -> None:
    """Entities are not expanded, files are not read, nesting and padding cost their limit."""
    found = read(body)
    assert found["text"].startswith(text)
    assert len(found["text"]) < 10_000
    assert "root:" not in found["text"]


def test_a_thousand_sheets_are_bounded() -> None:
    """The first ones are read, and the problem says so."""
    book = openpyxl.Workbook()
    for number in range(1_000):
        book.create_sheet(f"s{number}").append([number])
    out = io.BytesIO()
    book.save(out)
    found = read(out.getvalue())
    assert found["problem"] == "more than 256 sheets"
    assert found["text"].splitlines()[:2] == ["s0", "0"]


def test_a_sheet_with_cells_far_apart_costs_its_child_only() -> None:
    """The row keeps its metadata, with the reason."""
    book = openpyxl.Workbook()
    book.properties.title = "Far"
    book.active["A1"] = 1
    book.active["XFD1048576"] = 2
    out = io.BytesIO()
    book.save(out)
    found = read(out.getvalue())
    assert found["title"] == "Far"
    assert found["problem"].startswith(("text not read", "more than"))


def test_members_with_names_outside_are_no_part_of_a_document() -> None:
    """The text of the document stays; the answer says that the archive is not sound."""
    packed = io.BytesIO(words())
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("../outside.xml", "<x/>")
        archive.writestr("/etc/outside.xml", "<x/>")
    answer = read(packed.getvalue())
    assert "Yearly report" in answer["text"]
    assert "name is no path inside it" in str(answer)
