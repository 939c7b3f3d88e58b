"""Traps by the shape of a URL alone: paths that repeat, endless calendars, endless parameters. Pure; stateless.

Invariant: only a shape that no real page has is a trap. A merely odd URL is left to `novelty`, which measures what such
URLs bring. Nearly every URL passes after a few C-level scans.

Sources: Heritrix' PathologicalPathDecideRule and TooManyPathSegmentsDecideRule; Olston and Najork, Web Crawling (2010).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import unquote_plus

from nephila.kernel.runtime.late_pattern import late_pattern

_YEAR_S: Final = 31_556_952
_HINTS: Final = ("alend", "vent", "genda", "onth", "ear=", "ate=", "ermin")
"""Parts of the words below. A URL with none of them is not checked as a calendar."""
_CALENDAR: Final = late_pattern(r"(?i)(?:^|[/?&;._-])(?:calend[aeo]r|calendrier|calendario|kalender|kalendar)")
_SCHEDULE: Final = late_pattern(
    r"(?i)(?:^|[/?&;._-])(?:events?|evento?s?|agenda|veranstaltungen|termine|months?|(?:start|end|from|to)?_?date)(?=[/?&=._-]|$)"
)
_YEAR_PARAMETER: Final = late_pattern(r"(?i)[?&]year=\d{4}(?:&.*)?&month=|[?&]month=[^&]*(?:&.*)?&year=\d{4}")
_DATE: Final = late_pattern(r"[/=](\d{4})[/-](0?[1-9]|1[0-2])(?=[/&?#-]|$)")
_YEAR: Final = late_pattern(r"(?i)[?&]year=(\d{4})(?=&|$)")
_SESSION_HINTS: Final = ("sess", "sid=", "(s(", "zenid=")
_SESSION: Final = late_pattern(
    r"(?i)(?P<path>;jsessionid=[^/?#;]*|\(S\([0-9a-z]{16,}\)\)/)"
    r"|(?<=[?&])(?:jsessionid|phpsessid|php_sessid|aspsessionid\w*|session_?id|sess_?id|sid|oscsid|zenid)=(?P<value>[^&#]*)&?"
)
_TOKEN: Final = late_pattern(r"(?=[^.!,-]*[0-9])[0-9A-Za-z][0-9A-Za-z_.!,-]{15,}")
"""A session id: sixteen characters or more without word separators, with a digit in its first part."""


class Limits(NamedTuple):
    """Limits beyond which a shape is a trap."""

    segments: int = 32
    """Path segments; no real site nests as deep."""
    repeats: int = 3
    """Repeats in a row of a cycle of several segments."""
    same_segment: int = 4
    """Repeats in a row of one segment. project/project/project is a real path in some software archives."""
    short_repeats: int = 6
    """The same for a segment of one or two characters: hashed directories have rows of them."""
    parameters: int = 32
    same_name: int = 16
    """Values of one parameter; forms with many check boxes send some."""
    years_ahead: int = 2
    years_back: int = 30


LIMITS: Final = Limits()


def shape(url: str, now_utc: float, limits: Limits = LIMITS) -> str:
    """Why a WHATWG href is certainly part of a trap, in words, or the empty string.

    `now_utc` is seconds since 1970. O(length of the URL), about a microsecond for an ordinary one.
    """
    parts = url.split("/")
    count = len(parts)
    if count > 5 and (count - len(set(parts)) > 1 or count - 3 > limits.segments):
        reason = _path(url, limits)
        if reason:
            return reason
    if "?" in url and url.count("&") > 1:
        reason = _query(url, limits)
        if reason:
            return reason
    for hint in _HINTS:
        if hint in url:
            return _calendar(url, now_utc, limits)
    return ""


def without_session(url: str) -> str:
    """The URL without its session ids, or the empty string when it has none.

    Only known names with a random-looking value count: `sid` may also be the number of a story.
    """
    lower = url.lower()
    for hint in _SESSION_HINTS:
        if hint in lower:
            break
    else:
        return ""
    bare = _SESSION.sub(_without_token, url)
    return bare.rstrip("?&") if bare != url else ""


def _without_token(match: re.Match[str]) -> str:
    whole = match[0]
    if match["path"]:
        return ""
    return "" if _TOKEN.fullmatch(match["value"]) else whole


def _path(url: str, limits: Limits) -> str:
    path = url.split("?", 1)[0]
    segments = [segment for segment in path.split("/")[3:] if segment]
    if len(segments) > limits.segments:
        return f"path of {len(segments)} segments"
    for length in range(1, len(segments) // limits.repeats + 1):
        cycle, times = _longest_cycle(segments, length)
        words = "/".join(cycle)
        needed = limits.repeats
        if length == 1:
            needed = limits.same_segment if len(words) > 2 else limits.short_repeats
        if times >= needed and not words.replace("/", "").isdigit():
            return f"path repeats the segment{'s' if length > 1 else ''} {words} {times} times"
    words_only = [segment for segment in segments if not segment.isdigit()]
    if len(words_only) >= 12 and 3 * len(set(words_only)) <= len(words_only):
        return f"path of {len(segments)} segments, of which only {len(set(words_only))} differ"
    return ""


def _longest_cycle(segments: list[str], length: int) -> tuple[list[str], int]:
    """The `length` segments with the most repeats in a row, and their number. O(segments)."""
    best, at, run = 1, 0, 0
    for i in range(length, len(segments)):
        run = run + 1 if segments[i] == segments[i - length] else 0
        times = run // length + 1
        if times > best:
            best, at = times, i - run + 1 - length
    return segments[at : at + length], best


def _query(url: str, limits: Limits) -> str:
    pairs = url.split("?", 1)[1].split("#", 1)[0].split("&")
    if len(pairs) > limits.parameters:
        return f"query of {len(pairs)} parameters"
    if len(pairs) - len(set(pairs)) > 1:
        repeated = next((pair for pair in pairs if pair and pairs.count(pair) > 2), "")
        if repeated:
            return f"query repeats {repeated[:80]} {pairs.count(repeated)} times"
    if len(pairs) > limits.same_name:
        names = [pair.partition("=")[0] for pair in pairs]
        name = max(names, key=names.count)
        if names.count(name) > limits.same_name:
            return f"query has the parameter {name[:80]} {names.count(name)} times"
    return ""


def _calendar(url: str, now_utc: float, limits: Limits) -> str:
    path_query = url[url.find("/", 8) :]
    calendar = _CALENDAR.search(path_query) is not None
    year_parameter = _YEAR_PARAMETER.search(path_query) is not None
    if not (calendar or year_parameter or _SCHEDULE.search(path_query)):
        return ""
    date = _DATE.search(unquote_plus(path_query) if "%" in path_query else path_query) or (
        year_parameter and _YEAR.search(path_query)
    )
    if not date:
        return ""
    year, now = int(date[1]), int(1970 + now_utc / _YEAR_S)
    if year > now + limits.years_ahead:
        return f"calendar of the year {year}, more than {limits.years_ahead} years ahead"
    # Archives go back centuries; only a path that is named calendar has a limit.
    if calendar and year < now - limits.years_back:
        return f"calendar of the year {year}, more than {limits.years_back} years back"
    return ""
