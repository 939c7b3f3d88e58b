"""Settings of the limits per host, per server address and for slow hosts."""

import msgspec


class LimitsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many fetches a host, a server address and slow hosts may hold at once."""

    per_host: int = 1
    """Simultaneous fetches on one host key; a second guard behind the scheduler's rule. 0 = no limit."""

    per_address: int = 4
    """Simultaneous fetches on one server address: many names on one machine must not add up to a flood. 0 = no
    limit."""

    address_gap_s: float = 0.25
    """Time between two starts on one server address; a second guard behind the scheduler's rule. 0 = none."""

    networks: tuple[str, ...] = ()
    """Other limits for single networks: "10.0.0.0/8=16/0.05" = connections/gap in seconds. The same as the
    scheduler's: the downloader gives back a request that starts too early."""

    slow_rate_bytes: float = 4096.0
    """Rate of a fetch in bytes per second, from the dial on, below which its host counts as slow: a page of 10 KB takes
    longer than 2 s then."""

    slow_after_s: float = 2.0
    """Time after the dial from which a fetch may count as slow; servers that compute a page need less."""

    slow_share: float = 0.3
    """Share of `concurrency` that slow hosts may hold while others need slots. A fetch that becomes slow beyond it is
    given back and waits for a slot of this share. 1 = all."""
