"""One document that is not HTML, for `nephila extract`: the fields of its answer, from each kind of document.

The service sends the same things on as messages. A PDF goes to the child process of the sandbox that is given.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from nephila.native import markdown as as_markdown
from nephila.parser.config import ParserConfig
from nephila.parser.documents.content import DocumentContent
from nephila.parser.documents.office.metadata import read_office
from nephila.parser.documents.office.task import OFFICE, office_kind, office_payload, with_text, without_text
from nephila.parser.documents.pdf_task import PDF, pdf_payload
from nephila.parser.documents.read import TEXTS, read_document
from nephila.parser.links.link_list import UnresolvedLink, resolve, run_to_end
from nephila.parser.lists.detection import ListForm, read
from nephila.parser.page.body_kind import BodyKind
from nephila.parser.page.charset import encoding_of_text
from nephila.parser.page.text import spelled_text
from nephila.parser.sandbox import BlockingSandbox, ChildError

Keep = Callable[[str], bool]


def fill_list(
    result: dict[str, Any], form: ListForm, body: bytes, base: str, charset: str, config: ParserConfig, keep: Keep
) -> None:
    """The entries of a sitemap or feed found at `base`; `keep` selects the links that count."""
    listing = run_to_end(read(form, body, base, charset, config, time.time()))
    result["title"] = spelled_text(listing.title)[: config.max_title_chars]
    result["kind"] = listing.form
    _tell(result, "problem", listing.problem)
    result["links"] = _links(base, listing.entries, keep)
    for name, urls in (("images", listing.images), ("videos", listing.videos)):
        rows = run_to_end(resolve(base, [UnresolvedLink(url) for url in urls]))
        result[name] = [url for url in (row.href.decode() for row in rows) if keep(url)]


def fill_document(
    result: dict[str, Any],
    kind: BodyKind,
    body: bytes,
    content_type: str,
    base: str,
    charset: str,
    config: ParserConfig,
    sandbox: BlockingSandbox,
    keep: Keep,
    *,
    markdown: bool = False,
) -> None:
    """The content of any other document found at `base`."""
    encoding = encoding_of_text(body, charset, content_type) if kind in TEXTS else ""
    if kind is BodyKind.PDF:
        content = _pdf(body, config, sandbox)
    elif kind is BodyKind.OFFICE:
        content = _office(body, config, sandbox)
    else:
        content = read_document(kind, content_type, body, encoding, config.max_text_bytes, config.max_links)
    result["encoding"] = encoding
    result["kind"] = kind.name.lower()
    result["text"] = content.text.decode()
    if markdown:
        result["markdown"] = as_markdown(content.structure, content.text, base).decode()
    for name in ("title", "author", "published", "modified", "lang", "problem"):
        _tell(result, name, getattr(content, name))
    for name, value in content.facts.items():
        _tell(result, name, value)
    result["links"] = _links(base, content.entries(), keep)


def _pdf(body: bytes, config: ParserConfig, sandbox: BlockingSandbox) -> DocumentContent:
    try:
        return sandbox.call(PDF, pdf_payload(body, config.max_text_bytes, config.max_links))
    except ChildError as broken:
        return DocumentContent(problem=str(broken))


def _office(body: bytes, config: ParserConfig, sandbox: BlockingSandbox) -> DocumentContent:
    metadata = read_office(body)
    kind = office_kind(body, metadata)
    if not kind:
        return metadata
    try:
        payload = office_payload(body, kind, config.max_text_bytes, config.max_links)
        return with_text(metadata, sandbox.call(OFFICE, payload))
    except ChildError as broken:
        return without_text(metadata, broken)


def _tell(result: dict[str, Any], name: str, value: str) -> None:
    if value:
        result[name] = value


def _links(base: str, entries: list[UnresolvedLink], keep: Keep) -> list[dict[str, Any]]:
    links = []
    for row in run_to_end(resolve(base, entries)):
        url = row.href.decode()
        if keep(url):
            link: dict[str, Any] = {"url": url, "text": row.anchor.decode("utf-8", "replace"), "nofollow": False}
            links.append(link | {"lastmod": row.lastmod} if row.lastmod else link)
    return links
