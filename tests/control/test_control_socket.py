"""The control socket: its owner only, bounded lines and clients, and nothing a client does ends it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat

import pytest
from nephila.control.socket import MAX_CLIENTS, MAX_LINE, NAME, ControlSocket, connect
from nephila.kernel.runtime.errors import UserError


class Echo:
    """Answers each line with itself and notes who leaves."""

    def __init__(self, directory):
        self.left = asyncio.Queue()
        self.socket = ControlSocket(directory, self.answer, list, self.left.put_nowait)

    async def answer(self, line, session):
        session.append(line)
        if line == b"fail\n":
            raise RuntimeError("not\nexpected")
        return line


@pytest.fixture
async def echo(tmp_path):
    """Open in a directory of its own."""
    echo = Echo(tmp_path)
    await echo.socket.open()
    yield echo
    await echo.socket.close()


async def dial(directory):
    """A client's two ends."""
    return await asyncio.open_unix_connection(directory / NAME, limit=MAX_LINE * 2)


async def ask(client, line):
    """One line there and back."""
    reader, writer = client
    writer.write(line)
    return await reader.readline()


async def test_lines_are_answered_in_order_to_many_clients(echo, tmp_path):
    """Each with a session of its own."""
    one, two = await dial(tmp_path), await dial(tmp_path)
    assert await ask(one, b"a\n") == b"a\n"
    assert await ask(two, b"b\nc\n") == b"b\n"
    assert await two[0].readline() == b"c\n"
    for _, writer in (one, two):
        writer.close()
    assert sorted([await echo.left.get(), await echo.left.get()]) == [[b"a\n"], [b"b\n", b"c\n"]]


async def test_only_the_owner_may_connect(echo, tmp_path):
    """Mode 0600, and gone when it is closed."""
    mode = (tmp_path / NAME).stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600
    await echo.socket.close()
    assert not (tmp_path / NAME).exists()
    assert connect(tmp_path, 1.0) is None


async def test_a_line_without_end_is_refused(echo, tmp_path):
    """Not read into memory for ever; the others are served."""
    reader, writer = await dial(tmp_path)
    writer.write(b"x" * (MAX_LINE * 2))
    answer = json.loads(await reader.readline())
    assert "one line of at most" in answer["error"]
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
    client = await dial(tmp_path)
    assert await ask(client, b"a\n") == b"a\n"
    client[1].close()


async def test_the_longest_line_is_taken(echo, tmp_path):
    """Exactly as long as allowed."""
    client = await dial(tmp_path)
    line = b"x" * (MAX_LINE - 1) + b"\n"
    assert await ask(client, line) == line
    client[1].close()


async def test_what_nobody_expected_is_answered(echo, tmp_path, caplog):
    """One line, and the connection goes on."""
    client = await dial(tmp_path)
    assert json.loads(await ask(client, b"fail\n"))["error"] == r"RuntimeError: not\nexpected"
    assert await ask(client, b"a\n") == b"a\n"
    client[1].close()


async def test_more_clients_than_allowed(echo, tmp_path):
    """Told in one line; there is room again when one has left."""
    clients = [await dial(tmp_path) for _ in range(MAX_CLIENTS)]
    for client in clients:
        assert await ask(client, b"a\n") == b"a\n"
    reader, writer = await dial(tmp_path)
    assert "connections" in json.loads(await reader.readline())["error"]
    writer.close()
    clients.pop()[1].close()
    await echo.left.get()
    clients.append(await dial(tmp_path))
    assert await ask(clients[-1], b"a\n") == b"a\n"
    for _, writer in clients:
        writer.close()


async def test_a_dead_programs_socket_is_replaced(tmp_path):
    """One that was killed leaves it behind."""
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(tmp_path / NAME))
    dead.close()
    assert connect(tmp_path, 1.0) is None
    echo = Echo(tmp_path)
    await echo.socket.open()
    client = await dial(tmp_path)
    assert await ask(client, b"a\n") == b"a\n"
    client[1].close()
    await echo.socket.close()


async def test_a_file_in_its_place_is_not_removed(tmp_path):
    """Whatever it is, it is not ours."""
    (tmp_path / NAME).write_text("mine")
    with pytest.raises(UserError, match="is no socket; move it away"):
        await Echo(tmp_path).socket.open()
    assert (tmp_path / NAME).read_text() == "mine"


async def test_a_directory_with_a_long_name(tmp_path):
    """Longer than the address of a socket may be."""
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    before = len(os.listdir("/proc/self/fd"))
    echo = Echo(deep)
    await echo.socket.open()
    assert stat.S_IMODE((deep / NAME).stat().st_mode) == 0o600
    client = await asyncio.to_thread(connect, deep, 5.0)
    assert client is not None
    client.sendall(b"a\n")
    assert await asyncio.to_thread(client.recv, 10) == b"a\n"
    client.close()
    await echo.socket.close()
    assert not (deep / NAME).exists()
    assert len(os.listdir("/proc/self/fd")) <= before + 1
