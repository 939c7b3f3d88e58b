"""Every adversary ends with its outcome, in both fetchers and through the gateway; the next page is fetched."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from adversary_server import CASES, DNS, FETCHED, LIMITS, PAGE, REDIRECT, Case, Rebinding, silent
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from gateway_client import DOCUMENT, client_of
from nephila.kernel.messages import FetchOutcome, FetchResult

from tests.contracts.fetcher_server import Server, response
from tests.dns_server import DnsServer
from tests.downloader_client import outcomes

GOOD = response(PAGE, "Content-Type: text/html")
UNPACED = {"per_address": 0, "address_gap_s": 0, **LIMITS}
RESULTS = {FetchResult.FETCHED: FETCHED, FetchResult.REDIRECT: REDIRECT}


def named(outcome: FetchOutcome) -> str:
    """The outcome in the words of the table."""
    return RESULTS.get(outcome.result) or outcome.reason


@pytest.mark.parametrize("fetcher", ["native", "aiohttp"])
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_http(case: Case, fetcher: str) -> None:
    """The outcome of the table, with a text for people; the page after it is fetched."""
    async with Server(case.answer, GOOD) as server:
        host_map = (f"*.test=127.0.0.1:{server.port}",)
        urls = ("http://bad.test/bad", "http://bad.test/good", "http://bad.test/again")
        bad, good, again = await outcomes(*urls, **UNPACED, fetcher=fetcher, host_map=host_map)
        expected = case.aiohttp if fetcher == "aiohttp" and case.aiohttp else case.outcome
        assert named(bad) == expected, bad.detail
        if bad.result == FetchResult.FAILED and not bad.reason.startswith("http_"):
            assert bad.detail
            assert "\n" not in bad.detail
        # A kept connection with bytes of the adversary in it is recognised at the latest by the request after it.
        assert FETCHED in (named(good), named(again))


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_through_the_gateway(case: Case) -> None:
    """The browser receives a response or an error, the result has the reason, and the next page comes."""
    async with Server(case.answer, GOOD) as server, client_of(server, **LIMITS) as client:
        client.register("http://bad.test/bad", total_s=20.0)
        reply = await client.get("http://bad.test/bad", DOCUMENT)
        result = client.result()
        expected = case.browser or case.outcome
        if expected in (FETCHED, REDIRECT, "bad_redirect"):
            assert result.document is not None, result.detail
            assert reply.status in (200, 204, 304, 999)
        else:
            assert (result.document, result.reason) == (None, expected), result.detail
            assert reply.status in (502, 504)
        client.register("http://bad.test/good")
        assert (await client.get("http://bad.test/good", DOCUMENT)).status == 200


# ---- TLS


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """A CA that the downloader trusts."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return ca


def _context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def _good(ca: trustme.CA) -> ssl.SSLContext:
    return _context(ca.issue_cert("bad.test"))


def _expired(ca: trustme.CA) -> ssl.SSLContext:
    return _context(ca.issue_cert("bad.test", not_after=datetime.now(UTC) - timedelta(days=1)))


def _wrong_name(ca: trustme.CA) -> ssl.SSLContext:
    return _context(ca.issue_cert("other.test"))


