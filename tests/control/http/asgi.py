"""A client of an ASGI application without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote


@dataclass
class Answer:
    """What the application answered."""

    status_code: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        """The body."""
        return self.content.decode()

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.content)


class AsgiClient:
    """Each request has a loop of its own."""

    def __init__(self, application: Any) -> None:
        self._application = application

    def get(self, path: str, headers: Mapping[str, str] = {}) -> Answer:
        """GET."""
        return self.request("GET", path, headers=headers)

    def request(
        self,
        method: str,
        path: str,
        content: bytes | str = b"",
        headers: Mapping[str, str] = {},
    ) -> Answer:
        """Any request."""
        return asyncio.run(self._request(method, path, content, headers))

    async def _request(self, method: str, path: str, content: bytes | str, headers: Mapping[str, str]) -> Answer:
        raw, _, query = path.partition("?")
        body = content.encode(errors="surrogatepass") if isinstance(content, str) else content
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(raw),
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            "server": ("x", 80),
            "client": ("127.0.0.1", 40_000),
            "root_path": "",
        }
        sent: list[dict[str, Any]] = []
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            return messages.pop() if messages else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self._application(scope, receive, send)
        found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:]))
