"""Sessions outlive the server in a file of mode 0600 that holds no secret."""

from __future__ import annotations

import os
import stat

import msgspec
import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila_console.logins import Access
from nephila_console.session_file import SessionFile
from nephila_console.sessions import IDLE_S, LONGEST_S, SESSIONS, WRITTEN_S, Sessions
from nephila_control.access.access_file import Oidc
from nephila_control.access.authority import Authority, administrator
from nephila_control.access.caller import Caller, digest
from nephila_control.access.roles import Role

TOKEN = "0123456789abcdef-the-token"  # noqa: S105 - of a test
ANNA = Caller("anna", Role.EDITOR, frozenset({"a", "b"}))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sessions.json"


def sessions(path, clock=None):
    """Those of a server that has just started."""
    return Sessions(clock or ManualClock(), SessionFile(path))


def test_a_session_is_the_same_after_a_restart(path):
    opened = sessions(path).open(ANNA, "oidc", b"proof")
    session = sessions(path).find(opened)
    assert (session.caller, session.by, session.proof, len(session.csrf)) == (ANNA, "oidc", b"proof", 32)


def test_the_file_is_closed_to_others_and_holds_no_secret(path):
    old = os.umask(0)
    try:
        opened = sessions(path).open(ANNA, "token", digest(TOKEN))
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert opened not in text
    assert TOKEN not in text
    assert [name.name for name in path.parent.iterdir()] == [path.name]


def test_a_restart_prolongs_no_session(path):
    clock = ManualClock()
    first = sessions(path, clock)
    opened, used = first.open(ANNA, "token"), first.open(ANNA, "token")
    clock.advance(IDLE_S - WRITTEN_S)
    first.find(used)
    clock.advance(2 * WRITTEN_S)
    again = sessions(path, clock)
    assert again.find(opened) is None
    assert again.find(used) is not None
    clock.jump(-LONGEST_S)
    assert sessions(path, clock).find(used) is None


def test_a_session_that_was_closed_stays_closed(path):
    first = sessions(path)
    opened = first.open(ANNA, "token")
    first.close(opened)
    assert sessions(path).find(opened) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1, "sessions": {"zz": {}}}', "\xff", "x" * 100_000])
def test_a_file_that_cannot_be_read_costs_the_sessions_alone(path, text):
    path.write_text(text, "latin-1")
    path.chmod(0o600)
    started = sessions(path)
    opened = started.open(ANNA, "token")
    assert sessions(path).find(opened) is not None


def test_a_file_that_others_can_write_counts_for_nothing(path):
    opened = sessions(path).open(ANNA, "token")
    path.chmod(0o620)
    assert sessions(path).find(opened) is None


@pytest.mark.parametrize(("field", "value"), [("role", 9), ("by", "wish"), ("csrf", "")])
def test_a_session_that_cannot_be_is_left_out(path, field, value):
    opened = sessions(path).open(ANNA, "token")
    stored = msgspec.json.decode(path.read_bytes())
    for session in stored["sessions"].values():
        session[field] = value
    path.write_bytes(msgspec.json.encode(stored))
    assert sessions(path).find(opened) is None


def test_sessions_of_a_file_are_bounded(path):
    first = sessions(path)
    opened = first.open(ANNA, "token")
    stored = msgspec.json.decode(path.read_bytes())
    (session,) = stored["sessions"].values()
    stored["sessions"] |= {f"{number:064x}": session for number in range(2 * SESSIONS)}
    path.write_bytes(msgspec.json.encode(stored))
    started = sessions(path)
    assert len(started._sessions) == SESSIONS
    started.find(opened)


def test_a_disk_that_cannot_be_written_ends_no_session(tmp_path):
    opened = sessions(tmp_path / "missing" / "sessions.json")
    assert opened.find(opened.open(ANNA, "token")) is not None


class Nothing:
    """A control API that is not asked."""


def access(path, token=TOKEN):
    return Access(Authority(Nothing(), administrator(token)), clock=ManualClock(), sessions=path)


def test_a_token_that_was_changed_meanwhile_ends_its_sessions(path):
    admin = Caller("token", Role.ADMIN)
    opened = access(path).sessions.open(admin, "token", digest(TOKEN))
    assert access(path).sessions.find(opened) is not None
    assert access(path, "another-token-of-16").sessions.find(opened) is None


def test_a_provider_that_is_no_longer_there_ends_its_sessions(path):
    oidc = Oidc(issuer="https://id.test", client_id="c", public_url="https://console.test")
    opened = access(path).sessions.open(ANNA, "oidc", digest(repr(oidc)))
    assert access(path).sessions.find(opened) is None


def test_a_server_without_sessions_writes_no_file(path):
    access(path)
    assert not path.exists()
