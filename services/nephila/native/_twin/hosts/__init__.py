"""The table of hosts behind the frontier, its queues and its files (the core's formats, ../../README.md)."""

from nephila.native._twin.hosts.store import HostStore

__all__ = ["HostStore"]
