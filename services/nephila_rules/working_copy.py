"""A rule with its tests as a commit in a working copy of git.

Invariants: only the files of the rule are written and committed, also where other files are changed; nothing is
pushed; a rule whose folder would be outside of the working copy, or a link, is refused.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from nephila.kernel.runtime.errors import UserError

GIT_S: Final = 30.0
"""Seconds of one command."""


class Commit(NamedTuple):
    """What was committed."""

    id: str
    """Empty: nothing has changed."""
    folder: str
    """Below the directory of rules."""


def is_working_copy(directory: Path) -> bool:
    """Whether git keeps this directory."""
    return any((above / ".git").exists() for above in (directory.resolve(), *directory.resolve().parents))


def commit(directory: Path, name: str, files: Sequence[tuple[str, str]], message: str) -> Commit:
    """Write the files of a rule to a folder of its name and commit them. Raises `UserError`."""
    if not is_working_copy(directory):
        raise UserError(f"{directory} is no working copy of git; git init makes one")
    folder = directory / (re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "rule")
    targets = [folder / file for file, _ in files]
    if folder.is_symlink() or any(target.is_symlink() for target in targets):
        raise UserError(f"{folder} is a link or holds one; a rule is not written through it")
    try:
        folder.mkdir(exist_ok=True)
        for target, (_, text) in zip(targets, files, strict=True):
            target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}") from None
    paths = [str(target.relative_to(directory)) for target in targets]
    _git(directory, "add", "--", *paths)
    if not _git(directory, "status", "--porcelain", "--", *paths):
        return Commit("", folder.name)
    _git(directory, "commit", "--quiet", "--only", f"--message={message}", "--", *paths)
    return Commit(_git(directory, "rev-parse", "HEAD"), folder.name)


def _git(directory: Path, *words: str) -> str:
    try:
        process = subprocess.run(
            ["git", "-C", str(directory), *words],
            capture_output=True,
            text=True,
            timeout=GIT_S,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise UserError("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise UserError(f"git {words[0]} took more than {GIT_S:g} s") from None
    if process.returncode:
        lines = (process.stderr or process.stdout).strip().splitlines() or ["no reason was given"]
        raise UserError(f"git {words[0]}: {lines[0]}")
    return process.stdout.strip()
