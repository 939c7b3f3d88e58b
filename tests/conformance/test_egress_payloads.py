"""Loopback in every spelling that attackers use: parsed as every URL is, none reaches a dial."""

from __future__ import annotations

import pytest
from nephila.downloader.dns.contract import Addresses, ResolveError
from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.dns.hash_tree import HashTree
from nephila.downloader.http.target import TargetUrl
from nephila.kernel.net.egress import EgressError, EgressGuard
from nephila.kernel.runtime.clock import ManualClock

from tests.acceptance import locate

pytestmark = pytest.mark.conformance


class HostsFile:
    """The names a hosts file usually has, and what DNS services answer for names that spell an address."""

    async def resolve(self, host: str) -> Addresses:
        """See `Resolver.resolve`."""
        if host in ("localhost", "ip6-localhost"):
            return Addresses(("127.0.0.1", "::1"))
        raise ResolveError("no such name")


async def test_loopback_forms() -> None:
    """Each payload is no URL, has no address, or is refused by the guard."""
    path = locate("ssrf-payloads/loopback-forms.txt")
    payloads = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(payloads) > 20
    refused = 0
    for payload in payloads:
        resolver = GuardedResolver(EgressGuard(), HostsFile(), HashTree(10), ManualClock())
        try:
            target = TargetUrl(payload)
        except ValueError:
            continue
        try:
            place = await resolver.resolve(target.dial_host, target.port)
        except EgressError:
            refused += 1
        except ResolveError:
            continue
        else:
            pytest.fail(f"{payload} would dial {place}")
    assert refused > 20
