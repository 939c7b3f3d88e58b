"""Extra links of a page, for jobs that ask for them: <link>, forms, scripts, routes of single-page applications.

The page pass finds <a>, <area>, <iframe>, <frame> and refresh. Extra links need a tree (0.4 ms for a page of 80 KB),
which is built only if a job needs a kind: in this process within `tree_fits`, else in a child process
(`extra_links_child`). Invariants: at most MAX_LINKS of each kind, MAX_REQUISITES requisites; a link found in a script
or built from a form is flagged as `GUESSED`, since the page does not have it as a link.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, Final

import webencodings

from nephila.kernel.documents.job_schema import Parse
from nephila.kernel.fragment_routes import ROUTE, is_route
from nephila.kernel.pages.requisites import MAX_REQUISITES
from nephila.kernel.runtime.late_pattern import late_pattern
from nephila.native import form_encoded, query_in, to_utf8
from nephila.parser.links.link_list import UnresolvedLink
from nephila.parser.links.requisites import requisites_of_page
from nephila.parser.page.html_tree import html_tree
from nephila.parser.page.text import one_line

LINK_ELEMENT: Final = 4 << 1
"""Flags of a link in <link>."""
GUESSED: Final = 7 << 1
"""Flags of a link from a script or a form."""
REQUISITE: Final = 1 << 6
"""Mark of requisites among the results; a message of links has `LinkSource.REQUISITE` instead."""
REQUISITES: Final = "requisites"
"""The kind that `parse.requisites` asks for; not a value of `parse.follow`."""
ANCHOR: Final = 0
NOFOLLOW: Final = 1
"""Flags of an anchor."""

MAX_LINKS: Final = 200
MAX_FIELDS: Final = 50
MAX_SCRIPT_CHARS: Final = 256 << 10
MAX_TITLE_CHARS: Final = 1 << 20
_FEEDS: Final = frozenset(("application/rss+xml", "application/atom+xml", "application/feed+json"))
_NOFOLLOW: Final = frozenset(("nofollow", "ugc", "sponsored"))
_NO_VALUE: Final = frozenset(("file", "password", "reset", "button", "image", "submit"))
_CONTROLS: Final = ("input", "select", "textarea")
_DISABLED: Final = ", ".join(f"fieldset[disabled] {name}" for name in _CONTROLS)
_IN_LEGEND: Final = ", ".join(f"fieldset[disabled] > legend:first-of-type {name}" for name in _CONTROLS)
"""Controls that a disabled <fieldset> leaves on."""
_HANDLERS: Final = ("onclick", "data-href", "data-url")
# A URL in quotes: absolute, or a path of at least two letters. "</p>" and "/regex/" do not match.
_IN_QUOTES: Final = late_pattern(
    r"""["'`](https?:\\?/\\?/[^\s"'`<>(){}]{4,2000}|/[A-Za-z0-9][\w./?=&%~+-]{1,500})["'`]"""
)
_PICTURE: Final = late_pattern(
    r"\.(?:js|css|png|jpe?g|gif|svg|webp|ico|woff2?|ttf|mp[34]|webm)(?:$|[?#])", re.IGNORECASE
)

Found = Iterator[UnresolvedLink]


class _Titles:
    """Texts of elements, up to a total length: elements may be nested."""

    def __init__(self) -> None:
        self._left = MAX_TITLE_CHARS

    def of(self, node: Any) -> str:
        if self._left <= 0:
            return ""
        text = node.text()
        self._left -= len(text)
        return one_line(text[:MAX_SCRIPT_CHARS])[:200]


def kinds_of(parse: Parse, follow: bool, rendered: bool) -> list[str]:
    """The kinds to read from a page. `follow`: its links may be followed. A browser has loaded the requisites of a page
    that it rendered."""
    kinds: list[str] = [*parse.follow] if follow else []
    return [REQUISITES, *kinds] if parse.requisites and not rendered else kinds


def extra_links_of(
    tree: Any, base: str, kinds: Iterable[str], encoding: str = "utf-8"
) -> list[tuple[int, list[UnresolvedLink]]]:
    """Links of these kinds, grouped by flags. `tree` is lexbor's, `encoding` that of the page. O(nodes)."""
    by_flag: dict[int, list[UnresolvedLink]] = {}
    for kind in kinds:
        # Kinds that this version does not know are ignored.
        for flag, read in KINDS.get(kind, ()):
            links = by_flag.setdefault(flag, [])
            limit = MAX_REQUISITES if flag == REQUISITE else MAX_LINKS
            entries = islice(read(tree, encoding), limit)
            links += [entry._replace(url=query_in(entry.url, encoding), base=base) for entry in entries]
    return [(flag, entries) for flag, entries in by_flag.items() if entries]


def tree_of(body: bytes, encoding: str) -> Any:
    """The tree is lexbor's."""
    return html_tree(to_utf8(body, encoding))


def _by_rel(*rels: str) -> Callable[[Any, str], Found]:
    def read(tree: Any, encoding: str) -> Found:
        for node in tree.css("link[rel][href]"):
            of = node.attributes
            if not set(rels).isdisjoint((of.get("rel") or "").lower().split()):
                yield UnresolvedLink(of.get("href") or "", title=of.get("title") or "")

    return read


def _alternates(tree: Any, encoding: str) -> Found:
    """Links to the same page in another language."""
    for node in tree.css("link[rel][href][hreflang]"):
        if "alternate" in (node.attributes.get("rel") or "").lower().split():
            yield UnresolvedLink(node.attributes.get("href") or "", title=node.attributes.get("hreflang") or "")


def _feeds(tree: Any, encoding: str) -> Found:
    for node in tree.css("link[rel][href][type]"):
        if (node.attributes.get("type") or "").strip().lower() in _FEEDS:
            yield UnresolvedLink(node.attributes.get("href") or "", title=node.attributes.get("title") or "")


def _forms(tree: Any, encoding: str) -> Found:
    """URLs of forms submitted with their default values; POST forms are ignored, since they may change something."""
    elsewhere: dict[str, list[Any]] = {}
    """Controls outside of their form, by its id."""
    for node in tree.css("input[form], select[form], textarea[form]"):
        elsewhere.setdefault(node.attributes["form"] or "", []).append(node)
    for form in tree.css("form"):
        of = form.attributes
        if (of.get("method") or "get").strip().lower() != "get":
            continue
        charset = _charset(of.get("accept-charset") or "", encoding)
        fields = _fields(form, elsewhere.get(of.get("id") or "", []))
        query = "&".join(f"{form_encoded(name, charset)}={form_encoded(value, charset)}" for name, value in fields)
        action = (of.get("action") or "").partition("#")[0].partition("?")[0].strip()
        yield UnresolvedLink(f"{action}?{query}" if fields else action, title=of.get("title") or "")


def _charset(stated: str, encoding: str) -> str:
    """The encoding of a form: the first known one that it states, else that of its page."""
    return next((str(codec.name) for label in stated.split() if (codec := webencodings.lookup(label))), encoding)


def _fields(form: Any, elsewhere: list[Any]) -> list[tuple[str, str]]:
    """Names and default values of the fields of a form, as a browser sends them."""
    pairs: list[tuple[str, str]] = []
    off = {node.mem_id for node in form.css(_DISABLED)} - {node.mem_id for node in form.css(_IN_LEGEND)}
    own = (node for node in form.css("input, select, textarea") if "form" not in node.attributes)
    for node in chain(own, elsewhere):
        of = node.attributes
        kind = (of.get("type") or "text").lower() if node.tag == "input" else ""
        if not of.get("name") or node.mem_id in off or kind in _NO_VALUE or "disabled" in of:
            continue
        if kind in ("radio", "checkbox"):
            values = [of.get("value") or ("" if "value" in of else "on")] if "checked" in of else []
        elif node.tag == "input":
            values = [of.get("value") or ""]
        else:
            values = _selected(node) if node.tag == "select" else [_text_of_area(node)]
        pairs += [(of["name"] or "", value) for value in values]
        if len(pairs) >= MAX_FIELDS:
            break
    return pairs[:MAX_FIELDS]


def _selected(select: Any) -> list[str]:
    """Values of the selected options; of a list without one, that of the first that may be selected."""
    options = [node for node in select.css("option") if "disabled" not in node.attributes]
    chosen = [node for node in options if "selected" in node.attributes]
    if "multiple" not in select.attributes:
        chosen = chosen[-1:] or options[:1]
    values = ((node, node.attributes.get("value")) for node in chosen[:MAX_FIELDS])
    return [
        one_line(node.text()) if value is None and "value" not in node.attributes else value or ""
        for node, value in values
    ]


def _text_of_area(node: Any) -> str:
    """The text of a <textarea>, with the line ends of forms."""
    return "\r\n".join(str(node.text()).replace("\r\n", "\n").split("\n"))


def _scripts(tree: Any, encoding: str) -> Found:
    """URLs in quotes: in inline scripts, in onclick, in data-href and data-url."""
    left, titles = MAX_SCRIPT_CHARS, _Titles()
    for node in tree.css("script:not([src]), [onclick], [data-href], [data-url]"):
        of = node.attributes
        for name in _HANDLERS:
            if value := of.get(name):
                yield from _quoted(value if name == "onclick" else f'"{value}"', titles.of(node))
        if node.tag == "script" and left > 0 and "json" not in (of.get("type") or ""):
            text = node.text()[:left]
            left -= len(text)
            yield from _quoted(text, "")


def _quoted(text: str, title: str) -> Found:
    for match in _IN_QUOTES.finditer(text):
        address = match[1].replace("\\/", "/")
        if not _PICTURE.search(address):
            yield UnresolvedLink(address, title=title)


def _routes(nofollow: bool) -> Callable[[Any, str], Found]:
    """Anchors with a route in the fragment, which the page pass drops; the route makes a different URL."""

    def read(tree: Any, encoding: str) -> Found:
        titles = _Titles()
        for node in tree.css("a[href*='#'], area[href*='#']"):
            of = node.attributes
            address = of.get("href") or ""
            rel = (of.get("rel") or "").lower().split()
            if is_route(address.partition("#")[2].strip()) and nofollow == (not _NOFOLLOW.isdisjoint(rel)):
                yield UnresolvedLink(address, title=titles.of(node) or of.get("alt") or of.get("title") or "")

    return read


KINDS: Final[dict[str, tuple[tuple[int, Callable[[Any, str], Found]], ...]]] = {
    "canonical": ((LINK_ELEMENT, _by_rel("canonical")),),
    "alternate": ((LINK_ELEMENT, _alternates),),
    "feed": ((LINK_ELEMENT, _feeds),),
    "next": ((LINK_ELEMENT, _by_rel("next", "prev")),),
    "form": ((GUESSED, _forms),),
    "script": ((GUESSED, _scripts),),
    ROUTE: ((ANCHOR, _routes(False)), (NOFOLLOW, _routes(True))),
    REQUISITES: ((REQUISITE, lambda tree, _: requisites_of_page(tree)),),
}
"""Kind → flags and functions that find such links."""
