"""Metrics of the operator."""

from __future__ import annotations

from nephila.kernel.runtime.metrics import Metric

from nephila_cluster.operator.program import Operator

METRICS: tuple[Metric[Operator], ...] = (
    Metric("leader", "1 while this process leads. A sum of 0 over all pods: no resource is served.", lambda o: o.leads),
    Metric("resources", "Resources by kind. A fall: they were deleted.", lambda o: o.controller.counts(), "kind"),
    Metric(
        "resources_degraded",
        "Resources by kind whose condition Degraded is True. Above 0: a job goes on without a rule, or a rule no "
        "longer fits its site; the condition has the cause.",
        lambda o: o.controller.with_condition("Degraded"),
        "kind",
    ),
    Metric(
        "resources_stalled",
        "Resources that only a change of their document puts into effect, by kind. Above 0: their status has why.",
        lambda o: o.controller.with_condition("Stalled"),
        "kind",
    ),
    Metric(
        "reconciliations_total",
        "Reconciliations by result. A rise of `fault`: the API server of Kubernetes does not take what is written.",
        lambda o: dict(o.controller.reconciled),
        "result",
        counter=True,
    ),
    Metric(
        "rule_files_refused",
        "Files of rules that are refused at present. Above 0: a commit is not in effect.",
        lambda o: len(o.refused_files),
    ),
)
