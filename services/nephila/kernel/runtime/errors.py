"""The error words of the house; foreign errors are translated into them once, at the edge."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_WITH_RESUME = re.compile(r"(run again|go on|continue it|resume) with --resume")


class TemporaryError(Exception):
    """The same message may succeed later: the bus delivers it again after `delay_s` seconds."""

    def __init__(self, reason: str, delay_s: float = 1.0) -> None:
        super().__init__(reason)
        self.delay_s = delay_s


class PermanentError(Exception):
    """The message will never succeed: the bus sends it to the dead letters."""


class UserError(Exception):
    """Something a person can put right; the text is one line that names the place and the remedy."""


class NotReadyError(UserError):
    """What keeps a service from its work, and may come right without it: it waits and says so (readiness)."""


class UsageError(UserError):
    """A wrong argument or a command in the wrong place (exit code 2)."""

    others: tuple[UsageError, ...] = ()
    """Further mistakes of the same file, for whoever tells all of them."""


class UsageErrors:
    """Context manager for the steps of reading something: each step's `UsageError` is kept, and all are raised as one,
    the first with the others."""

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
        """Raise what was kept, if anything was."""
        if self._all:
            first, *rest = self._all
            first.others = tuple(rest)
            raise first


def suggest(word: str, known: Iterable[str]) -> str:
    """The end of an error line about an unknown word: the nearest known word, else all known words."""
    words = list(known)
    close = difflib.get_close_matches(word[:60], words, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(words)}"


def without_resume(text: str) -> str:
    """A line for a program that goes on by itself when it is started again: --resume is an option of a crawl alone."""
    return _WITH_RESUME.sub("start it again", text).replace("--resume", "a new start")
