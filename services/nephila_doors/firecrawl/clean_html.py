"""The format html: the source of a page without what is not its content. Pure; O(n), without a tree.

Left out: scripts, styles, comments, and what is shown without scripts only. Attributes that run scripts or set styles
are dropped. All else is written as it was read, so the result of broken HTML is as broken.
"""

from __future__ import annotations

from html import escape
from html.parser import HTMLParser
from typing import Final

_LEFT_OUT: Final = frozenset(("script", "style", "noscript", "template", "iframe", "object", "embed", "svg"))
_WITHOUT_END: Final = frozenset(("embed",))


def clean_html(source: str) -> str:
    cleaner = _Cleaner()
    cleaner.feed(source)
    cleaner.close()
    return "".join(cleaner.parts)


class _Cleaner(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.parts: list[str] = []
        self._inside = ""
        """The element that is left out, and how deep it is in itself."""
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._inside:
            self._depth += tag == self._inside
        elif tag in _LEFT_OUT:
            if tag not in _WITHOUT_END:
                self._inside, self._depth = tag, 1
        else:
            attributes = "".join(_attribute(name, value) for name, value in attrs if _is_kept(name, value))
            self.parts.append(f"<{tag}{attributes}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._inside and tag not in _LEFT_OUT:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self._inside:
            self._depth -= tag == self._inside
            if not self._depth:
                self._inside = ""
        elif tag not in _LEFT_OUT:
            self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.parts.append(data)

    def handle_entityref(self, name: str) -> None:
        self.handle_data(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.handle_data(f"&#{name};")

    def handle_decl(self, decl: str) -> None:
        self.handle_data(f"<!{decl}>")


def _is_kept(name: str, value: str | None) -> bool:
    return not name.startswith("on") and name != "style" and not (value or "").strip().lower().startswith("javascript:")


def _attribute(name: str, value: str | None) -> str:
    return f" {name}" if value is None else f' {name}="{escape(value)}"'
