"""Whether the Python functions that rules name can be called, before a page is read. A child loads the files for it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from nephila.kernel.runtime.errors import UsageError, UsageErrors

from nephila_rules.runtime.function_directory import FunctionDirectory, faults_of, functions_in
from nephila_rules.runtime.load import RuleDocument


def function_faults(documents: Sequence[RuleDocument], directory: str) -> list[tuple[str, str]]:
    """(location of the rule, reason) for each function that cannot be called. Raises `UsageError` if there is no such
    directory."""
    calls = [(document.location, name) for document in documents for name in functions_in([document.rule])]
    faults = faults_of(FunctionDirectory(directory, time.monotonic), (name for _, name in calls))
    return [(location, f"py: {faults[name]}") for location, name in calls if name in faults]


def check_functions(documents: Sequence[RuleDocument], directory: str) -> None:
    """Raises `UsageError` for functions that cannot be called. Without a directory the parser says that none are."""
    if not directory:
        return
    errors = UsageErrors()
    for location, reason in function_faults(documents, directory):
        with errors:
            raise UsageError(f"{location}: {reason}")
    errors.raise_all()
