"""Questions to the schedulers, and their answers: explain, quarantines, and URLs that are forgotten.

A query names the partition that answers it, or asks all of them. Queries and answers are in no group: every program
reads all answers and takes those to its own ids.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import zip_longest
from typing import Any

import msgspec
from nephila.kernel.documents.job_document import keeps_routes, spec_of
from nephila.kernel.fragment_routes import parse_for
from nephila.kernel.layout import Layout
from nephila.kernel.messages import CrawlJob, ExplainAnswer, ExplainQuery, Outcome, Quarantine
from nephila.kernel.runtime.errors import NotReadyError, UsageError
from nephila.kernel.topics import EXPLAIN_QUERIES, Topic
from nephila.native import UrlError, parse_url
from nephila.scheduler.explain.exclusion_trial import EXAMPLES
from nephila.scheduler.explain.explain import Explanation

from nephila_control import api, job_types

FORGET_BATCH = 100
"""URLs of one query: with 8,192 characters each they fit into a message."""
ANSWER_S = 10.0
"""For the answer of a scheduler; one that has just taken a partition over may be busy."""
Send = Callable[[Topic, Any], Awaitable[None]]


class Queries:
    """The queries of one program that wait for answers."""

    def __init__(self, send: Send, layout: Callable[[], Layout], place: str, troubles: Callable[[], list[str]]) -> None:
        """`send`: returns when the broker has the message. `troubles`: why nothing can be sent or received at present,
        one line each."""
        self._send = send
        self._layout = layout
        self._place = place
        self._troubles = troubles
        self._answers: dict[str, asyncio.Queue[ExplainAnswer]] = {}

    def on_answer(self, answer: ExplainAnswer) -> None:
        """Give it to the request that waits for it."""
        if (waiting := self._answers.get(answer.id)) is not None:
            waiting.put_nowait(answer)

    async def quarantines(self, uid: str) -> list[Quarantine]:
        """See `Backend.quarantines`. Every partition answers."""
        query = ExplainQuery(job=uid, slot="quarantines", list_quarantines=True)
        found, missing = await self._ask_all(query)
        if missing:
            raise self._no_answer(f"for {missing} of {self._layout().count} partitions")
        return sorted((one for answer in found for one in answer.quarantines), key=lambda one: (one.host, one.place))

    async def try_exclusion(self, job: CrawlJob, exclude: Sequence[str]) -> job_types.ExclusionTried:
        """See `Backend.try_exclusion`. Partitions that do not answer are not counted. Raises `NotReadyError` when none
        does."""
        query = ExplainQuery(job=job.uid, slot="exclusions", try_exclude=list(exclude))
        found, missing = await self._ask_all(query)
        if not found:
            raise self._no_answer("for any partition")
        return job_types.ExclusionTried(
            name=job.uid,
            generation=job.generation,
            queued=sum(one.queued for one in found),
            looked_at=sum(one.looked_at for one in found),
            removed=sum(one.removed for one in found),
            complete=not missing and all(one.complete for one in found),
            examples=_in_turn([one.examples for one in found])[:EXAMPLES],
        )

    async def _ask_all(self, question: ExplainQuery) -> tuple[list[ExplainAnswer], int]:
        """The answers of all schedulers, each for partitions that were missing, and how many have no answer."""
        found: list[ExplainAnswer] = []
        missing = set(range(self._layout().count))
        async with self._asked(question) as answers:
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_S):
                    while missing:
                        answer = await answers.get()
                        if missing.intersection(answer.partitions):
                            missing.difference_update(answer.partitions)
                            found.append(answer)
        return found, len(missing)

    async def release(self, uid: str, host: str, pattern: str) -> None:
        """See `Backend.release`."""
        try:
            href = parse_url(f"http://{host}/").href
        except UrlError as error:
            raise UsageError(f"{host[:100]!r} is no host: {error}") from None
        await self._ask(ExplainQuery(url=href, job=uid, release=pattern))

    async def forget(self, job: CrawlJob, urls: list[tuple[str, Outcome]]) -> job_types.UrlsForgotten:
        """See `Backend.forget`. Each partition is asked in turn, FORGET_BATCH URLs at a time."""
        parts: dict[int, list[tuple[str, Outcome]]] = {}
        routes = keeps_routes(spec_of(job))
        for url, outcome in urls:
            number = self._layout().of(parse_for(routes, url).fingerprint)
            parts.setdefault(number, []).append((url, outcome))
        total = job_types.UrlsForgotten(name=job.uid, forgotten=0)
        for part in parts.values():
            for start in range(0, len(part), FORGET_BATCH):
                batch = part[start : start + FORGET_BATCH]
                answer = await self._ask(
                    ExplainQuery(
                        url=batch[0][0],
                        job=job.uid,
                        forget=[url for url, _ in batch],
                        forget_outcomes=bytes(outcome for _, outcome in batch),
                    )
                )
                total.forgotten += answer.forgotten
                total.open += answer.open
                total.unknown += answer.unknown
        return total

    async def explain(self, url: str, name: str) -> Explanation:
        """See `Backend.explain`; the job is there."""
        answer = await self._ask(ExplainQuery(url=url, job=name))
        return msgspec.json.decode(answer.explanation, type=Explanation)

    async def _ask(self, question: ExplainQuery) -> ExplainAnswer:
        """The answer of the scheduler that has the URL's partition. Raises `UserError`."""
        partition = self._layout().of(parse_url(question.url).fingerprint)
        question.slot = str(partition)
        async with self._asked(question) as answers:
            try:
                async with asyncio.timeout(ANSWER_S):
                    answer = await answers.get()
            except TimeoutError:
                raise self._no_answer(f"for partition {partition}, where the URL belongs,") from None
        if answer.error:
            raise (UsageError if answer.usage_error else api.NotFound)(answer.error)
        return answer

    @asynccontextmanager
    async def _asked(self, question: ExplainQuery) -> AsyncIterator[asyncio.Queue[ExplainAnswer]]:
        """The answers to a query, as they come."""
        question.id = uuid.uuid4().hex
        question.deadline, question.system = time.time() + ANSWER_S, self._place
        answers = self._answers[question.id] = asyncio.Queue()
        try:
            await self._send(EXPLAIN_QUERIES, question)
            yield answers
        finally:
            del self._answers[question.id]

    def _no_answer(self, what: str) -> NotReadyError:
        trouble = "".join(f"; {line}" for line in self._troubles())
        return NotReadyError(
            f"no scheduler has answered {what} in {ANSWER_S:g} s: none has it, or it is being taken over; see "
            f"nephila service members, and repeat the command{trouble}"
        )


def _in_turn(lists: list[list[str]]) -> list[str]:
    """The first of each, then the second of each, and so on."""
    return [one for several in zip_longest(*lists) for one in several if one is not None]
