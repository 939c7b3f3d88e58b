"""Secrets in files, which another program may replace while this one runs.

Kubernetes and secret managers rotate a password by a new content of its file. A program that reads the file once is
refused from then on, until it is restarted. So each place that opens a connection asks for the present content.

The text of a secret is the key by which its file is known: settings carry it through frozen structs and libraries as
plain text. Two files of the same content are one secret here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nephila.kernel.runtime.errors import UsageError


@dataclass(slots=True)
class _SecretFile:
    path: Path
    last: str
    """The last content that could be read."""


_FILES: dict[str, _SecretFile] = {}
"""Each content that a program has used → its file. One entry more for each rotation."""


def read_secret(path: str, where: str) -> str:
    """The secret in a file, without white space at its end. Raises `UsageError`."""
    try:
        text = _content(Path(path))
    except OSError as error:
        raise UsageError(f"{where} {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{where} {path} is not UTF-8 text") from None
    if not text:
        raise UsageError(f"{where} {path} is empty")
    follow(text, Path(path))
    return text


def follow(secret: str, path: Path) -> None:
    """Take later contents of this file for the secret."""
    _FILES[secret] = _SecretFile(path, secret)


def current(secret: str) -> str:
    """The present content of the file that a secret was read from; the secret itself if it is of no file. A file that
    cannot be read, or is empty while it is replaced, counts as unchanged. Reads the disk."""
    file = _FILES.get(secret)
    if file is None:
        return secret
    try:
        file.last = _content(file.path) or file.last
    except (OSError, UnicodeDecodeError):
        return file.last
    _FILES[file.last] = file  # a client that was made with this content may ask again
    return file.last


def _content(path: Path) -> str:
    return path.read_text(encoding="utf-8").rstrip("\r\n")
