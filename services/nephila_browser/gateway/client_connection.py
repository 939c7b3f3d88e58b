"""One connection of a browser to the gateway: proxy requests, CONNECT, TLS in it, requests inside, WebSockets.

Bytes of the browser pass up to three layers: TLS (after CONNECT, if the first byte starts a handshake), HTTP/1.1 (h11),
and a WebSocket tunnel. One request is answered at a time. Bytes that are not valid HTTP or TLS close the connection.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Protocol

import h11
from nephila.downloader.http.route import Route
from nephila.downloader.http.target import TargetUrl

from nephila_browser.gateway.certificates import CertificateAuthority
from nephila_browser.gateway.fetch_traffic import BrowserAnswer, FetchTraffic
from nephila_browser.gateway.forwarded_headers import merge
from nephila_browser.gateway.tls_layer import TlsLayer
from nephila_browser.gateway.upstream import Call, UpstreamRefused
from nephila_browser.gateway.websocket_tunnel import WebSocketTunnel, handshake

log = logging.getLogger(__name__)

MAX_REQUEST_HEAD = 64 << 10
MAX_REQUEST_BODY = 4 << 20
_TLS_HANDSHAKE = 22
_CHALLENGE = [("proxy-authenticate", 'Basic realm="nephila"')]


class GatewayHost(Protocol):
    """What a connection needs from the gateway."""

    certificates: CertificateAuthority

    def traffic_of(self, authorization: str) -> FetchTraffic | None:
        """The fetch with these proxy credentials."""

    async def dial_websocket(self, route: Route, make: Callable[[], WebSocketTunnel]) -> WebSocketTunnel:
        """Connect to the server of a WebSocket; raises `UpstreamRefused`."""

    def opened(self, connection: ClientConnection) -> None:
        """A connection was accepted."""

    def authenticated(self, connection: ClientConnection) -> None:
        """A connection has shown valid credentials."""

    def closed(self, connection: ClientConnection) -> None:
        """A connection was closed."""


class ClientConnection(asyncio.Protocol):
    """`_authority` is set after CONNECT; `_traffic` after the first valid credentials."""

    def __init__(self, host: GatewayHost) -> None:
        self._host = host
        self._transport: asyncio.Transport | None = None
        self._http = _new_http()
        self._tls: TlsLayer | None = None
        self._authority = ""
        self._scheme = "http"
        self._is_first = False
        self._traffic: FetchTraffic | None = None
        self._request: h11.Request | None = None
        self._body = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._early_bytes = 0
        self._websocket: WebSocketTunnel | None = None

    # ---- calls of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._host.opened(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._receive(data)
        except (ssl.SSLError, h11.ProtocolError, ValueError) as error:
            log.debug("a connection of a browser is closed: %s", error)
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.close()

    def pause_writing(self) -> None:
        if self._websocket is not None:
            self._websocket.hold(True)

    def resume_writing(self) -> None:
        if self._websocket is not None:
            self._websocket.hold(False)

    # ---- calls of fetch and tunnel

    def close(self) -> None:
        """Close the connection and abort its request."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
        if self._task is not None:
            self._task.cancel()
        if self._websocket is not None:
            websocket, self._websocket = self._websocket, None
            websocket.close()
        if self._traffic is not None:
            self._traffic.discard(self.close)
        self._host.closed(self)

    def write(self, data: bytes) -> None:
        """Send bytes to the browser."""
        if self._transport is None:
            return
        if self._tls is None:
            self._transport.write(data)
        else:
            self._tls.encrypt(data)
            self._transport.write(self._tls.to_send())

    # ---- layers

    def _receive(self, data: bytes) -> None:
        if self._is_first:
            self._is_first = False
            if data[0] == _TLS_HANDSHAKE:
                self._tls = TlsLayer(self._host.certificates.context(_name_of(self._authority)))
                self._scheme = "https"
        if self._tls is not None:
            data = self._tls.receive(data)
            if self._transport is not None and (encrypted := self._tls.to_send()):
                self._transport.write(encrypted)
        if not data:
            return
        if self._websocket is not None:
            self._websocket.send(data)
            return
        if self._task is not None:
            self._early_bytes += len(data)
            if self._early_bytes > MAX_REQUEST_HEAD:
                self.close()
                return
        self._http.receive_data(data)
        self._advance()

    def _advance(self) -> None:
        """Take events of h11 until a request is complete or more bytes are needed."""
        while self._task is None and self._transport is not None and self._websocket is None:
            event = self._http.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return
            if isinstance(event, h11.Request):
                self._request = event
                self._body = bytearray()
                if not self._authority:
                    self._authenticate(merge(event.headers).get("proxy-authorization", ""))
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > MAX_REQUEST_BODY or self._traffic is None:
                    self.close()
            elif isinstance(event, h11.EndOfMessage):
                self._on_request()
            else:
                self.close()

    # ---- requests

    def _on_request(self) -> None:
        request = self._request
        assert request is not None
        headers = merge(request.headers)
        if self._traffic is None:
            self._respond(BrowserAnswer(407, _CHALLENGE, b""))
            return
        method = request.method.decode("ascii", "replace")
        if method == "CONNECT":
            self._on_connect(request.target.decode("ascii", "replace"))
            return
        url = request.target.decode("latin-1")
        if self._authority:
            if not url.startswith("/"):
                url = "/"  # "*" of OPTIONS
            url = f"{self._scheme}://{self._authority}{url}"
        try:
            call = Call(method, TargetUrl(url), headers, bytes(self._body))
        except ValueError:
            self._respond(BrowserAnswer(400, [], b""))
            return
        serve = self._serve_websocket if headers.get("upgrade", "").lower() == "websocket" else self._serve
        assert self._traffic is not None
        self._early_bytes = 0
        self._task = asyncio.get_running_loop().create_task(serve(self._traffic, call))

    def _authenticate(self, authorization: str) -> None:
        traffic = self._host.traffic_of(authorization)
        if traffic is not self._traffic:
            if self._traffic is not None:
                self._traffic.discard(self.close)
            self._traffic = traffic
            if traffic is not None:
                traffic.add(self.close)
                self._host.authenticated(self)

    def _on_connect(self, authority: str) -> None:
        try:
            if self._authority:
                raise ValueError("CONNECT inside a tunnel")
            target = TargetUrl(f"https://{authority}/")
            if target.authorization or target.path != "/":
                raise ValueError("CONNECT with more than host and port")
        except ValueError:
            self._respond(BrowserAnswer(400, [], b""))
            return
        self.write(self._http.send(h11.Response(status_code=200, headers=[], reason=b"OK")) or b"")
        self._authority = f"{target.host}:{target.port}"
        self._http = _new_http()
        self._is_first = True

    async def _serve(self, traffic: FetchTraffic, call: Call) -> None:
        try:
            answer = await traffic.answer(call)
        except Exception:  # a fault of this program costs the request, not the gateway
            log.exception("a request of a browser failed")
            answer = BrowserAnswer(502, [], b"")
        self._task = None
        self._finish(answer)

    def _finish(self, answer: BrowserAnswer) -> None:
        try:
            self._respond(answer)
            self._advance()
        except (h11.ProtocolError, ValueError) as error:
            log.debug("a connection of a browser is closed: %s", error)
            self.close()

    def _respond(self, answer: BrowserAnswer) -> None:
        """Send a response and wait for the next request; close when the browser wants no other."""
        headers = list(answer.headers)
        if answer.status not in (204, 304):
            headers.append(("content-length", str(len(answer.body))))
        lines = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers]
        http, request = self._http, self._request
        start = http.send(h11.Response(status_code=answer.status, headers=lines, reason=b"")) or b""
        is_head = request is not None and request.method == b"HEAD"
        body = b"" if is_head or answer.status in (204, 304) else answer.body
        if body:
            start += http.send(h11.Data(data=body)) or b""
        self.write(start + (http.send(h11.EndOfMessage()) or b""))
        if http.our_state is h11.MUST_CLOSE or http.their_state is h11.MUST_CLOSE:
            if self._transport is not None:
                self._transport.close()
            return
        http.start_next_cycle()

    async def _serve_websocket(self, traffic: FetchTraffic, call: Call) -> None:
        try:
            route = await traffic.open_websocket(call)
            tunnel = await self._host.dial_websocket(route, lambda: WebSocketTunnel(self, traffic.count))
        except UpstreamRefused as refused:
            log.debug("a WebSocket is refused: %s", refused.detail)
            self._task = None
            self._finish(BrowserAnswer(403, [], b""))
            return
        except Exception:
            log.exception("a WebSocket of a browser failed")
            self._task = None
            self.close()
            return
        self._task = None
        if self._transport is None:
            tunnel.close()
            return
        self._websocket = tunnel
        tunnel.send(handshake(call, traffic.websocket_headers(call)))
        early, _ = self._http.trailing_data
        if early:
            tunnel.send(early)


def _new_http() -> h11.Connection:
    return h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_REQUEST_HEAD)


def _name_of(authority: str) -> str:
    """Host of an authority with a port, without brackets."""
    return authority.rpartition(":")[0].strip("[]")
