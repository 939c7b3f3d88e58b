"""Set-Cookie headers and cookie files, from text to values (RFC 6265, section 5). Pure.

Texts are octets as Latin-1. A malformed Set-Cookie header is ignored, never an error.
"""

from __future__ import annotations

from calendar import timegm

import msgspec

from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.late_pattern import late_pattern

MAX_BYTES = 4096
"""Limit of browsers for name and value of one cookie together; a longer cookie is ignored."""
_CONTROL = late_pattern(r"[\x00-\x08\x0a-\x1f\x7f]")
_DATE_TOKEN = late_pattern(r"[^\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = late_pattern(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?!\d)")
_DAY = late_pattern(r"(\d{1,2})(?!\d)")
_YEAR = late_pattern(r"(\d{2,4})(?!\d)")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DIGITS = late_pattern(r"-?[0-9]+\Z")
_WHITE = " \t"
FOREVER = float("inf")


class SetCookie(msgspec.Struct, frozen=True):
    """One parsed Set-Cookie header. Empty and missing attributes are None."""

    name: str
    value: str
    domain: str | None = None
    """Lower case, without a leading dot."""
    path: str | None = None
    expires_at: float | None = None
    """Seconds since 1970 UTC; None: until the session ends."""
    secure: bool = False


def parse_set_cookie(header: str, now: float) -> SetCookie | None:
    """The cookie of one header; None when the header has to be ignored."""
    if _CONTROL.search(header):
        return None
    pair, _, attributes = header.partition(";")
    name, equals, value = pair.partition("=")
    name, value = name.strip(_WHITE), value.strip(_WHITE)
    if not equals or not name or len(name) + len(value) > MAX_BYTES:
        return None
    domain = path = None
    expires = max_age = None
    secure = False
    for attribute in attributes.split(";"):
        key, _, text = attribute.partition("=")
        key, text = key.strip(_WHITE).lower(), text.strip(_WHITE)
        if key == "expires":
            date = parse_date(text)
            expires = expires if date is None else date
        elif key == "max-age" and _DIGITS.match(text):
            seconds = int(text[:12])
            max_age = now + seconds if seconds > 0 else 0.0
        elif key == "domain" and text:
            domain = text.removeprefix(".").lower()
        elif key == "path":
            path = text if text[:1] == "/" else None
        elif key == "secure":
            secure = True
    expires_at = max_age if max_age is not None else expires
    return SetCookie(name, value, domain or None, path, expires_at, secure)


def parse_date(text: str) -> float | None:
    """A cookie date (RFC 6265 5.1.1) in seconds since 1970 UTC; None for any other text."""
    time = day = month = year = None
    for token in _DATE_TOKEN.findall(text):
        if time is None and (match := _TIME.match(token)):
            time = tuple(map(int, match.groups()))
        elif day is None and (match := _DAY.match(token)):
            day = int(match[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and (match := _YEAR.match(token)):
            year = int(match[1])
    if time is None or day is None or month is None or year is None:
        return None
    if 70 <= year <= 99:
        year += 1900
    elif year <= 69:
        year += 2000
    if not 1 <= day <= 31 or year < 1601 or time[0] > 23 or time[1] > 59 or time[2] > 59:
        return None
    return float(timegm((year, month, day, *time)))


def read_cookie_file(text: str, name: str) -> list[tuple[str, bool, SetCookie]]:
    """(host or domain, whether hosts below it are included, cookie) of each line of a cookie file in Netscape format.

    Raises `UsageError` with the line number.
    """
    cookies = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.removeprefix("#HttpOnly_")
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) == 6:
            fields.append("")  # an empty value; an editor has removed the tab before it
        if len(fields) != 7:
            raise UsageError(
                f"{name}:{number}: not a cookie file line (domain, TRUE or FALSE, path, TRUE or FALSE, expiry, "
                f"name, value, separated by tabs); it has {len(fields)} fields"
            )
        domain, below, path, secure, expires, key, value = (field.strip() for field in fields)
        try:
            expires_at = float(expires or 0)
        except ValueError:
            raise UsageError(f"{name}:{number}: {expires[:40]!r} is not an expiry time in seconds") from None
        domain = domain.lower().removeprefix(".")
        if not domain or not key or path[:1] != "/" or _CONTROL.search(key + value):
            raise UsageError(f"{name}:{number}: domain, path or name of the cookie is missing or malformed")
        cookie = SetCookie(key, value, None, path, expires_at or None, secure.upper() == "TRUE")
        cookies.append((domain, below.upper() == "TRUE", cookie))
    return cookies
