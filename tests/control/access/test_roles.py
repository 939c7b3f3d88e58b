"""Roles: each operation declares its own, checked for each caller, and written down in the log of changes."""

from __future__ import annotations

import pytest
from nephila_control import job_types
from nephila_control.access.caller import Caller
from nephila_control.access.difference import difference
from nephila_control.access.guard import guarded
from nephila_control.access.roles import Role
from nephila_control.api import OPERATIONS, Forbidden

READING = {"preview_sites", "get_item_picture", "list_control_log", "get_configuration"}
"""Operations above the viewer that change nothing."""


class Willing:
    """Does what it is asked for."""

    def __getattr__(self, name):
        async def answer(request):
            return name

        return answer


def test_an_operation_that_a_viewer_may_use_changes_nothing():
    """The log of changes has an entry of every other, but for those that read and the drafts of the studio."""
    changing = {name for name, operation in OPERATIONS.items() if operation.log is not None}
    above = {name for name, operation in OPERATIONS.items() if operation.role > Role.VIEWER}
    drafts = {name for name in above if OPERATIONS[name].path.startswith("/studio/")} - {
        "studio_commit",
        "extract_stored",
    }
    assert changing == above - drafts - READING


def test_no_operation_is_open_to_callers_who_have_not_logged_in():
    assert min(operation.role for operation in OPERATIONS.values()) == Role.VIEWER


def test_an_operation_is_closed_to_tenants_unless_it_is_declared_open():
    """The system, its settings and its log show what is not theirs; a draft of the studio may fetch any page."""
    closed = {name for name, operation in OPERATIONS.items() if not operation.tenants}
    assert closed >= {"change_settings", "list_control_log", "list_members", "list_dead_letters", "studio_commit"}
    assert closed.isdisjoint({"list_jobs", "apply_job", "explain", "list_pages", "apply_rules", "status"})


@pytest.mark.parametrize("role", Role)
async def test_a_role_may_use_its_operations_and_those_below(role):
    """And no other, whoever asks."""
    control = guarded(Willing(), Caller("x", role))
    allowed = set()
    for route in OPERATIONS.values():
        try:
            allowed.add(await getattr(control, route.name)(None))
        except Forbidden:
            continue
    assert allowed == {name for name, operation in OPERATIONS.items() if operation.role <= role}


def test_a_server_that_does_not_hold_the_jobs_serves_no_tenant():
    """It could not limit what is shown."""
    with pytest.raises(Forbidden):
        guarded(Willing(), Caller("x", Role.VIEWER, frozenset({"acme"})))


async def test_an_unknown_operation_is_refused(monkeypatch):
    """The table is the gate, not a list of exceptions to it."""
    monkeypatch.setattr("nephila_control.access.guard.OPERATIONS", {})
    with pytest.raises(Forbidden, match="no role may use list_jobs"):
        await guarded(Willing(), Caller("x", Role.ADMIN)).list_jobs(job_types.ListJobs())


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (None, {"a": 1}, "created"),
        ({"a": 1}, None, "deleted"),
        ({"a": 1}, {"a": 1}, "unchanged"),
        ({"spec": {"a": 1, "b": 2}}, {"spec": {"a": 1, "b": 3, "c": "x"}}, 'spec.b: 2 → 3; spec.c: – → "x"'),
        ({"login": {"password": "old"}}, {"login": {"password": "new"}}, "login.password: … → …"),
        ({"a": [1]}, {}, "a: [1] → –"),
    ],
)
def test_a_change_is_said_in_short(before, after, text):
    """Without secrets."""
    assert difference(before, after) == text


def test_a_long_change_is_cut():
    """The log is bounded."""
    assert len(difference({}, {f"field{n}": "x" * 200 for n in range(50)})) == 500
