"""Settings of the control API over Kafka (`nephila api`)."""

from __future__ import annotations

import msgspec


class ControlConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Each field with its unit and its reason."""

    token_file: str = ""
    """File that holds the bearer token, one word of at least 16 characters; required: the port is open to a network."""
