"""The late address check of a downloader with peers: a request whose address was not counted is given back once.

The scheduler counts fetches per server address. When a name resolves to another address than the counted one, only a
downloader that receives all requests can decide alone: its slots know every fetch. With peers, the request is given
back with the address, and the scheduler counts it there. A request that comes a second time starts as soon as the local
slots allow, even when it is still not counted (a name with changing addresses, an unpaced job): none returns for ever.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from nephila.kernel.messages import FetchRequest

REMEMBERED = 10_000


class LateAddressCheck:
    """Remembers which requests were given back, at most `REMEMBERED`. O(1)."""

    def __init__(self, alone: Callable[[], bool]) -> None:
        """`alone` says that no other downloader holds a partition."""
        self._alone = alone
        self._given_back: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def check(self, request: FetchRequest, address: str, answer: Callable[[bool], None]) -> None:
        """Answer whether a fetch may start on an address it was not counted on; see `coordination.AddressCheck`."""
        key = (request.job, request.url_key)
        if self._alone() or key in self._given_back:
            self._given_back.pop(key, None)
            answer(True)
            return
        self._given_back[key] = None
        if len(self._given_back) > REMEMBERED:
            self._given_back.popitem(last=False)
        answer(False)
