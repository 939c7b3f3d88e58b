"""The tenant of a CrawlJob is that of its namespace. Pure.

Who may write CrawlJobs of a namespace is decided by RBAC of Kubernetes. A tenant that names its namespaces is therefore
theirs alone: their jobs have it without a word in the spec, and a job of another namespace cannot take its quota and
its rows. Tenants without namespaces are free, as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nephila.scheduler.tenants.tenants import Tenant


class Tenancy:
    """Which namespaces belong to which tenants."""

    def __init__(self, tenants: Mapping[str, Tenant], home: str) -> None:
        """`home`: the namespace of a resource that names none."""
        self._home = home
        self._tenants = {namespace: name for name, tenant in tenants.items() for namespace in tenant.namespaces}

    def fault(self, body: Mapping[str, Any]) -> str:
        """Why a CrawlJob cannot have its tenant; empty when it can."""
        namespace, tenant = self._namespace(body), _tenant(body)
        own = self._tenants.get(namespace, "")
        if own and tenant not in ("", own):
            return f"spec.tenant: the namespace {namespace} belongs to the tenant {own}; remove spec.tenant"
        if not own and tenant in self._tenants.values():
            namespaces = ", ".join(sorted(name for name, other in self._tenants.items() if other == tenant))
            return f"spec.tenant: the tenant {tenant} belongs to the namespace {namespaces}; apply the job there"
        return ""

    def bound(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The CrawlJob with the tenant of its namespace."""
        own, spec = self._tenants.get(self._namespace(body), ""), body.get("spec")
        return {**body, "spec": {**spec, "tenant": own}} if own and isinstance(spec, Mapping) else dict(body)

    def _namespace(self, body: Mapping[str, Any]) -> str:
        return str(body["metadata"].get("namespace") or self._home)


def _tenant(body: Mapping[str, Any]) -> str:
    spec = body.get("spec")
    return str(spec.get("tenant") or "") if isinstance(spec, Mapping) else ""
