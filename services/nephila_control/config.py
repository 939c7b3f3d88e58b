"""Settings of the control API over Kafka (`nephila service api`)."""

from __future__ import annotations

import msgspec
from nephila.kernel.runtime.config import Secret


class ControlConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Each field with its unit and its reason."""

    token_file: str = ""
    """File that holds a bearer token, one word of at least 16 characters, that may do everything. This or access_file
    is required: the port is open to a network."""

    access_file: str = ""
    """File with tokens of the roles viewer, editor and admin, and with login by OIDC or by a proxy (docs/access.md)."""

    console_names: tuple[str, ...] = ()
    """Names by which browsers open the console, as that of an Ingress. A request with another name in Host is refused:
    a foreign name may resolve to this address (DNS rebinding). Addresses and localhost need no entry."""

    console_sessions: str = ""
    """File in which the sessions of the console outlive a restart of this member; it is created with mode 0600. Empty:
    they end with the member."""

    firecrawl: bool = False
    """Serve Firecrawl's API below /v2 too, with the same token (docs/firecrawl.md)."""

    tenants: tuple[str, ...] = ()
    """Tenants, as in scheduler.tenants: a job with a tenant that is not listed is refused. Empty: any tenant."""

    store: Secret = ""
    """URL of the PostgreSQL database with the rows, as in storage.store: changes are read from it. Empty: requests for
    changes are refused."""

    rules_directory: str = ""
    """Directory in a working copy of git that the rule studio commits rules to; it pushes nothing. Empty: rules are
    downloaded or applied."""
