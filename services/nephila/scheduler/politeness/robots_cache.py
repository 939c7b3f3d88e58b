"""robots.txt files of active hosts: one copy of each, however many hosts serve it.

Invariant: a file is here while some host uses it, and `size_bytes` is the sum of all files, each counted once.
"""

from __future__ import annotations

import hashlib

import msgspec

from nephila.kernel.net.robots import Robots, parse


class _Shared(msgspec.Struct):
    robots: Robots
    size_bytes: int
    uses: int = 0


class RobotsCache:
    """Files by content. `take` is O(bytes of the file), `release` O(1)."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._files: dict[bytes, _Shared] = {}
        self._digests: dict[int, bytes] = {}
        """Digest of each file, by its identity."""
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._files)

    def take(self, body: bytes) -> Robots:
        """The parsed file with these bytes, for one more host. Its rules are compiled now, so that its size
        is known."""
        # With a hash that can be forged, one host's rules could replace another's.
        digest = hashlib.sha256(body).digest()
        shared = self._files.get(digest)
        if shared is None:
            robots = parse(body)
            robots.rules(self._agent)
            shared = self._files[digest] = _Shared(robots, robots.size_bytes)
            self._digests[id(robots)] = digest
            self.size_bytes += shared.size_bytes
        shared.uses += 1
        return shared.robots

    def release(self, robots: Robots) -> None:
        digest = self._digests[id(robots)]
        shared = self._files[digest]
        shared.uses -= 1
        if not shared.uses:
            del self._files[digest], self._digests[id(robots)]
            self.size_bytes -= shared.size_bytes

    def check(self, in_use: list[Robots]) -> None:
        """Raise AssertionError when an invariant does not hold; `in_use` lists each file once per user."""
        uses = sorted((id(shared.robots), shared.uses) for shared in self._files.values())
        ids = [id(robots) for robots in in_use]
        assert uses == sorted((user, ids.count(user)) for user in set(ids)), "users of robots.txt are miscounted"
        assert self.size_bytes == sum(shared.size_bytes for shared in self._files.values()), "sizes are miscounted"
