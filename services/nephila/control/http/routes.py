"""The table of HTTP routes: one row for each method of `Control`, read by server, client and OpenAPI document.

A field of the request that the path names is part of the path; of a GET and a DELETE the others are query parameters,
of a POST and a PATCH they are the JSON body.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from nephila.control import api

PREFIX = "/api/v1"
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Route:
    """One operation over HTTP."""

    method: str
    path: str
    """Below PREFIX."""
    operation: str
    """The method of `Control`."""
    request: type[msgspec.Struct]
    answer: type[msgspec.Struct]

    @property
    def path_fields(self) -> list[str]:
        """Fields of the request that are parts of the path."""
        return _FIELD.findall(self.path)

    @property
    def has_body(self) -> bool:
        """Whether fields of the request are a JSON body."""
        return self.method in ("POST", "PATCH") and len(self.request.__struct_fields__) > len(self.path_fields)

    @property
    def summary(self) -> str:
        """One line about the operation."""
        return str(getattr(api.Control, self.operation).__doc__)


ROUTES = (
    Route("POST", "/jobs", "apply_job", api.ApplyJob, api.JobApplied),
    Route("GET", "/jobs", "list_jobs", api.Empty, api.JobList),
    Route("GET", "/directories", "list_directories", api.Empty, api.DirectoryList),
    Route("GET", "/jobs/{name}", "get_job", api.JobName, api.JobDetail),
    Route("DELETE", "/jobs/{name}", "delete_job", api.JobName, api.JobChanged),
    Route("POST", "/jobs/{name}/pause", "pause_job", api.JobName, api.JobChanged),
    Route("POST", "/jobs/{name}/resume", "resume_job", api.JobName, api.JobChanged),
    Route("POST", "/jobs/{name}/seeds", "add_seeds", api.AddSeeds, api.SeedsAdded),
    Route("GET", "/jobs/{name}/quarantines", "list_quarantines", api.JobName, api.QuarantineList),
    Route(
        "POST",
        "/jobs/{name}/quarantines/release",
        "release_quarantine",
        api.ReleaseQuarantine,
        api.QuarantineReleased,
    ),
    Route("POST", "/jobs/{name}/forget", "forget", api.ForgetUrls, api.UrlsForgotten),
    Route("GET", "/explain", "explain", api.ExplainUrl, api.Explained),
    Route("GET", "/rules", "list_rules", api.Empty, api.RuleList),
    Route("POST", "/rules", "apply_rules", api.ApplyRules, api.RulesApplied),
    Route("DELETE", "/rules/{name}", "delete_rule", api.RuleName, api.RuleChange),
    Route("GET", "/rule-health", "rule_health", api.Empty, api.RuleHealthList),
    Route("GET", "/changes", "list_changes", api.ListChanges, api.ChangeList),
    Route("GET", "/dead-letters", "list_dead_letters", api.ListDeadLetters, api.DeadLetterList),
    Route("POST", "/dead-letters/replay", "replay_dead_letters", api.ReplayDeadLetters, api.ReplayedList),
    Route("GET", "/members", "list_members", api.Empty, api.MemberList),
    Route("GET", "/status", "status", api.Empty, api.Status),
    Route("GET", "/settings", "get_settings", api.Empty, api.Settings),
    Route("PATCH", "/settings", "change_settings", api.ChangeSettings, api.Settings),
)
"""Every operation once."""


class ErrorBody(msgspec.Struct, kw_only=True):
    """Why a request was refused."""

    code: str
    """One of CODES."""
    message: str
    """One line for people, which names the remedy where there is one."""
    where: str = ""
    """The part of the request that is wrong, as $.urls[3]."""


class ErrorAnswer(msgspec.Struct, kw_only=True):
    """The one shape of all errors."""

    error: ErrorBody


CODES: dict[str, int] = {
    "invalid": 400,
    "unauthorized": 401,
    "not_found": 404,
    "method_not_allowed": 405,
    "timeout": 408,
    "wrong_value": 409,
    "refused": 409,
    "too_large": 413,
    "internal": 500,
    "unavailable": 503,
}
"""Code of an error → status of the HTTP answer. invalid: the request does not have the form that the OpenAPI document
states. wrong_value: it has, and a value in it cannot be used, as an expression that RE2 cannot read."""


def to_http(route: Route, request: msgspec.Struct) -> tuple[dict[str, str], dict[str, Any]]:
    """The request as (fields of the path, other fields)."""
    fields: dict[str, Any] = msgspec.to_builtins(request)
    return {name: str(fields.pop(name)) for name in route.path_fields}, fields
