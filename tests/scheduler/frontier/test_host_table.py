"""State that a newer release packed in its own form: novelty starts from zero, quarantines and pace stay."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
from nephila.kernel.messages import HostRecord, HostState, HostYield, Quarantine
from nephila.native import HostStore
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.host_table import HostTable
from nephila.scheduler.frontier.prepared_hosts import PreparedHosts


def test_what_a_host_has_yielded_is_learned_anew_and_what_was_closed_stays_closed(caplog):
    """A host that a later release has put away: its pace counts, and no line of it is lost."""
    closed = Quarantine("news", "a.test", "/d/", "barren", 1.0, 120)
    job = SimpleNamespace(uid="news", number=3, quarantines={("a.test", "/d/"): closed})
    store = HostStore("")
    state = HostState("a.test", not_before=50.0, pause_s=60.0)
    record = HostRecord(state, yields=[HostYield("\0003", msgspec.msgpack.encode((9, "another form")))])
    store.set_state(store.host("a.test"), msgspec.msgpack.encode(record))
    hosts = HostTable(store, SchedulerConfig(), {3: job}, PreparedHosts())
    host = hosts.get_or_create("a.test")
    assert host.pace.not_before == 50.0
    assert host.novelty["news"].closed == {"/d/": closed}
    assert "novelty is measured from zero" in caplog.text
