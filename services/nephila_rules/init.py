"""`nephila rules init`: files of a new rule, made from a page of the site if one is given.

The rule has the common fields that have a value on that page. Invariants: no existing file is overwritten; the new rule
passes `nephila rules test`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from nephila.kernel.runtime.errors import UsageError, UserError

from nephila_rules.files import FILE
from nephila_rules.fixtures import files_of
from nephila_rules.runtime.document import Document
from nephila_rules.runtime.extract import extract
from nephila_rules.runtime.load import RuleDocument, load
from nephila_rules.stored_pages import StoredPage
from nephila_rules.try_page import page_of

_GUESSES: Final = (
    ("title", 'css: "h1"'),
    ("title", 'meta: "og:title"'),
    ("title", 'css: "title"'),
    ("published", 'jsonld: "*", jsonpath: "$.datePublished", type: date'),
    ("published", 'meta: "article:published_time", type: date'),
    ("published", "css: time, attr: datetime, type: date"),
    ("author", 'jsonld: "*", jsonpath: "$.author.name"'),
    ("author", "meta: author"),
    ("price", 'jsonld: Offer, jsonpath: "$.price", type: number'),
    ("price", "itemprop: price, type: number"),
    ("price", 'css: ".price", type: price'),
    ("description", 'meta: "og:description"'),
    ("description", "meta: description"),
    ("image", 'meta: "og:image", type: url'),
    ("body", r'css: "article p", all: true, join: "\n"'),
    ("body", r'css: "main p", all: true, join: "\n"'),
)
_HEAD: Final = "apiVersion: nephila.dev/v1\nkind: ParseRule\nmetadata: {name: a}\n"
_PAGE: Final = """<!-- url: https://{name}.example/2026/first -->
<!doctype html>
<title>A page</title>
<h1>A title</h1>
<main><p>A text.</p></main>
"""


def create(directory: Path, target: str, *, allow_private: bool, host_map: list[str]) -> list[Path]:
    """Write the files of a new rule; returns their paths. Raises `UserError`."""
    name = name_of(directory)
    page = page_of(target, "", allow_private=allow_private, host_map=host_map) if target else _example(name)
    if not page.url:
        raise UsageError(f"the URL of {page.origin} is not known; begin the file with <!-- url: https://… -->")
    return write_files(directory, _rule(name, page), [page])


def name_of(directory: Path) -> str:
    """The name of the rule of a new directory. Raises `UserError` where a rule is there already."""
    name = re.sub(r"[^a-z0-9-]+", "-", directory.resolve().name.lower()).strip("-")
    if not name:
        raise UsageError(f"{directory} gives no name for a rule; name it as rules/shop")
    if (directory / FILE).exists():
        raise UserError(f"{directory / FILE} exists already; nephila rules test {directory} tests it")
    return name


def write_files(directory: Path, rule: str, pages: Sequence[StoredPage]) -> list[Path]:
    """Write a rule, and its pages with their present items, which `nephila rules test` compares; returns the paths."""
    document = load(rule.encode(), str(directory / FILE))[0]
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in files_of(rule, document, pages):
        paths.append(directory / name)
        paths[-1].write_bytes(text.encode())
    return paths


def _example(name: str) -> StoredPage:
    url = f"https://{name}.example/2026/first"
    return StoredPage(url, "text/html", "", _PAGE.format(name=name).encode(), "example")


def _rule(name: str, page: StoredPage) -> str:
    parts = urlsplit(page.url)
    first = parts.path.split("/")[1] if parts.path.count("/") > 1 else ""
    path = r"\d{4}/" if re.fullmatch(r"\d{4}", first) else re.escape(first) + "/" if first else ""
    pattern = f"^{parts.scheme}://{re.escape(parts.netloc)}/{path}".replace("\\-", "-")
    lines = [
        "apiVersion: nephila.dev/v1",
        "kind: ParseRule",
        f"metadata: {{name: {name}}}",
        "spec:",
        "  match:",
        f"    url: '{pattern}'",
        "  fields:",
    ]
    guessed: dict[str, None] = {}
    for field, selection in _GUESSES:
        if field not in guessed and _has_value(field, selection, page.document):
            required = ", required: true" if not guessed else ""
            lines.append(f"    {field}: {{{selection}{required}}}")
            guessed[field] = None
    if not guessed:
        raise UserError(f"{page.origin}: none of the usual fields (title, price, ...) was found; is the page HTML?")
    return "\n".join(lines) + "\n"


def _has_value(field: str, selection: str, document: Document) -> bool:
    text = _HEAD + f"spec: {{match: {{url: a}}, fields: {{{field}: {{{selection}}}}}}}"
    draft: RuleDocument = load(text.encode(), "guess")[0]
    return not extract(draft.rule, document).missing
