"""The control API of a server somewhere else: `Control` over HTTP, by a Unix socket or a URL.

A refusal is raised as the error that the implementation over there raised, and `NotReadyError` while no control API
answers there. Each call is one connection in a thread of its own, so a server in the same loop is not held up. The
threads are daemons: a request without an answer does not delay the end of the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from nephila.control import api
from nephila.control.http.routes import PREFIX, ROUTES, ErrorAnswer, to_http
from nephila.control.http.unix_socket import connect
from nephila.kernel.runtime.errors import UNREADABLE, NotReadyError, UsageError, UserError

TIMEOUT_S = 60.0
"""Longest wait for one answer; a program that writes to a slow disk is not dead."""
MAX_ANSWER = 256 << 20
_ROUTES = {route.operation: route for route in ROUTES}
A = TypeVar("A")
Dial = Callable[[], http.client.HTTPConnection]


class HttpControl:
    """See `nephila.control.api.Control`."""

    def __init__(self, dial: Dial, place: str, token: str = "") -> None:
        """`place`: how errors name the server."""
        self._dial = dial
        self._place = place
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def _call(self, operation: str, request: msgspec.Struct, kind: type[A]) -> A:
        found = await _in_thread(lambda: self._answer(operation, request))
        try:
            return msgspec.convert(found, kind)
        except UNREADABLE as error:
            raise NotReadyError(
                f"{self._place} is not a nephila, or one of another version ({operation}: {error}); check the URL"
            ) from None

    def _answer(self, operation: str, request: msgspec.Struct) -> Any:
        route = _ROUTES[operation]
        path_fields, fields = to_http(route, request)
        path = PREFIX + route.path.format(**{name: quote(value, safe="") for name, value in path_fields.items()})
        headers, body = dict(self._headers), None
        if route.has_body:
            headers["Content-Type"], body = "application/json", msgspec.json.encode(fields)
        elif fields:
            path += "?" + urlencode({name: _text(value) for name, value in fields.items()})
        connection = self._dial()
        try:
            connection.request(route.method, path, body, headers)
            response = connection.getresponse()
            status, data = response.status, response.read(MAX_ANSWER)
        except TimeoutError:
            raise NotReadyError(f"{self._place} did not answer in {TIMEOUT_S:g} s") from None
        except (OSError, UnicodeError, http.client.HTTPException) as error:
            if isinstance(error, socket.gaierror | ConnectionRefusedError):
                raise NotReadyError(f"{self._place} cannot be reached: {error.strerror or error}") from None
            raise NotReadyError(f"{self._place} ended before it answered; repeat the command") from None
        finally:
            connection.close()
        return self._decoded(status, data)

    def _decoded(self, status: int, data: bytes) -> Any:
        try:
            if status == 200:
                return msgspec.json.decode(data)
            error = msgspec.json.decode(data, type=ErrorAnswer).error
        except UNREADABLE:
            raise NotReadyError(f"{self._place} is not a nephila; check the URL (status {status})") from None
        message = f"{error.message} ({error.where})" if error.where else error.message
        kinds: dict[str, type[UserError]] = {
            "invalid": UsageError,
            "wrong_value": UsageError,
            "not_found": api.NotFound,
            "unavailable": NotReadyError,
        }
        if error.code == "unauthorized":
            raise NotReadyError(f"{self._place} refuses the token; name the file that holds it with --token-file")
        raise kinds.get(error.code, UserError)(message)

    async def apply_job(self, request: api.ApplyJob) -> api.JobApplied:
        """See `Control.apply_job`."""
        return await self._call("apply_job", request, api.JobApplied)

    async def list_jobs(self, request: api.Empty) -> api.JobList:
        """See `Control.list_jobs`."""
        return await self._call("list_jobs", request, api.JobList)

    async def list_directories(self, request: api.Empty) -> api.DirectoryList:
        """See `Control.list_directories`."""
        return await self._call("list_directories", request, api.DirectoryList)

    async def get_job(self, request: api.JobName) -> api.JobDetail:
        """See `Control.get_job`."""
        return await self._call("get_job", request, api.JobDetail)

    async def pause_job(self, request: api.JobName) -> api.JobChanged:
        """See `Control.pause_job`."""
        return await self._call("pause_job", request, api.JobChanged)

    async def resume_job(self, request: api.JobName) -> api.JobChanged:
        """See `Control.resume_job`."""
        return await self._call("resume_job", request, api.JobChanged)

    async def delete_job(self, request: api.JobName) -> api.JobChanged:
        """See `Control.delete_job`."""
        return await self._call("delete_job", request, api.JobChanged)

    async def add_seeds(self, request: api.AddSeeds) -> api.SeedsAdded:
        """See `Control.add_seeds`."""
        return await self._call("add_seeds", request, api.SeedsAdded)

    async def list_quarantines(self, request: api.JobName) -> api.QuarantineList:
        """See `Control.list_quarantines`."""
        return await self._call("list_quarantines", request, api.QuarantineList)

    async def release_quarantine(self, request: api.ReleaseQuarantine) -> api.QuarantineReleased:
        """See `Control.release_quarantine`."""
        return await self._call("release_quarantine", request, api.QuarantineReleased)

    async def forget(self, request: api.ForgetUrls) -> api.UrlsForgotten:
        """See `Control.forget`."""
        return await self._call("forget", request, api.UrlsForgotten)

    async def explain(self, request: api.ExplainUrl) -> api.Explained:
        """See `Control.explain`."""
        return await self._call("explain", request, api.Explained)

    async def list_rules(self, request: api.Empty) -> api.RuleList:
        """See `Control.list_rules`."""
        return await self._call("list_rules", request, api.RuleList)

    async def apply_rules(self, request: api.ApplyRules) -> api.RulesApplied:
        """See `Control.apply_rules`."""
        return await self._call("apply_rules", request, api.RulesApplied)

    async def delete_rule(self, request: api.RuleName) -> api.RuleChange:
        """See `Control.delete_rule`."""
        return await self._call("delete_rule", request, api.RuleChange)

    async def rule_health(self, request: api.Empty) -> api.RuleHealthList:
        """See `Control.rule_health`."""
        return await self._call("rule_health", request, api.RuleHealthList)

    async def list_changes(self, request: api.ListChanges) -> api.ChangeList:
        """See `Control.list_changes`."""
        return await self._call("list_changes", request, api.ChangeList)

    async def list_dead_letters(self, request: api.ListDeadLetters) -> api.DeadLetterList:
        """See `Control.list_dead_letters`."""
        return await self._call("list_dead_letters", request, api.DeadLetterList)

    async def replay_dead_letters(self, request: api.ReplayDeadLetters) -> api.ReplayedList:
        """See `Control.replay_dead_letters`."""
        return await self._call("replay_dead_letters", request, api.ReplayedList)

    async def list_members(self, request: api.Empty) -> api.MemberList:
        """See `Control.list_members`."""
        return await self._call("list_members", request, api.MemberList)

    async def status(self, request: api.Empty) -> api.Status:
        """See `Control.status`."""
        return await self._call("status", request, api.Status)

    async def get_settings(self, request: api.Empty) -> api.Settings:
        """See `Control.get_settings`."""
        return await self._call("get_settings", request, api.Settings)

    async def change_settings(self, request: api.ChangeSettings) -> api.Settings:
        """See `Control.change_settings`."""
        return await self._call("change_settings", request, api.Settings)


async def _in_thread(work: Callable[[], A]) -> A:
    """The result of a blocking call. Unlike those of `asyncio.to_thread`, the thread ends with the program."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[A] = loop.create_future()

    def finish(result: A | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast(A, result))

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(finish, result, error)

    threading.Thread(target=run, name="control", daemon=True).start()
    return await done


def at_directory(directory: Path) -> HttpControl | None:
    """The program that runs in a directory; None when none does. Raises `UserError`."""
    first = connect(directory, TIMEOUT_S)
    if first is None:
        return None
    first.close()
    return HttpControl(lambda: _Unix(directory), f"the program in {directory}")


def at_url(url: str, token: str = "") -> HttpControl:
    """A server at http(s)://HOST:PORT. Raises `UsageError`."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
        parts = urlsplit("")
    if not host or parts.scheme not in ("http", "https") or parts.path.rstrip("/") or parts.query or parts.username:
        raise UsageError(f"--server {url!r} is not a URL like http://HOST:PORT")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return HttpControl(lambda: kind(host, port, timeout=TIMEOUT_S), url, token)


class _Unix(http.client.HTTPConnection):
    """A connection to the socket of a directory."""

    def __init__(self, directory: Path) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._directory = directory

    def connect(self) -> None:
        """See `HTTPConnection.connect`."""
        found = connect(self._directory, TIMEOUT_S)
        if found is None:
            raise ConnectionResetError("no program runs there")
        self.sock = found


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
