"""CONNECT and SOCKS5: the bytes of both sides, in pieces of every size, and replies that no proxy may send."""

from __future__ import annotations

import pytest
from nephila.downloader.http.contract import FetchError
from nephila.downloader.http.route import ProxyHop
from nephila.downloader.http.tunnel.proxy_handshake import ConnectHandshake, Handshake, Socks5Handshake


def hop(scheme: str = "http", host: str = "203.0.113.9", user: str = "", password: str = "") -> ProxyHop:
    """A proxy, and where it is asked to connect to."""
    return ProxyHop("proxy", scheme, user, password, host, 443)


def talk(handshake: Handshake, *replies: bytes, size: int) -> list[bytes]:
    """All that is sent; each reply arrives in pieces of `size` bytes."""
    sent = [handshake.start()]
    for reply in replies:
        answer = b"".join(handshake.feed(reply[at : at + size]) for at in range(0, len(reply), size))
        sent.append(answer)
    return sent


SIZES = pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])


@SIZES
def test_connect_asks_for_address_and_port(size: int) -> None:
    """The tunnel is open after the empty line of a 2xx reply, whatever headers come before."""
    handshake = ConnectHandshake(hop())
    sent = talk(handshake, b"HTTP/1.0 200 Connection established\r\nVia: x\r\n\r\n", size=size)
    assert sent == [b"CONNECT 203.0.113.9:443 HTTP/1.1\r\nHost: 203.0.113.9:443\r\n\r\n", b""]
    assert handshake.done


def test_connect_writes_ipv6_in_brackets_and_credentials_in_base64() -> None:
    """Credentials are those of the proxy."""
    sent = ConnectHandshake(hop("http", "2001:db8::1", "u", "p:ä")).start()
    assert sent.startswith(b"CONNECT [2001:db8::1]:443 HTTP/1.1\r\n")
    assert b"\r\nProxy-Authorization: Basic dTpwOsOk\r\n\r\n" in sent


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"HTTP/1.1 407 no\r\n\r\n", "proxy_auth"),
        (b"HTTP/1.1 502 no\r\n\r\n", "connect"),
        (b"HTTP/1.1 504 no\r\n\r\n", "connect"),
        (b"HTTP/1.1 403 no\r\n\r\n", "tunnel_403"),
        (b"HTTP/1.1 100 no\r\n\r\n", "proxy"),
        (b"HTTP/1.1\r\n\r\n", "proxy"),
        (b"HTTP/1.1 2OO x\r\n\r\n", "proxy"),
        (b"SSH-2.0-x\r\n", "proxy"),
        (b"HTTP/1.1 200 x\r\n\r\nearly", "proxy"),
        (b"HTTP/1.1 200 x\r\n" + b"a: b\r\n" * 5000, "proxy"),
    ],
)
def test_connect_is_refused(reply: bytes, reason: str) -> None:
    """Each refusal has a reason that says whether the proxy, the credentials or the server is the cause."""
    handshake = ConnectHandshake(hop())
    handshake.start()
    with pytest.raises(FetchError) as caught:
        handshake.feed(reply)
    assert caught.value.reason == reason
    assert not handshake.done


@SIZES
def test_socks_by_address(size: int) -> None:
    """IPv4 and IPv6 addresses are sent as such."""
    handshake = Socks5Handshake(hop("socks5"))
    sent = talk(handshake, b"\x05\x00", b"\x05\x00\x00\x01\0\0\0\0\0\0", size=size)
    assert sent == [b"\x05\x01\x00", b"\x05\x01\x00\x01\xcb\x00\x71\x09\x01\xbb", b""]
    assert handshake.done
    six = Socks5Handshake(hop("socks5", "2001:db8::1"))
    assert (
        talk(six, b"\x05\x00", size=2)[1] == b"\x05\x01\x00\x04" + bytes.fromhex("20010db8") + bytes(11) + b"\1\1\xbb"
    )


@SIZES
def test_socks_by_name_with_credentials(size: int) -> None:
    """The name goes to the proxy; the bound address of the reply may be a name as well."""
    handshake = Socks5Handshake(hop("socks5", "a.test", "user", "pw"))
    sent = talk(handshake, b"\x05\x02", b"\x01\x00", b"\x05\x00\x00\x03\x03abc\x00\x50", size=size)
    assert sent == [b"\x05\x02\x00\x02", b"\x01\x04user\x02pw", b"\x05\x01\x00\x03\x06a.test\x01\xbb", b""]
    assert handshake.done


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ([b"\x04\x00"], "proxy"),
        ([b"HTTP"], "proxy"),
        ([b"\x05\xff"], "proxy_auth"),
        ([b"\x05\x01"], "proxy_auth"),
        ([b"\x05\x02", b"\x01\x01"], "proxy_auth"),
        ([b"\x05\x00", b"\x05\x01\x00\x01"], "proxy"),
        ([b"\x05\x00", b"\x05\x02"], "proxy"),
        ([b"\x05\x00", b"\x05\x03"], "connect"),
        ([b"\x05\x00", b"\x05\x04"], "connect"),
        ([b"\x05\x00", b"\x05\x05"], "connect"),
        ([b"\x05\x00", b"\x05\x63"], "proxy"),
        ([b"\x05\x00", b"\x05\x00\x00\x02\x00"], "proxy"),
        ([b"\x05\x00", b"\x05\x00\x00\x01" + bytes(6) + b"early"], "proxy"),
    ],
)
def test_socks_is_refused(replies: list[bytes], reason: str) -> None:
    """As for CONNECT."""
    handshake = Socks5Handshake(hop("socks5", "203.0.113.9", "user", "pw"))
    with pytest.raises(FetchError) as caught:
        talk(handshake, *replies, size=100)
    assert caught.value.reason == reason


def test_socks_without_credentials_does_not_offer_a_password() -> None:
    """A proxy that demands one nevertheless is refused."""
    handshake = Socks5Handshake(hop("socks5"))
    assert handshake.start() == b"\x05\x01\x00"
    with pytest.raises(FetchError, match="unknown"):
        handshake.feed(b"\x05\x02")


@pytest.mark.parametrize(
    ("code", "reason", "text"),
    [
        (1, "proxy", "general failure"),
        (2, "proxy", "not allowed by its rules"),
        (3, "connect", "network unreachable"),
        (4, "connect", "host unreachable"),
        (5, "connect", "connection refused"),
        (6, "connect", "time to live expired"),
        (7, "proxy", "command not supported"),
        (8, "proxy", "kind of address not supported"),
        (9, "proxy", "error 9"),
        (255, "proxy", "error 255"),
    ],
)
def test_each_code_of_socks_has_its_reason_and_text(code: int, reason: str, text: str) -> None:
    """RFC 1928, section 6: what the proxy could not reach is a fault of the server, all else one of the proxy."""
    handshake = Socks5Handshake(hop("socks5"))
    with pytest.raises(FetchError) as caught:
        talk(handshake, b"\x05\x00", bytes((5, code)), size=1)
    assert (caught.value.reason, str(caught.value)) == (reason, f"proxy: {text} (203.0.113.9)")
