"""Conversion of a raw value to the value of a field: trimmed, replaced, typed. One row per type in `TYPES`.

Invariant: a value that is not of its type is dropped with a reason, never guessed; every value is plain JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from nephila.kernel.page_facts.iso_dates import iso_date
from nephila.native import UrlError, is_tidy, parse_url
from nephila.native import trimmed as all_trimmed
from nephila.parser.page.text import spelled_text

from nephila_rules.runtime.document import Document, lexbor_text, lexbor_texts
from nephila_rules.runtime.numbers import number, price
from nephila_rules.runtime.replacement import expand
from nephila_rules.runtime.select import css_nodes, value_or_text
from nephila_rules.runtime.selectors import compiled
from nephila_rules.runtime.spec import ItemField

MAX_TEXT_CHARS: Final = 1_000_000
"""Characters of one value; a longer one is cut."""
Base = Callable[[], str]
"""The URL that relative ones are resolved against; "" when it is not known."""
_TRUE: Final = frozenset(("true", "yes", "y", "1", "on", "instock", "ja", "oui", "sí", "si", "sim", "tak", "да", "是"))
_FALSE: Final = frozenset(("false", "no", "n", "0", "off", "outofstock", "nein", "non", "não", "nie", "нет", "否"))


def value_of(field: ItemField, raw: Any, base: Base, check_time: Callable[[], object] = bool) -> Any:
    """The value of a field; None for an empty text. `base`: URLs are relative to it, `check_time` is asked at
    each thing that is replaced. Raises ValueError."""
    value = value_or_text(raw)
    if isinstance(value, str):
        value = _tidied(field, value, check_time)
        if not value:
            return None
    elif value is None:
        return None
    return TYPES[field.type](value, field.options, base)


def simple_texts(field: ItemField, document: Document, scope: Any) -> list[str]:
    """What `value_of` gives for the elements of a field that is `plain`: the first text that is not empty, or all."""
    nodes = css_nodes(field.selection.expression, document, scope, first=not field.many)
    if field.many:
        return all_trimmed(lexbor_texts(nodes), MAX_TEXT_CHARS)
    for node in nodes:
        if texts := all_trimmed([lexbor_text(node)], MAX_TEXT_CHARS):
            return texts
    return []


def _tidied(field: ItemField, text: str, check_time: Callable[[], object]) -> str:
    text = text[:MAX_TEXT_CHARS]
    # The characters of a URL are part of it.
    trim = collapsed if field.type == "url" else trimmed
    if field.trim:
        text = trim(text)
    for pattern, instead in field.replace:
        text = compiled("regex", pattern).sub(partial(_replaced, instead, check_time), text)
    return trim(text) if field.trim and field.replace else text


def _replaced(instead: str, check_time: Callable[[], object], match: Any) -> str:
    check_time()
    return expand(instead, match)


def trimmed(text: str) -> str:
    """Text in the one form, white space collapsed within lines, without empty lines, trimmed."""
    # The common case; the check costs a hundredth of the split. Non-ASCII text may hold lone surrogates.
    if text.isascii() and is_tidy(text):
        return text.strip()
    return collapsed(spelled_text(text))


def collapsed(text: str) -> str:
    """Text with white space collapsed within lines, without empty lines, trimmed."""
    if "\n" not in text:
        return " ".join(text.split())
    return "\n".join([line for part in text.split("\n") if (line := " ".join(part.split()))])


def _text(value: Any, options: Mapping[str, Any], base: Base) -> Any:
    """A JSON value that is no text is unchanged."""
    return value


def _number(value: Any, options: Mapping[str, Any], base: Base) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("not a number")
    result = number(value, options.get("decimal", "")) if isinstance(value, str) else value
    try:
        if math.isfinite(result):
            return result
    except OverflowError:  # JSON's whole numbers have any length
        pass
    raise ValueError("not a finite number")


def _integer(value: Any, options: Mapping[str, Any], base: Base) -> int:
    result = _number(value, options, base)
    if result != int(result):
        raise ValueError(f"{result} is not a whole number")
    return int(result)


def _price(value: Any, options: Mapping[str, Any], base: Base) -> dict[str, Any]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"amount": _number(value, options, base), "currency": options.get("currency", "")}
    if not isinstance(value, str):
        raise ValueError("not a price")
    return price(value, options.get("decimal", ""), options.get("currency", ""))


def _date(value: Any, options: Mapping[str, Any], base: Base) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("not a date")
    try:
        return iso_date(str(value), options.get("format"), options.get("dayFirst"))
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(str(error)) from None


def _url(value: Any, options: Mapping[str, Any], base: Base) -> str:
    if not isinstance(value, str):
        raise ValueError("not a URL")
    try:
        return parse_url(value.strip(), base() or None).href
    except UrlError as error:
        raise ValueError(f"not a URL: {error}") from None


def _bool(value: Any, options: Mapping[str, Any], base: Base) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().rpartition("/")[2].lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError("neither true nor false")


Convert = Callable[[Any, Mapping[str, Any], Base], Any]
TYPES: Final[dict[str, Convert]] = {
    "text": _text,
    "number": _number,
    "integer": _integer,
    "price": _price,
    "date": _date,
    "url": _url,
    "bool": _bool,
    "json": _text,
}
"""Type → (value, options, base) → value; the names are those of `table.TYPES`."""
