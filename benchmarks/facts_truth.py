"""Facts of rows (dates, authors, language) on pages with a truth: WCXB has authors and days of publication, written by
people; Readability's test pages have time, byline and language, checked by people."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from nephila.kernel.page_facts.row_facts import row_facts
from nephila.native import page_pass, sniff_encoding
from nephila.parser.page.charset import encoding_of
from nephila.parser.page.language import language_of
from nephila.parser.single.extract import extract

FIELDS = ("published", "authors", "lang")
_WORD = re.compile(r"\w+")
_LABELS = frozenset({"by", "and", "und", "et", "y", "von", "par", "por"})


class FactPage(NamedTuple):
    """A page, and the truth of some fields: "" if the page has none."""

    url: str
    body: bytes
    truth: dict[str, str]


def wcxb(directory: Path) -> Iterator[FactPage]:
    for path in sorted((directory / "ground-truth").glob("*.json")):
        row = json.loads(path.read_text("utf-8"))
        body = gzip.decompress((directory / "html" / f"{path.stem}.html.gz").read_bytes())
        truth = row["ground_truth"]
        fields = {"published": truth.get("publish_date") or "", "authors": truth.get("author") or ""}
        yield FactPage(row.get("url") or "", body, fields)


def readability(path: Path) -> Iterator[FactPage]:
    """A field that the program left empty has no truth."""
    names = {"published": "publishedTime", "authors": "byline", "lang": "lang"}
    with tarfile.open(path) as tar:
        for name in sorted(name for name in tar.getnames() if name.endswith("/expected-metadata.json")):
            stated, source = (
                tar.extractfile(at) for at in (name, name.replace("expected-metadata.json", "source.html"))
            )
            if stated and source:
                row = json.loads(stated.read())
                yield FactPage("", source.read(), {ours: row[name] for ours, name in names.items() if row.get(name)})


def of_row(page: FactPage) -> dict[str, str]:
    """What an export makes of the row that a crawl stores."""
    url = page.url or "http://page.invalid/"
    passed = page_pass(page.body, url, encoding_of(page.body, "", sniff_encoding))
    lang = passed.lang or language_of(passed.main_text or passed.text)
    facts = row_facts(url=url, title=passed.title, lang=lang, meta=dict(reversed(passed.meta)))
    return {"published": facts.published, "authors": ", ".join(facts.authors), "lang": lang}


def of_page(page: FactPage) -> dict[str, str]:
    """`nephila extract`."""
    facts = extract(page.body, page.url)
    return {**facts, "authors": ", ".join(facts["authors"])}


def is_right(field: str, truth: str, answer: str) -> bool:
    """Whether an answer is the truth: dates by their day, names by their words, languages by their first tag."""
    if field == "published":
        return truth[:10] == answer[:10]
    if field == "lang":
        return truth.lower().split("-")[0] == answer.lower().replace("_", "-").split("-")[0]
    return _names(truth) == _names(answer)


def _names(text: str) -> set[str]:
    return set(_WORD.findall(text.lower())) - _LABELS


def table(sets: dict[str, list[FactPage]]) -> Iterator[str]:
    """The rows of a Markdown table: F1 over the pages whose truth has the field; answers where it has none."""
    yield "| set | field, pages | facts of | precision | recall | F1 | answers without a truth |"
    yield "|---|---|---|---|---|---|---|"
    for name, pages in sets.items():
        for reader, read in (("a row", of_row), ("`nephila extract`", of_page)):
            answers = [read(page) for page in pages]
            for field in FIELDS:
                yield from _rows(name, field, reader, zip(pages, answers, strict=True))


def _rows(name: str, field: str, reader: str, rows: Iterable[tuple[FactPage, dict[str, Any]]]) -> Iterator[str]:
    pairs = [(page.truth[field], str(answer[field])) for page, answer in rows if field in page.truth]
    answered = sum(bool(truth and answer) for truth, answer in pairs)
    right = sum(bool(truth and answer) and is_right(field, truth, answer) for truth, answer in pairs)
    if answered and (count := sum(bool(truth) for truth, _ in pairs)):
        figures = f"{right / answered:.3f} | {right / count:.3f} | {2 * right / (count + answered):.3f}"
        beside = sum(bool(answer and not truth) for truth, answer in pairs)
        yield f"| {name} | {field}, {count} | {reader} | {figures} | {beside} |"
