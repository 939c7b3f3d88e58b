"""Hosts in trouble: statuses that pass or stay, servers that stall, flood, lie about lengths, hang up or speak no HTTP.

The trouble is always on one page; robots.txt and the home page of its host are sound, so only that page's outcome is
at stake.
"""

from benchmarks.web.site import STORED, Action, Host
from benchmarks.web.town import Town

_TIMEOUT = ("failed(*time*)", "failed(too_slow)")
_TOO_LARGE = ("failed(*too_large*)", "failed(*ratio*)", "failed(*bomb*)")
_BROKEN = ("failed(*)",)
_HUGE = 10_000_000_000


def build(town: Town) -> None:
    """One host per trouble that holds a connection; the quick ones share."""
    _passing(town)
    _lasting(town)
    _pauses(town)
    _stalls(town)
    _floods(town)
    _lies(town)
    _refused(town)


def _passing(town: Town) -> None:
    """Errors that go away within the three tries the contract allows."""
    for times, pause in ((1, 2), (2, 1)):
        host = town.host("429 passing")
        trouble = {"status": 429, "times": times, "retry_after": str(pause)}
        town.page(host, "/busy", "429 passing", action={"do": "body", "first": trouble})
        town.page(host, "/beside", "ordinary")
    dated = town.host("429 with a date")
    town.page(
        dated,
        "/busy",
        "429 with a date",
        action={"do": "body", "first": {"status": 429, "times": 1, "retry_after": "date+3"}},
    )
    unsaid = town.host("429 without a time")
    town.page(unsaid, "/busy", "429 without a time", action={"do": "body", "first": {"status": 429, "times": 1}})
    for status in (500, 502, 503, 504):
        host = town.host(f"{status} passing")
        town.page(host, "/shaky", f"{status} passing", action={"do": "body", "first": {"status": status, "times": 2}})
    dropped = town.host("connection lost once")
    town.page(dropped, "/shaky", "lost once", action={"do": "body", "first": {"status": 0, "times": 1}})


def _lasting(town: Town) -> None:
    host = town.host("4xx")
    for status in (400, 401, 403, 404, 406, 410, 418, 451):
        _status(town, host, status)
    for status in (500, 501, 503, 599):
        _status(town, town.host(f"{status} lasting"), status)
    _status(town, town.host("429 lasting"), 429, retry_after="1")
    empty = town.host("empty")
    town.page(
        empty,
        "/204",
        "no content",
        accept=("stored", "failed(*)", "dropped(content_type)"),
        action={"do": "body", "status": 204},
        render=lambda _p, _s: b"",
    )
    town.page(empty, "/nothing", "empty body", accept=("stored",), render=lambda _p, _s: b"")


def _status(town: Town, host: Host, status: int, **more: str) -> None:
    town.page(
        host,
        f"/{status}",
        f"{status} lasting",
        accept=(f"failed(http_{status})",),
        action={"do": "body", "status": status, **more},
    )


def _pauses(town: Town) -> None:
    """A pause of a day: the crawl may end with the page still queued."""
    host = town.host("a day's pause")
    action: Action = {"do": "body", "status": 503, "retry_after": "86400"}
    town.page(host, "/tomorrow", "a day's pause", accept=("none", "failed(http_503)"), action=action)


def _stalls(town: Town) -> None:
    kinds: dict[str, Action] = {
        "never answers": {"do": "never"},
        "drips the head": {"do": "drip_head", "pause_s": 0.5},
        "drips the body": {"do": "drip", "pause_s": 0.5},
        "stops in the middle": {"do": "truncate", "hang": True},
    }
    for kind, action in kinds.items():
        town.page(town.host(kind), "/stuck", kind, accept=_TIMEOUT, action=action, size=40_000)


def _floods(town: Town) -> None:
    kinds: dict[str, Action] = {
        "10 GB by length": {"do": "endless", "length": _HUGE},
        "10 GB in chunks": {"do": "endless", "chunked": True, "length": _HUGE},
        "10 GB until close": {"do": "endless", "length": _HUGE, "say": False},
        "gzip bomb": {"do": "bomb"},
        "endless head": {"do": "endless_head"},
    }
    for kind, action in kinds.items():
        accept = _BROKEN if kind == "endless head" else _TOO_LARGE
        town.page(town.host(kind), "/flood", kind, accept=accept, action=action)


def _lies(town: Town) -> None:
    cut = town.host("cut short")
    town.page(cut, "/length", "closes in the middle", accept=_BROKEN, action={"do": "truncate"}, size=40_000)
    chunks = town.host("cut in chunks")
    town.page(
        chunks,
        "/chunks",
        "closes between chunks",
        accept=_BROKEN,
        action={"do": "truncate", "chunked": True},
        size=40_000,
    )
    longer = town.host("more than said")
    action: Action = {"do": "body", "extra": 500, "close": True}
    town.page(longer, "/more", "body longer than its length", accept=(*STORED, *_BROKEN), action=action)
    for kind, raw in _NOT_HTTP.items():
        town.page(
            town.host(kind), "/odd", kind, accept=(*_BROKEN, *_LENIENT.get(kind, ())), action={"do": "raw", "text": raw}
        )
    hung = town.host("hangs up")
    town.page(hung, "/gone", "closes without an answer", accept=_BROKEN, action={"do": "abort"})


_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
_NOT_HTTP = {
    "not HTTP": "220 mail.web.test ESMTP ready\r\n500 what?\r\n",
    "bad chunk size": _HEAD + "Transfer-Encoding: chunked\r\n\r\nzz\r\n<p>no</p>\r\n0\r\n\r\n",
    "bad status": "HTTP/1.1 2x0 Fine\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n",
    "bad gzip": _HEAD + "Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\nnot gzip!",
    "two lengths": _HEAD + "Content-Length: 9\r\nContent-Length: 4\r\n\r\n<p>hi</p>",
}


def _refused(town: Town) -> None:
    """A host at whose address nothing listens: not even its rules can be learned."""
    accept = ("denied(robots*)", "failed(*)")
    town.host(
        "refused",
        name="refused.web.test",
        address="127.0.1.60",
        listening=False,
        home={"accept": accept, "disallowed": True},
    )


# What some sound HTTP readers take the first of.
_LENIENT = {"two lengths": STORED}
