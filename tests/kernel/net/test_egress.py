"""What the egress guard lets pass, and what no spelling gets past it."""

from __future__ import annotations

import ipaddress
import re

import pytest
from nephila.kernel.net.egress import EgressError, EgressGuard, HostMap, denial, embedded
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
    "::ffff:127.0.0.1": "loopback (127.0.0.1 inside)",
    "::ffff:10.1.2.3": "private (10.1.2.3 inside)",
    "::ffff:169.254.169.254": "cloud metadata (169.254.169.254 inside)",
    "::ffff:8.8.8.8": "not global",
    "::ffff:0:127.0.0.1": "loopback (127.0.0.1 inside)",
    "::ffff:0:8.8.8.8": "not global",
    "::127.0.0.1": "loopback (127.0.0.1 inside)",
    "::8.8.8.8": "not global",
    "64:ff9b::127.0.0.1": "loopback (127.0.0.1 inside)",
    "64:ff9b::a9fe:a9fe": "cloud metadata (169.254.169.254 inside)",
    "64:ff9b::8.8.8.8": "",
    "2002:7f00:1::1": "loopback (127.0.0.1 inside)",
    "2002:c0a8:101::1": "private (192.168.1.1 inside)",
    "2002:808:808::1": "",
    "2002:808:808::5efe:10.0.0.1": "private (10.0.0.1 inside)",
    "2001:0:808:808::80ff:fffe": "loopback (127.0.0.1 inside)",  # Teredo: the client, all bits inverted
    "2001:0:7f00:1::f7f7:f7f7": "loopback (127.0.0.1 inside)",  # the Teredo server
    "2001:0:808:808::f7f7:f7f7": "",
    "2606:4700::5efe:127.0.0.1": "loopback (127.0.0.1 inside)",  # ISATAP
    "2606:4700::200:5efe:10.0.0.1": "private (10.0.0.1 inside)",
    "2606:4700::5efe:8.8.8.8": "",
    "2606:4700::100:5efe:10.0.0.1": "",  # neither of the two marks of ISATAP
    "2606:4700:0:5efe::10.0.0.1": "",  # a mark of ISATAP at the wrong place
}
"""IPv6 addresses that contain IPv4 addresses, and why they are refused; empty: they may be dialled."""

EDGES = {
    "9.255.255.255": "",
    "11.0.0.0": "",
    "100.63.255.255": "",
    "100.128.0.0": "",
    "126.255.255.255": "",
    "128.0.0.0": "",
    "169.253.255.255": "",
    "169.255.0.0": "",
    "172.15.255.255": "",
    "172.32.0.0": "",
    "192.0.1.0": "",
    "192.88.98.255": "",
    "192.88.99.1": "reserved",
    "192.88.100.0": "",
    "192.167.255.255": "",
    "192.169.0.0": "",
    "198.17.255.255": "",
    "198.20.0.0": "",
    "1fff:ffff::1": "not global",
    "2000::1": "",
    "2001:1ff:ffff::1": "not global",
    "2001:200::1": "",
    "2001:db7:ffff::1": "",
    "2001:db9::1": "",
    "3ffe:ffff::1": "",
    "3fff:fff:ffff::1": "documentation",
    "3fff:1000::1": "",
    "5f00::1": "segment routing",
    "168.63.129.16": "cloud metadata",
    "168.63.129.17": "",
    "169.254.170.2": "cloud metadata",
    "192.0.0.192": "cloud metadata",
    "fd20:ce::254": "cloud metadata",
    "fd20:ce::255": "unique local",
}
"""The first and the last address outside of networks, and addresses that a cloud gives a meaning."""

BLOCKED = (
    "0, 1 tcpmux, 7 echo, 9 discard, 11 systat, 13 daytime, 15 netstat, 17 qotd, 19 chargen, 20 ftp-data, 21 ftp, "
    "22 ssh, 23 telnet, 25 smtp, 37 time, 42 name, 43 nicname, 53 domain, 69 tftp, 77, 79 finger, 87, 95 supdup, "
    "101 hostname, 102 iso-tsap, 103 gppitnp, 104 acr-nema, 109 pop2, 110 pop3, 111 sunrpc, 113 auth, 115 sftp, "
    "117 uucp-path, 119 nntp, 123 ntp, 135 epmap, 137 netbios-ns, 139 netbios-ssn, 143 imap, 161 snmp, 179 bgp, "
    "389 ldap, 427 svrloc, 465 submissions, 512 exec, 513 login, 514 shell, 515 printer, 526 tempo, 530 courier, "
    "531 chat, 532 netnews, 540 uucp, 548 afp, 554 rtsp, 556 remotefs, 563 nntps, 587 submission, 601 syslog-conn, "
    "636 ldaps, 989 ftps-data, 990 ftps, 993 imaps, 995 pop3s, 1719 h323gatestat, 1720 h323hostcall, 1723 pptp, "
    "2049 nfs, 3659 apple-sasl, 4045 npp, 4190 sieve, 5060 sip, 5061 sips, 6000 x11, 6566 sane-port, 6665 ircu, "
    "6666 ircu, 6667 ircu, 6668 ircu, 6669 ircu, 6679 osaut, 6697 ircs-u, 10080 amanda"
)
"""The table "port blocking" of the fetch standard, with the names of the services."""


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_pass(address: str) -> None:
    """Global unicast addresses may be dialled."""
    assert denial(address) == ""


@pytest.mark.parametrize(("address", "name"), DENIED.items())
def test_special_addresses_are_named(address: str, name: str) -> None:
    """Every special-purpose network is refused and called by its name."""
    assert denial(address) == name


