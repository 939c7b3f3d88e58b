"""Dates, authors, description and image of JSON-LD, as core/src/json_ld.rs reads them."""

from __future__ import annotations

import json
from typing import Any, Final

_MAX_BYTES: Final = 512 << 10
_MAX_CHARS: Final = 300
_FACTS: Final = ("published", "modified", "author")


class JsonLd:
    """What the scripts of a page have said so far: of the first article, and of other objects."""

    def __init__(self) -> None:
        self._article: dict[str, str] = {}
        self._other: dict[str, str] = {}

    def read(self, script: str) -> None:
        """Read one script; nothing of what is no JSON."""
        starts = [at for sign in "{[" if (at := script.find(sign)) >= 0]
        if not starts or len(script.encode("utf-8", "replace")) > _MAX_BYTES:
            return
        start = min(starts)
        start += 7 if script.startswith("[CDATA[", start) else 0
        try:
            self._walk(json.JSONDecoder(strict=False).raw_decode(script[start:].lstrip())[0])
        except (ValueError, RecursionError):
            return

    def entries(self, described: bool) -> list[tuple[str, str]]:
        """The facts as entries of the metadata, the article's first; its description only if `described`."""
        names = (*_FACTS, *(("description",) if described else ()), "image")
        rows = [(f"jsonld:article:{name}", self._article.get(name, "")) for name in names]
        rows += [(f"jsonld:{name}", self._other.get(name, "")) for name in _FACTS]
        return [row for row in rows if row[1]]

    def _walk(self, value: Any) -> None:
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            self._walk(inner)
        if not isinstance(value, dict):
            return
        kinds = value.get("@type")
        is_article = any(_is_article(kind) for kind in (kinds if isinstance(kinds, list) else [kinds]))
        own = {"published": _text(value.get("datePublished")), "modified": _text(value.get("dateModified"))}
        own["author"] = _names(value.get("author"))
        if is_article:
            own |= {"description": _text(value.get("description")), "image": _link(value.get("image"))}
            self._article = self._article if any(map(self._article.get, _FACTS)) else own
            return
        if not own["published"] and "headline" not in value:
            own["author"] = ""
        self._other = {name: self._other.get(name) or own[name] for name in _FACTS}


def _text(value: Any) -> str:
    return value[:_MAX_CHARS].strip() if isinstance(value, str) else ""


def _link(value: Any) -> str:
    """A text, the URL of an object, or that of the first of a list that has a name or is a text."""
    if isinstance(value, list):
        return _link(next((entry for entry in value if _names(entry)), ""))
    return _text(value.get("url") if isinstance(value, dict) else value)


def _names(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(
            list(filter(None, map(_names, (entry for entry in value if not isinstance(entry, list)))))[:20]
        )
    return _text(value.get("name")) if isinstance(value, dict) else value[:_MAX_CHARS] if isinstance(value, str) else ""


def _is_article(kind: Any) -> bool:
    name = kind.rpartition("/")[2] if isinstance(kind, str) else ""
    is_posting = name.endswith("Posting") and name != "JobPosting"
    return name.endswith("Article") or is_posting or name in ("Report", "APIReference")
