"""Tenants: a table of quotas and shares that the scheduler reads from its settings. Pure.

An entry is a name and settings: "news pages=100000 per=day share=2 namespaces=news,press". Settings are pages, bytes,
browserSeconds, per (day or month; day if left out), share, and namespaces: those of Kubernetes whose CrawlJobs have
the tenant, which the operator reads. A setting that is left out is no limit, the share 1, and no namespace.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from nephila.kernel.documents.job_document import JobDocument
from nephila.kernel.documents.job_schema import Quota, QuotaPer
from nephila.kernel.runtime.errors import UsageError, UserError, suggest

_NUMBERS = ("pages", "bytes", "browserSeconds", "share")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_PERIODS: dict[str, QuotaPer] = {"day": "day", "month": "month"}


class Tenant(NamedTuple):
    quota: Quota
    share: float
    """Share of the fetches, beside other tenants and jobs without a tenant."""
    namespaces: tuple[str, ...] = ()
    """Namespaces of Kubernetes that belong to the tenant."""


def tenants(entries: Iterable[str], where: str = "scheduler.tenants") -> dict[str, Tenant]:
    """The tenants by name. Raises `UsageError` for an entry that makes no sense."""
    by_name: dict[str, Tenant] = {}
    for entry in entries:
        name, *settings = entry.split()[:10] or [""]
        if not name or "=" in name:
            raise UsageError(f"{where}: {entry!r} is no name with settings like 'news pages=100000 per=day share=2'")
        if name in by_name:
            raise UsageError(f"{where}: {entry!r}: the tenant {name} is named twice; remove one of the entries")
        by_name[name] = _tenant(settings, f"{where}: {entry!r}")
        for other, tenant in by_name.items():
            if other != name and (both := set(tenant.namespaces) & set(by_name[name].namespaces)):
                raise UsageError(
                    f"{where}: the namespace {min(both)} is named by {other} and {name}; it has one tenant"
                )
    return by_name


def _tenant(settings: list[str], where: str) -> Tenant:
    values = {"pages": 0.0, "bytes": 0.0, "browserSeconds": 0.0, "share": 1.0}
    per: QuotaPer = "day"
    namespaces: tuple[str, ...] = ()
    for setting in settings:
        key, _, text = setting.partition("=")
        if key == "per":
            if text not in _PERIODS:
                raise UsageError(f"{where}: per is day or month, not {text!r}")
            per = _PERIODS[text]
            continue
        if key == "namespaces":
            namespaces = tuple(text.split(","))
            if bad := [name for name in namespaces if not _NAMESPACE.fullmatch(name)]:
                raise UsageError(f"{where}: {bad[0]!r} is no name of a namespace; as in namespaces=news,press")
            continue
        if key not in _NUMBERS:
            raise UsageError(f"{where}: unknown setting {key!r}; {suggest(key, [*_NUMBERS, 'per', 'namespaces'])}")
        try:
            values[key] = float(text)
        except ValueError:
            values[key] = -1.0
        if not 0 <= values[key] < math.inf:
            raise UsageError(f"{where}: {key} must be a number from 0 on, not {text!r}")
    if not values["share"]:
        raise UsageError(f"{where}: share must be above 0")
    quota = Quota(int(values["pages"]), int(values["bytes"]), math.ceil(values["browserSeconds"]), per)
    return Tenant(quota, values["share"], namespaces)


def check_tenant(document: JobDocument, names: Collection[str]) -> None:
    """Raise `UserError` when there are tenants and that of the job is none of them: it would have no quota."""
    tenant = document.job.tenant
    if tenant and names and tenant not in names:
        raise UserError(
            f"{document.location}: the setting scheduler.tenants has no tenant {tenant!r} (spec.tenant); "
            + suggest(tenant, names)
        )
