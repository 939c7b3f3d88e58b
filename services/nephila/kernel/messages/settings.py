"""Generated from proto/nephila/v1/settings.proto by tools/protogen.py; do not edit."""

from __future__ import annotations

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
