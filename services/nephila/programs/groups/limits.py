"""What a crawl by groups cannot do yet, as one line with the remedy.

Each of these needs a fact that only one scheduler of the whole crawl has.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nephila.kernel.documents.job_schema import JobSpec, Quota
from nephila.kernel.runtime.errors import UsageError


def check_kind(directory: Path, *, has_parts: bool, groups: bool) -> None:
    """Raise `UsageError` where the frontier of a directory is of the other kind. `has_parts`: each of its partitions
    has a log of its own."""
    if has_parts and not groups:
        raise UsageError(f"the frontier in {directory} belongs to groups: add --groups and --workers N")
    if groups and not has_parts:
        raise UsageError(f"the frontier in {directory} belongs to one process: leave --groups out")


def check_job(spec: JobSpec, refetch: Sequence[str], *, served: bool) -> None:
    """Raise `UsageError` for a run that groups cannot make. `refetch`: kinds of ended URLs that the run fetches once
    more; `served`: the control API is asked for."""
    limits = {
        "ended URLs once more (--refresh, --retry-failed, another limit)": bool(refetch),
        "with quotas (spec.quota)": spec.quota != Quota(),
        "in windows (spec.windows)": bool(spec.windows),
        "for tenants (spec.tenant)": bool(spec.tenant),
        "with the control API (--api)": served,
    }
    for limit, applies in limits.items():
        if applies:
            raise UsageError(f"--groups does not crawl {limit} yet; leave --groups out in a new directory")
