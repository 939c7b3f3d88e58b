"""The last versions of each rule, so that a change that was a mistake is taken back. Pure.

A rule is the whole desired state of its name, and its earlier state is lost with the change. One program keeps versions
beside its rules. Over Kafka they are those that the topic of rules has not compacted yet, and those since the start of
the API. Invariant: at most `VERSIONS` of a rule, the newest last; a deleted rule has none.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from nephila.kernel.messages import ParseRule

VERSIONS: Final = 10


class StoredVersion(NamedTuple):
    document: str
    version: int
    at: float
    """Seconds since 1970 UTC; 0: not known."""

    @property
    def etag(self) -> str:
        """Equal for equal documents."""
        return hashlib.sha256(self.document.encode()).hexdigest()[:16]


class RuleVersions:
    """`take` costs O(1)."""

    def __init__(self) -> None:
        self._versions: dict[str, list[StoredVersion]] = {}

    def take(self, rule: ParseRule, at: float = 0.0) -> None:
        """Takes a rule as it is from now on. A document that is delivered again adds nothing."""
        if rule.deleted:
            self._versions.pop(rule.name, None)
            return
        versions = self._versions.setdefault(rule.name, [])
        if not versions or versions[-1].document != rule.document:
            versions.append(StoredVersion(rule.document, rule.version, at))
            del versions[:-VERSIONS]

    def restore(self, name: str, versions: Iterable[StoredVersion]) -> None:
        self._versions[name] = list(versions)[-VERSIONS:]

    def of(self, name: str) -> Sequence[StoredVersion]:
        return self._versions.get(name, ())
