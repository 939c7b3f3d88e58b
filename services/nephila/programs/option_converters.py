"""From the value of an option and the present value of a field to the new value of the field.

What an option does beyond setting a field stands here, named in its row, and not as a branch of the programs.
"""

from __future__ import annotations

import re
from fnmatch import fnmatch
from mimetypes import MimeTypes
from typing import Any, Final

from nephila.kernel.pages.requisites import PER_PAGE
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.extensions import extension

HTML: Final = ("text/html", "application/xhtml+xml")
"""Fetched regardless of --accept: links are found in it."""
LEASE_MARGIN_S: Final = 30.0
"""From the longest time of a fetch to the end of its lease."""
_MEDIA_TYPE: Final = re.compile(r"[\w*.+-]+/[\w*.+-]+", re.ASCII)


def same(value: Any, present: Any) -> Any:
    """The value of the option. Default and bounds of the option are then those of the field."""
    return value


def negated(value: bool, present: Any) -> bool:
    return not value


def enabled(value: Any, present: bool) -> bool:
    """True with the option; without a value of it the field stays."""
    return bool(value) or present


def or_present(value: str, present: Any) -> Any:
    """An empty value leaves the field as it is."""
    return value or present


def split_words(value: list[str], present: Any) -> list[str]:
    """The words of texts that may hold several, with commas between them."""
    return [word.strip() for text in value for word in text.split(",") if word.strip()]


def domains_by_rank(path: str) -> list[str]:
    """Raises `ValueError` with the reason for a file without ranks."""
    domains: list[str] = extension("domain-ranks")(path)
    return domains


def as_list(value: list[str] | str, present: Any) -> list[str]:
    """The items of a file that has been read; an empty value has none."""
    return list(value)


def screenshot_too(value: bool, present: list[str]) -> list[str]:
    return list(dict.fromkeys([*present, *(["screenshot"] if value else [])]))


def requisites_per_page(value: bool, present: int) -> int:
    return (present or PER_PAGE) if value else 0


def tries_of_retries(value: int, present: int) -> int:
    """The first attempt is a try too."""
    return value + 1


def outlived(value: float, present: float) -> float:
    """A lease outlives the longest fetch."""
    return max(present, value + LEASE_MARGIN_S)


def proxy_entries(value: list[str], present: Any) -> Any:
    return extension("proxy-entries")(value)


def accepted_types(value: str, present: tuple[str, ...]) -> tuple[str, ...]:
    accepted = _media_types(value, "--accept")
    return (*HTML, *accepted) if accepted else present


def refused_but_accepted(value: str, present: tuple[str, ...]) -> tuple[str, ...]:
    """The types that are refused by default, without those that the option accepts."""
    accepted = _media_types(value, "--accept")
    return tuple(kind for kind in present if not any(fnmatch(a, kind) or fnmatch(kind, a) for a in accepted))


def refused_too(value: str, present: tuple[str, ...]) -> tuple[str, ...]:
    return (*present, *_media_types(value, "--reject"))


def _media_types(words: str, option: str) -> tuple[str, ...]:
    """Media types of a list of them, or of endings of files. Raises `UsageError`."""
    kinds = []
    for word in words.replace(",", " ").lower().split():
        kind = word if "/" in word else MimeTypes().guess_type(f"x.{word.lstrip('*.')}")[0]
        if kind is None or not _MEDIA_TYPE.fullmatch(kind):
            raise UsageError(f"{option} {word!r} is no content type like application/pdf, and no known ending like pdf")
        kinds.append(kind)
    return tuple(kinds)
