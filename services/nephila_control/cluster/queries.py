"""Questions to the schedulers, and their answers: explain, hosts, quarantines, and URLs that are forgotten.

A query names the partition that answers it, or asks all of them. Queries and answers are in no group: every program
reads all answers and takes those to its own ids.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import zip_longest
from typing import Any

import msgspec
from nephila.kernel.documents.job_document import keeps_routes, spec_of
from nephila.kernel.fragment_routes import parse_for
from nephila.kernel.layout import Layout
from nephila.kernel.messages import CrawlJob, ExplainAnswer, ExplainQuery, Outcome, Quarantine
from nephila.kernel.runtime.errors import UNREADABLE, NotReadyError, UsageError
from nephila.kernel.topics import EXPLAIN_QUERIES, Topic
from nephila.native import UrlError, parse_url
from nephila.scheduler.engine.exclusion_trial import EXAMPLES

from nephila_control import api, job_types
from nephila_control.explain.explain import Explanation
from nephila_control.explain.host_list import HostQuery, HostRows, first_rows

FORGET_BATCH = 100
"""URLs of one query: with 8,192 characters each they fit into a message."""
ANSWER_S = 10.0
"""For the answer of a scheduler; one that has just taken a partition over may be busy."""
HOSTS_S = 3.0
"""For the hosts: a screen asks again every few seconds, so it does not wait for a scheduler that is away."""
Send = Callable[[Topic, Any], Awaitable[None]]


class Queries:
    def __init__(
        self, send: Send, layout: Callable[[], Layout], broker: str, troubles: Callable[[], list[str]]
    ) -> None:
        """`send` returns when the broker has the message. `troubles` says in one line each why nothing can be sent or
        received."""
        self._send = send
        self._layout = layout
        self._broker = broker
        self._troubles = troubles
        self._answers: dict[str, asyncio.Queue[ExplainAnswer]] = {}

    def on_answer(self, answer: ExplainAnswer) -> None:
        if (waiting := self._answers.get(answer.id)) is not None:
            waiting.put_nowait(answer)

    async def quarantines(self, uid: str) -> list[Quarantine]:
        """Raises `NotReadyError` unless every partition answers."""
        query = ExplainQuery(job=uid, slot="quarantines", list_quarantines=True)
        answers, missing = await self._ask_all(query)
        if missing:
            raise self._no_answer(f"for {missing} of {self._layout().count} partitions")
        rows = (row for answer in answers for row in answer.quarantines)
        return sorted(rows, key=lambda row: (row.host, row.place))

    async def try_exclusion(self, job: CrawlJob, exclude: Sequence[str]) -> job_types.ExclusionTried:
        """Partitions that do not answer are not counted. Raises `NotReadyError` when none does."""
        query = ExplainQuery(job=job.uid, slot="exclusions", try_exclude=list(exclude))
        answers, missing = await self._ask_all(query)
        if not answers:
            raise self._no_answer("for any partition")
        return job_types.ExclusionTried(
            name=job.uid,
            generation=job.generation,
            queued=sum(answer.queued for answer in answers),
            looked_at=sum(answer.looked_at for answer in answers),
            removed=sum(answer.removed for answer in answers),
            complete=not missing and all(answer.complete for answer in answers),
            examples=_in_turn([answer.examples for answer in answers])[:EXAMPLES],
        )

    async def hosts(self, query: HostQuery) -> tuple[HostRows, int, int]:
        """Returns the hosts, the number of partitions that were asked, and how many of them answered. A named host has
        one partition."""
        question = ExplainQuery(slot="hosts", list_hosts=msgspec.json.encode(query))
        asked = range(self._layout().count)
        if query.name:
            question.url = _url_of(query.name)
            number = self._layout().of(parse_url(question.url).fingerprint)
            asked = range(number, number + 1)
        answers, missing = await self._ask_all(question, asked, HOSTS_S)
        return first_rows(map(_rows, answers), query), len(asked), len(asked) - missing

    async def _ask_all(
        self, question: ExplainQuery, partitions: Collection[int] = (), answer_s: float = ANSWER_S
    ) -> tuple[list[ExplainAnswer], int]:
        """Returns answers that together cover the partitions (all of them, if none is named), and the number of
        partitions without an answer."""
        collected: list[ExplainAnswer] = []
        missing = set(partitions or range(self._layout().count))
        async with self._asked(question, answer_s) as answers:
            with suppress(TimeoutError):
                async with asyncio.timeout(answer_s):
                    while missing:
                        answer = await answers.get()
                        if missing.intersection(answer.partitions):
                            missing.difference_update(answer.partitions)
                            collected.append(answer)
        return collected, len(missing)

    async def release(self, uid: str, host: str, pattern: str) -> None:
        await self._ask(ExplainQuery(url=_url_of(host), job=uid, release=pattern))

    async def change_host(self, host: str, action: str, seconds: float) -> None:
        await self._ask(ExplainQuery(url=_url_of(host), host_action=action, host_seconds=seconds))

    async def forget(self, job: CrawlJob, urls: list[tuple[str, Outcome]]) -> job_types.UrlsForgotten:
        """Asks each partition in turn, FORGET_BATCH URLs at a time."""
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
        """The job has to exist."""
        answer = await self._ask(ExplainQuery(url=url, job=name))
        return msgspec.json.decode(answer.explanation, type=Explanation)

    async def _ask(self, question: ExplainQuery) -> ExplainAnswer:
        """Asks the scheduler that owns the partition of the URL. Raises `UserError`."""
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
    async def _asked(
        self, question: ExplainQuery, answer_s: float = ANSWER_S
    ) -> AsyncIterator[asyncio.Queue[ExplainAnswer]]:
        question.id = uuid.uuid4().hex
        question.deadline, question.system = time.time() + answer_s, self._broker
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


def _url_of(host: str) -> str:
    try:
        return parse_url(f"http://{host}/").href
    except UrlError as error:
        raise UsageError(f"{host[:100]!r} is no host: {error}") from None


def _rows(answer: ExplainAnswer) -> HostRows:
    """Raises `NotReadyError` for rows of another version of the program."""
    try:
        return msgspec.json.decode(answer.hosts, type=HostRows)
    except UNREADABLE:
        raise NotReadyError("a scheduler lists its hosts in another version of Nephila; update all services") from None


def _in_turn(lists: list[list[str]]) -> list[str]:
    """Merges the lists: the first text of each, then the second of each, and so on."""
    return [text for several in zip_longest(*lists) for text in several if text is not None]
