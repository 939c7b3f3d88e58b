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
    status: int
    reason: str
    body: bytes


class ApiServer:
    """One pool of connections. `log_in` runs at the start, and again on a thread after a 401."""

    def __init__(self, log_in: Callable[[], Login], timeout_s: float = TIMEOUT_S) -> None:
        self._log_in = log_in
        self._login = log_in()
        self._tls = self._login.tls()
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._session: aiohttp.ClientSession | None = None

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def request(self, method: str, path: str, body: Any = None) -> Answer:
        """The answer, of any status. Raises `NotReadyError` where there is none."""
        answer = await self._send(method, path, body)
        if answer.status == 401:
            # The kubelet has written another token, or that of a login program has expired.
            self._login = await asyncio.to_thread(self._log_in)
            self._tls = self._login.tls()
            answer = await self._send(method, path, body)
        return answer

    async def _send(self, method: str, path: str, body: Any) -> Answer:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout)
        login = self._login
        try:
            async with self._session.request(
                method,
                login.server + path,
                data=None if body is None else json.dumps(body),
                headers={"Content-Type": MERGE if method == "PATCH" else "application/json", **login.headers},
                ssl=self._tls,
                server_hostname=login.server_name,
                proxy=login.proxy,
                allow_redirects=False,
            ) as answer:
                return Answer(answer.status, answer.reason or "", await answer.read())
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            reason = " ".join(str(error).split())[:300] or f"no answer in {self._timeout.total:g} s"
            raise NotReadyError(f"the API server at {login.server} cannot be reached: {reason}") from None
