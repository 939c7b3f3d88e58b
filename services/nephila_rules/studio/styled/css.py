"""Style sheets with the addresses taken out: tokens of CSS Syntax Level 3, in one pass, O(characters).

A style sheet is read as tokens, because `url(` has many spellings: escapes, quotes, comments, case. Everything that is
no address is written as it was read. The Content-Security-Policy of the frame holds where a browser reads it otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from nephila_rules.studio.styled.pieces import FileKind, NamedFile, file_of

MAX_NESTED: Final = 1000
NO_ADDRESS: Final = 'url("#")'
_ESCAPE: Final = r"\\(?:[0-9a-fA-F]{1,6}[ \t\n]?|[^\n0-9a-fA-F])"
_NAME: Final = rf"(?:[-\w]|[^\x00-\x7f]|{_ESCAPE})+"
_STRING: Final = r""""(?:[^"\\\n]|\\(?:.|\Z))*(?:"|(?=\n)|\Z)|'(?:[^'\\\n]|\\(?:.|\Z))*(?:'|(?=\n)|\Z)"""
_PLAIN: Final = r"(?:[-\w]++(?![(\\]|[^\x00-\x7f])|[\s:;,.#>+~=*%!|^$&?{}\[\]]++)++"
"""Names and signs that neither hold an address nor decide about one: most of a style sheet."""
_TOKEN: Final = re.compile(
    rf"(?P<plain>{_PLAIN})|(?P<comment>/\*.*?(?:\*/|\Z))|(?P<string>{_STRING})|(?P<mark><!--)|"
    rf"(?P<function>{_NAME}\()|(?P<at>@{_NAME})|(?P<name>{_NAME})|(?P<open>\()|(?P<close>\))|(?P<other>.)",
    re.DOTALL,
)
_BARE: Final = re.compile(rf"\s*((?:[^\s\"'()\\\x00-\x1f\x7f]|{_ESCAPE})*)\s*(?:\)|\Z)")
_QUOTED: Final = re.compile(r"\s*[\"']")
_BAD_REST: Final = re.compile(r"(?:\\.|[^)\\])*\)?", re.DOTALL)
_CHARSET_REST: Final = re.compile(r"[^;{}]*;?")
_ESCAPED: Final = re.compile(r"\\(?:([0-9a-fA-F]{1,6})[ \t\n]?|(\n)|(.)|\Z)", re.DOTALL)
_TAG: Final = re.compile(r"<[A-Za-z/!?]")
_LESS: Final = re.compile(r"\\?<")
_FRAGMENT: Final = re.compile(r"#[\w.-]+\Z", re.ASCII)
_WITH_ADDRESSES: Final = frozenset(("url", "src", "image", "image-set", "-webkit-image-set", "cross-fade"))
"""Functions whose strings are addresses."""


def rewritten(source: str, base: str) -> Iterator[str | NamedFile]:
    """The parts of a style sheet, or of the value of a style attribute. No part begins a tag of HTML."""
    text = source.replace("\0", "\ufffd").replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
    functions: list[str] = []
    at, imports = 0, False
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return
        at, kind, written = token.end(), token.lastgroup, token[0]
        if kind in ("comment", "mark"):
            yield " "
            continue
        if kind == "function" and _plain(written[:-1]).lower() == "url" and not _QUOTED.match(text, at):
            bare = _BARE.match(text, at)
            at = (bare or _BAD_REST.match(text, at) or token).end()
            yield from _address("style" if imports else "media", _plain(bare[1]) if bare else "", base)
        elif kind == "string" and (imports or (functions and functions[-1] in _WITH_ADDRESSES)):
            inside = bool(functions) and functions[-1] in ("url", "src")
            quoted = written[1:-1] if len(written) > 1 and written[-1] == written[0] else written[1:]
            yield from _address("style" if imports else "media", _plain(quoted), base, bare=inside)
        elif kind == "at" and _plain(written).lower() == "@charset":
            rest = _CHARSET_REST.match(text, at)
            at = rest.end() if rest else at
        else:
            if kind in ("function", "open") and len(functions) < MAX_NESTED:
                functions.append(_plain(written[:-1]).lower())
            elif kind == "close" and functions:
                functions.pop()
            yield _without_tags(written, kind, text, at)
        if kind == "at":
            imports = _plain(written).lower() == "@import"
        elif not written.isspace() and not (imports and kind == "function" and functions and functions[-1] == "url"):
            imports = False


def _without_tags(written: str, kind: str | None, text: str, at: int) -> str:
    """The token that ends at `at`. "<" between values is a comparison, unless a letter follows."""
    if "<" not in written or (kind == "other" and not _TAG.match(text, at - 1)):
        return written
    return _LESS.sub(r"\\3c ", written)


def _address(kind: FileKind, reference: str, base: str, *, bare: bool = False) -> Iterator[str | NamedFile]:
    """`bare`: inside the brackets of a url function that is written already."""
    begin, end = ('"', '"') if bare else ('url("', '")')
    file = file_of(kind, reference, base)
    fragment = _FRAGMENT.search(reference)
    if file is None and not (fragment and reference.startswith("#")):
        yield '"#"' if bare else NO_ADDRESS
        return
    yield begin
    if file is not None:
        yield file
    yield (fragment[0] if fragment and reference[:5].lower() != "data:" else "") + end


def _plain(text: str) -> str:
    """A name or string without its escapes."""
    return _ESCAPED.sub(_unescaped, text) if "\\" in text else text


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        code = int(match[1], 16)
        return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
    return match[3] or ""
