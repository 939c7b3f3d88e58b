"""Which domain links to which hosts, as the core has it."""

from __future__ import annotations

_FINGERPRINT = 16


class LinkedHosts:
    def __init__(self, most: int) -> None:
        self._most = most
        self._pairs: set[tuple[int, bytes]] = set()

    @property
    def full(self) -> bool:
        return len(self._pairs) > self._most

    def clear(self) -> None:
        self._pairs.clear()

    def first(self, domain: int, fingerprints: bytes) -> list[int]:
        if len(fingerprints) % _FINGERPRINT:
            raise ValueError("fingerprints of 16 bytes each")
        if self.full:
            self.clear()
        new = []
        for index in range(len(fingerprints) // _FINGERPRINT):
            pair = domain, fingerprints[_FINGERPRINT * index : _FINGERPRINT * index + 4]
            if pair not in self._pairs:
                self._pairs.add(pair)
                new.append(index)
        return new
