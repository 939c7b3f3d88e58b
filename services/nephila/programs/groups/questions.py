"""Questions of the main process that have no answer yet, each to one process of a group."""

from __future__ import annotations

import asyncio
from typing import Protocol

from nephila.kernel.bus.pipe import protocol as p
from nephila.kernel.bus.pipe.link import Channel
from nephila.kernel.runtime.errors import NotReadyError, UserError

ANSWER_S = 10.0
"""Longest wait for the answers to a question."""


class Answering(Protocol):
    """A process that answers."""

    name: str
    link: Channel

    @property
    def ready(self) -> bool:
        """It has read its logs, and runs."""


class Questions:
    """Numbers the questions, and gives each answer to the question with its number."""

    def __init__(self) -> None:
        self._number = 0
        self._open: dict[int, tuple[Answering, asyncio.Future[bytes]]] = {}

    def __len__(self) -> int:
        """Questions without an answer."""
        return len(self._open)

    def ask(self, process: Answering, kind: str, question: bytes) -> asyncio.Future[bytes]:
        """The answer to come; `NotReadyError` of a process that is not ready, or ends."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        if not process.ready:
            future.set_exception(_not_ready(process))
            return future
        self._number += 1
        self._open[self._number] = process, future
        process.link.send_control(p.Ask(self._number, kind, question))
        return future

    def answered(self, answer: p.Answer) -> None:
        """An answer has come."""
        _, future = self._open.pop(answer.number)
        if future.done():  # too late
            return
        if answer.error:
            future.set_exception(UserError(answer.error))
        else:
            future.set_result(answer.answer)

    def gone(self, process: Answering) -> None:
        """The process answers nothing any more."""
        for number in [number for number, (asked, _) in self._open.items() if asked is process]:
            _, future = self._open.pop(number)
            if not future.done():
                future.set_exception(_not_ready(process))


async def all_answers(answers: list[asyncio.Future[bytes]]) -> list[bytes]:
    """Raises `NotReadyError` when one does not come, `UserError` for a refusal."""
    try:
        return list(await asyncio.wait_for(asyncio.gather(*answers), ANSWER_S))
    except TimeoutError:
        raise NotReadyError(f"a group has not answered for {ANSWER_S:g} s; repeat the request") from None


def _not_ready(process: Answering) -> NotReadyError:
    return NotReadyError(f"{process.name} is being started again; repeat the request")
