"""`nephila explain URL --bootstrap`: asks the scheduler that has the URL's partition, by way of the broker."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import TYPE_CHECKING

import msgspec

from nephila.cli.systemjobs import connected, taken
from nephila.kernel.errors import UsageError, UserError
from nephila.kernel.messages import Answer, Question
from nephila.kernel.topics import ANSWERS, QUESTIONS
from nephila.native import parse_url, partition_of

if TYPE_CHECKING:
    from nephila.kernel.bus.base import Delivery
    from nephila.scheduler.explain import Explanation

WAIT_S = 10.0
"""For the answer; a scheduler that has just taken over may be busy."""


def ask(bootstrap: str, href: str, job: str, wait_s: float = WAIT_S) -> Explanation:
    """The explanation of a URL's owner. Raises `UserError` and `UsageError`."""
    from nephila.process import run_loop

    return run_loop(_ask(bootstrap, href, job, wait_s))


async def _ask(bootstrap: str, href: str, job: str, wait_s: float) -> Explanation:
    from nephila.scheduler.explain import Explanation

    name = uuid.uuid4().hex
    answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def on_answer(delivery: Delivery) -> None:
        if delivery.message.id == name and not answered.done():
            answered.set_result(delivery.message)
        delivery.ack()

    async with connected(bootstrap) as bus:
        bus.subscribe(ANSWERS, "explain", on_answer, credits=1000)
        await bus.start()
        partition = partition_of(parse_url(href).fingerprint, bus.config.partitions)
        question = Question(str(partition), name, href, job, time.time() + wait_s, bootstrap)
        await taken(bus, bus.publish(QUESTIONS, 0, question), wait_s)
        try:
            answer = await asyncio.wait_for(answered, wait_s)
        except TimeoutError:
            raise UserError(
                f"no scheduler has answered for partition {partition}, where the URL belongs, in {wait_s:g} s: "
                "none has it, or it is being taken over; see the schedulers' nephila_partitions, and ask again"
            ) from None
    if answer.error:
        raise (UsageError if answer.usage else UserError)(answer.error)
    return msgspec.json.decode(answer.explanation, type=Explanation)
