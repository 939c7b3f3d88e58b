"""Types of fields that job and rule documents share: durations, URLs, expressions, names. Each is checked when it is
read, so that a value of a document cannot fail for its syntax later.
"""

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

import re2
from msgspec import Meta

from nephila.kernel.documents.struct_reader import Section
from nephila.kernel.fragment_routes import parse_routed
from nephila.native import UrlError

API_VERSION: Final = "nephila.dev/v1"
ApiVersion = Literal["nephila.dev/v1"]
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
RATE_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
DECADE_S = 10 * 365 * 86_400.0
_DURATION = r"0|(?:\d{1,9}(?:\.\d{1,6})?(?:ms|s|m|h|d))+"
_PART = re.compile(r"([\d.]+)(ms|s|m|h|d)")
COUNT_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
SIZE_UNITS = {
    **{f"{unit}{byte}": factor for unit, factor in COUNT_UNITS.items() for byte in ("", "B")},
    "K": 10**3,
    "KB": 10**3,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
_NUMBER = re.compile(r"(-?\d{1,19}(?:\.\d{1,9})?(?:[eE]\d{1,2})?) ?([A-Za-z]{0,3})", re.ASCII)


def parse_seconds(text: str) -> float:
    """Seconds of a duration on a command line: "500ms", "1h30m", "14d"; a bare number is seconds. Raises `ValueError`
    with the reason."""
    word = text.strip()
    quoted = _quoted(text)
    if re.fullmatch(r"\d{1,12}(\.\d{1,9})?|\.\d{1,9}", word, re.ASCII):
        duration_s = float(word)
    elif re.fullmatch(_DURATION, word, re.ASCII):
        duration_s = seconds(word)
    else:
        raise ValueError(f"{quoted} is no duration like 500ms, 1s, 1h30m or 14d; a bare number is seconds")
    if duration_s > DECADE_S:
        raise ValueError(f"{quoted} is longer than ten years")
    return duration_s


def parse_count(text: str) -> int:
    """The number of a count on a command line: "250", "1e6", "10k", "1.5M". Raises `ValueError` with the reason."""
    return _whole(text, COUNT_UNITS, "whole number like 250, 10k or 1e6")


def parse_size(text: str) -> int:
    """Bytes of a size on a command line: "500000", "500KB", "2MiB", "1e6". Raises `ValueError` with the reason."""
    return _whole(text, SIZE_UNITS, "size like 500000, 500KB, 2MiB or 1e6")


def _whole(text: str, units: dict[str, int], what: str) -> int:
    match = _NUMBER.fullmatch(text.strip())
    if match is not None and match[2] in units:
        number = Decimal(match[1]) * units[match[2]]
        if number == int(number):
            return int(number)
    raise ValueError(f"{_quoted(text)} is no {what}")


def parse_rate(text: str) -> float:
    """Fetches per second of a rate on a command line: "2", "2/s", "30/min", "100/h". Raises `ValueError` with the
    reason."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(?:/(s|min|h))?", text.strip(), re.ASCII)
    rate = float(match[1]) / RATE_UNITS[match[2] or "s"] if match is not None else 0.0
    if not rate or 1 / rate > DECADE_S:
        raise ValueError(f"{_quoted(text)} is no rate like 2/s, 30/min or 100/h; a bare number is per second")
    return rate


def _quoted(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:59] + "…")


def seconds(duration: str) -> float:
    """ "1h30m" → 5400.0; the text was read as `Duration`."""
    return sum((float(number) * UNITS[unit] for number, unit in _PART.findall(duration)), 0.0)


def duration_text(seconds: float) -> str:
    """Seconds as a document has them, to the microsecond: 90.5 → "90.5s"."""
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"


def check_duration(text: str) -> str:
    """The text, if it is a duration. Raises `ValueError` with the reason."""
    if not re.fullmatch(_DURATION, text, re.ASCII):
        unit = f"; write {text}s for seconds" if re.fullmatch(r"[\d.]{1,20}", text, re.ASCII) else ""
        raise ValueError(f"is no duration like 500ms, 1s, 2h or 14d{unit}")
    if seconds(text) > DECADE_S:
        raise ValueError("is not within 0s and ten years")
    return text


def instant_s(text: str) -> float:
    """Seconds since 1970 of "2026-11-22T06:00:00Z"; the text was read as `Instant`."""
    return datetime.fromisoformat(text).timestamp()


def instant_text(at: float) -> str:
    """The instant as a document has it, in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def _instant(text: str) -> str:
    try:
        if datetime.fromisoformat(text).tzinfo is None:
            raise ValueError
    except ValueError:
        raise ValueError("is no instant like 2026-11-22T06:00:00Z") from None
    return text


def _interval(text: str) -> str:
    if seconds(check_duration(text)) < 1:
        raise ValueError("is not within 1s and ten years")
    return text


def _url(text: str) -> str:
    try:
        text.encode()
        return parse_routed(text).href
    except (UrlError, UnicodeEncodeError) as error:
        reason = "not valid text" if isinstance(error, UnicodeEncodeError) else str(error)
        hint = f"; write http://{text}" if re.fullmatch(r"[\w.-]+\.[a-z]+(/\S*)?", text, re.ASCII) else ""
        raise ValueError(f"is no URL that can be crawled: {reason}{hint}") from None


def check_expression(text: str) -> str:
    """The text, if it is an RE2 expression. Raises `ValueError` with the reason."""
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(text, options)
    except re2.error as error:
        message: Any = error.args[0] if error.args else error
        reason = message.decode(errors="replace") if isinstance(message, bytes) else message
        raise ValueError(f"is not a valid RE2 expression: {reason}") from None
    return text


DURATION_SCHEMA = {"pattern": f"^(?:{_DURATION})$", "orZero": True}
Duration = Annotated[
    str, Meta(extra={"what": "a duration like 1s", "check": check_duration}, extra_json_schema=DURATION_SCHEMA)
]
"""A time with its unit: 500ms, 1s, 90m, 1h30m, 14d; or 0. The text is kept, `seconds` converts it."""
Interval = Annotated[
    str, Meta(extra={"what": "a duration like 1h", "check": _interval}, extra_json_schema=DURATION_SCHEMA)
]
"""A duration of a second at least."""
Instant = Annotated[
    str,
    Meta(
        max_length=40,
        extra={"what": "an instant like 2026-11-22T06:00:00Z", "check": _instant},
        extra_json_schema={"format": "date-time"},
    ),
]
"""An instant with its offset from UTC, as ISO 8601 writes it."""
Url = Annotated[
    str,
    Meta(
        max_length=8192,
        extra={"what": "a URL", "check": _url},
        extra_json_schema={"format": "uri", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?:"},
    ),
]
"""An absolute http(s) URL; it is kept in its canonical form, with its fragment route if it has one."""
Expression = Annotated[
    str, Meta(min_length=1, max_length=4000, extra={"what": "an RE2 expression", "check": check_expression})
]
Text = Annotated[str, Meta(min_length=1, max_length=200)]
JobOwner = Annotated[
    str,
    Meta(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$", extra={"what": "a name or an address in one line"}),
]
TenantName = Annotated[
    str,
    Meta(max_length=63, pattern="^([a-z0-9]([a-z0-9-]*[a-z0-9])?)?$", extra={"what": "a name of a-z, 0-9 and hyphens"}),
]
FileName = Annotated[str, Meta(min_length=1, max_length=4096, extra={"what": "the name of a file"})]
_LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=rf"^(?:{_LABEL}(?:\.{_LABEL})*)$",
        extra={"what": "a name of lower-case letters, digits, '-' and '.', as Kubernetes has them"},
    ),
]
Count = Annotated[int, Meta(ge=0, le=10**12)]


class Metadata(Section):
    """What identifies the document."""

    name: Name
    """The name; no two documents of a kind have the same."""
