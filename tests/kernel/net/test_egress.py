"""What the egress guard lets pass, and what no spelling gets past it."""

from __future__ import annotations

import pytest
from nephila.kernel.net.egress import BAD_PORTS, EgressError, EgressGuard, HostMap, denial, embedded
from nephila.kernel.runtime.errors import UsageError

PUBLIC = [
    "93.184.216.34",
    "8.8.8.8",
    "1.1.1.1",
    "223.255.255.254",
    "2606:4700::1111",
    "2a00:1450:4001::200e",
    "64:ff9b::808:808",
]
DENIED = {
    "127.0.0.1": "loopback",
    "127.255.255.255": "loopback",
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "169.254.1.1": "link-local",
    "169.254.169.254": "cloud metadata",
    "100.64.0.1": "carrier-grade NAT",
    "100.127.255.255": "carrier-grade NAT",
    "100.100.100.200": "cloud metadata",
    "192.0.0.8": "reserved",
    "192.0.2.1": "documentation",
    "198.51.100.1": "documentation",
    "203.0.113.1": "documentation",
    "198.18.0.1": "benchmark",
    "198.19.255.255": "benchmark",
    "224.0.0.1": "multicast",
    "239.255.255.250": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "fec0::1": "site-local",
    "fc00::1": "unique local",
    "fd12:3456::1": "unique local",
    "fd00:ec2::254": "cloud metadata",
    "ff02::1": "multicast",
    "2001:db8::1": "documentation",
    "3fff::1": "documentation",
    "2001:2::1": "benchmark",
    "100::1": "discard-only",
    "64:ff9b:1::10.0.0.1": "local NAT64",
    "64:ff9b:1:0a00:0:100::": "local NAT64",
    "64:ff9b:1:a:0:1::": "local NAT64",
    "64:ff9b:1:808:8:808:808:808": "local NAT64",
    "64:ff9b:2::1": "not global",
    "4000::1": "not global",
    "2001:10::1": "not global",
    "localhost": "not an address",
    "": "not an address",
}
CARRIERS = {
    "mapped": "::ffff:127.0.0.1",
    "mapped private": "::ffff:10.1.2.3",
    "mapped metadata": "::ffff:169.254.169.254",
    "translated": "::ffff:0:127.0.0.1",
    "compatible": "::127.0.0.1",
    "NAT64": "64:ff9b::127.0.0.1",
    "NAT64 metadata": "64:ff9b::a9fe:a9fe",
    "6to4": "2002:7f00:1::1",
    "6to4 private": "2002:c0a8:101::1",
    "Teredo client": "2001:0:808:808::80ff:fffe",
    "Teredo server": "2001:0:7f00:1::f7f7:f7f7",
    "ISATAP": "2606:4700::5efe:127.0.0.1",
    "ISATAP universal": "2606:4700::200:5efe:10.0.0.1",
}


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_pass(address: str) -> None:
    """Global unicast addresses may be dialled."""
    assert denial(address) == ""


@pytest.mark.parametrize(("address", "name"), DENIED.items())
def test_special_addresses_are_named(address: str, name: str) -> None:
    """Every special-purpose network is refused and called by its name."""
    assert denial(address) == name


@pytest.mark.parametrize("address", CARRIERS.values(), ids=CARRIERS.keys())
def test_inner_addresses_are_judged(address: str) -> None:
    """An inner IPv4 address is checked as well, in every form."""
    assert denial(address) != ""


def test_carriers_of_public_addresses() -> None:
    """6to4 and mapped forms of a public address are judged by what they carry; NAT64 of one may pass."""
    import ipaddress

    assert [str(one) for one in embedded(ipaddress.IPv6Address("2002:808:808::1"))] == ["8.8.8.8"]
    assert denial("64:ff9b::8.8.8.8") == ""
    assert denial("2002:808:808::1") == ""


def test_denied_addresses_are_left_out() -> None:
    """Of a name with good and bad addresses only the good ones are dialled."""
    assert EgressGuard().allowed("x.test", ["10.0.0.1", "8.8.8.8", "::1"]) == ("8.8.8.8",)


def test_nothing_left() -> None:
    """A name with no good address is refused, and the refusal says why."""
    with pytest.raises(EgressError, match=r"x\.test: 10\.0\.0\.1 is private; ::1 is loopback"):
        EgressGuard().allowed("x.test", ["10.0.0.1", "::1"])
    with pytest.raises(EgressError, match="no address"):
        EgressGuard().allowed("x.test", [])


def test_open_guard() -> None:
    """allow_private opens addresses and ports."""
    guard = EgressGuard(allow_private=True)
    assert guard.allowed("x.test", ["127.0.0.1"]) == ("127.0.0.1",)
    guard.check_port(22)


@pytest.mark.parametrize("port", [0, 22, 25, 6379 - 379, 6667, 10080])
def test_bad_ports(port: int) -> None:
    """Ports of the fetch standard's list are refused."""
    with pytest.raises(EgressError, match=f"port {port}"):
        EgressGuard().check_port(port)


@pytest.mark.parametrize("port", [80, 443, 8080, 8088, 3000])
def test_web_ports(port: int) -> None:
    """Ports that webs live on are not."""
    EgressGuard().check_port(port)
    assert port not in BAD_PORTS


def test_host_map_patterns() -> None:
    """Exact names win over wildcards, longer suffixes over shorter; a wildcard covers any depth but not its suffix."""
    found = HostMap(
        [
            "*.x.test=127.0.0.1",
            "a.x.test=127.0.0.2:81",
            "*.b.x.test=127.0.0.3",
            "*=127.0.0.4",
            "v.test=[::1]:82",
            "w.test=::1",
        ]
    )
    assert found.find("a.x.test") == ("127.0.0.2", 81)
    assert found.find("z.x.test") == ("127.0.0.1", 0)
    assert found.find("z.z.x.test") == ("127.0.0.1", 0)
    assert found.find("z.b.x.test") == ("127.0.0.3", 0)
    assert found.find("x.test") == ("127.0.0.4", 0)
    assert found.find("V.Test.") == ("::1", 82)
    assert found.find("w.test") == ("::1", 0)


def test_host_map_without_a_match() -> None:
    """A host no pattern covers is resolved as ever."""
    assert HostMap(["*.x.test=127.0.0.1"]).find("x.test") is None
    assert HostMap(["*.x.test=127.0.0.1"]).find("yx.test") is None
    assert not HostMap()


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "x",
        "x=",
        "=127.0.0.1",
        "x=y.test",
        "x=127.0.0.1:0",
        "x=127.0.0.1:70000",
        "x=127.0.0.1:",
        "x=[::1",
        "x=[::1]81",
        "a*.test=127.0.0.1",
        "*.*.test=127.0.0.1",
        "http://x=127.0.0.1",
        "x:80=127.0.0.1",
    ],
)
def test_host_map_nonsense(entry: str) -> None:
    """Nonsense is one clear line."""
    with pytest.raises(UsageError, match="host map"):
        HostMap([entry])


def test_a_host_map_in_the_letters_of_its_language():
    """Names are matched as URLs spell them."""
    found = HostMap(["b\u00fccher.test=127.0.0.1", "*.\u4f8b.test=127.0.0.2"])
    assert found.find("xn--bcher-kva.test") == ("127.0.0.1", 0)
    assert found.find("a.xn--fsq.test") == ("127.0.0.2", 0)