@pytest.mark.parametrize(("address", "name"), EDGES.items())
def test_networks_end_where_the_registries_say(address: str, name: str) -> None:
    """No address beside a special network is refused with it."""
    assert denial(address) == name


@pytest.mark.parametrize(("address", "name"), CARRIERS.items())
def test_inner_addresses_are_judged(address: str, name: str) -> None:
    """An inner IPv4 address is checked as well, in every form; a public one does not make its carrier public."""
    assert denial(address) == name


def test_the_addresses_inside_are_found() -> None:
    """6to4 has its address in the second and third group, Teredo a server and an inverted client."""
    assert [str(one) for one in embedded(ipaddress.IPv6Address("2002:808:808::1"))] == ["8.8.8.8"]
    teredo = ipaddress.IPv6Address("2001:0:102:304::f6f5:f4f3")
    assert [str(one) for one in embedded(teredo)] == ["1.2.3.4", "9.10.11.12"]
    assert embedded(ipaddress.IPv6Address("2606:4700::1111")) == []


def test_denied_addresses_are_left_out() -> None:
    """Of a name with good and bad addresses only the good ones are dialled."""
    assert EgressGuard().allowed("x.test", ["10.0.0.1", "8.8.8.8", "::1"]) == ("8.8.8.8",)


def test_nothing_left() -> None:
    """A name with no good address is refused, and the refusal says why."""
    with pytest.raises(EgressError, match=r"x\.test: 10\.0\.0\.1 is private; ::1 is loopback"):
        EgressGuard().allowed("x.test", ["10.0.0.1", "::1"])
    with pytest.raises(EgressError, match=r"^x\.test: no address$"):
        EgressGuard().allowed("x.test", [])


def test_a_refusal_names_three_addresses() -> None:
    """A name may have hundreds."""
    with pytest.raises(EgressError) as refused:
        EgressGuard().allowed("x.test", [f"10.0.0.{number}" for number in range(1, 9)])
    assert str(refused.value) == "x.test: 10.0.0.1 is private; 10.0.0.2 is private; 10.0.0.3 is private"


def test_open_guard() -> None:
    """allow_private opens addresses and ports."""
    guard = EgressGuard(allow_private=True)
    assert guard.allowed("x.test", ["127.0.0.1"]) == ("127.0.0.1",)
    guard.check_port(22)


def test_exactly_the_ports_of_the_standard_are_refused() -> None:
    """No other port is."""
    guard, refused = EgressGuard(), []
    for port in range(65_536):
        try:
            guard.check_port(port)
        except EgressError as error:
            refused.append(str(error))
    assert refused == [f"port {entry.partition(' ')[0]} is blocked" for entry in BLOCKED.split(", ")]


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
    assert HostMap(["x.test=127.0.0.1"]).find("y.test") is None


def test_a_host_map_with_entries_is_true() -> None:
    """Of either kind."""
    assert HostMap(["x.test=127.0.0.1"])
    assert HostMap(["*.x.test=127.0.0.1"])
    assert not HostMap()


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("127.0.0.1:1", ("127.0.0.1", 1)),
        ("127.0.0.1:65535", ("127.0.0.1", 65_535)),
        ("[::1]", ("::1", 0)),
        ("[::1]:82", ("::1", 82)),
    ],
)
def test_a_host_map_with_ports(target: str, found: tuple[str, int]) -> None:
    """All ports but 0; brackets with and without one."""
    assert HostMap([f"x.test={target}"]).find("x.test") == found


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("", "expected 'name=address'"),
        ("x", "expected 'name=address'"),
        ("x=", "expected 'name=address'"),
        ("=127.0.0.1", "expected 'name=address'"),
        ("x=y.test", "'y.test' is not an IP address"),
        ("x=127.0.0.1:0", "'0' is not a port"),
        ("x=127.0.0.1:65536", "'65536' is not a port"),
        ("x=127.0.0.1:", "'' is not a port"),
        ("x=127.0.0.1:\u0668\u0660", "is not a port"),
        ("x=[::1", "is not of the form"),
        ("x=[::1]81", "is not of the form"),
        ("a*.test=127.0.0.1", "is not a host name"),
        ("*.*.test=127.0.0.1", "is not a host name"),
        ("http://x=127.0.0.1", "is not a host name"),
        ("x:80=127.0.0.1", "is not a host name"),
        ("\u00fc|.test=127.0.0.1", "is not a host name"),
    ],
)
def test_host_map_nonsense(entry: str, says: str) -> None:
    """Nonsense is one clear line."""
    with pytest.raises(UsageError, match=f"^host map {re.escape(repr(entry))}: .*{says}"):
        HostMap([entry])


def test_a_host_map_in_the_letters_of_its_language():
    """Names are matched as URLs spell them."""
    found = HostMap(["b\u00fccher.test=127.0.0.1", "*.\u4f8b.test=127.0.0.2"])
    assert found.find("xn--bcher-kva.test") == ("127.0.0.1", 0)
    assert found.find("a.xn--fsq.test") == ("127.0.0.2", 0)


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "169.254.1.1", "::ffff:169.254.169.254", "fd00:ec2::254", "64:ff9b::a9fe:a9fe", "fe80::1",
     "100.100.100.200", "2002:a9fe:a9fe::1"],
)  # fmt: skip
def test_metadata_and_link_local_addresses_stay_closed_to_a_crawl_of_private_networks(address):
    guard = EgressGuard(allow_private=True)
    with pytest.raises(EgressError, match=r"cloud metadata|link-local"):
        guard.allowed("inside.test", [address])
    assert guard.allowed("inside.test", [address, "10.0.0.1", "127.0.0.1", "fd12::1"]) == (
        "10.0.0.1",
        "127.0.0.1",
        "fd12::1",
    )
