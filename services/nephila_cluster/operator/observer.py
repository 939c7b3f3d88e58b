"""What the control API has, read for all resources at once, and the requests that reconciliations decide.

Invariant: an answer is at most `age_s` old, and newer than the last request that was sent through this object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila_control import api, job_types, requests, rule_types

from nephila_cluster.operator.plan import Refusal, Request
from nephila_cluster.operator.reconcile_job import ObservedJob
from nephila_cluster.operator.reconcile_rule import ObservedRule

T = TypeVar("T")


class _Cached(Generic[T]):
    """The last answer to one question; callers at the same time share one request."""

    def __init__(self, ask: Callable[[], Awaitable[T]], age_s: float, clock: Clock) -> None:
        self._ask = ask
        self._age_s = age_s
        self._clock = clock
        self._lock = asyncio.Lock()
        self._answer: tuple[float, T] | None = None

    async def get(self) -> T:
        """The answer. Raises as the question."""
        async with self._lock:
            now = self._clock.monotonic()
            if self._answer is None or now - self._answer[0] >= self._age_s:
                self._answer = None
                self._answer = (now, await self._ask())
            return self._answer[1]

    def forget(self) -> None:
        """Ask again at the next `get`."""
        self._answer = None


class Observer:
    """The control API as reconciliations see it."""

    def __init__(self, control: api.Control, clock: Clock, age_s: float) -> None:
        self._control = control
        self._jobs = _Cached(self._list_jobs, age_s, clock)
        self._rules = _Cached(self._list_rules, age_s, clock)
        self._health = _Cached(self._list_health, age_s, clock)

    async def job(self, name: str) -> ObservedJob:
        """The job of this name."""
        try:
            return ObservedJob(job=(await self._jobs.get()).get(name))
        except UserError as error:
            return ObservedJob(problem=str(error))

    async def rule(self, name: str) -> ObservedRule:
        """The rule of this name."""
        try:
            rules, health = await self._rules.get(), await self._health.get()
        except UserError as error:
            return ObservedRule(problem=str(error))
        return ObservedRule(rule=rules.get(name), health=health.get(name))

    async def send(self, request: Request) -> tuple[job_types.JobApplied | None, Refusal | None, str]:
        """The answer where it has content, the refusal, or why the control API cannot be reached."""
        try:
            return await self._send(request), None, ""
        except api.NotFound:
            return None, None, ""  # what was to be deleted is gone
        except NotReadyError as error:
            return None, None, str(error)
        except UserError as error:
            return None, Refusal(str(error), isinstance(error, UsageError)), ""
        finally:
            self._jobs.forget()
            self._rules.forget()

    async def _send(self, request: Request) -> job_types.JobApplied | None:
        match request:
            case job_types.ApplyJob():
                return await self._control.apply_job(request)
            case job_types.JobName():
                await self._control.delete_job(request)
            case rule_types.ApplyRules():
                await self._control.apply_rules(request)
            case rule_types.RuleName():
                await self._control.delete_rule(request)
        return None

    async def _list_jobs(self) -> dict[str, job_types.Job]:
        return {job.name: job for job in (await self._control.list_jobs(job_types.ListJobs())).jobs}

    async def _list_rules(self) -> dict[str, rule_types.Rule]:
        return {rule.name: rule for rule in (await self._control.list_rules(requests.Empty())).rules}

    async def _list_health(self) -> dict[str, rule_types.RuleHealth]:
        return {health.rule: health for health in (await self._control.rule_health(requests.Empty())).rules}
