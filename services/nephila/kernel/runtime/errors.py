"""The error types of the project; errors of libraries are translated into them once, where the library is called."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

import msgspec

UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""What the decoders of msgspec raise for bytes that are not a document: also for a byte that is not UTF-8, and for deep
nesting."""
_WITH_RESUME = re.compile(r"(run again|go on|continue it|resume) with --resume")


class TemporaryError(Exception):
    """The same message may succeed later: the bus delivers it again after `delay_s` seconds."""

    def __init__(self, reason: str, delay_s: float = 1.0) -> None:
        super().__init__(reason)
        self.delay_s = delay_s


class PermanentError(Exception):
    """The message can never succeed: the bus writes it to the dead letters."""


class UserError(Exception):
    """An error that a person can correct; its text is one line with the place and the remedy."""


class NotReadyError(UserError):
    """A condition that stops a service and may pass without it: the service waits and reports not ready."""


class UsageError(UserError):
    """A wrong argument, or a command that does not fit the situation (exit code 2)."""

    others: tuple[UsageError, ...] = ()
    """Further errors of the same file, for output that lists all of them."""


class FormError(UsageError):
    """A document that its JSON Schema does not accept. Other usage errors are about values that a schema cannot
    check."""


class UsageErrors:
    """Context manager for the steps of reading a document: collects the `UsageError` of each step. `raise_all` raises
    the first one with the others attached."""

    def __init__(self) -> None:
        self._all: list[UsageError] = []

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> bool:
        if not isinstance(error, UsageError):
            return False
        self._all += [error, *error.others]
        error.others = ()
        return True

    def raise_all(self) -> None:
        """Raise the first collected error, if there is one."""
        if self._all:
            first, *rest = self._all
            first.others = tuple(rest)
            raise first


def suggest(word: str, choices: Iterable[str]) -> str:
    """The end of an error line about an unknown word: the nearest known word, else all known words."""
    words = list(choices)
    close = difflib.get_close_matches(word[:60], words, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(words)}"


def none_of(word: str, choices: Iterable[str]) -> str:
    """The end of an error line about a word that has to be one of a few: all of them, and the nearest."""
    words = list(choices)
    close = difflib.get_close_matches(word[:60], words, n=1)
    return f"is none of {', '.join(words)}" + (f"; did you mean {close[0]!r}?" if close else "")


def without_resume(text: str) -> str:
    """The line for a program that resumes by itself after a new start: --resume is an option of a crawl only."""
    return _WITH_RESUME.sub("start it again", text).replace("--resume", "a new start")
