"""The words of the console in its languages: English is the key, `LANGUAGE.json` beside this file the table.

The language of a request is the first of its Accept-Language that is there, or `?lang=` kept in a cookie. A text
without translation is shown in English.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Final

LANGUAGES: Final = ("en", "zh")
language: ContextVar[str] = ContextVar("language", default="en")


def translate(text: str) -> str:
    """The text in the language of the request."""
    found = language.get()
    return text if found == "en" else table(found).get(text, text)


def translate_count(one: str, many: str, count: int) -> str:
    """The form for this number."""
    return translate(one if count == 1 else many)


@cache
def table(name: str) -> dict[str, str]:
    """English → the text in a language."""
    found: dict[str, str] = json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8"))
    return found


def chosen(accepted: str, wished: str = "") -> str:
    """The language for an Accept-Language header; `wished` comes before it."""
    for one in (wished, *accepted.split(",")):
        name = one.partition(";")[0].strip().lower().partition("-")[0]
        if name in LANGUAGES:
            return name
    return "en"
