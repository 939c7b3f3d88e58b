"""What a program knows of the health of its rules, kept beside the rows: DIR/rules.json.

Written when a program ends and read when it begins again, so that a site that has changed in between is noticed. A file
that cannot be read is told in one line and learned anew: nothing but the alarm depends on it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from nephila.kernel.messages import RuleVerdict
from nephila.parser.rule_health.messages import describe_all

log = logging.getLogger(__name__)

FILE: Final = "rules.json"


class RuleState(msgspec.Struct, kw_only=True):
    """One rule."""

    rule: str
    version: int
    degraded: bool
    findings: str = ""
    since: float = 0.0
    """Seconds since 1970 UTC."""
    pages: int
    fill_rate: float
    """Share of its last pages that had items."""
    state: bytes
    """What is usual of it, for this program."""


def load(directory: Path) -> list[RuleState]:
    """The rules of an output directory; none where there is nothing that can be read."""
    path = directory / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[RuleState])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        log.warning("%s is not read, and what is usual of rules learned anew: %s", path, error)
        return []


def save(directory: Path, verdicts: Iterable[RuleVerdict]) -> None:
    """Replace the file; nothing is written for no rules. A disk that refuses is told in a line."""
    states = [_state(verdict) for verdict in verdicts]
    path = directory / FILE
    if not states:
        return
    part = path.with_suffix(".tmp")
    try:
        part.write_bytes(msgspec.json.format(msgspec.json.encode(states), indent=2) + b"\n")
        part.replace(path)
    except OSError as error:
        log.warning("cannot write %s: %s", path, error.strerror)
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def degraded(verdicts: Iterable[RuleVerdict]) -> dict[str, str]:
    """Rule → what is wrong, of those that are degraded."""
    return {verdict.rule: describe_all(verdict) for verdict in verdicts if verdict.degraded}


def _state(verdict: RuleVerdict) -> RuleState:
    return RuleState(
        rule=verdict.rule,
        version=verdict.version,
        degraded=verdict.degraded,
        findings=describe_all(verdict),
        since=verdict.since,
        pages=verdict.pages,
        fill_rate=round(verdict.fill_rate, 4),
        state=verdict.state,
    )
