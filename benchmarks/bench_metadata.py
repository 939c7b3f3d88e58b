"""Metadata of pages with a truth, beside what else could read it: F1 of each field, and CPU-ms per page.

    python -m benchmarks.bench_metadata ../shared/data/wcxb-dev --articles test-pages.tar.xz [--rivals] [--wrong FIELD]

Precision: right answers among the answers on pages whose truth has the field. Recall: right answers among those pages.
F1 is their harmonic mean. "beside": answers on pages whose truth says that there is none. A field with `*` has no truth
by people: its truth is what the page states, as extruct reads it (without extruct these are left out). Rivals need
`pip install -e .[bench]`. `--wrong FIELD` lists the pages where our answer is not the truth.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks import metadata_rivals
from benchmarks.metadata_truth import FIELDS, MetaPage, readability, right, wcxb

Read = Callable[[bytes, str], dict[str, str]]
STATED = ("modified", "section", "image", "canonical")


class Score(NamedTuple):
    """Counts of one field over the pages of a set."""

    pages: int = 0
    answers: int = 0
    right: int = 0
    beside: int = 0

    def f1(self) -> float:
        """0 without a right answer."""
        return 2 * self.right / (self.pages + self.answers) if self.right else 0.0


def nephila() -> Read:
    """`nephila extract`."""
    from nephila.parser.single.extract import extract

    def run(body: bytes, url: str) -> dict[str, str]:
        found = extract(body, url)
        return {**found, "authors": ", ".join(found.get("authors") or ()) or found["author"]}

    return run


def stored_rows() -> Read:
    """What an export makes of the row that a crawl stores."""
    from nephila.kernel.page_facts.row_facts import row_facts
    from nephila.native import page_pass, sniff_encoding
    from nephila.parser.page.charset import encoding_of

    def run(body: bytes, url: str) -> dict[str, str]:
        found = page_pass(body, url or "http://page.invalid/", encoding_of(body, "", sniff_encoding))
        meta = {**dict(reversed(found.meta)), "description": found.description}
        facts = row_facts(
            url=url, title=found.title, lang=found.lang, content_type="", meta=meta, text=found.main_text or found.text
        )
        return {**facts._asdict(), "authors": ", ".join(facts.authors)}

    return run


def with_stated_truth(pages: Iterable[MetaPage], stated: Read | None) -> list[MetaPage]:
    """Pages with the stated fields as a truth."""
    if stated is None:
        return list(pages)
    found = []
    for page in pages:
        said = stated(page.body, page.url)
        found.append(page._replace(truth={**page.truth, **{name: said[name] for name in STATED if said.get(name)}}))
    return found


def scores(pages: list[MetaPage], answers: list[dict[str, str]]) -> dict[tuple[str, str], Score]:
    """A score by set and field."""
    found: dict[tuple[str, str], Score] = defaultdict(Score)
    for page, answer in zip(pages, answers, strict=True):
        for field, truth in page.truth.items():
            said, old = str(answer.get(field) or ""), found[page.set, field]
            if truth:
                good = bool(said) and right(field, truth, said)
                found[page.set, field] = Score(old.pages + 1, old.answers + bool(said), old.right + good, old.beside)
            else:
                found[page.set, field] = old._replace(beside=old.beside + bool(said))
    return found


def report(name: str, pages: list[MetaPage], read: Read) -> list[dict[str, str]]:
    """Print a line for each set, and return the answers."""
    start = time.process_time()
    answers = [read(page.body, page.url) for page in pages]
    cost = 1000 * (time.process_time() - start) / len(pages)
    found = scores(pages, answers)
    print(f"{name}: {cost:.2f} CPU-ms a page")
    for kind in sorted({kind for kind, _ in found}):
        for field in FIELDS:
            if (score := found.get((kind, field))) is not None and score.answers:
                mark = "*" if field in STATED else ""
                precision, recall = score.right / score.answers, score.right / score.pages
                print(
                    f"  {kind:12} {field + mark:12} F1 {score.f1():.3f}  precision {precision:.3f}  recall"
                    f" {recall:.3f}  pages {score.pages:4}  beside {score.beside}",
                    flush=True,
                )
    return answers


def wrong(field: str, pages: list[MetaPage], answers: list[dict[str, str]]) -> None:
    """Print the pages whose answer is not the truth, or that have one where there is none."""
    for page, answer in zip(pages, answers, strict=True):
        truth, said = page.truth.get(field), str(answer.get(field) or "")
        if truth is not None and said != truth and not (truth and said and right(field, truth, said)):
            print(f"{page.set} {page.id} {page.url[:80]}\n    truth {truth!r}\n    said  {said!r}")


def main() -> None:
    """Read the arguments and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--articles", type=Path)
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--wrong", choices=FIELDS)
    arguments = parser.parse_args()
    known = [*wcxb(arguments.directory), *(readability(arguments.articles) if arguments.articles else ())]
    stated = metadata_rivals.stated()
    if stated is None:
        print("extruct is not installed: no truth for " + ", ".join(STATED))
    pages = with_stated_truth(known, stated)
    answers = report("nephila", pages, nephila())
    report("rows of a crawl", pages, stored_rows())
    if arguments.wrong:
        wrong(arguments.wrong, pages, answers)
    if arguments.rivals:
        for name, make in metadata_rivals.RIVALS.items():
            read = make()
            print(f"{name}: not installed") if read is None else report(name, pages, read)


if __name__ == "__main__":
    main()
