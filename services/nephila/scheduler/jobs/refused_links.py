"""Links that the scope of one job refuses: remembered by fingerprint, or held for a wider scope. Pure."""

from __future__ import annotations

from nephila.native import Trie
from nephila.scheduler.jobs.held_links import HeldLinks


class RefusedLinks:
    def __init__(self) -> None:
        self.rejected = Trie()
        """Fingerprints of links that were refused: they are not judged again."""
        self.held = HeldLinks()
        """Links for a wider scope."""
        self.out_of_scope = 0
        """URLs refused by the scope since the program started. A URL may count twice, when `rejected` was cleared
        between."""

    def reject(self, url_key: bytes, limit: int) -> None:
        """Remember an out-of-scope URL. At the limit all are forgotten: to judge a URL again is only slower."""
        if len(self.rejected) >= limit:
            self.forget()
        self.rejected.add(url_key)

    def forget(self) -> None:
        """Judge refused links again from now on."""
        self.rejected = Trie()
