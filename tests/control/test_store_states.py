"""Where rows are written to, in the answer of `status`: one program, members over Kafka, the command and its exit."""

from __future__ import annotations

import json

import msgspec
import pytest
import typer
from nephila.kernel.messages import MemberState, MemberStatus, StoreState, StoreStatus
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import MEMBERS
from nephila.storage.health import LOGIN_REMEDY
from nephila_cluster.commands import system as command
from nephila_control import requests, system_types
from nephila_control.cluster.backend import ClusterBackend
from nephila_control.operations import Operations
from nephila_control.stores import STATES, store_problems, store_row, store_text

from tests.fake_kafka import FakeKafka, FakeKafkaBus

AWAY = StoreStatus(
    place="postgresql://crawler@db.test/rows",
    state=StoreState.AWAY,
    since=1_800_000_000.0,
    cause="cannot connect: connection refused",
    rows_waiting=4_096,
    flushed_at=1_799_999_990.0,
    batch_rows=512,
)
LINE = (
    "postgresql://crawler@db.test/rows away since 2027-01-15T08:00:00Z (cannot connect: connection refused); "
    "4,096 rows wait, last flush 2027-01-15T07:59:50Z; start it, or repair the way to it; rows wait, and none is "
    "lost"
)


class System:
    """Members of storage that report, and the control API."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.bus = FakeKafkaBus(FakeKafka(4), self.clock, "api")
        self.bus.eager = True
        self.control = Operations(ClusterBackend(self.bus, self.clock, None, None, place="broker:1"))

    def report(self, name: str, store: StoreStatus | None, state: MemberState = MemberState.READY) -> None:
        """A status of now."""
        service = "storage" if store is not None else "parser"
        status = MemberStatus(f"{service}/{name}", service, name, state=state, at=self.clock.now(), interval_s=5.0)
        status.store = store
        self.bus.publish(MEMBERS, 0, status)

    async def status(self) -> system_types.Status:
        """The answer."""
        return await self.control.status(requests.Empty())


async def test_the_status_of_a_system_has_the_store_of_each_member():
    """Lost ones are problems; a member without a store, or one that has ended, is not listed."""
    system = System()
    system.report("a", StoreStatus(place="postgresql://db.test/rows", state=StoreState.WORKING, batch_rows=2048))
    system.report("b", AWAY)
    system.report("c", AWAY, MemberState.ENDED)
    system.report("p", None)
    status = await system.status()
    assert [(row.member, row.state, row.rows_waiting) for row in status.storage] == [
        ("a", "working", 0),
        ("b", "away", 4_096),
    ]
    assert status.problems == [f"storage b: {LINE}"]
    assert status.transport == []


async def test_a_refused_password_is_named_with_its_remedy():
    """As a state of its own, in the status and in its problems."""
    system = System()
    system.report("a", msgspec.structs.replace(AWAY, cause="password authentication failed", login_refused=True))
    status = await system.status()
    assert [(row.state, row.remedy) for row in status.storage] == [("refused", LOGIN_REMEDY)]
    (line,) = status.problems
    assert "password refused since 2027-01-15T08:00:00Z (password authentication failed); 4,096 rows wait" in line
    assert line.endswith(LOGIN_REMEDY)


async def test_a_store_whose_member_is_silent_is_not_working():
    """Its last state is old."""
    system = System()
    system.report("a", StoreStatus(place="x", state=StoreState.WORKING))
    at = system.clock.now()
    system.clock.advance(60.0)
    (row,) = (await system.status()).storage
    assert (row.state, row.since, row.cause) == ("silent", at, "no report")
    assert "nephila service members" in row.remedy


def test_the_line_of_a_store_says_state_instant_cause_rows_and_remedy():
    """Nothing more where it works."""
    assert store_text(store_row(AWAY)) == f"storage: {LINE}"
    working = store_row(StoreStatus(place="o/nephila.db", state=StoreState.WORKING))
    assert store_text(working) == "storage: o/nephila.db working; 0 rows wait, no flush yet"
    assert store_problems([working]) == []
    assert set(STATES) == set(StoreState)


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("lost", [False, True])
def test_the_command_ends_with_1_when_rows_cannot_be_written(capsys, as_json, lost):
    """The state is printed in any case; the problem goes to standard error, once."""
    row = store_row(AWAY if lost else StoreStatus(place="o/nephila.db", state=StoreState.WORKING))
    answer = system_types.Status(
        version="1",
        kind="up",
        place="o",
        uptime_s=1.0,
        jobs=0,
        states={},
        queued=0,
        in_flight=0,
        stored=0,
        rate=0.0,
        storage=[row],
        problems=store_problems([row]),
    )
    if lost:
        with pytest.raises(typer.Exit) as ended:
            command.print_status(answer, as_json=as_json)
        assert ended.value.exit_code == 1
    else:
        command.print_status(answer, as_json=as_json)
    printed = capsys.readouterr()
    if as_json:
        assert json.loads(printed.out)["storage"][0]["state"] == ("away" if lost else "working")
    else:
        assert ("storage: " + LINE if lost else "storage: o/nephila.db working") in " ".join(printed.out.split())
        assert printed.err.count("connection refused") == int(lost)
