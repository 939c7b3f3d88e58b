"""Attributes that say something about the page: html, base, link, meta, rel, class and id."""

from __future__ import annotations

import re
from typing import Final

from nephila.native._twin import entities
from nephila.native._twin.page import MAX_VALUE, PageBase
from nephila.native._twin.tags import F_TMPL, ids
from nephila.native._twin.text import SPACES

MAX_META: Final = 100
_NAMES: Final = frozenset(
    ("author", "date", "pubdate", "publishdate", "last-modified", "keywords", "generator", "application-name")
)
_PREFIXES: Final = (
    "og:", "article:", "twitter:", "book:", "profile:", "video:", "music:", "product:", "dc.", "dcterms.", "citation_",
    "parsely-", "sailthru.",
)  # fmt: skip
_WORD: Final = re.compile(rb"[^ \t\n\r\f]+")
_REFRESH_TIME: Final = re.compile(
    r"[ \t\n\r\f]*+(?:[0-9]+|(?=\.))[0-9.]*+(?=[ \t\n\r\f;,])[ \t\n\r\f]*+(?:[;,][ \t\n\r\f]*+)?"
)
_REFRESH_URL: Final = re.compile(r"[Uu][Rr][Ll][ \t\n\r\f]*")
_NOFOLLOW: Final = frozenset((b"nofollow", b"ugc", b"sponsored"))
BASE, LINK = ids("base link")


def value(data: bytes) -> str:
    """Trimmed, at most `MAX_VALUE` bytes."""
    data = data.strip(SPACES)
    if len(data) > MAX_VALUE:
        end = MAX_VALUE
        while data[end] & 0xC0 == 0x80:
            end -= 1
        data = data[:end]
    return data.decode("utf-8", "replace")


def _ascii_lower(text: str) -> str:
    return text.encode().lower().decode()


class PageMeta(PageBase):
    """The tags of the head."""

    def decoded(self, name: bytes) -> bytes | None:
        """An attribute's value with references decoded."""
        raw = self.tok.attr(name)
        return None if raw is None else entities.decode(raw, True, True)

    def in_template(self) -> bool:
        """Are we inside a template?"""
        return self.stack.flags() & F_TMPL != 0

    def html_attrs(self) -> None:
        """The language of an html tag."""
        if self.lang is None and not self.in_template():
            lang = self.decoded(b"lang")
            self.lang = None if lang is None else value(lang)

    def _rel(self) -> list[bytes]:
        rel = self.decoded(b"rel")
        return _WORD.findall(rel.lower()) if rel else []

    def nofollow(self) -> bool:
        """rel=nofollow, ugc or sponsored."""
        return not _NOFOLLOW.isdisjoint(self._rel())

    def head_tag(self, tag: int) -> None:
        """A base, link or meta tag."""
        if self.in_template():
            return
        if tag == BASE:
            if self.base is None:
                self.base = self.tok.attr(b"href")
        elif tag == LINK:
            if self.canonical is None and b"canonical" in self._rel():
                self.canonical = self.tok.attr(b"href")
        else:
            self._meta()

    def is_json_ld(self) -> bool:
        """Whether the script just opened holds structured data."""
        return (self.tok.attr(b"type") or b"").strip(SPACES).lower() == b"application/ld+json"

    def _meta(self) -> None:
        raw = self.decoded(b"content")
        if raw is None:
            return
        content = value(raw)
        if (self.decoded(b"http-equiv") or b"").lower() == b"refresh":
            target = refresh_target(content)
            if target is not None:
                if self.refresh is None:
                    self.refresh = target
                self.refresh_link(target)
        key = self.decoded(b"property")
        if key is None:
            key = self.decoded(b"name")
        if key is None:
            return
        name = _ascii_lower(value(key))
        if name in ("robots", self.agent):
            if len(self.robots.encode()) + len(content.encode()) < MAX_VALUE:
                self.robots += ("," if self.robots else "") + _ascii_lower(content)
        elif name == "description":
            if self.description is None:
                self.description = content
        elif (name in _NAMES or name.startswith(_PREFIXES)) and len(self.meta) < MAX_META:
            self.says_article |= name == "og:type" and _ascii_lower(content) == "article"
            self.meta.append((name, content))


def refresh_target(content: str) -> str | None:
    """The URL of a refresh, by the standard's "shared declarative refresh steps"; None without one."""
    found = _REFRESH_TIME.match(content)
    if not found or found.end() >= len(content):
        return None
    rest = content[found.end() :]
    word = _REFRESH_URL.match(rest)
    if word:
        if rest[word.end() : word.end() + 1] != "=":
            return rest
        rest = rest[word.end() + 1 :].lstrip(" \t\n\r\f")
    if rest[:1] in ("'", '"') and rest:
        end = rest.find(rest[0], 1)
        rest = rest[1:end] if end >= 0 else rest[1:]
    return rest
