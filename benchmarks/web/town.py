"""Hands out hosts of a site: the next name, an address of 127.0.1.1-50 (some shared), a home page one link from the
seed.
"""

import random
from typing import Any

from benchmarks.web.site import Action, Host, Page, Site

ADDRESSES = 50
ALLOW_ALL = b"User-agent: *\nDisallow:\n"


class Town:
    """The site being built, its random source and its seed page."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.rng = random.Random(site.seed)
        self._count = 0
        self.centre = self.host("centre", at_seed=True)
        assert self.centre.home is not None
        self.root: Page = self.centre.home

    def host(
        self,
        kind: str,
        *,
        robots: bytes | None = ALLOW_ALL,
        at_seed: bool = False,
        home: dict[str, Any] | None = None,
        **changes: Any,
    ) -> Host:
        """A new host; *robots* None = no robots.txt (404); *home* = changes to its home page."""
        name = changes.pop("name", f"s{self._count:02}.web.test")
        address = changes.pop("address", f"127.0.1.{self._count % ADDRESSES + 1}")
        self._count += 1
        if robots is not None:
            changes.setdefault("robots", text_answer())
        host = self.site.add_host(Host(name, address, kind, robots_text=robots or b"", **changes))
        host.home = self.site.add(None if at_seed else self.root, host, "/", "home", size=self.size(), **(home or {}))
        return host

    def page(self, host: Host, path: str, kind: str, **changes: Any) -> Page:
        """A page that the host's home page links to."""
        assert host.home is not None
        return self.site.add(changes.pop("parent", host.home), host, path, kind, **changes)

    def size(self) -> int:
        """The size of an ordinary page: 10-200 KB, most of them small."""
        return int(10_000 * 20 ** self.rng.random())


def text_answer(content_type: str = "text/plain", **changes: Any) -> Action:
    """A 200 with a stored text."""
    return {"do": "body", "type": content_type, **changes}
