"""The request of a crawl: a command line, or a call of the Python API, after parsing. Nothing changes it."""

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import msgspec

from nephila.kernel.documents.field_types import parse_rate
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.seeds import is_job_file, seed_url
from nephila.programs.control_port import ControlAddress


class CrawlRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A command line or a call, after parsing."""

    urls: tuple[str, ...] = ()
    job_file: str = ""
    seed_file: str = ""
    out: Path
    options: Mapping[str, Any]
    explicit: frozenset[str]
    """Names of options that the command line or the call has; on a resume only those override."""
    store: str = ""
    """URL of a database for the rows; not among the options, since those are written to run.json."""
    resume: bool = False
    fresh: bool = False
    refresh: bool = False
    retry_failed: bool = False
    tcp: ControlAddress | None = None
    """Where the control API is served in addition to DIR/control.sock."""


def request_of(
    urls: Sequence[str],
    out: Path,
    options: Mapping[str, Any],
    explicit: Set[str],
    *,
    seed_file: str = "",
    resume: bool = False,
    fresh: bool = False,
    refresh: bool = False,
    retry_failed: bool = False,
) -> CrawlRequest:
    """The request of a command line or a call. `options`: by the names of the table, with a value for each. Raises
    `UsageError`."""
    job_file = next((url for url in urls if is_job_file(url)), "")
    if job_file and len(urls) > 1:
        raise UsageError(f"{job_file} is a job; its URLs stand in it (spec.seeds), or come with --seeds FILE")
    values = {name: value for name, value in options.items() if name not in ("rate", "store")}
    if rate := options.get("rate", ""):
        if "delay" in explicit:
            raise UsageError("--rate and --delay are the same setting in other words; leave one of them out")
        values, explicit = values | {"delay": _delay_of(rate)}, explicit - {"rate"} | {"delay"}
    return CrawlRequest(
        urls=tuple(seed_url(url) for url in urls if url != job_file),
        job_file=job_file,
        seed_file=seed_file,
        out=out,
        resume=resume or refresh or retry_failed,
        options=values,
        explicit=frozenset(explicit),
        store=options.get("store", ""),
        fresh=fresh,
        refresh=refresh,
        retry_failed=retry_failed,
    )


def _delay_of(rate: str) -> float:
    try:
        return 1 / parse_rate(rate)
    except ValueError as error:
        raise UsageError(f"--rate: {error}") from None
