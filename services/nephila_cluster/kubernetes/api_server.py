"""Requests to the API server of Kubernetes: the one place that sends them, for the operator and for `doctor`.

kopf watches resources with requests of its own, which it offers to no other caller.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import aiohttp
from nephila.kernel.runtime.errors import NotReadyError

from nephila_cluster.kubernetes.login import Login

TIMEOUT_S: Final = 15.0
"""Longest wait for one answer by default."""
MERGE: Final = "application/merge-patch+json"


class Answer(NamedTuple):
    """An answer of the API server."""

    status: int
    reason: str
    body: bytes


class ApiServer:
    """One connection pool with one login."""

    def __init__(
        self, login: Login, timeout_s: float = TIMEOUT_S, log_in_again: Callable[[], Login] | None = None
    ) -> None:
        """`log_in_again` runs on a thread after a 401, and the request is sent once more. Raises `UserError`."""
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._log_in_again = log_in_again
        self._session: aiohttp.ClientSession | None = None
        self._use(login)

    def _use(self, login: Login) -> None:
        self._login, self._tls = login, login.tls()

    async def close(self) -> None:
        """End the connections."""
        if self._session is not None:
            await self._session.close()

    async def request(self, method: str, path: str, body: Any = None) -> Answer:
        """The answer, of any status. Raises `NotReadyError` where there is none."""
        answer = await self._send(method, path, body)
        if answer.status != 401 or self._log_in_again is None:
            return answer
        # The kubelet has written another token, or that of a login program has expired.
        self._use(await asyncio.to_thread(self._log_in_again))
        return await self._send(method, path, body)

    async def _send(self, method: str, path: str, body: Any) -> Answer:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout)
        kind = MERGE if method == "PATCH" else "application/json"
        try:
            async with self._session.request(
                method,
                self._login.server + path,
                data=None if body is None else json.dumps(body),
                headers={"Content-Type": kind, **self._login.headers},
                ssl=self._tls,
                server_hostname=self._login.server_name,
                proxy=self._login.proxy,
                allow_redirects=False,
            ) as answer:
                return Answer(answer.status, answer.reason or "", await answer.read())
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            reason = " ".join(str(error).split())[:300] or f"no answer in {self._timeout.total:g} s"
            message = f"the API server at {self._login.server} cannot be reached: {reason}"
            raise NotReadyError(message) from None
