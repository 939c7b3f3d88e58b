"""ParseRule resources in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nephila.kernel.runtime.errors import UserError
from nephila_cluster.operator.reconcile_rule import FILE, FILE_ERROR


class Resources:
    """The ParseRules of a namespace."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.events: list[str] = []
        self.fault: UserError | None = None
        """Every write of a rule is answered with this."""

    async def rules(self) -> list[dict[str, Any]]:
        return list(self.objects.values())

    async def put_rule(self, document: Mapping[str, Any], annotations: Mapping[str, str | None]) -> str:
        if self.fault is not None:
            raise self.fault
        name = document["metadata"]["name"]
        given = {key: value for key, value in annotations.items() if value is not None}
        before = self.objects.get(name, {"metadata": {"generation": 0}})
        if before.get("spec") == document["spec"] and before["metadata"]["annotations"] == given:
            return "unchanged"
        self.edit(name, document["spec"])
        self.objects[name]["metadata"] |= {"annotations": given, "labels": document["metadata"].get("labels", {})}
        return "changed"

    def edit(self, name: str, spec: dict[str, Any]) -> None:
        """As kubectl edit, or create."""
        before = self.objects.get(name, {"metadata": {"name": name, "generation": 0}})
        metadata = {**before["metadata"], "generation": before["metadata"]["generation"] + 1}
        self.objects[name] = {"spec": spec, "metadata": metadata}

    async def annotate_rule(self, name: str, annotations: Mapping[str, str | None]) -> None:
        self.objects[name]["metadata"]["annotations"] |= annotations

    async def delete_rule(self, name: str) -> None:
        del self.objects[name]

    async def post_own_event(self, pod: str, reason: str, message: str, now: float) -> None:
        self.events.append(message)

    def owner(self, name: str) -> str:
        return str(self.objects[name]["metadata"]["annotations"][FILE])

    def error(self, name: str) -> str:
        return str(self.objects[name]["metadata"]["annotations"].get(FILE_ERROR, ""))

    def title(self, name: str) -> str:
        return str(self.objects[name]["spec"]["fields"]["title"]["css"])
