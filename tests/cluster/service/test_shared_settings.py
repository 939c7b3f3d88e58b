"""What all services of a system have to agree on: written once, derived everywhere, a difference refused."""

from __future__ import annotations

import pytest
from nephila.kernel.runtime.errors import UsageError
from nephila_cluster.service.settings import read

AGENT = "examplebot/1.0 (+https://example.org/bot)"


@pytest.fixture
def result(tmp_path, monkeypatch):
    """Reads the settings of a service from a file of these lines and an environment of its own."""
    monkeypatch.setenv("NEPHILA_BOOTSTRAP", "a:1")

    def reading(service: str, text: str = "", **environment: str):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        file = tmp_path / "system.yaml"
        file.write_text(text)
        return read(service, str(file))

    return reading


@pytest.mark.parametrize(
    "text",
    [f'user_agent: "{AGENT}"', f'downloader: {{http: {{user_agent: "{AGENT}"}}}}'],
    ids=["at the top", "downloader's"],
)
def test_robots_are_asked_for_the_name_that_is_sent(result, text):
    """Scheduler and parser take the name from the User-Agent, wherever in the file it stands."""
    assert result("scheduler", text).service.agent == "examplebot"
    assert result("parser", text).service.robots_agent == "examplebot"
    assert result("downloader", text).service.http.agent() == AGENT


def test_the_environment_names_the_user_agent_too(result):
    """One variable for all services; without any it is the program's own name."""
    assert result("scheduler").service.agent == "nephila"
    assert result("scheduler", NEPHILA_PROGRAM__USER_AGENT="otherbot/2").service.agent == "otherbot"
    assert result("parser").service.robots_agent == "otherbot"
    assert result("downloader").service.http.agent() == "otherbot/2"


def test_a_contact_stands_at_the_top(result):
    """It is in the default User-Agent, whose name it does not change."""
    found = result("downloader", "contact: me@example.org")
    assert found.service.http.agent().endswith("(+me@example.org)")
    assert found.agreed["user_agent"] == "nephila"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("user_agent: a/1\ndownloader: {http: {user_agent: b/1}}", "downloader.http.user_agent is 'b/1', "),
        ("user_agent: a/1\nscheduler: {agent: b}", "scheduler.agent is 'b', but robots.txt is asked for"),
        ("user_agent: a/1\nparser: {robots_agent: b}", "parser.robots_agent is 'b', but robots.txt is asked for"),
        (
            "downloader: {limits: {per_address: 0}}",
            "downloader.limits.per_address is 0, the default is 4: all services have to agree",
        ),
        ("per_address: 2\nscheduler: {per_address: 3}", "scheduler.per_address is 3, "),
        (
            "scheduler: {address_gap_s: 1}\ndownloader: {limits: {address_gap_s: 2}}",
            "limits.address_gap_s is 2, ",
        ),
        ('networks: ["10.0.0.0/8=1/0"]\ndownloader: {limits: {networks: []}}', "downloader.limits.networks is empty, "),
        ("per_address: many", "per_address: Expected `int`"),
    ],
)
@pytest.mark.parametrize("service", ["scheduler", "downloader", "parser"])
def test_differences_are_refused(result, service, text, says):
    """With both places and the remedy, by whichever service reads the file."""
    with pytest.raises(UsageError) as error:
        result(service, text)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_the_pace_stands_once_and_repeats_are_taken(result):
    """At the top, in the scheduler's section, or the same in both."""
    for text in (
        "per_address: 9\naddress_gap_s: 0",
        "scheduler: {per_address: 9, address_gap_s: 0}",
        "scheduler: {per_address: 9, address_gap_s: 0}\ndownloader: {limits: {per_address: 9, address_gap_s: 0.0}}",
    ):
        for service in ("scheduler", "downloader"):
            found = result(service, text)
            pace = found.service.limits if service == "downloader" else found.service
            assert (pace.per_address, pace.address_gap_s) == (9, 0)
            assert found.agreed == {
                "user_agent": "nephila",
                "per_address": "9",
                "address_gap_s": "0",
                "networks": "empty",
            }


def test_tenants_stand_once_for_schedulers_and_the_control_api(result):
    """At the top or in the scheduler's section; members of different tables may run together while one changes."""
    for text in ('tenants: ["news pages=5"]', 'scheduler: {tenants: ["news pages=5"]}'):
        for service in ("scheduler", "api"):
            found = result(service, text)
            assert found.service.tenants == ("news pages=5",)
            assert "tenants" not in found.agreed


def test_a_difference_in_the_environment_of_another_service_is_seen(result):
    """An environment may serve all services as well."""
    with pytest.raises(UsageError, match=r"NEPHILA_DOWNLOADER__HTTP__USER_AGENT is 'b/1', .*user_agent is 'a/1'"):
        result("scheduler", "user_agent: a/1", NEPHILA_DOWNLOADER__HTTP__USER_AGENT="b/1")


def test_unknown_variables_are_refused(result):
    """A mistyped service is no less a mistake than a mistyped field."""
    with pytest.raises(UsageError, match=r"NEPHILA_STROAGE__STORE is no .*did you mean NEPHILA_STORAGE__STORE\?"):
        result("parser", NEPHILA_STROAGE__STORE="postgresql://a/b")


def test_a_mistyped_field_of_another_service_is_refused_by_all(result):
    """One environment serves all programs: whoever reads it first says so."""
    with pytest.raises(UsageError, match=r"__STROE names no setting of storage; did you mean NEPHILA_STORAGE__STORE\?"):
        result("parser", NEPHILA_STORAGE__STROE="postgresql://a/b")


def test_storage_without_a_store_has_to_ask_for_sqlite(result):
    """Else a member with a forgotten setting keeps a share of the rows to itself."""
    with pytest.raises(UsageError, match=r"storage\.store is empty; set it to postgresql://"):
        result("storage", "storage: {directory: rows}")
    own = result("storage", "member: m-0\nstorage: {directory: rows, formats: [sqlite, raw]}")
    assert own.agreed == {"store": "nephila.db of m-0"}
    given = result("storage", "storage: {directory: rows}", NEPHILA_STORAGE__STORE="postgresql://u:secret@db/rows")
    assert given.agreed == {"store": "postgresql://u@db/rows"}


def test_sqlite_may_be_asked_for_in_the_environment(result):
    """As every setting."""
    found = result("storage", NEPHILA_STORAGE__DIRECTORY="rows", NEPHILA_STORAGE__FORMATS='["sqlite"]')
    assert found.service.formats == ("sqlite",)
