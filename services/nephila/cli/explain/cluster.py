"""`nephila explain URL --bootstrap` and `nephila jobs release --bootstrap`: asks the scheduler that has the URL's
partition, by way of the broker."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import TYPE_CHECKING

import msgspec

from nephila.cli.jobs.cluster import connected, taken
from nephila.kernel.messages import ExplainAnswer, ExplainQuery
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.topics import EXPLAIN_ANSWERS, EXPLAIN_QUERIES
from nephila.native import UrlError, parse_url, partition_of

if TYPE_CHECKING:
    from nephila.kernel.bus.contract import Delivery
    from nephila.scheduler.explain.explain import Explanation

WAIT_S = 10.0
"""For the answer; a scheduler that has just taken over may be busy."""


def ask(bootstrap: str, href: str, job: str, wait_s: float = WAIT_S) -> Explanation:
    """The explanation of a URL's owner. Raises `UserError` and `UsageError`."""
    from nephila.kernel.runtime.process_setup import run_loop
    from nephila.scheduler.explain.explain import Explanation

    answer = run_loop(_ask(bootstrap, ExplainQuery(url=href, job=job), wait_s))
    return msgspec.json.decode(answer.explanation, type=Explanation)


def release(bootstrap: str, job: str, host: str, place: str, wait_s: float = WAIT_S) -> None:
    """Have a part of a host taken out of quarantine; returns when that is in the log. Raises as `ask`."""
    from nephila.kernel.runtime.process_setup import run_loop

    try:
        href = parse_url(f"http://{host}/").href
    except UrlError as error:
        raise UsageError(f"{host[:100]!r} is no host: {error}") from None
    if not job or not place:
        raise UsageError("name a job and a part of the host, as nephila explain does")
    answer = run_loop(_ask(bootstrap, ExplainQuery(url=href, job=job, release=place), wait_s))
    if not answer.released:
        raise UserError("the scheduler that has this host is of an older release, which opens nothing: update it")


async def _ask(bootstrap: str, question: ExplainQuery, wait_s: float) -> ExplainAnswer:
    question.id = uuid.uuid4().hex
    answered: asyncio.Future[ExplainAnswer] = asyncio.get_running_loop().create_future()

    def on_answer(delivery: Delivery) -> None:
        if delivery.message.id == question.id and not answered.done():
            answered.set_result(delivery.message)
        delivery.ack()

    async with connected(bootstrap) as bus:
        bus.subscribe(EXPLAIN_ANSWERS, "explain", on_answer, credits=1000)
        await bus.start()
        partition = partition_of(parse_url(question.url).fingerprint, bus.config.partitions)
        question.slot, question.deadline, question.system = str(partition), time.time() + wait_s, bootstrap
        await taken(bus, bus.publish(EXPLAIN_QUERIES, 0, question), wait_s)
        try:
            answer = await asyncio.wait_for(answered, wait_s)
        except TimeoutError:
            skew = f"; {bus.producer.skew.trouble}" if bus.producer.skew.trouble else ""
            raise UserError(
                f"no scheduler has answered for partition {partition}, where the URL belongs, in {wait_s:g} s: "
                f"none has it, or it is being taken over; see the schedulers' nephila_scheduler_partitions, "
                f"and ask again{skew}"
            ) from None
    if answer.error:
        raise (UsageError if answer.usage_error else UserError)(answer.error)
    return answer
