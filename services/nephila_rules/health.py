"""Health of the rules of a crawl, stored in DIR/rules.json.

A program writes the file when it ends and reads it when it starts, so that it notices a site that has changed in the
meantime. If the file cannot be read, one line is logged and the baselines are learned again: only the alarm depends on
them.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
from nephila.kernel.messages import RuleVerdict
from nephila.kernel.runtime.errors import UserError

from nephila_rules.fit.messages import describe_all

log = logging.getLogger(__name__)

FILE: Final = "rules.json"


class RuleState(msgspec.Struct, kw_only=True):
    """Health of one rule."""

    rule: str
    version: int
    degraded: bool
    findings: str = ""
    since: float = 0.0
    """Seconds since 1970 UTC."""
    pages: int
    fill_rate: float
    """Share of the rule's last pages that had items."""
    state: bytes
    """Encoded baseline of the rule, see `parser.rule_health.health`."""


def load(directory: Path) -> list[RuleState]:
    """The rules of an output directory; none if the file is missing or cannot be read."""
    path = directory / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[RuleState])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        log.warning("%s cannot be read; the baselines of rules are learned again: %s", path, error)
        return []


def states(directory: Path) -> list[RuleState]:
    """The rules of a crawl that has ended, degraded ones first. Raises `UserError` if there is no such directory."""
    if not directory.is_dir():
        raise UserError(f"{directory} is no directory; --out names that of a crawl")
    return sorted(load(directory), key=lambda state: (not state.degraded, state.rule))


def save(directory: Path, verdicts: Iterable[RuleVerdict]) -> None:
    """Replace the file, unless there are no rules. A failed write is logged."""
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
    """Degraded rule → its findings in words."""
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
