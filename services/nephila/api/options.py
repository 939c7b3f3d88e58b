"""From the keyword arguments of the Python API to the same request that the command line makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nephila.kernel.runtime.errors import UsageError, suggest
from nephila.kernel.runtime.extensions import extension
from nephila.programs.crawl.request import CrawlRequest, request_of
from nephila.programs.option_table import defaults, table
from nephila.programs.option_values import read
from nephila.programs.options import Options

Rules = str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A rule file, a directory of rules, or rules as documents (a mapping without `spec` is the spec itself)."""


def crawl_request(
    seeds: Sequence[str], out: Path, rules: Rules | None, *, options: Mapping[str, Any], modes: Mapping[str, bool]
) -> CrawlRequest:
    """The request that the command line makes of the same options. `modes`: resume, fresh, refresh,
    retry_failed. Raises `UsageError`."""
    rows = {name: row for name, row in table().items() if name in Options.__annotations__}
    explicit: dict[str, Any] = {}
    for name, value in options.items():
        if name not in rows:
            raise UsageError(f"there is no option {name!r}; {suggest(name, rows)}")
        try:
            explicit[name] = read(*rows[name], value)
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from None
    for seed in seeds:
        if not isinstance(seed, str):
            raise UsageError(f"{ascii(seed)[:60]} is no URL; give each seed as an argument of its own: crawl(*urls)")
    if rules is not None:
        explicit["rules"] = str(rules_in(rules, out))
    # No worker processes: `page.links`, `page.css` and others read the body, which must be in this process.
    values = {**defaults(), **explicit, "workers": 0}
    return request_of(seeds, out, values, (explicit.keys() | {"workers"}) - {"store"}, **modes)  # type: ignore[arg-type]


def rules_in(rules: Rules, out: Path) -> Path:
    """The path of the rules: the given path, or files below `out` written from documents."""
    if isinstance(rules, str | Path):
        return Path(rules).absolute()
    documents = [rules] if isinstance(rules, Mapping) else list(rules)
    folder = (out / "rules").absolute()
    extension("rule-documents")(documents, folder)
    return folder
