"""Reconciles resources: when an event reports a change, at an interval, and after faults with a growing wait.

Invariants: a resource is never reconciled twice at the same time; the newest version of it counts; a fault
of one resource does not delay the others. Nothing durable is kept here: after a restart every resource is listed and
reconciled again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal, Protocol

from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError, UserError
from nephila.kernel.runtime.waits import Backoff
from nephila.scheduler.tenants.tenants import tenants
from nephila_control import job_types, rule_types

from nephila_cluster.operator.author import author_of
from nephila_cluster.operator.cluster import Absent, Conflict, Kind, timestamp
from nephila_cluster.operator.config import OperatorConfig
from nephila_cluster.operator.observer import Observer
from nephila_cluster.operator.ownership import Ownership
from nephila_cluster.operator.plan import Again, ReconcilePlan, Refusal, find, is_deleted
from nephila_cluster.operator.reconcile_job import ObservedJob, reconcile_job
from nephila_cluster.operator.reconcile_rule import ObservedRule, reconcile_rule
from nephila_cluster.operator.tenancy import Tenancy

log = logging.getLogger(__name__)

CONCURRENT: Final = 4
"""Resources that are reconciled at the same time."""
RETRY: Final = Backoff(1.0, 15.0)
"""First and longest wait after a fault."""
MAX_STEPS: Final = 4
"""Steps of one reconciliation: finalizers, request, status, and one for a change in between."""
Key = tuple[Kind, str]


class Resources(Protocol):
    """The part of `Cluster` that writes resources."""

    async def set_finalizers(self, kind: Kind, body: Mapping[str, Any], finalizers: list[str]) -> dict[str, Any]: ...

    async def set_status(self, kind: Kind, body: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, Any]: ...

    async def claim(self, kind: Kind, body: Mapping[str, Any], release: str) -> dict[str, Any]: ...

    async def post_event(
        self, kind: Kind, body: Mapping[str, Any], type_: str, reason: str, message: str, now: float
    ) -> None: ...


class Controller:
    """All resources of the namespaces."""

    def __init__(
        self, resources: Resources, observer: Observer, clock: Clock, config: OperatorConfig, ownership: Ownership
    ) -> None:
        self._resources = resources
        self._ownership = ownership
        self._tenancy = Tenancy(tenants(config.tenants, "operator.tenants"), ownership.home)
        self._author_annotation = config.author_annotation
        self._observer = observer
        self._clock = clock
        self._intervals: dict[Kind, float] = {
            "CrawlJob": config.status_interval_s,
            "ParseRule": config.rules_interval_s,
        }
        self._bodies: dict[Key, dict[str, Any]] = {}
        self._due: dict[Key, float] = {}
        self._attempts: Counter[Key] = Counter()
        self._busy: dict[Key, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self.reconciled = Counter[str]()
        """Reconciliations by result: ok, refused, fault."""

    def counts(self) -> dict[str, float]:
        """Resources by kind, without those of other releases."""
        numbers: dict[str, float] = {"CrawlJob": 0, "ParseRule": 0}
        for (kind, _), body in self._bodies.items():
            numbers[kind] += self._ownership.step(body) != "ignore"
        return numbers

    def with_condition(self, type_: Literal["Stalled", "Degraded"]) -> dict[str, float]:
        """Resources of `counts` by kind whose condition of this type is True."""
        numbers: dict[str, float] = {"CrawlJob": 0, "ParseRule": 0}
        for (kind, _), body in self._bodies.items():
            holds = find(body.get("status") or {}, type_).get("status") == "True"
            numbers[kind] += holds and self._ownership.step(body) != "ignore"
        return numbers

    def on_event(self, kind: Kind, type_: str | None, body: Mapping[str, Any]) -> None:
        """An event of the watch, or a resource of its first list."""
        key = _key(kind, body)
        if type_ == "DELETED":
            self._forget(key)
            return
        before = self._bodies.get(key)
        if self._store(key, body) and (before is None or _matters(before, body)):
            self._attempts.pop(key, None)
            self._set_due(key, self._clock.monotonic())

    async def run(self) -> None:
        """Reconcile what is due, until cancelled."""
        try:
            while True:
                self._wake.clear()
                now = self._clock.monotonic()
                for key in [key for key, due in self._due.items() if due <= now and key not in self._busy]:
                    if len(self._busy) >= CONCURRENT:
                        break
                    del self._due[key]
                    self._busy[key] = asyncio.ensure_future(self._one(key))
                await self._next()
        finally:
            for task in self._busy.values():
                task.cancel()

    async def _next(self) -> None:
        """Return when something may be due."""
        waiting = [due for key, due in self._due.items() if key not in self._busy]
        timer = None
        if waiting and len(self._busy) < CONCURRENT:
            timer = self._clock.call_at(min(waiting), self._wake.set)
        try:
            await self._wake.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def _one(self, key: Key) -> None:
        try:
            again = await self._reconcile(key)
        except Absent:
            self._forget(key)
            again = "never"
        except Conflict:
            again = "retry"  # the resource has changed; an event about it is in flight
        except NotReadyError as error:
            log.warning("%s %s: %s; trying again", *key, error)
            again = "retry"
            self.reconciled["fault"] += 1
        except UserError as error:
            log.warning("%s %s: %s", *key, error)
            again = "retry"
            self.reconciled["fault"] += 1
        except Exception as error:
            log.error("%s %s: %s: %s", *key, type(error).__name__, error, exc_info=error)
            again = "retry"
            self.reconciled["fault"] += 1
        self._busy.pop(key, None)
        self._schedule(key, again)
        self._wake.set()

    def _schedule(self, key: Key, again: Again) -> None:
        if key not in self._bodies or key in self._due:
            return  # gone, or changed during the reconciliation
        now = self._clock.monotonic()
        if again == "retry":
            self._attempts[key] += 1
            self._due[key] = now + RETRY.after(self._attempts[key])
        else:
            self._attempts.pop(key, None)
            if again == "interval":
                self._due[key] = now + self._intervals[key[0]]

    async def _reconcile(self, key: Key) -> Again:
        kind = key[0]
        body = self._bodies[key]
        match self._ownership.step(body):
            case "ignore":
                return "never"
            case "leave":
                return await self._leave(kind, body)
            case "claim":
                body = await self._resources.claim(kind, body, self._ownership.holder)
                self._store(key, body)
        name = self._ownership.local(body)["metadata"]["name"]
        seen = await self._observe(kind, name)
        if clash := self._ownership.clash(body):
            refusal = None if is_deleted(body) else Refusal(clash, final=True)
            seen = ObservedJob(refusal=refusal) if kind == "CrawlJob" else ObservedRule(refusal=refusal)
        elif kind == "CrawlJob" and not is_deleted(body) and (fault := self._tenancy.fault(body)):
            seen = replace(seen, refusal=Refusal(fault, final=True))
        for _ in range(MAX_STEPS):
            plan = self._plan(body, seen)
            if plan.finalizers is not None:
                body = await self._resources.set_finalizers(kind, body, plan.finalizers)
                self._store(key, body)
            elif plan.request is not None:
                applied, refusal, problem = await self._observer.send(plan.request)
                seen = await self._observe(kind, name)
                changes: dict[str, Any] = {"refusal": refusal} | ({"problem": problem} if problem else {})
                if isinstance(seen, ObservedJob):
                    changes["applied"] = applied
                seen = replace(seen, **changes)
            else:
                await self._write(kind, body, plan)
                return plan.again
        return "retry"

    async def _leave(self, kind: Kind, body: dict[str, Any]) -> Again:
        """The resource has the label of another release: that one begins when the job or rule is deleted here."""
        name = self._ownership.local(body)["metadata"]["name"]
        request = job_types.JobName(name=name) if kind == "CrawlJob" else rule_types.RuleName(name=name)
        _, refusal, problem = await self._observer.send(request)
        if refusal is not None or problem:
            log.warning("%s %s cannot leave: %s", kind, name, refusal.message if refusal else problem)
            return "retry"
        self._store(_key(kind, body), await self._resources.claim(kind, body, ""))
        log.info("%s %s: deleted here, its label names another release", kind, name)
        return "never"

    def _refused_rules(self, body: Mapping[str, Any]) -> dict[str, str]:
        """Rule of a CrawlJob, as the crawler names it → why the newest spec of its ParseRule is refused."""
        refused = {}
        namespace = body["metadata"].get("namespace")
        for name in (body.get("spec") or {}).get("rules") or ():
            key = _key("ParseRule", {"metadata": {"namespace": namespace, "name": str(name)}})
            rule = self._bodies.get(key)
            accepted = find((rule or {}).get("status") or {}, "Accepted")
            if rule is not None and accepted.get("status") == "False":
                refused[str(self._ownership.local(rule)["metadata"]["name"])] = str(accepted.get("message", ""))
        return refused

    def _plan(self, body: dict[str, Any], seen: ObservedJob | ObservedRule) -> ReconcilePlan:
        now, local = timestamp(self._clock.now()), self._ownership.local(body)
        if isinstance(seen, ObservedRule):
            return reconcile_rule(local, seen, now)
        author = author_of(body, by_annotation=self._author_annotation)
        seen = replace(seen, author=author, refused_rules=self._refused_rules(body))
        return reconcile_job(self._tenancy.bound(local), seen, now)

    async def _observe(self, kind: Kind, name: str) -> ObservedJob | ObservedRule:
        return await (self._observer.job(name) if kind == "CrawlJob" else self._observer.rule(name))

    async def _write(self, kind: Kind, body: dict[str, Any], plan: ReconcilePlan) -> None:
        for event in plan.events:
            # Before the status: an Event that is posted twice is better than none.
            log.info("%s %s: %s: %s", kind, body["metadata"]["name"], event.reason, event.message)
            await self._resources.post_event(kind, body, event.type, event.reason, event.message, self._clock.now())
        if plan.status is not None:
            written = await self._resources.set_status(kind, body, plan.status)
            self._store(_key(kind, body), written)
        self.reconciled["refused" if any(event.type == "Warning" for event in plan.events) else "ok"] += 1

    def _store(self, key: Key, body: Mapping[str, Any]) -> bool:
        """Keep the newest version of a resource; False for an older one, which the watch may report after a write."""
        stored = self._bodies.get(key)
        if stored is not None and _version(body) < _version(stored) and _uid(body) == _uid(stored):
            return False
        self._bodies[key] = dict(body)
        return True

    def _set_due(self, key: Key, when: float) -> None:
        self._due[key] = when
        self._wake.set()

    def _forget(self, key: Key) -> None:
        self._bodies.pop(key, None)
        self._due.pop(key, None)
        self._attempts.pop(key, None)


def _key(kind: Kind, body: Mapping[str, Any]) -> Key:
    """Unique over all namespaces."""
    metadata = body["metadata"]
    return kind, "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def _version(body: Mapping[str, Any]) -> int:
    text = str(body["metadata"].get("resourceVersion", ""))
    return int(text) if text.isdecimal() else 0


def _uid(body: Mapping[str, Any]) -> str:
    return str(body["metadata"].get("uid", ""))


def _matters(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether more than the status has changed, or the release that has the job or rule."""
    old, new = before["metadata"], after["metadata"]
    keys = ("uid", "generation", "deletionTimestamp", "finalizers", "annotations", "labels")
    return any(old.get(key) != new.get(key) for key in keys) or _holder(before) != _holder(after)


def _holder(body: Mapping[str, Any]) -> object:
    return (body.get("status") or {}).get("release", "")
