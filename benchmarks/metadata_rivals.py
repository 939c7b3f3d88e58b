"""Other programs that read metadata, with the answers of each as a dict of the fields in metadata_truth.py.

A function returns None where its program is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Read = Callable[[bytes, str], dict[str, str]]


def trafilatura() -> Read | None:
    """Its metadata alone, without the text."""
    try:
        from trafilatura.metadata import extract_metadata
    except ImportError:
        return None

    def run(body: bytes, url: str) -> dict[str, str]:
        found = extract_metadata(body, default_url=url or None)
        if found is None:
            return {}
        return {
            "title": found.title or "",
            "authors": found.author or "",
            "published": found.date or "",
            "lang": found.language or "",
            "description": found.description or "",
            "canonical": found.url or "",
            "section": (found.categories or [""])[0],
            "image": found.image or "",
        }

    return run


def htmldate() -> Read | None:
    """Dates alone: the original one and the newest one."""
    try:
        from htmldate import find_date
    except ImportError:
        return None

    def run(body: bytes, url: str) -> dict[str, str]:
        text = body.decode("utf-8", "replace")
        found = {"published": True, "modified": False}
        return {name: find_date(text, url=url or None, original_date=first) or "" for name, first in found.items()}

    return run


def extruct() -> Read | None:
    """What the page states in JSON-LD, microdata and OpenGraph: the first of each, in this order."""
    try:
        from extruct import extract
        from lxml.html import fromstring
        from w3lib.html import get_base_url
    except ImportError:
        return None

    def run(body: bytes, url: str) -> dict[str, str]:
        text = body.decode("utf-8", "replace")
        kinds = ["json-ld", "microdata", "opengraph"]
        try:
            found = extract(text, base_url=get_base_url(text, url), syntaxes=kinds, uniform=True, errors="ignore")
        except Exception:
            return {}  # it raises what lxml and its parts raise
        nodes = [*_nodes(found.get("json-ld")), *_nodes(found.get("microdata"))]
        articles = [node for node in nodes if "datePublished" in node or "headline" in node]
        graph = {name: value for one in found.get("opengraph") or () for name, value in one.items()}
        meta = {name: _text(value) for name, value in graph.items()}
        first = articles[0] if articles else {}
        return {
            "title": _text(first.get("headline")) or meta.get("og:title", ""),
            "authors": _text(first.get("author")) or meta.get("article:author", ""),
            "published": _text(first.get("datePublished")) or meta.get("article:published_time", ""),
            "modified": _text(first.get("dateModified")) or meta.get("article:modified_time", ""),
            "lang": _text(first.get("inLanguage")) or meta.get("og:locale", ""),
            "description": meta.get("og:description", "") or _text(first.get("description")),
            "canonical": _canonical(fromstring(body)),
            "section": _text(first.get("articleSection")) or meta.get("article:section", ""),
            "image": meta.get("og:image", "") or _text(first.get("image")),
        }

    return run


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """All objects, the outer one first."""
    if isinstance(value, list):
        for one in value:
            yield from _nodes(one)
    elif isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _nodes(inner)


def _text(value: Any) -> str:
    """A text, the name or URL of an object, or those of the first of a list; the names of all persons."""
    if isinstance(value, list):
        texts = [text for one in value if (text := _text(one))]
        people = all(isinstance(one, dict) and "name" in one for one in value)
        return ", ".join(texts) if people else next(iter(texts), "")
    if isinstance(value, dict):
        return _text(value.get("name") or value.get("url") or value.get("@value"))
    return value.strip() if isinstance(value, str) else ""


def _canonical(tree: Any) -> str:
    """<link rel=canonical>, which extruct leaves out."""
    return next(iter(tree.xpath("//link[@rel='canonical']/@href")), "")


stated = extruct
"""What the pages state is the truth of fields that no people have written down."""
RIVALS: dict[str, Callable[[], Read | None]] = {"trafilatura": trafilatura, "htmldate": htmldate, "extruct": extruct}
