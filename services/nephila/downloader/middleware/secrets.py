"""Secrets of the process: values of environment variables and of files, never of documents. Raises `SecretError`."""

from __future__ import annotations

import os
from pathlib import Path

PREFIX = "NEPHILA_SECRET_"
"""Only environment variables with this prefix are read: a document must not name any other."""


class SecretError(Exception):
    """A secret cannot be read; the text names the variable or the file, never the value."""


def from_environment(name: str) -> str:
    if not name.startswith(PREFIX):
        raise SecretError(f"the variable {name} does not begin with {PREFIX}")
    if name not in os.environ:
        raise SecretError(f"the variable {name} is not set in the process that fetches pages")
    return os.environ[name]


def from_file(name: str, directory: str) -> str:
    """The text of a file inside the secrets directory, without its last line end."""
    if not directory:
        raise SecretError(f"the file {name}: no secrets directory is configured (downloader.middleware.secrets)")
    base = Path(directory).resolve()
    path = (base / name).resolve()
    if not path.is_relative_to(base):
        raise SecretError(f"the file {name} is outside the secrets directory")
    try:
        return path.read_text("utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        raise SecretError(f"the file {name}: {getattr(error, 'strerror', None) or error}") from None
