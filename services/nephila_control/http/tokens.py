"""Where a TCP port of the control API listens, and the bearer token that guards it."""

from __future__ import annotations

from pathlib import Path

from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.secret_files import current, follow

MIN_TOKEN = 16
"""Characters of a token at least; make one with: openssl rand -hex 32."""


def host_and_port(text: str, option: str) -> tuple[str, int]:
    """HOST:PORT, [IPv6]:PORT or PORT. Raises `UsageError`."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535 or (":" in host and not host.startswith("[")):
        raise UsageError(f"{option} {text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def read_token(path: str, option: str) -> str:
    """Raises `UsageError` for a file that cannot be read or holds no bearer token."""
    if not path:
        raise UsageError(f"a TCP port needs a token; name a file that holds one with {option}")
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError as error:
        raise UsageError(f"cannot read {option} {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{option} {path} is not ASCII text") from None
    follow(text, Path(path))
    return checked_token(text, f"{option} {path}")


def present_token(token: str) -> str:
    """The token that the file of this one holds now. A file without a proper token counts as unchanged."""
    text = current(token).strip()
    try:
        return checked_token(text, "the file")
    except UsageError:
        return token


def checked_token(text: str, where: str) -> str:
    """Raises `UsageError` for a token that is too short, or more than one word."""
    if len(text) < MIN_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError(f"{where} has to hold one word of at least {MIN_TOKEN} characters")
    return text
