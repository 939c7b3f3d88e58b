"""Twenty pages as Chromium shows them, beside our Markdown and trafilatura's: sheets of four for docs/quality.md.

    python -m benchmarks.quality_pictures CACHE [SHEET…]    # needs Playwright, Chromium and Pillow

The pages are documentation under free licences, from packages of Debian: they come to CACHE (documentation_sets.py),
and only small pictures of their first screen to the repository. Chromium is offline and gets files of packages alone.
"""

from __future__ import annotations

import argparse
import html
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

from markdown_it import MarkdownIt
from PIL import Image, ImageDraw

from benchmarks.bench_markdown import ours, trafilatura_markdown
from benchmarks.documentation_sets import Page, unpack
from tools.chromium import find

TARGET: Final = Path(__file__).parents[1] / "docs" / "quality"
VIEW: Final = {"width": 800, "height": 1000}
SCALE: Final = 0.62
CAPTION: Final = 22
GAP: Final = 6
EACH: Final = 4
"""Pages of a sheet."""
STYLE: Final = """<!doctype html><meta charset=utf-8><style>
body{font:17px/1.45 sans-serif;margin:14px 20px;overflow-wrap:anywhere}
pre{background:#eee;padding:8px;white-space:pre-wrap}
code{font-size:15px} td,th{border:1px solid #999;padding:2px 6px;text-align:left} table{border-collapse:collapse}
blockquote{border-left:3px solid #999;margin-left:0;padding-left:12px} h1{font-size:28px} img{max-width:100%}</style>"""


class Shown(NamedTuple):
    """A page, and what kind of page it is."""

    kind: str
    package: str
    path: str
    """Below usr/share of the package."""


SHEETS: Final[dict[str, tuple[Shown, ...]]] = {
    "tutorials": (
        Shown("tutorial, Sphinx", "python3.11-doc", "doc/python3.11/html/tutorial/datastructures.html"),
        Shown("chapter, mdBook", "rust-doc", "doc/rust-doc/html/book/ch04-01-what-is-ownership.html"),
        Shown("guide, Sphinx", "python-django-doc", "doc/python-django-doc/html/topics/db/models.html"),
        Shown("guide, Apache's XSLT", "apache2-doc", "doc/apache2-doc/manual/en/getting-started.html"),
    ),
    "references": (
        Shown("reference, DocBook", "postgresql-doc-15", "doc/postgresql-doc-15/html/sql-select.html"),
        Shown("tables, DocBook", "postgresql-doc-15", "doc/postgresql-doc-15/html/datatype-numeric.html"),
        Shown("reference, SQLite's Tcl", "sqlite3-doc", "doc/sqlite3/lang_select.html"),
        Shown("reference, xfpt", "exim4-doc-html", "doc/exim4-doc-html/spec_html/ch-access_control_lists.html"),
    ),
    "interfaces": (
        Shown("API, rustdoc", "rust-doc", "doc/rust-doc/html/std/vec/struct.Vec.html"),
        Shown("API, javadoc", "openjdk-17-doc", "doc/openjdk-17-jre-headless/api/java.base/java/util/List.html"),
        Shown("API, GTK-Doc", "libglib2.0-doc", "gtk-doc/html/glib/glib-Arrays.html"),
        Shown("API, Node's own", "nodejs-doc", "doc/nodejs/api/fs.html"),
    ),
    "manuals": (
        Shown("manual page, AsciiDoc", "git-doc", "doc/git/html/git-rebase.html"),
        Shown("manual page, Sphinx", "cmake-doc", "doc/cmake-data/html/manual/cmake.1.html"),
        Shown("list of functions, Sphinx", "python3.11-doc", "doc/python3.11/html/library/functions.html"),
        Shown("directives, Apache's XSLT", "apache2-doc", "doc/apache2-doc/manual/en/mod/mod_alias.html"),
    ),
    "others": (
        Shown("table of contents, DocBook", "postgresql-doc-15", "doc/postgresql-doc-15/html/index.html"),
        Shown("questions and answers, Sphinx", "python3.11-doc", "doc/python3.11/html/faq/design.html"),
        Shown("list of changes, Sphinx", "python-django-doc", "doc/python-django-doc/html/releases/3.2.html"),
        Shown("essay, SQLite's Tcl", "sqlite3-doc", "doc/sqlite3/whentouse.html"),
    ),
}  # fmt: skip


def sheet(browser: Any, cache: Path, shown: tuple[Shown, ...]) -> Image.Image:
    """Pages below each other, each with three pictures beside each other."""
    width, height = (round(size * SCALE) for size in VIEW.values())
    whole = Image.new("RGB", (3 * width + 2 * GAP, len(shown) * (height + CAPTION)), "#444")
    draw = ImageDraw.Draw(whole)
    for row, one in enumerate(shown):
        file = cache / one.package / "usr/share" / one.path
        page = Page(file.read_bytes(), None)
        columns = (
            (f"{one.kind}: {one.package}, {file.name}", picture(browser, file, cache)),
            ("nephila", rendered(browser, ours(page))),
            ("trafilatura", rendered(browser, trafilatura_markdown(page))),
        )
        for column, (caption, taken) in enumerate(columns):
            at = column * (width + GAP), row * (height + CAPTION)
            draw.text((at[0] + 4, at[1] + 4), caption, fill="white")
            part = Image.open(BytesIO(taken)).convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
            whole.paste(part, (at[0], at[1] + CAPTION))
    return whole


def picture(browser: Any, file: Path, cache: Path) -> bytes:
    """The first screen of a page, without any request but for files below `cache`."""
    context = browser.new_context(viewport=VIEW, offline=True)
    context.route(
        "**/*",
        lambda route: route.continue_() if route.request.url.startswith(cache.as_uri()) else route.abort(),
    )
    return _taken(context, lambda page: page.goto(file.as_uri(), wait_until="load"))


def rendered(browser: Any, text: str) -> bytes:
    """The first screen of Markdown, without scripts and requests."""
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(text) or html.escape(text)
    context = browser.new_context(viewport=VIEW, offline=True, java_script_enabled=False)
    context.route("**/*", lambda route: route.abort())
    return _taken(context, lambda page: page.set_content(STYLE + body))


def _taken(context: Any, fill: Callable[[Any], Any]) -> bytes:
    page = context.new_page()
    try:
        fill(page)
        found: bytes = page.screenshot()
        return found
    finally:
        context.close()


def main() -> None:
    """See the module."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=Path)
    parser.add_argument("sheets", nargs="*", choices=[*SHEETS, []], help="of these; default: all")
    arguments = parser.parse_args()
    cache = arguments.cache.resolve()
    TARGET.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=["--no-sandbox"])
        for name in arguments.sheets or SHEETS:
            for package in {one.package for one in SHEETS[name]}:
                if not (cache / package).exists():
                    unpack(cache, package)
            target = TARGET / f"{name}.webp"
            sheet(browser, cache, SHEETS[name]).save(target, quality=45, method=6)
            print(f"{target}: {target.stat().st_size:,} bytes", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
