"""Which elements a browser does not show by their own attributes, as in ../core/src/hidden.rs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class Visibility(IntEnum):
    """The visibility of an element; SHOWN is false."""

    SHOWN = 0
    HIDDEN = 1
    VEILED = 2
    """By `visibility`: what is in it may be visible again."""


def visibility_of(tag: str, attributes: Mapping[str, str | None], above: Visibility, block: bool) -> Visibility:
    """The visibility of an element with these attributes in such an element. O(length of the style)."""
    if above is Visibility.HIDDEN or _is_hidden(tag, attributes, block):
        return Visibility.HIDDEN
    display, visibility = _style(attributes.get("style") or "")
    if display == "none":
        return Visibility.HIDDEN
    if visibility in ("hidden", "collapse"):
        return Visibility.VEILED
    return Visibility.SHOWN if visibility in ("visible", "initial") else above


def _is_hidden(tag: str, attributes: Mapping[str, str | None], block: bool) -> bool:
    if tag == "dialog" and "open" not in attributes:
        return True
    hidden = attributes.get("hidden", "until-found")
    if "popover" in attributes or (hidden or "").lower() != "until-found":
        return True
    if (attributes.get("aria-hidden") or "").lower() != "true" or not block or tag in ("main", "article"):
        return False
    unreachable = (attributes.get("tabindex") or "").strip() == "-1"
    return unreachable or (attributes.get("role") or "").lower() in ("dialog", "alertdialog")


def _style(style: str) -> tuple[str, str]:
    """The last `display` and `visibility` of an inline style, "" for none."""
    values = {"display": "", "visibility": ""}
    for declaration in style.split(";"):
        name, colon, value = declaration.partition(":")
        if colon and (name := name.strip().lower()) in values:
            values[name] = value.partition("!")[0].strip().lower()
    return values["display"], values["visibility"]
