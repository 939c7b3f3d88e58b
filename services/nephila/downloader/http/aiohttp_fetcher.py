"""The fetcher on aiohttp: slower, kept for what a full client does better (proxies, oddities), and as the twin that the
lean one is held against. It dials the checked address: the URL it passes on names the address, Host and SNI the host.

Heads for raw capture are put together again from what aiohttp parsed. `pool_size` does not apply.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
from yarl import URL

from nephila.downloader.config import DownloaderConfig
from nephila.downloader.http import response_head
from nephila.downloader.http.body import Body
from nephila.downloader.http.contract import (
    DRAIN_BYTES,
    MAX_DIALS,
    MAX_HEAD_BYTES,
    SLICE_S,
    Answer,
    FetchError,
    OnDone,
    Order,
)
from nephila.downloader.http.deadlines import BODY, CONNECT, HEADERS, Watch, Watched
from nephila.downloader.http.decode import codings_of
from nephila.downloader.http.request import media_filter, order_headers, request_headers
from nephila.downloader.http.tls import dial_error, tls_context
from nephila.kernel.runtime.clock import Clock

_OWN_HEADERS = frozenset(("User-Agent", "Accept", "Accept-Encoding"))


class Fetch(Watched):
    """One fetch on its way; the handle its caller holds."""

    __slots__ = ("answer", "fetcher", "on_done", "order", "progress_count", "reused", "task", "timed_out")

    def __init__(self, fetcher: AiohttpFetcher, order: Order, on_done: OnDone, started: float) -> None:
        super().__init__(started)
        self.fetcher = fetcher
        self.order = order
        self.on_done: OnDone | None = on_done
        self.answer = Answer()
        self.progress_count = 0
        self.timed_out = ""
        self.reused = False
        self.task: asyncio.Task[None] | None = None

    def abort(self) -> None:
        """See `Handle.abort`."""
        self.on_done = None
        self.fetcher.forget(self)
        if self.task is not None:
            self.task.cancel()

    @property
    def progress(self) -> int:
        """See `Watched.progress`."""
        return self.progress_count

    def time_out(self, detail: str) -> None:
        """See `Watched.time_out`; the task ends itself."""
        self.timed_out = detail
        if self.task is not None:
            self.task.cancel()


class AiohttpFetcher:
    """See `nephila.downloader.http.contract.Fetcher`."""

    def __init__(self, config: DownloaderConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._headers = request_headers(config)
        self._wanted = media_filter(config.accept, config.refuse)
        self._watch: Watch[Fetch] = Watch(config, clock)
        self._session: aiohttp.ClientSession | None = None

    def fetch(self, order: Order, on_done: OnDone) -> Fetch:
        """See `Fetcher.fetch`."""
        fetch = Fetch(self, order, on_done, self._clock.monotonic())
        fetch.task = asyncio.get_running_loop().create_task(self._run(fetch))
        self._watch.add(fetch)
        return fetch

    async def close(self) -> None:
        """See `Fetcher.close`."""
        fetches = self._watch.all()
        for fetch in fetches:
            fetch.abort()
        tasks = [fetch.task for fetch in fetches if fetch.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        self._watch.close()
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    def forget(self, fetch: Fetch) -> None:
        """Watch an aborted fetch no more."""
        self._watch.discard(fetch)

    async def _run(self, fetch: Fetch) -> None:
        answer = fetch.answer
        try:
            await self._try_addresses(fetch)
        except FetchError as error:
            answer.reason, answer.detail = error.reason, error.detail
        except asyncio.CancelledError:
            if not fetch.timed_out:
                raise
            self._on_time_out(answer, fetch.timed_out)
        finally:
            self._watch.discard(fetch)
        if answer.reason:
            answer.body = b""
        on_done, fetch.on_done = fetch.on_done, None
        if on_done is not None:
            on_done(answer)

    @staticmethod
    def _on_time_out(answer: Answer, detail: str) -> None:
        if answer.status and not 200 <= answer.status < 300:
            return  # the status said all there is to know
        answer.reason, answer.detail = "timeout", detail

    async def _try_addresses(self, fetch: Fetch) -> None:
        addresses = fetch.order.addresses[:MAX_DIALS]
        for number, address in enumerate(addresses, 1):
            fetch.phase = CONNECT
            fetch.dials = number
            fetch.answer.address = address
            try:
                await self._request(fetch, address)
                return
            except aiohttp.ClientConnectorError as error:
                found = dial_error(error.os_error, fetch.order.target.scheme)
            except aiohttp.ClientConnectorCertificateError as error:
                found = dial_error(error.certificate_error, "https")
            except asyncio.CancelledError:
                # Only an attempt to connect that took too long is followed by the next address.
                task = asyncio.current_task()
                if number == len(addresses) or not fetch.timed_out.startswith("connect:") or task is None:
                    raise
                task.uncancel()
                fetch.timed_out = ""
                continue
            except (aiohttp.ClientError, OSError, ValueError) as error:
                if fetch.reused and not fetch.answer.status:
                    raise FetchError("stale", "a kept connection broke before any answer") from None
                raise self._translate(fetch.answer, error) from None
            if number == len(addresses):
                raise found from None

    @staticmethod
    def _translate(answer: Answer, error: Exception) -> FetchError:
        """Foreign errors become words of ours, once."""
        cause = error.__cause__ or error
        text = " ".join(str(error).split())[:200] or type(error).__name__
        if isinstance(error, aiohttp.ClientResponseError):
            return FetchError("protocol", " ".join(error.message.split())[:200])
        if isinstance(cause, aiohttp.http_exceptions.TransferEncodingError) and "Not enough data" not in cause.message:
            return FetchError("protocol", " ".join(cause.message.split())[:200])
        if isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, aiohttp.ClientOSError)):
            where = "within the body" if answer.status else "before any answer"
            return FetchError("disconnected", f"the connection was closed {where}: {text}")
        if isinstance(error, OSError):
            return FetchError("disconnected", text)
        return FetchError("protocol", text)

    async def _request(self, fetch: Fetch, address: str) -> None:
        order = fetch.order
        target = order.target
        host = f"[{address}]" if ":" in address else address
        headers = {"Host": target.host_header, **self._headers, **dict(order_headers(order))}
        async with self._open_session().request(
            "GET" if order.body is None else "POST",
            URL(f"{target.scheme}://{host}:{order.dial_port}{target.path}", encoded=True),
            headers=headers,
            data=order.body,
            allow_redirects=False,
            server_hostname=target.dial_host.rstrip(".") if target.scheme == "https" else None,
            trace_request_ctx=fetch,
        ) as response:
            fetch.phase = BODY
            if self._config.raw_capture:
                secrets = {"authorization", *(name.lower() for name in order.headers)}
                shown = {k: v for k, v in response.request_info.headers.items() if k.lower() not in secrets}
                fetch.answer.request_head = _request_head(target.path, shown)
            if not await self._read(fetch, response):
                response.close()

    async def _read(self, fetch: Fetch, response: aiohttp.ClientResponse) -> bool:
        """Fill the answer; False when the connection must not be used again."""
        answer, order, config = fetch.answer, fetch.order, self._config
        status = answer.status = response.status
        headers: dict[str, str] = {}
        for raw_name, raw_value in response.raw_headers:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}{response_head.separator(name)}{value}" if name in headers else value
        answer.headers = headers
        if config.raw_capture:
            answer.response_head = _response_head(response)
        if "content-type" in headers:
            answer.content_type, answer.charset = response_head.media_type(headers["content-type"])
        is_page = 200 <= status < 300
        if is_page and not order.any_type and not self._wanted(answer.content_type):
            answer.reason, answer.detail = "content_type", f"{answer.content_type} is not wanted"
            return False
        try:
            length, exact = response_head.framing(status, headers)
            limit = order.max_bytes or config.max_wire_bytes
            if is_page and length > limit and not order.keep:
                raise FetchError("too_large", f"Content-Length {length} is over {limit}")
            if not is_page and length > DRAIN_BYTES:
                answer.truncated = "length"
                return False
            codings = codings_of(headers.get("content-encoding", "")) if is_page else []
            keep = order.keep if is_page else DRAIN_BYTES
            body = Body(config, codings, keep, config.raw_capture, order.max_bytes)
            return await self._read_body(fetch, response, body) and exact
        except (FetchError, aiohttp.ClientError, OSError):
            if is_page:
                raise
            answer.truncated = "disconnect"
            return False

    async def _read_body(self, fetch: Fetch, response: aiohttp.ClientResponse, body: Body) -> bool:
        answer = fetch.answer
        try:
            async for data in response.content.iter_any():
                fetch.progress_count += 1
                until = self._clock.monotonic() + SLICE_S
                for _ in body.steps(data):
                    if self._clock.monotonic() >= until:
                        await asyncio.sleep(0)
                        until = self._clock.monotonic() + SLICE_S
                if body.full:
                    break
        finally:
            answer.wire_bytes = body.wire_bytes
        answer.wire_body = body.wire_body()
        decoded = body.finish()
        answer.truncated = "length" if body.full else ""
        if 200 <= answer.status < 300:
            answer.body = decoded
        elif self._config.raw_capture:
            answer.wire_body = decoded
        return not body.full

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            config = self._config
            trace = aiohttp.TraceConfig()
            trace.on_request_headers_sent.append(_on_sent)
            trace.on_connection_reuseconn.append(_on_reused)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, ssl=tls_context(config.tls_verify), keepalive_timeout=config.keepalive_s
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                auto_decompress=False,
                skip_auto_headers=_OWN_HEADERS,
                trace_configs=[trace],
                max_line_size=MAX_HEAD_BYTES,
                max_field_size=MAX_HEAD_BYTES,
                read_bufsize=256 << 10,
            )
            # No public switch: aiohttp would send a GET again at once when a kept connection breaks.
            self._session._retry_connection = False
        return self._session


async def _on_sent(session: aiohttp.ClientSession, context: Any, parameters: Any) -> None:
    fetch: Fetch = context.trace_request_ctx
    fetch.phase = HEADERS
    if fetch.order.on_sent is not None and fetch.on_done is not None:
        fetch.order.on_sent()


async def _on_reused(session: aiohttp.ClientSession, context: Any, parameters: Any) -> None:
    context.trace_request_ctx.reused = True


def _request_head(path: str, headers: Any) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1", "replace")


def _response_head(response: aiohttp.ClientResponse) -> bytes:
    version = response.version
    major, minor = (version.major, version.minor) if version else (1, 1)
    start = f"HTTP/{major}.{minor} {response.status} {response.reason or ''}\r\n".encode("latin-1", "replace")
    return start + b"".join(name + b": " + value + b"\r\n" for name, value in response.raw_headers) + b"\r\n"
