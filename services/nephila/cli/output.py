"""Output of commands: one JSON line, or aligned `key: value` lines for people."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from nephila.cli.terminal import sanitize

_encode = msgspec.json.Encoder().encode


def print_json(value: Any) -> None:
    """One line of JSON on standard output; bytes must have been decoded before."""
    sys.stdout.write(_encode(value).decode() + "\n")


def print_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """Aligned lines on standard output; pairs whose value is None are left out."""
    texts = [(key, sanitize(str(value), 2000)) for key, value in pairs if value is not None]
    width = max((len(key) for key, _ in texts), default=0) + 1
    for key, value in texts:
        sys.stdout.write(f"{key + ':':<{width}} {value}".rstrip() + "\n")


def program() -> str:
    """This program as a shell finds it: nephila where that is in PATH, else as it was called."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m nephila"
    in_path = shutil.which("nephila")
    if called.name != "nephila" or (in_path is not None and Path(in_path).resolve() == called.resolve()):
        return "nephila"
    return shlex.quote(str(called))


def note(text: str) -> None:
    """One line on standard error that begins with `nephila:`."""
    sys.stderr.write(f"nephila: {sanitize(text, 2000)}\n")
