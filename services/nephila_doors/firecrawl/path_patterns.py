r"""Firecrawl's API searches `includePaths` and `excludePaths` in the path of a URL, the scope of a job in the whole
URL. This module translates the expressions. Pure.

RE2 has no look-ahead, so the expression is rewritten: it begins at a sign of the path, `.` and negated classes leave
out `?` and `#`, a `?` or `#` that is asked for matches nothing, and `$` is also the begin of a query. A match at the
begin of the path begins with its slash; any other is behind it. Not rewritten are `\P{…}` and `[:^…:]`.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import re2
from nephila.kernel.runtime.errors import UsageError

MAX_CHARS: Final = 1000
"""Characters of an expression."""
MAX_DEPTH: Final = 20
"""Groups within groups."""
MAX_RESULT_CHARS: Final = 20_000
_HOST: Final = r"^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*"
_NEVER: Final = r"[^\x00-\x{10FFFF}]"
_END: Final = r"(?:$|[?#])"
_OUTSIDE: Final = ("?", "#")
_COMPLEMENTS: Final = {
    "D": r'\x00-"$-/:->@-\x{10FFFF}',
    "W": r'\x00-"$-/:->@\[-^`{-\x{10FFFF}',
    "S": r'\x00-\x08\x0b\x0e-\x1f!"$->@-\x{10FFFF}',
}
"""Sets of signs that are no digit, part of a word or space, each without `?` and `#`."""
_ESCAPE: Final = r"\\x\{[0-9A-Fa-f]+\}|\\x[0-9A-Fa-f]{2}|\\[pP]\{[^}]*\}|\\[pP].|\\."
_PART: Final = re.compile(
    rf"{_ESCAPE}|\\|\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]|\(\?(?:P?<[^>]*>|[A-Za-z-]*[:)])"
    r"|[*+?]\??|\{\d+(?:,\d*)?\}\??|.",
    re.DOTALL,
)
_MEMBER: Final = re.compile(rf"\[:\^?[a-z]+:\]|{_ESCAPE}|.", re.DOTALL)
_QUANTIFIER: Final = re.compile(r"(?:[*+?]|\{(\d+)(,)?(\d*)\})(\??)")
_LITERAL: Final = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)


class _Term(NamedTuple):
    """A term is a part of a sequence: a sign or set of signs, a group, or an expression that matches no sign."""

    text: str
    """The rewritten text without the quantifier; of a group, its opening."""
    quantifier: str
    group: "list[list[_Term]] | None" = None
    zero_width: bool = False
    is_begin: bool = False
    """True if the term matches the begin of the path."""


def url_expression(pattern: str) -> str:
    """Returns an expression that matches a URL where `pattern` matches its path. Raises `UsageError`."""
    if len(pattern) > MAX_CHARS:
        raise UsageError(f"{pattern[:60]!r}… is longer than {MAX_CHARS:,} characters")
    literal = _LITERAL.sub(lambda match: re.escape(match[1]), pattern)
    parts = _PART.findall(literal)
    alternatives = _alternatives(iter(parts), 0)
    forms = [f"{_HOST}/[^?#]*?(?:{_text(alternatives)})"]
    forms += [_HOST] if _may_be_empty(alternatives) else [f"{_HOST}{text}" for text in _from_slash(alternatives)]
    made = "|".join(forms)
    if len(made) > MAX_RESULT_CHARS:
        raise UsageError(f"{pattern[:60]!r} is too long with all its alternatives")
    return made


def _alternatives(parts: Iterator[str], depth: int) -> list[list[_Term]]:
    """Reads the alternatives up to the end of a group."""
    if depth > MAX_DEPTH:
        raise UsageError(f"an expression has more than {MAX_DEPTH} groups within groups")
    alternatives: list[list[_Term]] = [[]]
    for part in parts:
        if part == ")":
            if depth:
                return alternatives
            alternatives[-1].append(_Term(part, ""))  # RE2 names the fault
        elif part == "|":
            alternatives.append([])
        elif _QUANTIFIER.fullmatch(part) and alternatives[-1] and not alternatives[-1][-1].quantifier:
            alternatives[-1][-1] = alternatives[-1][-1]._replace(quantifier=part)
        elif part == "(" or (part.startswith("(?") and not part.endswith(")")):
            alternatives[-1].append(_Term(part, "", _alternatives(parts, depth + 1)))
        else:
            alternatives[-1].append(_term(part))
    return alternatives


def _term(part: str) -> _Term:
    if part in ("^", r"\A"):
        return _Term(_NEVER, "", is_begin=True)
    if part in ("$", r"\z", r"\Z"):
        return _Term(_END, "", zero_width=True)
    if part in (r"\b", r"\B") or part.startswith("(?"):
        return _Term(part, "", zero_width=True)
    if part == ".":
        return _Term("[^?#]", "")
    if part.startswith("[") and len(part) > 1:
        return _Term(_class(part), "")
    if part == "#" or (part.startswith("\\") and _sign(part) in _OUTSIDE):
        return _Term(_NEVER, "")
    if part.startswith("\\") and part[1:] in _COMPLEMENTS:
        return _Term(f"[{_COMPLEMENTS[part[1:]]}]", "")
    return _Term(part, "")


def _text(alternatives: list[list[_Term]]) -> str:
    """Rewrites the alternatives for a position behind the begin of the path."""
    return "|".join("".join(_term_text(term) for term in terms) for terms in alternatives)


def _term_text(term: _Term) -> str:
    body = term.text if term.group is None else f"{term.text}{_text(term.group)})"
    return body + term.quantifier


def _from_slash(alternatives: list[list[_Term]]) -> Iterator[str]:
    """Rewrites the alternatives for the begin of the path: each begins with its slash."""
    for terms in alternatives:
        yield from _sequence_from_slash(terms)


def _sequence_from_slash(terms: list[_Term]) -> Iterator[str]:
    flags = ""
    for at, term in enumerate(terms):
        rest = "".join(map(_term_text, terms[at + 1 :]))
        less, may_be_none = _once_less(term.quantifier)
        if term.is_begin:
            continue
        if term.zero_width:
            if term.text == _END:
                return
            flags += term.text if term.text.startswith("(?") else ""
            continue
        if term.group is not None:
            opening = f"(?:{flags}"
            again = f"(?:{_text(term.group)}){less}" if less else ""
            for text in _from_slash(term.group):
                yield f"{opening}{text}{again}{rest})"
            may_be_none = may_be_none or _may_be_empty(term.group)
        elif _has_slash(term.text):
            yield f"(?:{flags}/{term.text + less if less else ''}{rest})"
        if not may_be_none:
            return


def _once_less(quantifier: str) -> tuple[str, bool]:
    """Returns the quantifier of the repetitions behind the first (empty if there are none), and whether the term may be
    absent."""
    if not quantifier:
        return "", False
    kind = quantifier[0]
    if kind in "*+?":
        return ("" if kind == "?" else "*"), kind != "+"
    match = _QUANTIFIER.fullmatch(quantifier)
    assert match is not None
    low = int(match[1])
    if not match[2]:
        return (f"{{{low - 1}}}" if low > 1 else ""), low == 0
    high = f"{int(match[3]) - 1}" if match[3] else ""
    return ("" if high in ("0", "-1") else f"{{{max(low - 1, 0)},{high}}}"), low == 0


def _may_be_empty(alternatives: list[list[_Term]]) -> bool:
    return any(all(_is_optional(term) for term in terms) for terms in alternatives)


def _is_optional(term: _Term) -> bool:
    empty = (
        term.is_begin
        or (term.zero_width and term.text != _END)
        or (term.group is not None and _may_be_empty(term.group))
    )
    return empty or _once_less(term.quantifier)[1]


def _has_slash(text: str) -> bool:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options).fullmatch("/") is not None
    except re2.error:
        return False


def _class(part: str) -> str:
    inner = part[1:-1]
    if inner.startswith("^"):
        rest = inner[1:]
        return r"[^\?#" + ("\\" if rest.startswith("]") else "") + f"{rest}]"
    members = "".join(_members(inner))
    return f"[{members}]" if members else _NEVER


def _members(inner: str) -> Iterator[str]:
    """Removes `?` and `#` from the members of a class; a range around one of them becomes two."""
    parts = _MEMBER.findall(inner)
    at = 0
    while at < len(parts):
        first = parts[at]
        if at + 2 < len(parts) and parts[at + 1] == "-" and _sign(first) and _sign(parts[at + 2]):
            yield from _range(ord(_sign(first)), ord(_sign(parts[at + 2])))
            at += 3
            continue
        at += 1
        if first.startswith("\\") and first[1:] in _COMPLEMENTS:
            yield _COMPLEMENTS[first[1:]]
        elif _sign(first) not in _OUTSIDE:
            yield f"\\{first}" if first in ("[", "]", "^", "-") else first


def _range(low: int, high: int) -> Iterator[str]:
    for cut in (*sorted(code for sign in _OUTSIDE if low <= (code := ord(sign)) <= high), high + 1):
        if low < cut:
            yield rf"\x{{{low:X}}}-\x{{{cut - 1:X}}}"
        low = cut + 1


def _sign(part: str) -> str:
    """Returns the sign of a part; empty for a set of signs."""
    if len(part) == 1:
        return part
    code = re.fullmatch(r"\\x\{?([0-9A-Fa-f]{1,6})\}?", part)
    if code is not None:
        return chr(min(int(code[1], 16), 0x10FFFF))
    name = part[1:]
    return name if part[0] == "\\" and len(name) == 1 and not name.isalnum() else ""
