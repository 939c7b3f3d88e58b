"""`nephila rules init`: a rule to begin with, made from a page of the site where one is given.

Fields are only those that give something on that page. Invariant: nothing that is there is overwritten, and what is
written passes `nephila rules test`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from nephila.cli.rules.command import items_of
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.parser.rules.document import Document
from nephila.parser.rules.extract import extract
from nephila.parser.rules.load import RuleDocument, load
from nephila.rulekit.files import FILE
from nephila.rulekit.stored_pages import StoredPage
from nephila.rulekit.try_page import page_of

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


def create(directory: Path, target: str, *, allow_private: bool) -> list[Path]:
    """Make the files of a rule; returns their paths. Raises `UserError`."""
    name = re.sub(r"[^a-z0-9-]+", "-", directory.resolve().name.lower()).strip("-")
    if not name:
        raise UsageError(f"{directory} gives no name for a rule; name it as rules/shop")
    if (directory / FILE).exists():
        raise UserError(f"{directory / FILE} is there already; nephila rules test {directory} says how it does")
    page = page_of(target, "", allow_private=allow_private, host_map=[]) if target else _example(name)
    if not page.url:
        raise UsageError(f"the URL of {page.place} is not known; begin it with <!-- url: https://… -->")
    rule = _rule(name, page)
    paths = [directory / FILE, directory / "page.html", directory / "items.json"]
    document = load(rule.encode(), str(paths[0]))[0]
    directory.mkdir(parents=True, exist_ok=True)
    items = items_of(extract(document.rule, page.document))
    paths[0].write_text(rule, encoding="utf-8")
    paths[1].write_bytes(_with_url(page))
    paths[2].write_text(json.dumps(items, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return paths


def _example(name: str) -> StoredPage:
    url = f"https://{name}.example/2026/first"
    return StoredPage(url, "text/html", "", _PAGE.format(name=name).encode(), "example")


def _with_url(page: StoredPage) -> bytes:
    """The page as UTF-8 with its URL at the start."""
    text = page.document.source
    return (text if text.lstrip().startswith("<!-- url:") else f"<!-- url: {page.url} -->\n{text}").encode()


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
    found: dict[str, None] = {}
    for field, said in _GUESSES:
        if field not in found and _gives(field, said, page.document):
            required = ", required: true" if not found else ""
            lines.append(f"    {field}: {{{said}{required}}}")
            found[field] = None
    if not found:
        raise UserError(f"{page.place}: nothing on it that a rule could begin with; is it a page of HTML?")
    return "\n".join(lines) + "\n"


def _gives(field: str, said: str, document: Document) -> bool:
    text = _HEAD + f"spec: {{match: {{url: a}}, fields: {{{field}: {{{said}}}}}}}"
    one: RuleDocument = load(text.encode(), "guess")[0]
    return not extract(one.rule, document).missing
