"""Roles, and which operations each may use: the one table that the API, the console and the adapters follow.

An operation that is in no row is refused to every caller; a test asks for its row. A role may use the operations of the
roles before it. `NOT_FOR_TENANTS` are about the whole system, or about bodies that no job owns.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class Role(IntEnum):
    """What a caller may do."""

    NONE = 0
    """No operation: the caller has not logged in."""
    VIEWER = 1
    """Read."""
    EDITOR = 2
    """Change jobs, sites, rules and queues, and fetch pages."""
    ADMIN = 3
    """Change the system, and read who changed what."""


STUDIO: Final = (
    *("list_studio_pages", "open_studio_page", "studio_step", "studio_view", "studio_frame", "studio_rule"),
    "render_studio_page",
)
"""The rule studio without what stores a rule."""
OPERATIONS: Final[Mapping[Role, tuple[str, ...]]] = {
    Role.VIEWER: (
        *("try_exclusion", "list_samples", "get_sample", "get_audit_outcome", "compare_frequencies"),
        *("list_jobs", "get_job", "list_directories", "list_sites", "get_site", "list_quarantines", "explain"),
        *(
            "list_pages",
            "search_pages",
            "get_page",
            "list_links_in",
            "get_screenshot",
            "get_body",
            "list_items",
            "count_outcomes",
            "get_series",
        ),
        *("list_hosts", "list_rules", "rule_health", "list_changes", "list_dead_letters", "list_members", "status"),
        *("get_settings", "get_network", "list_webhooks", "list_topics"),
    ),
    Role.EDITOR: (
        *("apply_job", "delete_job", "pause_job", "resume_job", "add_seeds", "release_quarantine", "forget"),
        *("exclude", "draw_sample", "label_row"),
        *("apply_rules", "delete_rule"),
        *("apply_sites", "delete_site", "apply_directory", "delete_directory"),
        *STUDIO,
        *("studio_commit", "replay_dead_letters"),
    ),
    Role.ADMIN: ("change_settings", "list_control_log", "get_configuration"),
}
NEEDS: Final[Mapping[str, Role]] = {name: role for role, names in OPERATIONS.items() for name in names}
"""Operation → the least role that may use it."""
NOT_FOR_TENANTS: Final = frozenset(
    {
        *STUDIO,
        *("get_body", "studio_commit", "list_members", "list_dead_letters", "replay_dead_letters"),
        *("get_settings", "change_settings", "list_control_log"),
        *("get_configuration", "get_network", "list_webhooks", "list_topics"),
        *("list_samples", "draw_sample", "get_sample", "label_row", "get_audit_outcome", "compare_frequencies"),
    }
)
"""Operations that a caller limited to tenants may not use."""