def _unknown_authority(_: trustme.CA) -> ssl.SSLContext:
    return _context(trustme.CA().issue_cert("bad.test"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def _old_version(ca: trustme.CA) -> ssl.SSLContext:
    context = _good(ca)
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


def _not_yet_valid(ca: trustme.CA) -> ssl.SSLContext:
    begin = datetime.now(UTC) + timedelta(days=1)
    return _context(ca.issue_cert("bad.test", not_before=begin, not_after=begin + timedelta(days=1)))


def _rsa_key_exchange(ca: trustme.CA) -> ssl.SSLContext:
    context = _context(ca.issue_cert("bad.test", key_type=trustme.KeyType.RSA))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AES128-GCM-SHA256:@SECLEVEL=0")
    return context


def _client_certificate(ca: trustme.CA) -> ssl.SSLContext:
    context = _good(ca)
    ca.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _self_signed(_: trustme.CA) -> ssl.SSLContext:
    return _context(self_signed("bad.test"))


def self_signed(name: str, *, is_authority: bool = True, days: int = 1) -> Any:
    """A certificate that names itself as its issuer, as `openssl req -x509` makes it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=9)).not_valid_after(now + timedelta(days=days))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(is_authority, None), critical=True)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    plain = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return trustme.LeafCert(secret, pem, [])


TLS = [
    (_good, FETCHED, ""),
    (_expired, "tls", "tls_expired"),
    (_not_yet_valid, "tls", "tls_not_yet_valid"),
    (_wrong_name, "tls", "tls_name"),
    (_unknown_authority, "tls", "tls_issuer"),
    (_self_signed, "tls", "tls_self_signed"),
    (_old_version, "tls", ""),  # this server closes without an alert
]
REFUSALS = [
    (_old_version, "tls_protocol"),
    (_rsa_key_exchange, "tls_protocol"),
    (_client_certificate, "tls_client_certificate"),
]


@contextlib.contextmanager
def blocking_server(context: ssl.SSLContext) -> Iterator[int]:
    """The port of a server that sends its alerts, as most do: one of asyncio closes without."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client = listener.accept()[0]
                with contextlib.suppress(OSError), context.wrap_socket(client, server_side=True) as connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
@pytest.mark.parametrize("lane", ["native", "aiohttp"])
@pytest.mark.parametrize(("make", "cause"), REFUSALS, ids=[row[0].__name__.strip("_") for row in REFUSALS])
async def test_a_handshake_that_cannot_succeed(make: Any, cause: str, lane: str, authority: trustme.CA) -> None:
    """TLS 1.1, RSA key exchange and a demand for a client certificate: one cause each."""
    with blocking_server(make(authority)) as port:
        (outcome,) = await outcomes(
            "https://bad.test/", **UNPACED, fetcher=lane, host_map=(f"*.test=127.0.0.1:{port}",)
        )
        assert (named(outcome), outcome.cause) == ("tls", cause), outcome.detail


@pytest.mark.parametrize("lane", ["native", "aiohttp"])
@pytest.mark.parametrize("is_authority", [True, False])
async def test_a_trusted_self_signed_certificate(is_authority: bool, lane: str, tmp_path: Path) -> None:
    """`ca_file` trusts it for its own names, whether it calls itself an authority or not; `tls_verify: false` any."""
    certificate = self_signed("bad.test", is_authority=is_authority)
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "own.pem")
    async with Server(GOOD, tls=_context(certificate)) as server:
        settings = {**UNPACED, "fetcher": lane, "host_map": (f"*.test=127.0.0.1:{server.port}",)}
        own = str(tmp_path / "own.pem")
        for url, given, cause in (
            ("https://bad.test/", {"ca_file": own}, ""),
            ("https://other.test/", {"ca_file": own}, "tls_name"),
            ("https://other.test/", {"tls_verify": False}, ""),
            ("https://bad.test/", {}, "tls_self_signed"),
        ):
            (outcome,) = await outcomes(url, **settings, **given)
            assert (named(outcome), outcome.cause) == ("tls" if cause else FETCHED, cause), outcome.detail


@pytest.mark.parametrize("is_authority", [True, False])
async def test_a_trusted_self_signed_certificate_that_has_expired(is_authority: bool, tmp_path: Path) -> None:
    """Trust does not make it last longer."""
    certificate = self_signed("bad.test", is_authority=is_authority, days=-1)
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "own.pem")
    async with Server(GOOD, tls=_context(certificate)) as server:
        settings = {**UNPACED, "fetcher": "native", "host_map": (f"*.test=127.0.0.1:{server.port}",)}
        (outcome,) = await outcomes("https://bad.test/", **settings, ca_file=str(tmp_path / "own.pem"))
        assert (named(outcome), outcome.cause) == ("tls", "tls_expired"), outcome.detail


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
@pytest.mark.parametrize("lane", ["native", "aiohttp", "gateway"])
@pytest.mark.parametrize(("make", "expected", "cause"), TLS, ids=[row[0].__name__.strip("_") for row in TLS])
async def test_tls(make: Any, expected: str, cause: str, lane: str, authority: trustme.CA) -> None:
    """Certificates are checked against the CAs of the system, names and versions too, and each fault has its cause;
    the browser gets no page."""
    async with Server(GOOD, tls=make(authority)) as server:
        host_map = (f"*.test=127.0.0.1:{server.port}",)
        if lane != "gateway":
            (outcome,) = await outcomes("https://bad.test/", **UNPACED, fetcher=lane, host_map=host_map)
            assert (named(outcome), outcome.cause) == (expected, cause), outcome.detail
        else:
            async with client_of(server, tls_verify=True, **LIMITS) as client:
                client.register("https://bad.test/")
                reply = await client.get("https://bad.test/", DOCUMENT)
                result = client.result()
                status, reason = (200, "") if expected == FETCHED else (502, "tls")
                assert (reply.status, result.reason, result.cause) == (status, reason, cause)


