"""Digests of host keys: the first bits of the fingerprints of their URLs."""

from __future__ import annotations

from types import ModuleType

import pytest


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100])
def test_a_digest_begins_as_the_fingerprints_of_the_host(core: ModuleType, count: int) -> None:
    hosts = [f"{'long-' * (n % 40)}h{n}.test" for n in range(count)]
    digests = core.host_digests(hosts)
    assert len(digests) == 16 * count
    for n, host in enumerate(hosts):
        assert digests[16 * n : 16 * n + 4] == core.parse_url(f"http://{host}/x").fingerprint[:4]
        assert digests[16 * n : 16 * n + 16] == core.host_digests([host])
