"""robots.txt files of the hosts that are objects: one copy of each, however many hosts serve it.

Invariant: a file is here as long as some host uses it, and `size_bytes` is what all of them take, each counted once.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from nephila.kernel.net.robots import Robots, parse


@dataclass(slots=True)
class _Shared:
    robots: Robots
    size_bytes: int
    uses: int = 0


class RobotsCache:
    """Files by their content. `take` is O(bytes of the file), `release` O(1)."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._files: dict[bytes, _Shared] = {}
        self._digests: dict[int, bytes] = {}
        """Of each file, by its identity."""
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._files)

    def take(self, body: bytes) -> Robots:
        """The file with these bytes, for one more host. Its rules are read now, so that its size is known."""
        # A hash that can be forged would let one host's rules replace another's.
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
        """A host uses the file no more."""
        digest = self._digests[id(robots)]
        shared = self._files[digest]
        shared.uses -= 1
        if not shared.uses:
            del self._files[digest], self._digests[id(robots)]
            self.size_bytes -= shared.size_bytes

    def check(self, in_use: list[Robots]) -> None:
        """Raise AssertionError when an invariant does not hold; `in_use` has each file once for each of its users."""
        uses = sorted((id(shared.robots), shared.uses) for shared in self._files.values())
        ids = [id(robots) for robots in in_use]
        assert uses == sorted((one, ids.count(one)) for one in set(ids)), "users of robots.txt are miscounted"
        assert self.size_bytes == sum(shared.size_bytes for shared in self._files.values()), "sizes are miscounted"
