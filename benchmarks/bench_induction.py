"""Selectors from values that a person names: F1 on pages of the site that were not shown, after 1, 2 and 3 examples.

usage: python -m benchmarks.bench_induction CACHE [--pages 40] [--draws 3] [--misses]

CACHE is a directory that Debian's documentation packages are downloaded into (documentation_truth.py). A hand-written
selector of each field is the truth: it gives the values of the example pages, and the values of the other pages that
the answer is compared with. Half of the other pages may be looked at without their values, as stored pages of a crawl
are; F1 is that of the other half. A field that neither the truth nor the answer has on a page does not count.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nephila.parser.rules.document import Document
from nephila.parser.rules.select import select, value_or_text
from nephila.parser.rules.spec import Selection
from nephila.rulekit.induction.induce import Example, induce
from nephila.rulekit.induction.make_rule import selector_text
from nephila.rulekit.induction.wanted import folded

from benchmarks.documentation_truth import PACKAGES, TRAINING, Package, fetch


class Field(NamedTuple):
    """A field and its true selection."""

    name: str
    selection: Selection
    many: bool = False


def _css(name: str, expression: str, attr: str = "") -> Field:
    return Field(name, Selection("css", expression, attr=attr))


def _xpath(name: str, expression: str) -> Field:
    return Field(name, Selection("xpath", expression))


def _all(name: str, expression: str, attr: str = "") -> Field:
    return Field(name, Selection("css", expression, attr=attr), many=True)


JAVA = Package("openjdk-17-doc", "usr/share/doc/openjdk-17-jre-headless/api/java.*/java/*/*.html", "main", "")
TRUTH: dict[str, tuple[Field, ...]] = {
    "python3.11-doc": (
        _css("section", "div.body h1 .section-number"),
        Field("title", Selection("css", "div.body h1", regex=r"^(?:[\d.]+\s+)?(.*?)¶?$")),
        _css("intro", "div.body section > p"),
        _xpath("source", "//strong[normalize-space()='Source code:']/following-sibling::a[1]"),
        _css("next", "link[rel=next]", "title"),
        _all("functions", "dl.function > dt .descname"),
    ),
    "postgresql-doc-15": (
        _css("title", ".refentry .refnamediv p, .sect1 > .titlepage h2.title"),
        _css("next", "link[rel=next]", "href"),
        _css("chapter", ".navheader th[width='60%']"),
        _css("synopsis", "pre.synopsis"),
        _all("programs", "pre.programlisting"),
    ),
    "openjdk-17-doc": (
        _css("module", ".sub-title a[href*='module-summary']"),
        _css("package", ".sub-title a[href*='package-summary']"),
        _css("title", "h1.title"),
        _xpath(
            "since",
            "(//section[contains(@class,'description')]//dt[normalize-space()='Since:']/following-sibling::dd[1])[1]",
        ),
        _css("signature", ".type-signature"),
        _all("methods", "section.method-details h3"),
    ),
    "git-doc": (
        _css("title", "#header h1"),
        _css("name", "#header .sectionbody p"),
        _css("synopsis", ".verseblock .content"),
        _css("updated", "#footer-text"),
        _all("options", "dt.hdlist1"),
    ),
    "apache2-doc": (
        _css("title", "#page-content > h1"),
        _xpath(
            "description",
            "//th[a[contains(text(),'Description')]]/following-sibling::td",
        ),
        _xpath("module", "//th[a[contains(text(),'Module')] and contains(.,'Identifier')]/following-sibling::td"),
        _xpath("file", "//th[a[contains(text(),'Source')]]/following-sibling::td"),
        _all("directives", "#page-content .directive-section > h2 > a:nth-of-type(1)"),
    ),
    "cmake-doc": (
        Field("title", Selection("css", "div.body h1", regex="^(.*?)¶?$")),
        _css("group", "li.nav-item-1 > a"),
        _css("intro", "div.body section > p"),
        _all("code", "div.body pre"),
    ),
    "exim4-doc-html": (
        _css("title", "#content div.chapter > h2, #content .titlepage h2, #content h2"),
        _css("previous", "a.previous_page", "href"),
        _all("sections", "#content h3"),
    ),
    "libglib2.0-doc": (
        _css("purpose", ".refnamediv p"),
        _css("up", "link[rel=up]", "title"),
        _all("functions", "td.function_name > a.link"),
    ),
}
HELD_BACK = frozenset(("cmake-doc", "exim4-doc-html", "libglib2.0-doc"))
"""Sets that no choice was made by."""


def values(field: Field, document: Document) -> list[str]:
    """What a field has on a page: one value, or all."""
    return texts(field.selection, document, field.many)


def texts(selection: Selection, document: Document, many: bool) -> list[str]:
    """The values of a selection, those without text left out."""
    found = [folded(value_or_text(one)) for one in select(selection, document, None)]
    return [one for one in found if one][: None if many else 1]


def documents(cache: Path, package: Package, most: int) -> list[Document]:
    """Pages of a package, in an order of their own."""
    paths = sorted(
        path for path in (cache / package.name).glob(package.pages) if path.is_file() and not path.is_symlink()
    )
    random.Random(package.name).shuffle(paths)
    return [Document(path.read_bytes(), f"http://{package.name}.invalid/{path.name}") for path in paths[:most]]


class Count:
    """Values that are right, given and true."""

    def __init__(self) -> None:
        self.right = self.given = self.true = 0

    def add(self, given: list[str], true: list[str]) -> None:
        """One field of one page."""
        self.right += len(set(given) & set(true))
        self.given += len(set(given))
        self.true += len(set(true))

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.right / max(self.given + self.true, 1)


def trials(
    field: Field, pages: list[Document], shown: int, draws: int
) -> Iterator[tuple[list[Document], list[Document]]]:
    """(example pages, all other pages) of each draw; none where fewer pages have the field."""
    having = [page for page in pages if values(field, page)]
    for draw in range(draws if len(having) >= shown + 2 else 0):
        chosen = random.Random(f"{field.name} {draw}").sample(having, shown)
        yield chosen, [page for page in pages if page not in chosen]


def run(field: Field, chosen: list[Document], rest: list[Document], count: Count) -> str:
    """One draw; returns the selector that was chosen."""
    seen, judged = rest[::2], rest[1::2]
    named = [
        Example(page, {field.name: found if field.many else found[0]})
        for page in chosen
        if (found := values(field, page))
    ]
    choices = induce(named, seen)[field.name]
    for page in judged:
        given = texts(choices[0].selection, page, field.many) if choices else []
        count.add(given, values(field, page))
    return selector_text(choices[0]) if choices else "-"


def main() -> None:
    """Fetch, read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--pages", type=int, default=40, help="of each set")
    parser.add_argument("--draws", type=int, default=3, help="of example pages, per field and number of examples")
    parser.add_argument("--misses", action="store_true", help="print the selectors of fields below 0.9")
    arguments = parser.parse_args()
    sets = [one for one in (*PACKAGES, *TRAINING, JAVA) if one.name in TRUTH]
    fetch(arguments.cache, tuple(sets))
    total = {shown: Count() for shown in (1, 2, 3)}
    means: dict[tuple[bool, int], list[float]] = {(held, shown): [] for held in (False, True) for shown in total}
    began, runs = time.process_time(), 0
    for package in sets:
        pages = documents(arguments.cache, package, arguments.pages)
        for field in TRUTH[package.name]:
            cells = []
            for shown in total:
                own = Count()
                chosen = {run(field, some, rest, own) for some, rest in trials(field, pages, shown, arguments.draws)}
                runs += arguments.draws
                if own.true:
                    means[package.name in HELD_BACK, shown].append(own.f1)
                    cells.append(f"{own.f1:5.3f}")
                if arguments.misses and own.true and own.f1 < 0.9:
                    print(f"    {field.name} {shown}: {sorted(chosen)}")
            print(f"{package.name:18} {field.name:12} {'  '.join(cells)}", flush=True)
    for held in (False, True):
        found = [means[held, shown] for shown in total]
        line = "  ".join(f"{sum(one) / max(len(one), 1):5.3f}" for one in found)
        kind = "held back" if held else "looked at"
        print(f"mean of {len(found[0]):2} fields, {kind:12} {line}   after 1, 2, 3 examples")
    print(f"{(time.process_time() - began) / max(runs, 1):.2f} CPU-s per field")


if __name__ == "__main__":
    main()
