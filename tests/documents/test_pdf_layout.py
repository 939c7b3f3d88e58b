"""Headings, tables, columns and first letters of PDF pages whose text is known."""

from __future__ import annotations

from nephila.native import markdown as as_markdown
from nephila.parser.documents.pdf_task import PdfRequest
from nephila_documents.pdf import read

from tests.parser.pdfs import placed

LINE = "words of a paragraph that fill the whole line of"


def markdown(body: bytes) -> str:
    """What is read of a page."""
    content = read(PdfRequest(body, 100_000, 100))
    assert content.problem == ""
    return as_markdown(content.structure, content.text, "http://a.test/").decode()


def test_larger_text_is_a_heading_and_lines_are_joined() -> None:
    """A word that is broken at the end of a line is whole."""
    texts = [(72, 700, 24, "Great title"), (72, 660, 16, "Part one")]
    texts += [(72, 640 - 12 * n, 10, f"{LINE} number {n} or of more") for n in range(3)]
    found = markdown(placed(*texts))
    assert found.startswith("# Great title\n\n## Part one\n\n")
    assert found.count("\n\n") == 2
    assert "number 0 or of more words of" in found


def test_two_columns_that_alternate_in_the_content() -> None:
    """Each is read from top to bottom."""
    texts = []
    for n in range(8):
        texts += [(72, 700 - 12 * n, 10, f"left {n} {LINE[:36]}"), (320, 700 - 12 * n, 10, f"right {n} {LINE[:36]}")]
    found = markdown(placed(*texts))
    places = [found.index(f"{side} {n}") for side in ("left", "right") for n in range(8)]
    assert places == sorted(places)


def test_a_large_first_letter_begins_its_paragraph() -> None:
    """Before or behind it in the content."""
    lines = [(102, 700, 10, "nce upon a time there was a"), (102, 688, 10, LINE), (72, 676, 10, LINE)]
    lines += [(72, 664 - 12 * n, 10, LINE) for n in range(4)]
    cap = (72, 684, 34, "O")
    for texts in ([cap, *lines], [*lines, cap]):
        assert markdown(placed(*texts)).startswith("Once upon a time")


def test_a_drawn_table_has_its_cells() -> None:
    """Also those of two lines; text before and behind it stays there."""
    rules = [(70, y, 500, y) for y in (720, 690, 640, 610)] + [(x, 610, x, 720) for x in (70, 200, 350, 500)]
    texts = [(72, 740, 10, "before")]
    texts += [(75, 705, 10, "name"), (205, 705, 10, "price"), (355, 705, 10, "remark")]
    texts += [(75, 675, 10, "tea"), (205, 675, 10, "3.50"), (355, 675, 10, "of two"), (355, 655, 10, "lines")]
    texts += [(75, 625, 10, "salt"), (205, 625, 10, "2"), (72, 580, 10, "behind")]
    table = "| name | price | remark |\n| --- | --- | --- |\n| tea | 3.50 | of two lines |\n| salt | 2 |  |"
    assert markdown(placed(*texts, rules=tuple(rules))) == f"before\n\n{table}\n\nbehind"


def test_a_table_without_lines() -> None:
    """Texts of three rows that stand below each other."""
    rows = [("Apples", "12", "kg"), ("Long pears", "3", "kg"), ("Nuts", "100", "g")]
    texts = [(72 + 150 * m, 700 - 14 * n, 10, cell) for n, row in enumerate(rows) for m, cell in enumerate(row)]
    found = markdown(placed(*texts))
    assert found.splitlines()[0] == "| Apples | 12 | kg |"
    assert found.splitlines()[3] == "| Nuts | 100 | g |"


def test_a_frame_around_text_is_no_table() -> None:
    """Nor is a drawing of many lines."""
    frame = [(70, 600, 500, 600), (70, 700, 500, 700), (70, 600, 70, 700), (500, 600, 500, 700)]
    texts = [(75, 680 - 12 * n, 10, LINE) for n in range(4)]
    assert "|" not in markdown(placed(*texts, rules=tuple(frame)))
    drawing = [(70 + n % 400, 100, 70 + n % 400, 700) for n in range(3_000)]
    assert "|" not in markdown(placed(*texts, rules=tuple(drawing)))
