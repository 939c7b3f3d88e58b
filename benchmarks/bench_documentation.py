"""Which parts of documentation pages main text keeps: code lines with their indentation, paragraphs and table rows.

usage: python -m benchmarks.bench_documentation CACHE [--rivals] [--pages 60]

CACHE is a directory that Debian's documentation packages are downloaded into (documentation_truth.py); pages of each
package, in %. "beside" is the share of the answer's words that do not stand in the page's content: what it has too
much. Rivals need `pip install trafilatura`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.bench_maintext import OURS, RIVALS, Run
from benchmarks.documentation_truth import PACKAGES, Page, Parts, fetch, kept, pages, truth

COUNTED = ("code", "paragraphs", "rows")


def report(name: str, run: Run, known: list[tuple[Page, Parts]]) -> None:
    """One line per package and one of all."""
    answers = [run(page.body, f"http://{page.name}") for page, _ in known]
    for package in (*PACKAGES, None):
        had, found, beside, words = dict.fromkeys(COUNTED, 0), dict.fromkeys(COUNTED, 0), 0, 0
        for (page, parts), answer in zip(known, answers, strict=True):
            if package in (None, page.package):
                mine = kept(parts, answer)
                for what in COUNTED:
                    had[what] += getattr(parts, what).total()
                    found[what] += getattr(mine, what).total()
                beside += (mine.words - parts.words).total()
                words += mine.words.total()
        shares = "  ".join(f"{what} {100 * found[what] / max(had[what], 1):5.1f} of {had[what]:5}" for what in COUNTED)
        title = package.name if package else "all"
        print(f"{name:22} {title:18} {shares}  beside {100 * beside / max(words, 1):4.1f}", flush=True)


def main() -> None:
    """Fetch, read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--pages", type=int, default=60, help="of each package")
    arguments = parser.parse_args()
    fetch(arguments.cache, PACKAGES)
    known = [(page, truth(page)) for page in pages(arguments.cache, arguments.pages)]
    makers = {"page pass + main text": OURS["page pass + main text"]}
    if arguments.rivals:
        makers["trafilatura"] = RIVALS["trafilatura"]
    for name, make in makers.items():
        report(name, make(), known)


if __name__ == "__main__":
    main()
