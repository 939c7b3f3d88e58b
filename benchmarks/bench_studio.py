"""Clicks in the rule studio on pages that others annotated: F1 of what the rule takes after one to three clicks.

usage: python -m benchmarks.bench_studio [TEMPLATES]

TEMPLATES (default: ../shared/data/portia-templates) are Portia's: a page, and annotations of its fields by selectors of
their authors. Three tasks per page, each without any other page of the site:
- value: a click on the element of a field; right if the rule takes that element and nothing else;
- list: clicks on the first two or three values of a field with three or more; F1 of the list;
- boxes: clicks on one field of the first two or three items; F1 of the boxes that are found.
A correction is what a person has to do after the first answer: one more click, or giving up. Without TEMPLATES the same
tasks are done on a page that is made here.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nephila.kernel.runtime.errors import UsageError
from nephila.parser.page.html_tree import css
from nephila.parser.rules.document import Document
from nephila.rulekit.induction.boxes import boxes_around
from nephila.rulekit.studio.draft import Draft
from nephila.rulekit.studio.learn import marked, step
from nephila.rulekit.studio.numbering import numbers
from nephila.rulekit.studio.suggest import Pages, box_around

FOLDER = Path(__file__).parents[2] / "shared" / "data" / "portia-templates"


class Page(NamedTuple):
    """A page and the true elements of its fields."""

    name: str
    document: Document
    fields: list[list[Any]]
    boxes: list[list[Any]]
    """Of each kind of items."""


def pages(folder: Path) -> Iterator[Page]:
    """Of all templates, or one that is made here."""
    files = sorted(folder.glob("*.json"))
    for file in files:
        found = json.loads(file.read_text())
        for template in found.get("templates", [found]):
            yield from _page(file.stem, template)
    if not files:
        cards = "".join(f"<li class=card><h2>Table {n}</h2><b class=price>${n}.50</b>" for n in range(8))
        document = Document(f"<h1>Tables</h1><ul>{cards}</ul>".encode(), "http://shop.test/")
        root = document.tree.root
        yield Page("made here", document, [css(root, one) for one in ("h1", "h2", ".price")], [css(root, ".card")])


def _page(name: str, template: dict[str, Any]) -> Iterator[Page]:
    body = template.get("original_body") or template.get("body")
    extracts = template.get("plugins", {}).get("annotations-plugin", {}).get("extracts", [])
    if not body:
        return
    document = Document(body.encode(), template.get("url") or "http://a.test/")
    fields, boxes = [], []
    for one in extracts:
        try:
            nodes = css(document.tree.root, one.get("selector") or "x-none")
        except ValueError:
            continue
        if one.get("item_container"):
            if one.get("repeated") and len(nodes) > 2:
                boxes.append(nodes)
        elif nodes and nodes[0].text(deep=True).strip():
            fields.append(nodes)
    yield Page(name, document, fields, boxes)


class Tally:
    """Sums of one task."""

    def __init__(self) -> None:
        self.f1: list[float] = []
        self.seconds: list[float] = []


def f1(found: Sequence[Any], truth: Sequence[Any]) -> float:
    """Of elements."""
    a, b = ({one.mem_id for one in nodes} for nodes in (found, truth))
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0


def clicked(page: Page, nodes: Sequence[Any]) -> list[Any]:
    """What the rule takes after a click on each of the elements."""
    known = numbers(page.document)
    draft = Draft(page.document.url, name="bench", pattern=".")
    for at, node in enumerate(nodes):
        pages_of = Pages(page.document, {page.document.url: page.document}, ())
        draft = step(draft, "more" if at else "new", known[node.mem_id], pages_of)
    return [node for _, node in marked(draft, page.document)]


def tasks(page: Page) -> Iterator[tuple[str, int, list[Any], list[Any], float]]:
    """(task, clicks, what was found, truth, CPU seconds)."""
    for truth in page.fields:
        if len(truth) >= 3:
            for count in (2, 3):
                begun = time.process_time()
                yield "list", count, _clicked(page, truth[:count]), truth, time.process_time() - begun
        begun = time.process_time()
        yield "value", 1, _clicked(page, truth[:1]), truth[:1], time.process_time() - begun
    for truth in page.boxes:
        inside = [[node for node in nodes if box_around(node, truth) is not None] for nodes in page.fields]
        values = next((nodes for nodes in inside if len(nodes) >= 3), None)
        for count in (2, 3) if values is not None else ():
            begun = time.process_time()
            found = boxes_around(page.document, (values or [])[:count])
            got = css(page.document.tree.root, found[0].expression) if found else []
            yield "boxes", count, got, truth, time.process_time() - begun


def _clicked(page: Page, nodes: Sequence[Any]) -> list[Any]:
    try:
        return clicked(page, nodes)
    except UsageError:
        return []


def main() -> None:
    """See the module."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    tallies: dict[tuple[str, int], Tally] = defaultdict(Tally)
    for page in pages(folder):
        for task, count, found, truth, seconds in tasks(page):
            score = f1(found, truth)
            tallies[task, count].f1.append(score)
            tallies[task, count].seconds.append(seconds)
            if score < 1:
                print(f"  {page.name:18} {task} after {count}: F1 {score:.2f}, {len(found)} of {len(truth)}")
    for (task, count), one in sorted(tallies.items()):
        mean, right = sum(one.f1) / len(one.f1), sum(score == 1 for score in one.f1)
        print(
            f"{task:6} after {count} clicks: mean F1 {mean:.3f}, right at once {right} of {len(one.f1)}, "
            f"{sum(one.seconds) / len(one.seconds):.3f} CPU-s"
        )


if __name__ == "__main__":
    main()
