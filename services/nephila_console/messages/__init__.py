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
    name = language.get()
    return text if name == "en" else table(name).get(text, text)


def translate_count(singular: str, plural: str, count: int) -> str:
    return translate(singular if count == 1 else plural)


@cache
def table(name: str) -> dict[str, str]:
    """Maps English texts to those of a language."""
    texts: dict[str, str] = json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8"))
    return texts


def chosen(accepted: str, wished: str = "") -> str:
    """Chooses the language of an Accept-Language header; `wished` comes before it."""
    for tag in (wished, *accepted.split(",")):
        name = tag.partition(";")[0].strip().lower().partition("-")[0]
        if name in LANGUAGES:
            return name
    return "en"
