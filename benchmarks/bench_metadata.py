"""How often `nephila extract` agrees with a reader (or Readability) about a page: title, author, date, language.

    python -m benchmarks.bench_metadata ../shared/data/readability-test-pages/test-pages.tar.xz ../shared/data/wcxb-dev

A tar file is one of Readability's test pages (`NAME/source.html`, `NAME/expected-metadata.json`: titles as that program
makes them, equal to the letter), a directory is WCXB (what people wrote down; case is left out, dates are compared by
day). White space counts as one blank. The two want different titles where one has its site's name behind it.
"""

from __future__ import annotations

import argparse
import json
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nephila.parser.single.extract import extract

from benchmarks.maintext_truth import pages

Told = dict[str, str]
Pair = tuple[Told, Told]


def readability(path: Path) -> Iterator[Pair]:
    """What is expected of each page of the tar file, and what we say."""
    with tarfile.open(path) as tar:
        held = {name: tar.extractfile(name) for name in tar.getnames() if name.endswith((".html", ".json"))}
        for name in sorted(held):
            if name.endswith("/source.html") and (source := held[name]) and (result := held[_metadata(name)]):
                found = extract(source.read(), "http://fakehost/test/page.html")
                want = json.load(result)
                yield (
                    {
                        "title": _plain(want.get("title")),
                        "author": _plain(want.get("byline")),
                        "date": _plain(want.get("publishedTime")),
                        "language": _plain(want.get("lang")),
                    },
                    _said(found),
                )


def wcxb(directory: Path) -> Iterator[Pair]:
    """The same of WCXB's pages, which name no language."""
    for page in pages(directory):
        result = json.loads((directory / "ground-truth" / f"{page.id}.json").read_text("utf-8"))["ground_truth"]
        want = {
            "title": result.get("title"),
            "author": result.get("author"),
            "date": (result.get("publish_date") or "")[:10],
        }
        found = _said(extract(page.body, page.url))
        found["date"] = found["date"][:10]
        yield (
            {name: _plain(value).lower() for name, value in want.items()},
            {name: value.lower() for name, value in found.items()},
        )


def _metadata(source: str) -> str:
    return source.removesuffix("source.html") + "expected-metadata.json"


def _said(found: dict[str, Any]) -> Told:
    names = {"title": "title", "author": "author", "date": "published", "language": "lang"}
    return {name: _plain(found[of]) for name, of in names.items()}


def _plain(text: str | None) -> str:
    return " ".join((text or "").split())


def main() -> None:
    """One line per set: equal / known, by field."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", type=Path, nargs="+")
    for path in parser.parse_args().sets:
        equal: dict[str, list[bool]] = defaultdict(list)
        for want, found in wcxb(path) if path.is_dir() else readability(path):
            for name, value in want.items():
                if value:
                    equal[name].append(value == found[name])
        line = (f"{name} {sum(same)}/{len(same)} ({sum(same) / len(same):.1%})" for name, same in equal.items())
        print(f"{path.name}: {', '.join(line)}", flush=True)


if __name__ == "__main__":
    main()
