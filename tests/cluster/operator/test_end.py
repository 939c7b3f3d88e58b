"""A server that does not answer does not delay the end of the program."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from nephila_cluster.operator.cluster import Cluster
from nephila_control import job_types
from nephila_control.http.client import at_url


async def control(port: int) -> None:
    await at_url(f"http://127.0.0.1:{port}", "").list_jobs(job_types.ListJobs())


async def kubernetes(port: int) -> None:
    cluster = Cluster("crawl")
    try:
        await cluster.rules()
    finally:
        await cluster.close()


@pytest.mark.parametrize("request_to", [control, kubernetes])
def test_a_request_without_an_answer_does_not_delay_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_to: Callable[[int], Coroutine[Any, Any, None]]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        config: dict[str, Any] = {
            "current-context": "t",
            "contexts": [{"name": "t", "context": {"cluster": "t", "user": "t"}}],
        }
        config |= {"clusters": [{"name": "t", "cluster": {"server": f"http://127.0.0.1:{port}"}}]}
        config |= {"users": [{"name": "t", "user": {}}]}
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))

        async def program() -> None:
            task = asyncio.ensure_future(request_to(port))
            silent.settimeout(20)
            connection, _ = await asyncio.to_thread(silent.accept)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            connection.close()

        began = time.monotonic()
        asyncio.run(program())
        assert time.monotonic() - began < 10


async def test_a_token_that_has_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet replaces it each hour."""
    seen: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        seen.append(head.partition("authorization: bearer ")[2].split("\r\n")[0])
        right = seen[-1] == "second"
        body = b'{"items": []}' if right else b'{"message": "Unauthorized"}'
        status = b"200 OK" if right else b"401 Unauthorized"
        writer.write(b"HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
        writer.close()

    def write(token: str) -> None:
        user = {"name": "t", "user": {"token": token}}
        config: dict[str, Any] = {"current-context": "t", "users": [user]}
        config |= {"contexts": [{"name": "t", "context": {"cluster": "t", "user": "t"}}]}
        config |= {"clusters": [{"name": "t", "cluster": {"server": f"http://127.0.0.1:{port}"}}]}
        (tmp_path / "kubeconfig").write_text(json.dumps(config))

    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        write("first")
        cluster = Cluster("crawl")
        write("second")
        assert await cluster.rules() == []
        await cluster.close()
    assert seen == ["first", "second"]
