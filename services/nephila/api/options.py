"""From the keyword arguments of the Python API to the same request that the command line makes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nephila.kernel.runtime.errors import UsageError
from nephila.programs.crawl.run import Request, request_of
from nephila.programs.options import Options, defaults
from nephila.rulekit.files import FILE

Rules = str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A rule file, a directory of rules, or rules as documents (a mapping without `spec` is the spec itself)."""


def crawl_request(
    seeds: Sequence[str], out: Path, rules: Rules | None, *, options: Mapping[str, Any], modes: Mapping[str, bool]
) -> Request:
    """The request that the command line makes of the same options. `modes`: resume, fresh, refresh,
    retry_failed. Raises `UsageError`."""
    unknown = [name for name in options if name not in Options.__annotations__]
    if unknown:
        raise UsageError(f"there is no option {unknown[0]!r}; known are {', '.join(sorted(Options.__annotations__))}")
    values = defaults()
    given = {name: _lines(name, value) if values[name] == [] else value for name, value in options.items()}
    if rules is not None:
        given["rules"] = str(rules_in(rules, out))
    # No worker processes: `page.links`, `page.css` and others read the body, which must be in this process.
    values |= {**given, "workers": 0}
    return request_of(seeds, out, values, given.keys() - {"store"}, **modes)  # type: ignore[arg-type]


def _lines(name: str, value: Any) -> list[str]:
    if name == "header" and isinstance(value, Mapping):
        return [f"{key}: {one}" for key, one in value.items()]
    return [value] if isinstance(value, str) else list(value)


def rules_in(rules: Rules, out: Path) -> Path:
    """The path of the rules: the given path, or files below `out` written from documents."""
    if isinstance(rules, str | Path):
        return Path(rules).absolute()
    documents = [rules] if isinstance(rules, Mapping) else list(rules)
    place = (out / "rules").absolute()
    for number, document in enumerate(documents, 1):
        whole = document if "spec" in document else _document(f"rule-{number}", document)
        folder = place / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_text(json.dumps(whole, ensure_ascii=False), "utf-8")
    return place


def _document(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "nephila.dev/v1", "kind": "ParseRule", "metadata": {"name": name}, "spec": dict(spec)}
