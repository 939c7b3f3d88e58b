"""Whether the Python functions that rules name can be called, before a page is read. A child loads the files for it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from nephila.kernel.runtime.errors import UsageError, UsageErrors, suggest

from nephila_rules.files import read_all
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


def checked_versions(directory: Path, names: Sequence[str], functions: str) -> dict[str, int]:
    """Rule → version, of these rules of a directory or, without names, of all. `functions`: directory of the functions
    that they may call. Raises `UsageError` for a rule or a function that is not there."""
    rules = {document.name: document for document in read_all([directory])}
    for name in names:
        if name not in rules:
            raise UsageError(f"there is no rule {name!r} in {directory} (spec.rules); {suggest(name, rules)}")
    check_functions([rules[name] for name in names or rules], functions)
    return {name: rules[name].rule.version for name in names or rules}
