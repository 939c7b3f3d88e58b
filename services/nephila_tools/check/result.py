"""What `nephila check` found of one job."""

from __future__ import annotations

import msgspec


class JobCheck(msgspec.Struct, kw_only=True):
    """URLs of a job that have ended, against its rows."""

    job: str
    ended: int
    """URLs that have ended; over Kafka those of the last seven days, as long as the broker keeps receipts."""
    lost: int = 0
    """Of these, URLs without a row."""
    urls: list[str] = []
    """Lost URLs whose text is known, in the order of their keys."""
    repaired: int = 0
    """Lost URLs that are crawled again, or whose rows are written again."""
    forgotten: int = 0
    """Lost URLs that nothing names: they are crawled when a page names them again."""

    @property
    def sound(self) -> bool:
        """Whether no row is lost, or each is on the way back."""
        return self.lost == self.repaired + self.forgotten
