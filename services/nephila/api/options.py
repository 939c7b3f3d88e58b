"""Options of a crawl from Python: those of the command line, by the same names and with the same defaults.

Invariant: defaults are read from the command's own signature, so they are written once.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

from nephila.cli.crawl.command import crawl as command
from nephila.cli.crawl.command import is_job_file, seed_url
from nephila.cli.crawl.run import Request
from nephila.kernel.runtime.errors import UsageError
from nephila.rulekit.files import FILE

Rules = str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A rule file, a directory of rules, or rules as documents (a mapping without `spec` is the spec itself)."""

_LISTS = {"include", "exclude", "keywords", "header", "host_map", "follow"}


class Options(TypedDict, total=False):
    """Options of `nephila crawl`; durations in seconds, sizes in bytes. What each means: `nephila crawl --help`."""

    scope: str
    """host (default), domain, prefix or any."""
    include: Sequence[str]
    exclude: Sequence[str]
    strategy: str
    keywords: Sequence[str]
    sitemap: bool
    max_pages: int
    """StoredPage pages at most; 0 = no limit."""
    max_depth: int
    """-1 = no limit."""
    max_time: float
    max_wait: float
    host_pages: int
    host_bytes: int
    host_time: float
    delay: float
    """Between two fetches of a host; 1 by default."""
    concurrency: int
    rule_scripts: bool
    user_agent: str
    contact: str
    header: Sequence[str] | Mapping[str, str]
    ignore_robots: bool
    allow_private: bool
    host_map: Sequence[str]
    format: str
    """Files beside nephila.db: jsonl, warc, parquet, … separated by commas."""
    store: str
    follow: Sequence[str]
    main_text: str
    links: bool
    """Keep the links in a table, too."""
    keep_raw: bool


@cache
def defaults() -> dict[str, Any]:
    """Option → default, of all options of the command that a plan is made from."""
    parameters = inspect.signature(command).parameters
    found = {name: one.default for name, one in parameters.items() if one.default is not inspect.Parameter.empty}
    for name in ("urls", "seeds", "out", "resume", "bootstrap", "json", "quiet", "store"):
        found.pop(name, None)
    return found


def request_of(
    seeds: Sequence[str], out: Path, rules: Rules | None, *, resume: bool, options: Mapping[str, Any]
) -> Request:
    """What the command line would make of the same words. Raises `UsageError`."""
    unknown = [name for name in options if name not in Options.__annotations__]
    if unknown:
        raise UsageError(f"there is no option {unknown[0]!r}; known are {', '.join(sorted(Options.__annotations__))}")
    values = {name: [] if default is None and name in _LISTS else default for name, default in defaults().items()}
    given = {name: value for name, value in options.items() if name != "store"}
    for name in _LISTS & given.keys():
        given[name] = _lines(name, given[name])
    if rules is not None:
        given["rules"] = str(rules_in(rules, out))
    # Bodies are here, so that a page can be asked for more than its row has: no worker processes.
    values.update(given, workers=0)
    values["rules"] = values["rules"] or ""
    job_file = next((seed for seed in seeds if is_job_file(seed)), "")
    if job_file and len(seeds) > 1:
        raise UsageError(f"{job_file} is a job; its URLs stand in it (spec.seeds)")
    return Request(
        urls=[seed_url(seed) for seed in seeds if seed != job_file],
        job_file=job_file,
        seed_file="",
        out=out,
        resume=resume,
        options=values,
        given=set(given),
        store=str(options.get("store", "")),
    )


def _lines(name: str, value: Any) -> list[str]:
    if name == "header" and isinstance(value, Mapping):
        return [f"{key}: {one}" for key, one in value.items()]
    return [value] if isinstance(value, str) else list(value)


def rules_in(rules: Rules, out: Path) -> Path:
    """Where rules are: the place itself, or files below `out` written from documents."""
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
