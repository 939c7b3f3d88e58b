"""Which domain links to which hosts: a link between the two is counted once, not on every page. Pure.

The hosts of a page are the first four bytes of its fingerprints, so most pages need no name of a host. Two hosts with
the same four bytes count as one. Memory is bounded: when there are too many pairs, all are forgotten and counted again.
"""

from __future__ import annotations


class LinkedHosts:
    """The hosts that the pages of each domain have linked to. 5 µs for a page of 100 known links."""

    def __init__(self, most: int) -> None:
        """`most`: pairs of domain and host; some 80 bytes each."""
        self._most = most
        self.clear()

    def clear(self) -> None:
        """Forget all pairs."""
        self._targets: dict[str, set[int]] = {}
        self._pairs = 0

    @property
    def full(self) -> bool:
        """Whether the next page will clear it."""
        return self._pairs > self._most

    def first(self, domain: str, fingerprints: bytes) -> dict[int, int]:
        """Hosts of these links that no page of the domain has linked to so far → index of the last link there."""
        if self.full:
            self.clear()
        hosts = hosts_of(fingerprints)
        targets = self._targets.setdefault(domain, set())
        if targets.issuperset(hosts):
            return {}
        first = {host: index for index, host in enumerate(hosts) if host not in targets}
        targets.update(first)
        self._pairs += len(first)
        return first


def hosts_of(fingerprints: bytes) -> list[int]:
    """The host of each link, as the first four bytes of its fingerprint."""
    return memoryview(fingerprints).cast("I")[::4].tolist()
