"""Quality and cost of main text on pages with a truth, beside what else could do the work.

    python -m benchmarks.bench_maintext ../shared/data/wcxb-dev [--rivals]

Word-F1 (multiset, mean over pages) by page type, and CPU-ms per page: the fastest of N rounds for ours, one for the
rivals. On wcxb-dev ours is an upper bound, since the model was trained on these pages: what it reaches on sites it has
not seen is printed by tools/train_maintext.py (figures in docs/adr). Rivals need
`pip install trafilatura lxml_html_clean resiliparse`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.maintext_truth import TruePage, f1, means, pages

Run = Callable[[bytes, str], str]


def extract_all() -> Run:
    """`nephila extract`: charset, title, metadata, links and media as well."""
    from nephila.parser.single.extract import extract

    return lambda body, url: str(extract(body, url)["text"])


def page_pass() -> Run:
    """What a crawl does: the page pass with links, title and main text."""
    from nephila.native import page_pass, sniff_encoding
    from nephila.parser.page.charset import encoding_of

    def run(body: bytes, url: str) -> str:
        found = page_pass(body, url or "http://page.invalid/", encoding_of(body, "", sniff_encoding))
        return (found.main_text or found.text).decode()

    return run


def without_main_text() -> Run:
    """The same pass, its text unfiltered."""
    from nephila.native import PassOptions, page_pass, sniff_encoding
    from nephila.parser.page.charset import encoding_of

    def run(body: bytes, url: str) -> str:
        encoding = encoding_of(body, "", sniff_encoding)
        return str(page_pass(body, url or "http://page.invalid/", encoding, PassOptions(main_text=False)).text.decode())

    return run


def trafilatura() -> Run:
    """As it comes."""
    from trafilatura import extract

    return lambda body, _url: extract(body) or ""


def resiliparse() -> Run:
    """As it comes."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    return lambda body, _url: extract_plain_text(HTMLTree.parse_from_bytes(body, "utf-8"), main_content=True) or ""


OURS: dict[str, Callable[[], Run]] = {
    "page pass + main text": page_pass,
    "page pass, all text": without_main_text,
    "nephila extract": extract_all,
}
RIVALS: dict[str, Callable[[], Run]] = {"trafilatura": trafilatura, "resiliparse": resiliparse}


def measure(run: Run, known: list[TruePage], rounds: int) -> tuple[list[str], float]:
    """The answers, and mean CPU-ms of the fastest round of each page."""
    answers, total = [], 0.0
    for page in known:
        best = float("inf")
        answer = ""
        for _ in range(rounds):
            start = time.process_time()
            answer = run(page.body, page.url)
            best = min(best, time.process_time() - start)
        answers.append(answer)
        total += best
    return answers, 1000 * total / len(known)


def report(name: str, run: Run, known: list[TruePage], rounds: int) -> None:
    """One line: cost, then F1 by type."""
    answers, cost = measure(run, known, rounds)
    found = means((page.kind, f1(page.text, answer)) for page, answer in zip(known, answers, strict=True))
    print(f"{name:22} {cost:6.2f} ms  " + " ".join(f"{kind} {value:.3f}" for kind, value in found.items()), flush=True)


def main() -> None:
    """Read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    known = list(pages(arguments.directory))
    if not known:
        sys.exit(f"no pages below {arguments.directory}")
    size = sum(len(page.body) for page in known) / len(known)
    print(f"{len(known)} pages, mean {size / 1000:.0f} kB")
    for name, make in {**OURS, **(RIVALS if arguments.rivals else {})}.items():
        try:
            run = make()
        except ImportError as error:
            print(f"{name:22} not installed ({error.name})")
            continue
        report(name, run, known, arguments.rounds if name in OURS else 1)


if __name__ == "__main__":
    main()
