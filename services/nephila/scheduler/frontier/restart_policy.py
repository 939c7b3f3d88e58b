"""What a restart does with the URLs that were leased when the program before ended."""

from __future__ import annotations

from enum import Enum


class RestartPolicy(Enum):
    """Given to a frontier when it is built: where the downloaders run decides it. The log has what the policy needs."""

    LEASES_END = "end"
    """Fetches end with the program: their URLs are queued again (`durability/interrupted_leases.py`)."""
    LEASES_CONTINUE = "continue"
    """Fetches outlive the program: the next owner waits for them (`durability/continued_leases.py`)."""
