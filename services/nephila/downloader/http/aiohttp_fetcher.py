"""The fetcher on aiohttp: slower, for platforms without the native core, and as reference in tests.

It dials the checked address: the URL given to aiohttp contains the address, Host and SNI contain the host name. Heads
for raw capture are rebuilt from the parsed headers. `pool_size` does not apply.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import aiohttp
from yarl import URL

from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import (
    DRAIN_BYTES,
    MAX_DIALS,
    MAX_HEAD_BYTES,
    SLICE_S,
    FetchError,
    HttpRequest,
    HttpResponse,
    OnDone,
)
from nephila.downloader.http.deadlines import BODY, CONNECT, HEADERS, MEMORY, TUNNEL, DeadlineTimer, TimedFetch
from nephila.downloader.http.direct_connector import DirectConnector
from nephila.downloader.http.request import media_filter, proxy_headers_of, request_headers, request_headers_of
from nephila.downloader.http.response import response_head
from nephila.downloader.http.response.body import Body
from nephila.downloader.http.response.decode import codings_of
from nephila.downloader.http.tls import DEMANDED, dial_error, tls_context
from nephila.downloader.http.tunnel.aiohttp_tunnel import TUNNEL_OF_TASK, TunnelConnector
from nephila.kernel.pages.mime import media_type
from nephila.kernel.process.memory_budget import (
    BODY_FACTOR,
    LARGE_BYTES,
    MemoryBudget,
    ReservationKind,
    further,
    unlimited,
)
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock

_OWN_HEADERS = frozenset(("User-Agent", "Accept", "Accept-Encoding"))


class Fetch(TimedFetch):
    """One fetch in flight; the handle of its caller."""

    __slots__ = (
        "body",
        "fetcher",
        "on_done",
        "progress_count",
        "request",
        "response",
        "reused",
        "task",
        "timed_out",
        "waiting",
    )

    def __init__(self, fetcher: AiohttpFetcher, request: HttpRequest, on_done: OnDone, started: float) -> None:
        super().__init__(started)
        self.fetcher = fetcher
        self.request = request
        self.on_done: OnDone | None = on_done
        self.response = HttpResponse()
        self.progress_count = 0
        self.body: Body | None = None
        self.timed_out = ""
        self.waiting = False
        self.reused = False
        self.task: asyncio.Task[None] | None = None

    def abort(self) -> None:
        self.on_done = None
        self.fetcher.forget(self)
        if self.task is not None:
            self.task.cancel()

    @property
    def received_bytes(self) -> int:
        return self.body.wire_bytes if self.body is not None else 0

    @property
    def waits_for_memory(self) -> bool:
        return self.waiting

    @property
    def progress(self) -> int:
        return self.progress_count

    def on_proxy_connected(self) -> None:
        """A further delay may be that of the server."""
        self.phase = TUNNEL

    def time_out(self, detail: str) -> None:
        """The task ends itself."""
        self.timed_out = detail
        if self.task is not None:
            self.task.cancel()


class AiohttpFetcher:
    def __init__(self, config: HttpConfig, clock: Clock, budget: MemoryBudget | None = None) -> None:
        """The fetcher reserves large bodies in `budget`; None: no limit."""
        self._config = config
        self._budget = budget or unlimited()
        self._clock = clock
        self._headers = request_headers(config)
        self._wanted = media_filter(config.accept, config.refuse)
        self._deadlines: DeadlineTimer[Fetch] = DeadlineTimer(config, clock)
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        """By whether the session is the one for tunnels."""
        self._demanding: set[str] = set()
        """Names of servers that have asked for a client certificate."""

    def fetch(self, request: HttpRequest, on_done: OnDone) -> Fetch:
        fetch = Fetch(self, request, on_done, self._clock.monotonic())
        fetch.task = asyncio.get_running_loop().create_task(self._run(fetch))
        self._deadlines.add(fetch)
        return fetch

    async def close(self) -> None:
        fetches = self._deadlines.all()
        for fetch in fetches:
            fetch.abort()
        tasks = [fetch.task for fetch in fetches if fetch.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        self._deadlines.close()
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    def forget(self, fetch: Fetch) -> None:
        """Remove an aborted fetch from the time limits."""
        self._deadlines.discard(fetch)

    async def _run(self, fetch: Fetch) -> None:
        response = fetch.response
        try:
            await self._try_addresses(fetch)
        except FetchError as error:
            response.reason, response.detail, response.cause = error.reason, error.detail, error.cause
        except MemoryError:  # it ends one page, and not the process
            response.reason, response.detail = Reason.TOO_LARGE, "no memory for its body"
        except asyncio.CancelledError:
            if not fetch.timed_out:
                raise
            self._on_time_out(fetch, response)
        finally:
            self._deadlines.discard(fetch)
        if response.reason:
            response.body = b""
            if response.memory is not None:
                response.memory.release()
        on_done, fetch.on_done = fetch.on_done, None
        if on_done is not None:
            on_done(response)

    @staticmethod
    def _on_time_out(fetch: Fetch, response: HttpResponse) -> None:
        if response.status and not fetch.request.wants_body(response):
            return  # the status is sufficient
        response.reason = MEMORY if fetch.waits_for_memory else Reason.TIMEOUT
        response.detail = fetch.timed_out

    async def _try_addresses(self, fetch: Fetch) -> None:
        addresses = fetch.request.route.addresses[:MAX_DIALS]
        for number, address in enumerate(addresses, 1):
            fetch.phase = CONNECT
            fetch.dials = number
            fetch.response.address = address
            try:
                await self._request(fetch, address)
                return
            except aiohttp.ClientConnectorError as error:
                failure = dial_error(error.os_error, fetch.request.target.scheme)
                if fetch.request.route.proxy is None:
                    failure = self._with_demand(fetch, failure)
                else:
                    failure = FetchError(Reason.PROXY, f"{fetch.request.route.proxy.name}: {failure.detail}")
            except FetchError as error:  # of the handshake with a proxy
                if fetch.phase not in (CONNECT, TUNNEL):
                    raise
                failure = error
            except asyncio.CancelledError:
                # The next address follows only after an attempt to connect that took too long.
                task = asyncio.current_task()
                if number == len(addresses) or not fetch.timed_out.startswith("connect:") or task is None:
                    raise
                task.uncancel()
                fetch.timed_out = ""
                continue
            except (aiohttp.ClientError, OSError, ValueError) as error:
                if fetch.phase in (CONNECT, TUNNEL) and fetch.request.route.proxy is not None:  # TLS within the tunnel
                    fault = dial_error(error.__cause__ or error, fetch.request.target.scheme)
                    raise self._with_demand(fetch, fault) from None
                if fetch.reused and not fetch.response.status:
                    raise FetchError(Reason.STALE, "a kept connection broke before any answer") from None
                raise self._with_demand(fetch, self._translate(fetch.response, error)) from None
            if number == len(addresses):
                raise failure from None

    def _with_demand(self, fetch: Fetch, fault: FetchError) -> FetchError:
        """The demand for a client certificate, if the server had stated it before it refused without an answer: TLS 1.2
        refuses with an alert of any kind or none, TLS 1.3 may close after the handshake."""
        refused = fault.reason is Reason.DISCONNECTED or (
            fault.reason is Reason.TLS and fault.cause in ("", Reason.TLS_PROTOCOL)
        )
        if refused and not fetch.response.status and fetch.request.route.tls_name in self._demanding:
            return FetchError(Reason.TLS, DEMANDED, Reason.TLS_CLIENT_CERTIFICATE)
        return fault

    @staticmethod
    def _translate(response: HttpResponse, error: Exception) -> FetchError:
        """Errors of aiohttp become a reason and a text, here only."""
        cause = error.__cause__ or error
        text = " ".join(str(error).split())[:200] or type(error).__name__
        if isinstance(cause, ssl.SSLError) and (refusal := dial_error(cause, "https")).cause:
            return refusal  # a server may refuse the client after the handshake
        if isinstance(error, aiohttp.ClientResponseError):
            return FetchError(Reason.PROTOCOL, " ".join(error.message.split())[:200])
        if isinstance(cause, aiohttp.http_exceptions.TransferEncodingError) and "Not enough data" not in cause.message:
            return FetchError(Reason.PROTOCOL, " ".join(cause.message.split())[:200])
        if isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, aiohttp.ClientOSError)):
            where = "within the body" if response.status else "before any answer"
            return FetchError(Reason.DISCONNECTED, f"the connection was closed {where}: {text}")
        if isinstance(error, OSError):
            return FetchError(Reason.DISCONNECTED, text)
        return FetchError(Reason.PROTOCOL, text)

    async def _request(self, fetch: Fetch, address: str) -> None:
        request = fetch.request
        target = request.target
        host = f"[{address}]" if ":" in address else address
        shared = {} if request.forwarded else self._headers
        headers = {"Host": target.host_header, **shared, **request_headers_of(request)}
        url, proxy, hop = f"{target.scheme}://{host}:{request.route.port}{target.path}", None, request.route.proxy
        if hop is not None:
            TUNNEL_OF_TASK.set((hop, fetch.on_proxy_connected))
            if not hop.tunnel:
                url, proxy = target.shown, f"http://{host}:{request.route.port}"
                headers |= proxy_headers_of(hop)
        async with self._open_session(hop is not None and hop.tunnel).request(
            request.method,
            URL(url, encoded=True),
            headers=headers,
            data=request.body,
            allow_redirects=False,
            server_hostname=request.route.tls_name or None,
            proxy=proxy,
            trace_request_ctx=fetch,
        ) as reply:
            fetch.phase = BODY
            if self._config.raw_capture:
                secrets = {"authorization", *(name.lower() for name in request.secret_headers or ())}
                public_headers = {k: v for k, v in reply.request_info.headers.items() if k.lower() not in secrets}
                fetch.response.request_head = _request_head(target.path, public_headers)
            if not await self._read(fetch, reply):
                reply.close()

    async def _read(self, fetch: Fetch, reply: aiohttp.ClientResponse) -> bool:
        """Fill the response; False when the connection must not be used again."""
        response, request, config = fetch.response, fetch.request, self._config
        if reply.status == 408 and fetch.reused:
            raise FetchError(Reason.STALE, "the server had ended the idle connection (408)")
        status = response.status = reply.status
        response.head_at = self._clock.monotonic()
        headers: dict[str, str] = {}
        for raw_name, raw_value in reply.raw_headers:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            headers[name] = response_head.joined(name, headers[name], value) if name in headers else value
        response.headers = headers
        if config.raw_capture:
            response.response_head = _response_head(reply)
        if "content-type" in headers:
            response.content_type, response.charset = media_type(headers["content-type"])
        is_page = request.wants_body(response)
        if is_page and not request.any_type and not self._wanted(response.content_type):
            response.reason, response.detail = Reason.CONTENT_TYPE, f"{response.content_type} is not wanted"
            return False
        try:
            is_head = request.method == "HEAD"
            length, exact = (0, response_head.is_exact(headers)) if is_head else response_head.framing(status, headers)
            exact = exact and response_head.keeps_alive(headers, reply.version is None or reply.version >= (1, 1))
            if not exact and reply.connection is not None and reply.connection.protocol is not None:
                # At the end of the body aiohttp returns the connection to its pool by itself.
                reply.connection.protocol.force_close()
            limit = request.max_bytes or config.max_wire_bytes
            if is_page and length > limit and not request.keep:
                raise FetchError(Reason.TOO_LARGE, f"Content-Length {length} is over {limit}")
            if not is_page and length > DRAIN_BYTES:
                response.truncated = "length"
                return False
            codings = codings_of(headers.get("content-encoding", "")) if is_page else []
            keep = request.keep if is_page else DRAIN_BYTES
            body = Body(config, codings, keep, config.raw_capture, request.max_bytes)
            return await self._read_body(fetch, reply, body) and exact
        except (FetchError, aiohttp.ClientError, OSError):
            if is_page:
                raise
            response.truncated = "disconnect"
            return False

    async def _read_body(self, fetch: Fetch, reply: aiohttp.ClientResponse, body: Body) -> bool:
        response = fetch.response
        fetch.body = body
        covered = LARGE_BYTES
        try:
            async for data in reply.content.iter_any():
                fetch.progress_count += 1
                until = self._clock.monotonic() + SLICE_S
                for _ in body.steps(data):
                    if body.size > covered:
                        covered = await self._reserve(fetch, body)
                    if self._clock.monotonic() >= until:
                        await asyncio.sleep(0)
                        until = self._clock.monotonic() + SLICE_S
                if body.full:
                    break
        finally:
            response.wire_bytes = body.wire_bytes
        response.wire_body = body.wire_body()
        decoded = body.finish()
        if response.memory is not None:
            response.memory.settle(BODY_FACTOR * body.size)
            response.memory.arrived_bytes = body.size
        response.truncated = "length" if body.full else ""
        if fetch.request.wants_body(response):
            response.body = decoded
        else:
            response.error_body = decoded
            if self._config.raw_capture:
                response.wire_body = decoded
        return not body.full

    async def _reserve(self, fetch: Fetch, body: Body) -> int:
        """Reserve the memory of a body that is not complete; the size up to which it is reserved then."""
        response, size = fetch.response, min(further(body.size), max(body.limit, body.size))
        if response.memory is None:
            response.memory = self._budget.open(ReservationKind.BODY, fetch.request.target.host)
        response.memory.arrived_bytes = body.size
        granted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if not response.memory.ask(BODY_FACTOR * size, lambda yes: None if granted.done() else granted.set_result(yes)):
            fetch.waiting = True
            if not await granted:
                raise FetchError(MEMORY, "the memory is needed for an earlier body")
            fetch.waiting = False
        return size

    def _open_session(self, tunnel: bool) -> aiohttp.ClientSession:
        session = self._sessions.get(tunnel)
        if session is None:
            config = self._config
            trace = aiohttp.TraceConfig()
            trace.on_request_headers_sent.append(_on_sent)
            trace.on_connection_reuseconn.append(_on_reused)
            context = tls_context(config.tls_verify, config.ca_file)
            session = self._sessions[tunnel] = aiohttp.ClientSession(
                connector=TunnelConnector(context, self._demanding)
                if tunnel
                else DirectConnector(context, config.keepalive_s, config.rest_s, self._demanding),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                auto_decompress=False,
                skip_auto_headers=_OWN_HEADERS,
                trace_configs=[trace],
                max_line_size=MAX_HEAD_BYTES,
                max_field_size=MAX_HEAD_BYTES,
                read_bufsize=256 << 10,
            )
            # There is no public setting: aiohttp would repeat a GET at once when a kept connection breaks.
            session._retry_connection = False
        return session


async def _on_sent(session: aiohttp.ClientSession, context: Any, parameters: Any) -> None:
    fetch: Fetch = context.trace_request_ctx
    fetch.phase = HEADERS
    if fetch.request.on_sent is not None and fetch.on_done is not None:
        fetch.request.on_sent()


async def _on_reused(session: aiohttp.ClientSession, context: Any, parameters: Any) -> None:
    context.trace_request_ctx.reused = True


def _request_head(path: str, headers: Any) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1", "replace")


def _response_head(reply: aiohttp.ClientResponse) -> bytes:
    version = reply.version
    assert version is not None, "aiohttp sets it with the head"
    major, minor = version.major, version.minor
    start = f"HTTP/{major}.{minor} {reply.status} {reply.reason or ''}\r\n".encode("latin-1", "replace")
    return start + b"".join(name + b": " + value + b"\r\n" for name, value in reply.raw_headers) + b"\r\n"
