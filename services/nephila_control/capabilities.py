"""What works in a program, for clients that offer only what works.

Without it a screen leads to an error after the click. Each capability that is absent has a reason and a remedy.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nephila.kernel.runtime.errors import UserError

from nephila_control import capability_types
from nephila_control.backend import Backend

Capability = capability_types.Capability


def capabilities(backend: Backend, *, has_bodies: bool, has_working_copy: bool) -> list[Capability]:
    """Lists all capabilities. `has_bodies` says whether a body of a page is stored, `has_working_copy` whether the
    rules are in one of git."""
    rows = backend.rows
    no_rows = "" if rows is not None else "this program does not know where its rows are"
    no_bodies = "" if has_bodies else "no body of a page is stored here"
    no_copy = "" if has_working_copy else "rules are not in a working copy of git here"
    keep = "crawl with --keep-raw or --format sqlite,warc"
    no_table = no_bodies if isinstance(rows, Path) else "the rows are in a database, not in a directory here"
    return [
        _of("change", _problem(backend.check_change), "start nephila up for jobs that come and go", changes=True),
        _of("write", "", "", changes=True),
        _of(
            "rules",
            _problem(backend.check_rule_change),
            "extract from stored pages, or download the rule and crawl with --rules DIR",
            changes=True,
        ),
        _of("rows", no_rows, "set api.store"),
        _of("stored_pages", no_bodies, keep),
        _of("extract", no_table, keep, changes=True),
        _of("commit", no_copy, "start with --rules DIR in a working copy of git", changes=True),
        _of("browser", backend.browser_problem, "nephila browser install"),
    ]


def _of(name: capability_types.CapabilityName, reason: str, remedy: str, *, changes: bool = False) -> Capability:
    return Capability(name=name, works=not reason, reason=reason, remedy=remedy if reason else "", changes=changes)


def _problem(check: Callable[[], None]) -> str:
    try:
        check()
    except UserError as error:
        return str(error)
    return ""
