"""Wrong bearer tokens: after ten a minute the address waits, by a line that names the wait; others do not."""

from __future__ import annotations

import re

import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila_control.access.authority import Authority, TooManyTries, administrator
from nephila_control.access.tries import ADDRESSES, MOST, WITHIN_S, Tries
from nephila_control.api import OPERATIONS
from nephila_control.declaration import PREFIX

from tests.console.console_rig import TOKEN as RIG_TOKEN
from tests.console.console_rig import console
from tests.control.http.asgi import AsgiClient

TOKEN = "0123456789abcdef-right"  # noqa: S105 - of a test


@pytest.fixture
def clock():
    """Of the server."""
    return ManualClock()


@pytest.fixture
def authority(clock):
    """One token."""
    return Authority(None, administrator(TOKEN), clock=clock)  # type: ignore[arg-type]


def guess(authority, address, token="wrong"):  # noqa: S107 - of a test
    """The caller of a token from an address."""
    return authority.bearer(f"Bearer {token}", address)


def test_an_address_waits_after_ten_wrong_tokens(authority, clock):
    """With the right one too; the wait is named. Other addresses and later tries are not concerned."""
    for _ in range(MOST):
        assert guess(authority, "192.0.2.1") is None
        clock.advance(1)
    for token in ("wrong", TOKEN):
        with pytest.raises(TooManyTries, match="10 wrong tokens came from this address within 60 s; wait 50 s"):
            guess(authority, "192.0.2.1", token)
    assert guess(authority, "192.0.2.2", TOKEN) is not None
    clock.advance(WITHIN_S)
    assert guess(authority, "192.0.2.1", TOKEN) is not None


def test_who_sends_no_token_tries_none(authority):
    """A browser, or a probe."""
    for _ in range(3 * MOST):
        assert authority.bearer("", "192.0.2.1") is None
        assert authority.bearer("Basic eA==", "192.0.2.1") is None
    assert guess(authority, "192.0.2.1", TOKEN) is not None


def test_a_client_behind_the_same_proxy_is_not_locked_out(authority):
    """Its token was accepted from there; further guesses are not tried."""
    assert guess(authority, "192.0.2.1", TOKEN) is not None
    for _ in range(MOST):
        guess(authority, "192.0.2.1")
    assert guess(authority, "192.0.2.1", TOKEN) is not None
    with pytest.raises(TooManyTries):
        guess(authority, "192.0.2.1")


def test_an_ipv6_address_counts_as_its_network(authority):
    """A machine has 2**64 of them; IPv4 within IPv6 is one machine."""
    for number in range(MOST):
        guess(authority, f"2001:db8::{number:x}")
        guess(authority, "::ffff:192.0.2.1")
    for address in ("2001:db8::ffff:1", "192.0.2.1"):
        with pytest.raises(TooManyTries):
            guess(authority, address)
    assert guess(authority, "2001:db8:0:1::1") is None


def test_what_is_counted_is_bounded(clock):
    """The oldest addresses and tokens are forgotten."""
    tries = Tries(clock)
    for number in range(2 * ADDRESSES):
        tries.failed(f"a{number}")
        tries.accepted(f"a{number}", b"x")
    assert len(tries._of) == len(tries._accepted) == ADDRESSES
    assert tries.wait_s("other") == 0


async def test_no_operation_takes_a_wrong_token(tmp_path):
    """Nor none."""
    async with console(tmp_path) as rig:
        client = AsgiClient(rig.application)
        for route in OPERATIONS.values():
            path = re.sub(r"\{\w+\}", "x", PREFIX + route.path)
            for headers in ({}, {"authorization": "Bearer wrong"}):
                answer = await client._request(route.method, path, b"", headers)
                assert answer.status_code == 401, (route.name, answer.text)
            rig.clock.advance(WITHIN_S)


async def test_the_api_answers_429_with_retry_after(tmp_path):
    """In the one shape of errors; the login of the console waits as well: one count."""
    async with console(tmp_path) as rig:
        client = AsgiClient(rig.application)
        wrong, right = ({"authorization": f"Bearer {token}"} for token in ("wrong", RIG_TOKEN))
        for _ in range(MOST):
            assert (await client._request("GET", "/api/v1/status", b"", wrong)).status_code == 401
        for headers in (wrong, right):
            answer = await client._request("GET", "/api/v1/status", b"", headers)
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")
            assert answer.json()["error"]["code"] == "too_many_tries"
            assert "wait 60 s" in answer.json()["error"]["message"]
        assert (await rig.browser().post("/console/login", {"token": RIG_TOKEN})).status_code == 429
        rig.clock.advance(WITHIN_S + 1)
        assert (await client._request("GET", "/api/v1/status", b"", right)).status_code == 200
