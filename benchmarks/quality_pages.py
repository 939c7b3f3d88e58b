"""Twenty pages of the web with a truth, ours and trafilatura's beside each other: docs/quality-pages.md.

    python -m benchmarks.quality_pages ../shared/data --rivals PYTHON

Ten English pages of WCXB, of every type, and ten of trafilatura's evaluation set in other languages, of as many
languages as it has. The number of a page by CRC-32 decides, so that nobody chooses. Of each page the table has the
first lines on which truth and programs differ. The truth of trafilatura's pages are segments that belong or do not;
of the other lines of these pages nobody has a truth ("?").
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from nephila.parser.page.language import language_of

from benchmarks.bench_quality import SETS, ours, rival
from benchmarks.maintext_truth import TruePage, pages, word_score, words
from benchmarks.segment_truth import SegmentPage, counts, score, segment_pages

TARGET = Path(__file__).parents[1] / "docs/quality-pages.md"
EACH = 10
LINES = 2
"""Lines that belong, and lines that do not, of each page."""
LINE_CHARS = 110
LEAST_WORDS = 3
"""A shorter line is in most pages by chance."""
PROGRAMS: Final = ("Nephila", "trafilatura")
MARKS: Final = {True: "x", False: "", None: "?"}
HEAD = """# Twenty pages of the web side by side

`make show-pages TRUTH=../shared/data` writes this file: ten English pages of WCXB, of every type, then ten of
trafilatura's evaluation set in other languages. Their numbers by CRC-32 decide which. The model that is built was
trained on these pages ([quality](quality.md) has figures for sites that a model has not seen). A table has the first
lines on which the truth and the programs differ: `x` where the truth or the text of a program has the line. The truth
of trafilatura's pages are marked segments; of their other lines it is unknown (`?`)."""


class Row(NamedTuple):
    """A line, and which texts have it: the truth, then each of `PROGRAMS`."""

    line: str
    has: tuple[bool | None, ...]


def mixed(rows: Iterable[tuple[str, TruePage | SegmentPage]]) -> list[TruePage | SegmentPage]:
    """The first `EACH` pages in turn of each kind."""
    ranked: list[tuple[int, int, TruePage | SegmentPage]] = []
    places: dict[str, int] = {}
    for kind, page in sorted(rows, key=lambda row: zlib.crc32(row[1].id.encode())):
        places[kind] = places.get(kind, -1) + 1
        ranked.append((places[kind], zlib.crc32(page.id.encode()), page))
    return [page for _, _, page in sorted(ranked, key=lambda row: row[:2])[:EACH]]


def of_other_languages(marked: list[SegmentPage], texts: dict[str, str]) -> Iterator[tuple[str, SegmentPage]]:
    """Pages with their language, if that is not English."""
    for page in marked:
        language = language_of(texts[page.id].encode())
        if language not in ("", "en"):
            yield language, page


def differing(page: TruePage | SegmentPage, answers: Sequence[str]) -> list[Row]:
    """The first lines that belong, that do not, and that are not marked, on which truth and answers differ."""
    written = "\n".join(answers).split("\n")
    texts = [flat(answer) for answer in answers]
    if isinstance(page, SegmentPage):
        marked = flat("\n".join((*page.belongs, *page.surplus)))
        unknown = [line for line in written if flat(line) not in marked]
        return [*_rows(True, page.belongs, texts), *_rows(False, page.surplus, texts), *_rows(None, unknown, texts)]
    truth = flat(page.text)
    surplus = [line for line in written if flat(line) not in truth]
    return [*_rows(True, page.text.split("\n"), texts), *_rows(False, surplus, texts)]


def _rows(belongs: bool | None, lines: Sequence[str], texts: Sequence[str]) -> list[Row]:
    """The first of the lines that one of truth and texts has and another has not."""
    long = [line for line in dict.fromkeys(lines) if len(words(line)) >= LEAST_WORDS]
    rows = (Row(" ".join(line.split()), (belongs, *(flat(line) in text for text in texts))) for line in long)
    return list(islice((row for row in rows if len({*row.has} - {None}) > 1), LINES))


def flat(text: str) -> str:
    """The words of a text, each between spaces."""
    return f" {' '.join(words(text))} "


def figures(page: TruePage | SegmentPage, answer: str) -> tuple[float, float, float]:
    """Precision, recall and F1 of an answer."""
    return score([counts(page, answer)]) if isinstance(page, SegmentPage) else word_score(page.text, answer)


def section(number: int, page: TruePage | SegmentPage, answers: Sequence[str]) -> Iterator[str]:
    """The Markdown of one page."""
    kind = page.kind if isinstance(page, TruePage) else f"language {language_of(answers[0].encode())}"
    yield f"\n## {number}. {kind}\n\n{f'<{page.url}>' if page.url else f'Page {page.id}, without a URL.'}\n"
    for program, answer in zip(PROGRAMS, answers, strict=True):
        precision, recall, f1 = figures(page, answer)
        yield f"- {program}: precision {precision:.3f}, recall {recall:.3f}, F1 {f1:.3f}"
    rows = differing(page, answers)
    if not rows:
        yield "\nTruth and programs have the same lines."
        return
    yield f"\n| line | truth | {' | '.join(PROGRAMS)} |\n|---|---|---|---|"
    for row in rows:
        yield f"| {cell(row.line)} | {' | '.join(MARKS[has] for has in row.has)} |"


def cell(line: str) -> str:
    """A line as it stands in a table of Markdown."""
    short = line if len(line) <= LINE_CHARS else line[:LINE_CHARS].rsplit(" ", 1)[0] + " …"
    return "".join(f"\\{sign}" if sign in "|*_<>`[]\\" else sign for sign in short)


def document(data: Path, python: Path) -> Iterator[str]:
    """The parts of the file."""
    marked = list(segment_pages(data / SETS["trafilatura"]))
    english = mixed((page.kind, page) for page in pages(data / SETS["WCXB"]))
    others = mixed(of_other_languages(marked, ours(marked).texts))
    chosen = [*english, *others]
    texts = [ours(chosen).texts, rival(python, "trafilatura", chosen).texts]
    yield HEAD
    for number, page in enumerate(chosen, 1):
        yield from section(number, page, [answers[page.id] for answers in texts])


def write(data: Path, python: Path) -> None:
    """Write the file."""
    TARGET.write_text("\n".join(document(data, python)) + "\n", "utf-8")
    print(f"{TARGET} is written")


def main() -> None:
    """Read the arguments and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--rivals", type=Path, required=True)
    arguments = parser.parse_args()
    write(arguments.data, arguments.rivals)


if __name__ == "__main__":
    main()
