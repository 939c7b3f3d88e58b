"""Numbers, times and texts as the templates show them. Pure.

Invariant: a text from the web keeps no control, format or direction character: such a character is shown as U+FFFD, so
that a URL does not read as another one. Escaping is the templates' own, for every value.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from markupsafe import Markup
from nephila.kernel.pages.hidden_characters import hidden

from nephila_console.messages import language
from nephila_console.messages import translate as _

_HIDDEN: Final = re.compile(hidden(r"\x00-\x08\x0b\x0c\x0e-\x1f"))
_STATUS: Final = re.compile(r"(the server answered|its proxy refuses CONNECT by status) (\d{3})( \(.*\))?")
BASE: Final = "/console"


def clean(text: object, limit: int = 0) -> str:
    """Cleans a text from the web, and cuts it to `limit` characters; 0 is no limit."""
    chars = str(text)
    if limit and len(chars) > limit:
        chars = chars[: limit - 1] + "…"
    return _HIDDEN.sub("\ufffd", chars)


def rate(number: float) -> str:
    """Writes a rate per second with as many digits as it is precise."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 1 else f"{number:.2g}"


def ago(seconds: float) -> str:
    """Writes a length of time in its largest unit."""
    for unit, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{int(seconds // unit)} {_(name)}"
    return f"{max(int(seconds), 1)} {_('s')}"


def when(value: Any) -> Markup:
    """Writes an instant for people, with the exact one on hover. The value is in seconds since 1970 or ISO 8601, in
    UTC."""
    at = _instant(value)
    if at is None:
        return Markup("<span class=soft>–</span>")
    passed = time.time() - at.timestamp()
    if abs(passed) < 90 * 86_400:
        text = _("in %(span)s") if passed < 0 else _("%(span)s ago")
        text %= {"span": ago(abs(passed))}
    else:
        text = at.strftime("%Y-%m-%d")
    exact = at.strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), exact, text)


def _instant(value: Any) -> datetime | None:
    try:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC) if value else None
        instant = datetime.fromisoformat(str(value)) if value else None
        return instant.replace(tzinfo=UTC) if instant is not None and instant.tzinfo is None else instant
    except (ValueError, OverflowError, OSError):
        return None


def cause(words: str) -> str:
    """Translates the words of a reason. Those of a status are one text for all statuses, without the name of it."""
    status = _STATUS.fullmatch(words)
    if status is None or language.get() == "en":
        return _(words)
    return _(f"{status[1]} %(status)s") % {"status": status[2]}


def host(url: str) -> str:
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower() or url
    except ValueError:
        return url


def path(*parts: str, **query: Any) -> str:
    """Builds the address of a screen; fields without a value are left out."""
    fields = {name: value for name, value in query.items() if value not in ("", None, 0)}
    address = "/".join((BASE, *(urlencode({"": part}, errors="replace")[1:].replace("+", "%20") for part in parts)))
    return address + (f"?{urlencode(fields, errors='replace')}" if fields else "")


def followable(url: str) -> bool:
    """Returns whether a browser may be sent to the URL."""
    return url.startswith(("http://", "https://"))


def cell(value: Any) -> str:
    """Writes a value of an item in one line."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {cell(part)}" for name, part in value.items())
    if isinstance(value, list):
        return " · ".join(cell(part) for part in value)
    return str(value)
