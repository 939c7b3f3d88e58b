"""Which release serves a resource, and what the crawler calls it. Pure.

The label `nephila.dev/release` names the release; a resource without it belongs to the release that serves such
resources. `status.release` is the release that has the job or rule now. It is written with the version that was read,
so two operators never both have a resource; when the label changes, the old release deletes its job first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

LABEL: Final = "nephila.dev/release"
"""Label of a resource: the release that serves it."""
Step = Literal["serve", "claim", "leave", "ignore"]


@dataclass(frozen=True, slots=True)
class Ownership:
    """What one operator serves."""

    release: str = ""
    """Its name in the label; empty: an operator without a release, which claims nothing."""
    unlabelled: bool = True
    """Resources without the label are served."""
    home: str = ""
    """Its namespace, in which names of resources and of the crawler are the same."""
    others: tuple[str, ...] = ()
    """Further namespaces."""

    @property
    def holder(self) -> str:
        """What `status.release` has while this release has the job or rule. Another namespace may have a release of the
        same name."""
        return f"{self.home}/{self.release}" if self.release else ""

    def is_wanted(self, body: Mapping[str, Any]) -> bool:
        """Whether the resource is to be served, by its label."""
        label = (body["metadata"].get("labels") or {}).get(LABEL, "")
        return label == self.release if label else self.unlabelled

    def step(self, body: Mapping[str, Any]) -> Step:
        """serve; claim: write `status.release` first; leave: delete the job or rule, then clear `status.release`."""
        holder = (body.get("status") or {}).get("release", "")
        if not self.is_wanted(body):
            return "leave" if holder and holder == self.holder else "ignore"
        if holder == self.holder:
            return "serve"
        return "ignore" if holder else "claim"

    def is_served(self, body: Mapping[str, Any]) -> bool:
        """Whether no other release serves the resource."""
        return self.step(body) in ("serve", "claim")

    def clash(self, body: Mapping[str, Any]) -> str:
        """Why a resource cannot have its name; empty when it can. A resource of another namespace may have it."""
        name = str(body["metadata"]["name"])
        first = name.partition(".")[0]
        if body["metadata"].get("namespace", "") not in ("", self.home) or first == name or first not in self.others:
            return ""
        return f"names that begin with {first}. are those of resources of the namespace {first}"

    def local(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The resource with the names that the crawler has for it: `NAMESPACE.NAME` for those of other namespaces than
        `home`, also of a job's rules."""
        namespace = body["metadata"].get("namespace", "")
        if namespace in ("", self.home):
            return dict(body)
        renamed = {**body, "metadata": {**body["metadata"], "name": f"{namespace}.{body['metadata']['name']}"}}
        rules = (body.get("spec") or {}).get("rules")
        if isinstance(rules, list):
            renamed["spec"] = {**body["spec"], "rules": [f"{namespace}.{rule}" for rule in rules]}
        return renamed