@pytest.mark.parametrize("lane", ["native", "aiohttp", "gateway"])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [(silent, "timeout"), (b"HTTP/1.1 400 no\r\n\r\n", "tls"), (b"\x16\x03\x03\x40\x00\x02", "tls")],
)
async def test_no_handshake(answer: Any, expected: str, lane: str) -> None:
    """A server that never answers the handshake, one that speaks HTTP, and one that closes within its first record."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answer is not silent:
            writer.write(answer)
            await writer.drain()
        else:
            await reader.read()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    limits = {**LIMITS, "connect_timeout_s": 0.3}
    settings = {"host_map": (f"*.test=127.0.0.1:{port}",), **limits}
    if lane != "gateway":
        (outcome,) = await outcomes("https://bad.test/", fetcher=lane, **(UNPACED | settings))
        assert named(outcome) == expected, outcome.detail
    else:
        async with client_of(None, allow_private=True, **settings) as client:
            client.register("https://bad.test/")
            assert (await client.get("https://bad.test/", DOCUMENT)).status in (502, 504)
            assert client.result().reason == expected
    server.close()


# ---- DNS


@pytest.mark.parametrize("lane", ["native", "gateway"])
@pytest.mark.parametrize(("answer", "expected"), DNS.values(), ids=DNS)
async def test_dns(answer: Any, expected: str, lane: str) -> None:
    """A name server that lies, fails or is silent costs a reason; private addresses are refused."""
    async with DnsServer({"bad.test": answer}) as dns:
        settings: dict[str, Any] = {
            "dns__servers": (dns.address,), "dns__resolver": "aiodns", "dns__timeout_s": 0.5, "allow_private": False,
        }  # fmt: skip
        if lane == "native":
            (outcome,) = await outcomes("http://bad.test/", **(UNPACED | settings))
            assert named(outcome) == expected, outcome.detail
        else:
            async with client_of(None, **LIMITS, **settings) as client:
                client.register("http://bad.test/")
                assert (await client.get("http://bad.test/", DOCUMENT)).status == 403
                assert client.result().reason == expected


@pytest.mark.parametrize("lane", ["native", "gateway"])
@pytest.mark.parametrize(("delay_s", "expected"), [(0.1, FETCHED), (5.0, "dns")])
async def test_a_slow_name_server(delay_s: float, expected: str, lane: str) -> None:
    """A late answer is used within the limit of the look-up; after it the page fails with a reason."""
    async with DnsServer({"bad.test": ("127.0.0.1",)}, delay_s) as dns, Server(GOOD) as server:
        limit_s = 10.0 if expected == FETCHED else 0.3
        settings: dict[str, Any] = {
            "dns__servers": (dns.address,), "dns__resolver": "aiodns", "dns__timeout_s": limit_s, **LIMITS,
        }  # fmt: skip
        url = f"http://bad.test:{server.port}/"
        if lane == "native":
            (outcome,) = await outcomes(url, **(UNPACED | settings))
            assert named(outcome) == expected, outcome.detail
        else:
            async with client_of(None, allow_private=True, **settings) as client:
                client.register(url, total_s=20.0)
                reply = await client.get(url, DOCUMENT)
                assert (reply.status, client.result().reason) == ((200, "") if expected == FETCHED else (403, "dns"))


async def test_an_answer_that_is_truncated_over_udp() -> None:
    """The name server is asked again over TCP."""
    dns = DnsServer()
    dns.over_tcp["bad.test"] = ("127.0.0.1",)
    async with dns, Server(GOOD) as server:
        settings = {"dns__servers": (dns.address,), "dns__resolver": "aiodns"}
        (outcome,) = await outcomes(f"http://bad.test:{server.port}/", **(UNPACED | settings))
        assert (named(outcome), dns.tcp_asked["bad.test"] > 0) == (FETCHED, True), outcome.detail


async def test_fifty_addresses_cost_three_attempts() -> None:
    """Of 50 addresses where nobody listens, three are dialled."""
    addresses = tuple(f"127.0.9.{number}" for number in range(1, 51))
    async with DnsServer({"bad.test": addresses}) as dns:
        settings = {"dns__servers": (dns.address,), "dns__resolver": "aiodns"}
        (outcome,) = await outcomes("http://bad.test:9/", **(UNPACED | settings))
        assert (named(outcome), outcome.address in addresses) == ("connect", True)


async def test_a_name_that_is_rebound() -> None:
    """A name that changes to a private address is checked at each look-up, and the checked address is dialled."""
    async with DnsServer({"bad.test": Rebinding("93.184.216.34", "127.0.0.1")}) as dns, Server(GOOD) as server:
        settings: dict[str, Any] = {
            "dns__servers": (dns.address,), "dns__resolver": "aiodns", "allow_private": False, **LIMITS,
            "connect_timeout_s": 0.2,
        }  # fmt: skip
        url = f"http://bad.test:{server.port}/"
        async with client_of(None, **settings) as client:
            client.register(url, total_s=20.0)
            for _ in range(3):
                await client.get(url, DOCUMENT)
            assert server.connections == 0
        first, second = await outcomes(url, url, **(UNPACED | settings))
        assert (named(first), named(second)) == ("address", "address")
        assert server.connections == 0


def test_the_documentation_has_every_case() -> None:
    """The table of docs/reliability.md names each server in the row of its outcome."""
    text = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()
    rows = dict(
        line.strip("| ").split(" | ", 1) for line in text.splitlines() if line.startswith("| ") and " | " in line
    )
    for case in CASES:
        assert case.name in rows[case.outcome].split(" · "), case.name
    for name, (_, reason) in DNS.items():
        assert f"| {reason} (DNS) | " in text
        assert name in text, name
