"""A site on this machine that notes what it is asked for."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

Answers = Callable[[str], str | bytes]


@asynccontextmanager
async def asked_site(answers: Answers, robots: str = "") -> AsyncIterator[tuple[str, list[str]]]:
    """Its base URL, and the paths that were asked for. `answers`: the body of a path; its type is that of the suffix of
    the path, or HTML if it begins with <."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        asked.append(path)
        content = robots if path == "/robots.txt" else answers(path)
        body = content.encode() if isinstance(content, str) else content
        kind = mimetypes.guess_type(path)[0] or ("text/html" if body.startswith(b"<") else "text/plain")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()
