"""Roles: one table for every operation, checked for each caller, and written down in the log of changes."""

from __future__ import annotations

import pytest
from nephila_control import requests
from nephila_control.access.caller import Caller
from nephila_control.access.described import DESCRIBED, difference
from nephila_control.access.guard import guarded
from nephila_control.access.roles import NEEDS, NOT_FOR_TENANTS, OPERATIONS, Role
from nephila_control.api import Forbidden
from nephila_control.http.routes import ROUTES

READING = {
    "list_studio_pages",
    "open_studio_page",
    "render_studio_page",
    "studio_step",
    "studio_view",
    "studio_frame",
    "studio_rule",
    "list_control_log",
    "get_configuration",
}
"""Operations of editors and admins that change nothing."""


class Willing:
    """Does what it is asked for."""

    def __getattr__(self, name):
        async def answer(request):
            return name

        return answer


def test_each_operation_has_one_role():
    """A new operation is refused to everybody until somebody decides."""
    assert sum(map(len, OPERATIONS.values())) == len(NEEDS)
    assert set(NEEDS) == {route.operation for route in ROUTES}
    assert set(NEEDS) >= NOT_FOR_TENANTS


def test_each_operation_that_changes_something_is_in_the_log():
    """What a viewer may do changes nothing."""
    assert set(DESCRIBED) == {name for name, role in NEEDS.items() if role > Role.VIEWER} - READING


@pytest.mark.parametrize("role", Role)
async def test_a_role_may_use_its_operations_and_those_below(role):
    """And no other, whoever asks."""
    control = guarded(Willing(), Caller("x", role))
    allowed = set()
    for route in ROUTES:
        try:
            allowed.add(await getattr(control, route.operation)(None))
        except Forbidden:
            continue
    assert allowed == {name for name, needed in NEEDS.items() if needed <= role}


def test_a_server_that_does_not_hold_the_jobs_serves_no_tenant():
    """It could not limit what is shown."""
    with pytest.raises(Forbidden):
        guarded(Willing(), Caller("x", Role.VIEWER, frozenset({"acme"})))


async def test_an_unknown_operation_is_refused(monkeypatch):
    """The table is the gate, not a list of exceptions to it."""
    monkeypatch.setattr("nephila_control.access.guard.NEEDS", {})
    with pytest.raises(Forbidden, match="no role may use list_jobs"):
        await guarded(Willing(), Caller("x", Role.ADMIN)).list_jobs(requests.Empty())


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
