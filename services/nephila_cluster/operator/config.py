"""Settings of the operator (`nephila service operator`)."""

from __future__ import annotations

import msgspec


class OperatorConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Each field with its unit and its reason."""

    server: str = ""
    """URL of the control API."""
    token_file: str = ""
    """File that holds the bearer token of the control API."""
    namespace: str = ""
    """Namespace of the release. Empty: that of the pod, or outside a cluster that of the
    kubeconfig."""
    namespaces: tuple[str, ...] = ()
    """Further namespaces whose resources are served. Their jobs and rules have names of the form NAMESPACE.NAME in the
    crawler."""
    release: str = ""
    """Name of this release in the label `nephila.dev/release` of resources. Empty: nothing is claimed, for one operator
    alone."""
    unlabelled: bool = True
    """Serve resources without that label."""
    tenants: tuple[str, ...] = ()
    """Tenants, as in scheduler.tenants. Those with `namespaces=` belong to these namespaces alone: a CrawlJob there has
    its tenant, and one elsewhere cannot have it."""
    author_annotation: bool = False
    """The annotation `nephila.dev/author` of a CrawlJob is the user that wrote it: an admission policy checks it, as
    `admission.enabled` of the chart does. Otherwise the log of changes names the client of `managedFields`."""
    lease: str = "nephila-operator"
    """Name of the Lease by which one of several operators is elected."""
    lease_s: float = 15.0
    """Time after which a silent leader is replaced. The leader renews the Lease after each seventh of it, and ends when
    it could not for two thirds of it."""
    status_interval_s: float = 5.0
    """Interval between two reads of the jobs' counts."""
    rules_interval_s: float = 30.0
    """Interval between two comparisons of all rules with those that pages are read by."""
    rules_folders: tuple[str, ...] = ()
    """Folders with files of rules, which become ParseRule resources: `rule.yaml` in any folder below, and every
    `*.yaml` directly in the folder."""
    prune_rules: bool = False
    """A rule whose file is gone is deleted. Otherwise it stays."""
