"""What an address bears is decided by the longest prefix that holds it; nonsense is one clear line."""

from __future__ import annotations

import ipaddress
import random

import pytest
from nephila.kernel.net.address_limits import AddressLimit, AddressLimits
from nephila.kernel.runtime.errors import UsageError


def test_the_longest_prefix_counts() -> None:
    """Whatever the order of the entries; an address without entry has the default."""
    table = AddressLimits(4, 0.25, ["10.0.0.0/8=16/0.05", "0.0.0.0/0=5/1", "10.1.0.0/16=1/2", "10.1.2.3=0/0"])
    assert table.find("10.9.9.9") == AddressLimit(16, 0.05)
    assert table.find("10.1.9.9") == AddressLimit(1, 2.0)
    assert table.find("10.1.2.3").unlimited
    assert table.find("11.0.0.1") == AddressLimit(5, 1.0)
    assert table.find("2001:db8::1") == AddressLimit(4, 0.25)


def test_spellings_of_ipv6() -> None:
    """A zone does not matter, and a mapped IPv4 address is that address."""
    table = AddressLimits(4, 0.25, ["fe80::/10=1/1", "192.0.2.0/24=2/2"])
    assert table.find("fe80::1%eth0") == AddressLimit(1, 1.0)
    assert table.find("::ffff:192.0.2.9") == AddressLimit(2, 2.0)
    assert table.find("no address") == table.default


def test_same_as_asking_every_network() -> None:
    """The table answers as a walk over all networks does."""
    rng = random.Random(8)
    networks = {
        ipaddress.ip_network((rng.getrandbits(32), length), strict=False): number + 1
        for number, length in enumerate(rng.choices(range(12), k=60))
    }
    table = AddressLimits(0, 0.0, [f"{network}={number}/0" for network, number in networks.items()])
    for _ in range(500):
        address = ipaddress.ip_address(rng.getrandbits(32))
        holding = [network for network in networks if address in network]
        expected = networks[max(holding, key=lambda network: network.prefixlen)] if holding else 0
        assert table.find(str(address)).connections == expected


def test_no_limit_at_all() -> None:
    """0 and 0 is no limit, unless some network has one."""
    assert AddressLimits(0, 0.0).unlimited
    assert not AddressLimits(0, 0.1).unlimited
    assert not AddressLimits(0, 0.0, ["10.0.0.0/8=1/0"]).unlimited


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ("", "expected 'network=connections/gap'"),
        ("10.0.0.0/8", "expected 'network=connections/gap'"),
        ("10.0.0.0/8=4", "expected 'network=connections/gap'"),
        ("10.0.0.0/8=-1/0", "expected 'network=connections/gap'"),
        ("10.0.0.0/8=99999999999/0", "expected 'network=connections/gap'"),
        ("10.0.0.0/40=4/1", "is not a network"),
        ("example.org=4/1", "is not a network"),
        ("10.0.0.1/8=4/1", "the network is 10.0.0.0/8"),
        ("10.0.0.0/8=4/soon", "is not a number of seconds"),
        ("10.0.0.0/8=4/nan", "0-3600 seconds"),
        ("10.0.0.0/8=4/-1", "0-3600 seconds"),
    ],
)
def test_nonsense_is_one_line(entry: str, complaint: str) -> None:
    """It names the setting, the entry and what was expected."""
    with pytest.raises(UsageError, match=complaint) as error:
        AddressLimits(4, 0.25, [entry], "scheduler.networks")
    assert "\n" not in str(error.value)
    assert repr(entry) in str(error.value)
    assert str(error.value).startswith("scheduler.networks")


def test_nonsense_defaults_and_doubles() -> None:
    """A negative default, and one network with two meanings."""
    with pytest.raises(UsageError, match="default -1/0"):
        AddressLimits(-1, 0.0)
    with pytest.raises(UsageError, match="named twice"):
        AddressLimits(4, 0.25, ["10.0.0.0/8=1/1", "10.0.0.0/8=2/1"])
