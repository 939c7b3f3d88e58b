"""A site on this machine that notes what it is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

Answers = Callable[[str], str]


@asynccontextmanager
async def asked_site(answers: Answers, robots: str = "") -> AsyncIterator[tuple[str, list[str]]]:
    """Its base URL, and the paths that were asked for. `answers`: the body of a path, HTML if it begins with <."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        asked.append(path)
        body = robots if path == "/robots.txt" else answers(path)
        kind = "text/html" if body.startswith("<") else "text/plain"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write((head + body).encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()
