"""Refuses a job whose tenant is not in the settings: it would have no quota. Pure."""

from __future__ import annotations

from collections.abc import Collection

from nephila.kernel.documents.job_document import JobDocument
from nephila.kernel.runtime.errors import UserError, suggest


def check_tenant(document: JobDocument, known: Collection[str]) -> None:
    """Raise `UserError` when there are tenants and that of the job is none of them."""
    tenant = document.job.tenant
    if tenant and known and tenant not in known:
        raise UserError(
            f"{document.location}: the setting scheduler.tenants has no tenant {tenant!r} (spec.tenant); "
            + suggest(tenant, known)
        )
