"""aiokafka's connections on uvloop: a write to a closed transport is a broken connection, not the end of the program.

aiokafka expects an OSError there, as asyncio raises it. uvloop raises RuntimeError, which would end the client's
background tasks, and with them the service. It happens when a process resumes after a freeze during which its broker
died. aiokafka keeps the password and the certificate of its start, too: each connection takes the present ones.
"""

from __future__ import annotations

import functools
from typing import Any

from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError

from nephila_cluster.kafka.client.security import renew_credentials


def mend() -> None:
    """Mend the client once per process, before the first connection; repeated calls do nothing."""
    if not hasattr(AIOKafkaConnection.send, "__wrapped__"):
        AIOKafkaConnection.send = _mended(AIOKafkaConnection.send)
        AIOKafkaConnection.connect = _renewing(AIOKafkaConnection.connect)


def _renewing(connect: Any) -> Any:
    @functools.wraps(connect)
    async def connecting(self: AIOKafkaConnection) -> Any:
        renew_credentials(self)
        return await connect(self)

    return connecting


def _mended(send: Any) -> Any:
    @functools.wraps(send)
    def sending(self: AIOKafkaConnection, request: Any, expect_response: bool = True) -> Any:
        try:
            return send(self, request, expect_response)
        except RuntimeError as error:
            self.close(reason=CloseReason.CONNECTION_BROKEN)
            raise KafkaConnectionError(f"connection to {self.host}:{self.port} is closed: {error}") from error

    return sending
