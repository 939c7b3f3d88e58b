"""Quality and cost of main text on four sets of pages with a truth, beside what else could do the work.

    python -m benchmarks.bench_quality ../shared/data [--answers FILE] [--rivals PYTHON] [--types] [--facts]
        [--spelling]

WCXB, Defuddle's and Readability's test pages: precision, recall and F1 of words (multiset, mean over pages).
trafilatura's evaluation set: of its marked segments. Cost: CPU-ms per page, the fastest of three rounds for ours, one
for the rivals. The model that is built was trained on these pages, so its figures are upper bounds: "sites not seen"
are answers of `tools/train_maintext.py --answers`, each by a model that saw no page of the site. Rivals run in an
environment of their own (`--rivals build/rivals/bin/python`, made by `make bench-quality`).
`--facts` prints a second table: dates, authors and languages of rows. `--spelling` prints how many words of
trafilatura's set are found in pages that write them with soft hyphens or with letters and marks apart.
"""

from __future__ import annotations

import argparse
import base64
import json
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nephila.native import page_pass, sniff_encoding
from nephila.parser.page.charset import encoding_of

from benchmarks import facts_truth, quality_rivals, spelling_truth
from benchmarks.maintext_truth import TruePage, defuddle, means, pages, readability, word_score
from benchmarks.segment_truth import Score, SegmentPage, counts, score, segment_pages

ROUNDS = 3
LEAST_PAGES = 10
"""Of a language that has a row of its own."""
SETS = {"WCXB": "wcxb-dev", "trafilatura": "trafilatura-eval-dev", "Defuddle": "defuddle-fixtures/fixtures.tar.xz",
        "Readability": "readability-test-pages/test-pages.tar.xz"}  # fmt: skip


class Answers(NamedTuple):
    """The text of each page, and CPU-ms per page; none where answers were read from a file."""

    texts: dict[str, str]
    cost: float | None


def read(data: Path) -> dict[str, list[TruePage] | list[SegmentPage]]:
    """The pages of each set."""
    wcxb, segments, fixtures, articles = (data / path for path in SETS.values())
    return {
        "WCXB": list(pages(wcxb)),
        "trafilatura": list(segment_pages(segments)),
        "Defuddle": list(defuddle(fixtures)),
        "Readability": list(readability(articles)),
    }


def ours(truths: Sequence[TruePage | SegmentPage]) -> Answers:
    """What a crawl stores: the page pass with links, title and main text."""
    texts, total = {}, 0.0
    for page in truths:
        best = float("inf")
        for _ in range(ROUNDS):
            start = time.process_time()
            encoding = encoding_of(page.body, "", sniff_encoding)
            passed = page_pass(page.body, page.url or "http://page.invalid/", encoding)
            best = min(best, time.process_time() - start)
        texts[page.id] = (passed.main_text or passed.text).decode()
        total += best
    return Answers(texts, 1000 * total / len(truths))


def rival(python: Path, name: str, truths: Sequence[TruePage | SegmentPage]) -> Answers:
    """The answers of a rival, which runs in its own environment."""
    rows = "\n".join(json.dumps([page.id, base64.b64encode(page.body).decode()]) for page in truths)
    script = Path(quality_rivals.__file__)
    done = subprocess.run([python, "-I", script, name], input=rows, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return Answers({row[0]: row[1] for row in answers}, 1000 * sum(row[2] for row in answers) / len(truths))


def judged(truths: Sequence[TruePage | SegmentPage], answers: dict[str, str]) -> Score:
    """Precision, recall and F1 over a set."""
    marked = [counts(page, answers[page.id]) for page in truths if isinstance(page, SegmentPage)]
    if marked:
        return score(marked)
    rows = [word_score(page.text, answers[page.id]) for page in truths if isinstance(page, TruePage)]
    return Score(*(sum(column) / len(rows) for column in zip(*rows, strict=True)))


def table(data: Path, answers: Path | None, python: Path | None) -> Iterator[str]:
    """The rows of a Markdown table."""
    sets = read(data)
    yield "| set, pages | program | precision | recall | F1 | CPU-ms per page |"
    yield "|---|---|---|---|---|---|"
    unseen = json.loads(answers.read_text("utf-8")) if answers else {}
    for name, truths in sets.items():
        rows = [("Nephila", ours(truths))]
        if unseen:
            rows.append(
                ("Nephila, sites not seen", Answers({page.id: unseen.get(page.id, "") for page in truths}, None))
            )
        if python:
            rows += [(other, rival(python, other, truths)) for other in quality_rivals.RIVALS]
        for program, run in rows:
            precision, recall, f1 = judged(truths, run.texts)
            cost = "" if run.cost is None else f"{run.cost:.2f}"
            yield f"| {name}, {len(truths)} | {program} | {precision:.3f} | {recall:.3f} | {f1:.3f} | {cost} |"


def by_type(data: Path, answers: Path | None) -> str:
    """F1 of WCXB by type of page, of the model that is built or of `answers`."""
    truths = list(pages(data / SETS["WCXB"]))
    texts = json.loads(answers.read_text("utf-8")) if answers else ours(truths).texts
    scores = means((page.kind, word_score(page.text, texts[page.id])[2]) for page in truths)
    return " ".join(f"{kind} {value:.3f}" for kind, value in scores.items())


def by_language(data: Path, answers: Path | None) -> Iterator[str]:
    """Precision, recall and F1 of trafilatura's pages by declared language, of languages with `LEAST_PAGES`."""
    truths = list(segment_pages(data / SETS["trafilatura"]))
    texts = json.loads(answers.read_text("utf-8")) if answers else ours(truths).texts
    rows: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for page in truths:
        declared = page_pass(page.body, "http://page.invalid/", encoding_of(page.body, "", sniff_encoding)).lang
        rows[declared[:2].lower() or "none"].append(counts(page, texts[page.id]))
    others = [row for of in rows.values() if len(of) < LEAST_PAGES for row in of]
    large = {language: of for language, of in sorted(rows.items()) if len(of) >= LEAST_PAGES}
    for language, of in {**large, "others": others}.items():
        yield f"{language} ({len(of)}): " + " ".join(f"{value:.3f}" for value in score(of))


def main() -> None:
    """Read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--rivals", type=Path)
    parser.add_argument("--types", action="store_true")
    parser.add_argument("--facts", action="store_true")
    parser.add_argument("--spelling", action="store_true")
    arguments = parser.parse_args()
    for line in table(arguments.data, arguments.answers, arguments.rivals):
        print(line, flush=True)
    if arguments.types:
        print(by_type(arguments.data, arguments.answers))
        for line in by_language(arguments.data, arguments.answers):
            print(line)
    if arguments.facts:
        wcxb, articles = (arguments.data / SETS[name] for name in ("WCXB", "Readability"))
        sets = {"WCXB": list(facts_truth.wcxb(wcxb)), "Readability": list(facts_truth.readability(articles))}
        for line in facts_truth.table(sets):
            print(line, flush=True)
    if arguments.spelling:
        for line in spelling_truth.table(page.body for page in segment_pages(arguments.data / SETS["trafilatura"])):
            print(line, flush=True)


if __name__ == "__main__":
    main()
