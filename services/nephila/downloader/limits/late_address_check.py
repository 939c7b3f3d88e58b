"""First contacts where several downloaders fetch: what no scheduler has counted on its address goes back with it, once.

One that has all requests knows all that is dialled: its own slots are enough. Others know only their part, and the
scheduler counts. A request that comes again and is still not counted there (its name leads somewhere else each time,
or its job is not paced) begins, as far as the slots here allow: nobody is sent back for ever.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from nephila.kernel.messages import FetchRequest

REMEMBERED = 10_000


class LateAddressCheck:
    """See the module. O(1)."""

    def __init__(self, alone: Callable[[], bool]) -> None:
        """`alone`: whether no other downloader has a partition."""
        self._alone = alone
        self._given_back: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def check(self, request: FetchRequest, address: str, answer: Callable[[bool], None]) -> None:
        """Answer whether a fetch may start on an address it was not counted on; see `service.AddressCheck`."""
        key = (request.job, request.url_key)
        if self._alone() or key in self._given_back:
            self._given_back.pop(key, None)
            answer(True)
            return
        self._given_back[key] = None
        if len(self._given_back) > REMEMBERED:
            self._given_back.popitem(last=False)
        answer(False)
