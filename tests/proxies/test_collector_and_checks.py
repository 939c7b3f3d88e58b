"""Sources, the pool file, checks and the keeper: real proxies and an echo page on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import threading
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
import trustme
from nephila.downloader.http.native import NativeFetcher
from nephila.downloader.routing.router import Router
from nephila.downloader.service import make_router
from nephila.kernel.runtime.clock import ManualClock, SystemClock
from nephila.kernel.runtime.errors import UsageError
from nephila_proxies.countries import Countries
from nephila_proxies.endpoint import parse_endpoint
from nephila_proxies.keeper import ProxyKeeper
from nephila_proxies.pool import ProxyPool
from nephila_proxies.proxy import ALIVE, CANDIDATE, EVICTED, REFUSED, Proxy, ProxyFault
from nephila_proxies.sources import FileSource, make_sources, parse_json, parse_lines
from nephila_proxies.store import PoolFile

from tests.downloader_settings import downloader_config
from tests.proxy_server import Mood, ProxyServer
from tests.waits import until


class Echo:
    """A page that shows the request it received; `/list` and `/api` are lists of proxies."""

    def __init__(self) -> None:
        self.bodies: dict[str, str] = {}
        self.heads: dict[str, str] = {}
        """Path → the last request for it."""

    async def __aenter__(self) -> Echo:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ")[1]
        self.heads[path] = head
        body = self.bodies.get(path, head)
        writer.write(f"HTTP/1.1 200 OK\r\nX-Country: DE\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()


@pytest.fixture
async def routers() -> AsyncIterator[Any]:
    """Builds a running router; all are closed after the test."""
    made: list[tuple[NativeFetcher, Router]] = []

    async def build(**changes: object) -> ProxyPool:
        config = downloader_config(**{"allow_private": True, "tls_verify": False, "rest_s": 0.0, **changes})
        fetcher = NativeFetcher(config.http, SystemClock())
        router = make_router(config, SystemClock(), fetcher)
        made.append((fetcher, router))
        await router.start()
        assert router.proxies is not None
        return router.proxies.pool

    yield build
    for fetcher, router in made:
        await fetcher.close()
        await router.close()


def states(pool: ProxyPool) -> dict[int, str]:
    """State of each proxy by its port."""
    return {proxy.endpoint.port: proxy.state.value for proxy in pool.proxies()}


async def test_checks_tell_good_dead_lying_and_refusing_proxies_apart(routers: Any, caplog: Any) -> None:
    """Each has the right state; refused credentials are one line without the password."""
    async with (
        Echo() as echo,
        ProxyServer() as good,
        ProxyServer() as dead,
        ProxyServer() as liar,
        ProxyServer(user="u", password="right") as strict,  # noqa: S106
    ):
        dead.become(Mood.DEAD)
        liar.become(Mood.LYING)
        wrong = f"http://u:wrong@127.0.0.1:{strict.port}"
        with caplog.at_level(logging.WARNING):
            pool = await routers(
                proxies__sources=(good.url(), dead.url(), liar.url(), wrong),
                proxies__check_url=f"{echo.url}/echo",
                proxies__country_header="x-country",
            )
            await until(lambda: "candidate" not in states(pool).values())
        assert states(pool) == {good.port: "alive", dead.port: "evicted", liar.port: "evicted", strict.port: "refused"}
        (alive,) = (proxy for proxy in pool.proxies() if proxy.state is ALIVE)
        assert (alive.anonymity, alive.country) == ("elite", "de")
        refused = [record.message for record in caplog.records if "refuses the credentials" in record.message]
        assert len(refused) == 1
        assert "wrong" not in caplog.text


async def test_a_proxy_that_reveals_itself_is_anonymous(routers: Any) -> None:
    """Headers of a proxy in the echo page."""
    async with Echo() as echo, ProxyServer({"echo.test": ("127.0.0.1", 0)}, reveals="198.51.100.7") as proxy:
        proxy.hosts["echo.test"] = ("127.0.0.1", int(echo.url.rpartition(":")[2]))
        pool = await routers(
            proxies__sources=(proxy.url(),), proxies__check_url=f"{echo.url}/echo", proxies__names="proxy"
        )
        await until(lambda: "alive" in states(pool).values())
        assert [one.anonymity for one in pool.proxies()] == ["anonymous"]


async def test_without_a_check_url_a_connection_is_enough(routers: Any) -> None:
    """A proxy that nobody listens for is out."""
    async with ProxyServer() as good, ProxyServer() as gone:
        await gone.close()
        pool = await routers(proxies__sources=(good.url(), gone.url()))
        await until(lambda: "candidate" not in states(pool).values())
        assert states(pool) == {good.port: "alive", gone.port: "evicted"}


async def test_the_certificate_of_an_https_proxy_counts(
    routers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a check URL as well: a proxy with the certificate of another name is out."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    contexts = []
    for name in ("127.0.0.1", "other.test"):
        contexts.append(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        authority.issue_cert(name).configure_cert(contexts[-1])
    async with ProxyServer(tls=contexts[0]) as good, ProxyServer(tls=contexts[1]) as wrong:
        pool = await routers(proxies__sources=(good.url("https"), wrong.url("https")), tls_verify=True)
        await until(lambda: "candidate" not in states(pool).values())
        assert states(pool) == {good.port: "alive", wrong.port: "evicted"}


async def test_lists_and_apis_are_read(routers: Any, tmp_path: Path) -> None:
    """A file, a list over HTTP and an API; what is no proxy is skipped. Private addresses only by allow_private."""
    listed = tmp_path / "list.txt"
    listed.write_text("# mine\n203.0.113.1:8080 country=fr provider=Acme\n\nnot a proxy line\n")
    async with Echo() as echo:
        echo.bodies = {
            "/list": "socks5://203.0.113.2\n203.0.113.3:80:user:secret",
            "/api": '{"data": {"items": [{"ip": "203.0.113.4", "port": 90, "country_code": "DE",'
            ' "isp": "Big Net"}, 7]}}',
        }
        pool = await routers(
            proxies__sources=(
                f"file {listed} class=own",
                f"list {echo.url}/list class=residential",
                f"json {echo.url}/api path=data.items",
            ),
            proxies__checks=1,
        )
        await until(lambda: len(pool) == 4)
    found = {proxy.name: (proxy.kind, proxy.country) for proxy in pool.proxies()}
    assert found == {
        "http://203.0.113.1:8080": ("own", "fr"),
        "socks5://203.0.113.2:1080": ("residential", ""),
        "http://user@203.0.113.3:80": ("residential", ""),
        "http://203.0.113.4:90": ("", "de"),
    }
    assert {proxy.provider for proxy in pool.proxies()} == {"acme", "big-net", ""}
    assert [proxy.endpoint.trusted for proxy in pool.proxies()].count(True) == 1


async def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """And not otherwise."""
    path = tmp_path / "proxies"
    path.write_text("a:1\n")
    source = FileSource(str(path), "", "")
    assert (await source.read()) is not None
    assert await source.read() is None
    path.write_text("a:1\nb:2\n")
    found = await source.read()
    assert found is not None
    assert [endpoint.host for endpoint in found.endpoints] == ["a", "b"]


@pytest.mark.parametrize(
    "line",
    [
        "ftp://a:1",
        "http://a:99999",
        "http://a:1/path",
        "a:b:c:d",
        "http://a:1 class=x/y",
        "http://a:1 country=deu",
        "a:1 z=1",
        "",
    ],
)
def test_lines_that_are_no_proxy(line: str) -> None:
    """Each has an error."""
    found = parse_lines((line or "http://").encode(), "", "", trusted=True)
    assert (found.endpoints, found.skipped) == ([], 1)


def test_errors_do_not_repeat_passwords() -> None:
    """A wrong entry of the settings is named by its number."""
    with pytest.raises(UsageError, match="entry 2") as caught:
        make_sources(("a:1", "ftp://u:secret@a"), "", None, None)  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)


def test_an_api_with_another_form_is_an_error() -> None:
    """It names the path."""
    for body in (b"{", b"{}", b'{"a": 1}'):
        with pytest.raises(ValueError, match=r"JSON|'a'|a is not"):
            parse_json(body, "a", "", "")


@pytest.mark.parametrize("user", ["a\\nb", "x" * 256])
def test_credentials_of_an_api_are_checked_as_those_of_a_line(user: str) -> None:
    """SOCKS5 has one byte for their length, and log lines contain the user."""
    body = f'[{{"host": "203.0.113.9", "port": 1, "user": "{user}"}}, "socks5://203.0.113.10:1"]'.encode()
    found = parse_json(body, "", "", "")
    assert ([endpoint.host for endpoint in found.endpoints], found.skipped) == (["203.0.113.10"], 1)


@pytest.mark.parametrize("place", ["user", "password"])
def test_credentials_have_255_bytes_at_most(place: str) -> None:
    """Of UTF-8, as SOCKS5 counts them."""
    parts = {"user": "u", "password": "p"}
    for text, fits in (("x" * 255, True), ("x" * 256, False), ("\u00e9" * 127, True), ("\u00e9" * 128, False)):
        given = {**parts, place: text}
        body = json.dumps([{"host": "203.0.113.9", "port": 1, **given}]).encode()
        assert [one.host for one in parse_json(body, "", "", "").endpoints] == ["203.0.113.9"] * fits


async def test_an_api_is_asked_with_its_token(routers: Any, tmp_path: Path) -> None:
    """A word alone is a bearer token; a scheme of its own is sent as it stands. A token that is missing is no list."""
    (tmp_path / "word").write_text("s3cret\n")
    (tmp_path / "scheme").write_text("Token abc")
    async with Echo() as echo:
        pool = await routers(
            proxies__sources=tuple(f"list {echo.url}/{name} token={name}" for name in ("word", "scheme", "missing")),
            secrets=str(tmp_path),
        )
        await until(lambda: len(echo.heads) == 2)
    assert len(pool) == 0
    assert {path: head.partition("Authorization: ")[2].splitlines()[0] for path, head in echo.heads.items()} == {
        "/word": "Bearer s3cret",
        "/scheme": "Token abc",
    }


async def test_a_check_in_flight_ends_with_the_keeper() -> None:
    """It is cancelled: a proxy that never answers does not delay the end of the program."""
    clock, begun, pool = ManualClock(), asyncio.Event(), ProxyPool()
    pool.replace("list", [parse_endpoint("http://203.0.113.1:80")])

    async def check(proxy: Proxy) -> Any:
        begun.set()
        await asyncio.Event().wait()

    validator = AsyncMock()
    validator.check = check
    keeper = ProxyKeeper(pool, [], validator, PoolFile("", clock), clock, collect_s=1, concurrency=1)
    await keeper.start()
    await asyncio.wait_for(begun.wait(), 60)
    await asyncio.wait_for(keeper.close(), 60)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_the_pool_is_stored_in_a_thread() -> None:
    """An fsync of seconds does not block the event loop; a store that is not done is not started twice."""
    clock, threads, release = ManualClock(), [], threading.Event()

    class SlowFile(PoolFile):
        def save(self, proxies: Iterable[Proxy]) -> None:
            threads.append(threading.get_ident())
            release.wait(60)

    keeper = ProxyKeeper(ProxyPool(), [], AsyncMock(), SlowFile("", clock), clock, collect_s=1, concurrency=1)
    await keeper.start()
    for _ in range(30):
        clock.advance(1)
        await asyncio.sleep(0)
    assert len(threads) <= 1
    release.set()
    await keeper.close()
    assert len(threads) == 2
    assert threading.get_ident() not in threads


def test_the_pool_survives_a_restart(tmp_path: Path) -> None:
    """States, scores, bans and the waits for checks."""
    clock, path = ManualClock(), tmp_path / "pool.json"
    pool = ProxyPool()
    pool.replace("list", [parse_endpoint(f"http://u:p@h{number}:1") for number in range(4)])
    first, second, third, _ = pool.proxies()
    for proxy in (first, second):
        proxy.addresses = ("203.0.113.1",)
        pool.check_passed(proxy, 0.5, clock.monotonic())
    pool.failed(first, ProxyFault.BANNED, "a.test", clock.monotonic())
    pool.check_failed(second, clock.monotonic())
    pool.failed(third, ProxyFault.REFUSED, "", clock.monotonic())
    PoolFile(str(path), clock).save(pool.proxies())
    assert path.stat().st_mode & 0o777 == 0o600
    later = ManualClock(clock.now() + 10, 5.0)
    found = PoolFile(str(path), later).load()
    assert [proxy.state for proxy in found] == [ALIVE, EVICTED, REFUSED, CANDIDATE]
    assert (found[0].endpoint.password, found[0].response_s) == ("p", 0.5)
    assert found[0].success == pytest.approx(first.success, abs=0.001)
    assert found[0].is_banned("a.test", later.monotonic())
    assert 0 < found[1].check_at - later.monotonic() <= 60


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 9, "proxies": []}', '{"version": 1, "proxies": [{}]}'])
def test_a_damaged_pool_file_is_ignored(tmp_path: Path, text: str, caplog: Any) -> None:
    """With one line in the log."""
    path = tmp_path / "pool.json"
    path.write_text(text)
    assert PoolFile(str(path), ManualClock()).load() == []
    assert len(caplog.records) == 1


def test_countries_of_addresses() -> None:
    """Ranges and networks, both families."""
    rows = [["203.0.113.0", "203.0.113.127", "DE"], ["198.51.100.0/24", "FR"], ["2001:db8::", "2001:db8::ff", "IT"]]
    countries = Countries(rows)
    asked = ("203.0.113.127", "203.0.113.128", "198.51.100.7", "2001:db8::1", "2001:db8::1:0", "1.1.1.1", "x")
    assert [countries.find(address) for address in asked] == ["de", "", "fr", "it", "", "", ""]
