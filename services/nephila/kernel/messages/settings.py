"""Generated from proto/nephila/v1/settings.proto by tools/protogen.py; do not edit."""

import msgspec



class Setting(msgspec.Struct, array_like=True, gc=False):
    """A setting of the whole system that can change while it runs. Topic `settings` (compacted by name)."""

    name: str = ""
    # As JSON.
    value: bytes = b""
    # Seconds since 1970 UTC.
    changed_at: float = 0.0
    # The default counts again.
    deleted: bool = False


class ControlChange(msgspec.Struct, array_like=True, gc=False):
    """Somebody changed something over the control API. Topic `control-log` (compacted by id, so each is kept
    until it expires).
    """

    # Milliseconds since 1970 UTC with leading zeros, a hyphen, and random digits: the order of ids is that of
    # time.
    id: str = ""
    # The token, the user of a session, or the socket.
    who: str = ""
    # The operation of the control API.
    operation: str = ""
    # The object, as "job news".
    subject: str = ""
    # What is different, in short.
    change: str = ""
    # For whom the caller made the change, as the caller says: the author of a CrawlJob; empty: for itself.
    author: str = ""
