"""A service as a program of its own: what it serves, how it begins and ends, and how settings are read."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
import typer
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.metrics import METRICS as DOWNLOADER
from nephila.downloader.service import Downloader
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.layout import LayoutSetting
from nephila.kernel.messages import FetchRequest
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila.kernel.runtime.waits import Backoff
from nephila.kernel.topics import MEMBERS
from nephila.parser.config import ParserConfig
from nephila.parser.metrics import METRICS as PARSER
from nephila.parser.service import Parser
from nephila.storage.metrics import METRICS as STORAGE
from nephila.storage.service import Storage
from nephila_cluster.commands import service
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.scheduler.metrics import METRICS as SCHEDULER
from nephila_cluster.service import logs, run
from nephila_cluster.service import program as service_program
from nephila_cluster.service.program import ServiceKind, ServiceProgram
from nephila_cluster.service.run import service_kind
from nephila_cluster.service.settings import read

from tests.waits import until


class Bus(LocalBus):
    """A bus of one program with a life."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.config = KafkaConfig()
        self.events: list[str] = []
        self.troubles: list[str] = []
        self.groups: dict[str, object] = {}
        self.heard = True
        self.unsettled = ""
        self.able: list[bool] = []

    def set_able(self, able: bool) -> None:
        """See `ServiceBus`."""
        if self.able[-1:] != [able]:
            self.able.append(able)

    def set_layout(self, setting: LayoutSetting) -> None:
        """See `ServiceBus`."""

    def made(self, clock: object, on_fatal: object) -> Bus:
        """The bus of a program."""
        self.on_fatal = on_fatal
        return self

    async def start(self) -> None:
        """See `ServiceBus`."""
        self.events.append("bus started")

    async def close(self) -> None:
        """See `ServiceBus`."""
        self.events.append("bus closed")

    def watch_partitions(self, group: str, listener: object) -> None:
        """See `ServiceBus`."""
        self.watched = (group, listener)

    def watch_crashes(self, group: str, on_crash: object) -> None:
        """See `ServiceBus`."""
        self.on_crash = (group, on_crash)

    member = "w0"

    @property
    def faults(self) -> list[tuple[str, str]]:
        """See `ServiceBus`."""
        return [("consumer", line) for line in self.troubles]

    def held(self, group: str) -> frozenset[int]:
        """See `ServiceBus`."""
        return frozenset({3, 1})

    def has_all(self, group: str) -> bool:
        """See `ServiceBus`."""
        return group == "downloader"

    def may_emit(self, group: str) -> bool:
        """See `ServiceBus`."""
        return (group, self.heard) == ("downloader", True)


class Worker:
    """A service that writes down its life."""

    def __init__(self, bus: Bus, on_fatal: object = None) -> None:
        self.bus = bus
        self.on_fatal = on_fatal

    async def start(self) -> None:
        """See `Service`."""
        self.bus.events.append("started")

    async def drain(self, grace_s: float) -> None:
        """See `Service`."""
        self.bus.events.append("drained")

    async def close(self) -> None:
        """See `Service`."""
        self.bus.events.append("closed")


async def get(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    """Status and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body


def kind_of(service: Any) -> ServiceKind:
    """A kind of service whose instances take the bus and `on_fatal`."""
    return ServiceKind("worker", lambda config, bus, clock, on_fatal: service(bus, on_fatal), ())


async def started(
    bus: Bus, kind: ServiceKind | None = None, config: object = None
) -> tuple[ServiceProgram, asyncio.Task[None]]:
    """A program that is ready."""
    kind = kind or kind_of(Worker)
    program = ServiceProgram(kind, config, bus.made, port=0, grace_s=1.0)
    task = asyncio.create_task(program.run())
    while program._unready() and not task.done():  # noqa: ASYNC110
        await asyncio.sleep(0)
    return program, task


async def test_a_program_is_ready_drains_and_leaves_in_order():
    """Bus, service, ready; on a stop: drained, closed, and the bus last."""
    bus = Bus()
    program, task = await started(bus)
    assert await get(program.server.port, "/healthz") == (200, "alive\n")
    bus.troubles = ["no broker answers"]
    assert await get(program.server.port, "/readyz") == (503, "no broker answers\n")
    program.stop()
    await task
    assert bus.events == ["started", "bus started", "drained", "closed", "bus closed"]
    assert program.error is None


@pytest.mark.parametrize("inside", [False, True])
async def test_a_member_reports_the_pages_and_bytes_of_its_service(inside):
    """A service of two, as fetchparse, reports what its downloader has fetched."""

    class Counting(Worker):
        work = (7, 900)

    class Both(Worker):
        downloader = Counting(Bus())

    bus, statuses = Bus(), []
    bus.subscribe(MEMBERS, "test", lambda delivery: (statuses.append(delivery.message), delivery.ack()), credits=9)
    program, task = await started(bus, kind_of(Both if inside else Counting))
    program.stop()
    await task
    assert {(one.pages, one.bytes) for one in statuses} == {(7, 900)}
    assert all(hasattr(kind, "work") for kind in (Downloader, Parser, Storage))


async def test_a_downloader_hears_of_its_partitions_and_asks_before_it_dials():
    """Its shards are what the group tells, its guard is the group's lease."""
    bus = Bus()
    program, task = await started(bus, service_kind("downloader"), DownloaderConfig())
    assert bus.watched == ("downloader", program.service.partitions)
    assert bus.on_crash[0] == "downloader"
    assert program.service.coordination.membership_valid()
    bus.heard = False
    assert not program.service.coordination.membership_valid()
    program.stop()
    await task


async def test_a_broker_that_is_absent_is_waited_for(monkeypatch, caplog):
    """Not ready and alive, one line for each reason; a signal ends it all the same."""
    monkeypatch.setattr(service_program, "RETRY", Backoff(0.01, 0.01))
    bus = Bus()
    answers = [
        NotReadyError("no Kafka broker answers"),
        NotReadyError("no Kafka broker answers"),
        NotReadyError("no topics"),
    ]

    async def start() -> None:
        if answers:
            raise answers.pop(0)
        bus.events.append("bus started")

    bus.start = start
    program, task = await started(bus)
    assert bus.events == ["started", "bus started"]
    said = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert said == ["no Kafka broker answers; trying again", "no topics; trying again"]
    program.stop()
    await task


async def test_who_lacks_its_database_does_not_join(monkeypatch):
    """It would get a share of the partitions and stop it; readiness has the reason, and a signal ends the wait."""
    monkeypatch.setattr(service_program, "RETRY", Backoff(0.01, 0.01))
    bus = Bus()
    reaches = [NotReadyError("the blob store does not answer"), None]

    class Needy(Worker):
        trouble = "no database"

        async def reach(self) -> None:
            if (answer := reaches.pop(0)) is not None:
                raise answer

    program = ServiceProgram(kind_of(Needy), None, bus.made, port=0, grace_s=1.0)
    task = asyncio.create_task(program.run())
    while program._unready() != "no database":  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert bus.events == ["started"]
    program.service.trouble = ""
    while program._unready() != "the blob store does not answer":  # noqa: ASYNC110
        await asyncio.sleep(0)
    while program._unready():  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert bus.events == ["started", "bus started"]
    program.stop()
    await task


async def test_a_member_is_ready_when_its_first_partitions_are_open(monkeypatch):
    """Whoever restarts members one by one goes on only then; what moves later does not make it unready."""
    monkeypatch.setattr(service_program, "POLL_S", 0.001)
    bus = Bus()
    bus.unsettled = "takes partitions over: group worker"
    program = ServiceProgram(kind_of(Worker), None, bus.made, port=0, grace_s=1.0)
    task = asyncio.create_task(program.run())
    while program._unready() != bus.unsettled:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert bus.events == ["started", "bus started"]
    program.service.unsettled, bus.unsettled = "3 partitions are announced", ""
    await until(lambda: program._unready() == "3 partitions are announced")
    program.service.unsettled = ""
    await until(lambda: not program._unready())
    bus.unsettled = "takes partitions over: group worker"
    assert not program._unready()
    program.stop()
    await task


async def test_who_stays_without_its_database_gives_its_partitions_up(monkeypatch):
    """And takes part again as soon as it is back."""
    monkeypatch.setattr(service_program, "POLL_S", 0.001)
    monkeypatch.setattr(service_program, "UNABLE_AFTER_S", 0.01)
    bus = Bus()
    program, task = await started(bus)
    await until(lambda: bus.able == [True])
    program.service.trouble = "the database is away"
    await until(lambda: bus.able == [True, False])
    program.service.trouble = ""
    await until(lambda: bus.able == [True, False, True])
    program.stop()
    await task


async def test_a_signal_ends_the_wait_for_a_broker():
    """Nothing was begun, so nothing has to be finished."""
    bus = Bus()

    async def start() -> None:
        raise NotReadyError("no Kafka broker answers")

    bus.start = start
    program = ServiceProgram(kind_of(Worker), None, bus.made, port=0, grace_s=1.0)
    task = asyncio.create_task(program.run())
    while program._unready() != "no Kafka broker answers":  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert await get(program.server.port, "/readyz") == (503, "no Kafka broker answers\n")
    assert await get(program.server.port, "/healthz") == (200, "alive\n")
    program.stop()
    await task
    assert program.error is None


async def test_what_a_person_has_to_look_at_does_not_end_the_program():
    """What cannot be read stands still, the rest goes on; a namesake ends it."""
    bus = Bus()
    program, task = await started(bus)
    bus.on_fatal(NotReadyError("seeds/1 was written by another release"))
    assert not program._over.is_set()
    bus.on_fatal(UserError("another member has the name 'a'"))
    await task
    assert str(program.error) == "another member has the name 'a'"


async def test_a_fault_ends_the_program_without_a_drain():
    """What the service cannot go on after is kept for the exit code."""
    bus = Bus()
    program, task = await started(bus)
    program.service.on_fatal(UserError("disk full"))
    await task
    assert bus.events == ["started", "bus started", "closed", "bus closed"]
    assert str(program.error) == "disk full"


async def test_figures_are_those_of_the_service():
    """/metrics has each figure of the parser with its help."""
    bus = Bus()
    program, task = await started(bus, service_kind("parser"), ParserConfig())
    program.service.pages = 7
    status, text = await get(program.server.port, "/metrics")
    assert status == 200
    assert "nephila_parser_pages_parsed_total 7.0" in text
    assert "# HELP nephila_parser_pages_failed_total Pages that could not be parsed" in text
    assert "process_cpu_seconds_total" in text
    assert 'nephila_build_info{native="rust",python="' in text
    assert "nephila_program_ready 1.0" in text
    assert "nephila_program_unready{" not in text
    bus.troubles = ["no broker answers"]
    status, text = await get(program.server.port, "/metrics")
    assert "nephila_program_ready 0.0" in text
    assert 'nephila_program_unready{reason="consumer"} 1.0' in text
    program.stop()
    await task


@pytest.mark.parametrize("table", [SCHEDULER, DOWNLOADER, PARSER, STORAGE])
def test_every_figure_says_what_it_is(table):
    """Names are counted once, counters end in _total, and the help is a sentence."""
    names = [figure.name for figure in table]
    assert len(names) == len(set(names))
    for figure in table:
        assert figure.help.endswith(".")
        assert figure.counter == figure.name.endswith("_total"), figure.name


async def test_a_port_that_is_taken_is_one_line():
    """It names the setting."""
    bus = Bus()
    program, task = await started(bus)
    other = ServiceProgram(kind_of(Worker), None, Bus().made, port=program.server.port, grace_s=1.0)
    with pytest.raises(UserError, match=f"port {program.server.port} cannot be listened on .*another metrics_port"):
        await other.run()
    program.stop()
    await task


def test_settings_come_from_file_and_environment(tmp_path, monkeypatch):
    """One file may serve all services; the environment wins; partitions are the same everywhere."""
    file = tmp_path / "nephila.yaml"
    file.write_text(
        "bootstrap: a:1\npartitions: 128\nscheduler: {window: 77}\nparser: {max_links: 5}\nkafka: {session_s: 9}\n"
    )
    monkeypatch.setenv("NEPHILA_BOOTSTRAP", "b:2")
    monkeypatch.setenv("NEPHILA_PROGRAM__METRICS_PORT", "0")
    found = read("scheduler", str(file))
    assert (found.program.bootstrap, found.program.metrics_port) == ("b:2", 0)
    assert (found.service.window, found.service.partitions) == (77, 128)
    assert found.kafka == {"session_s": "9", "partitions": 128}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bootstrop: a:1", "unknown setting 'bootstrop'; did you mean 'bootstrap'"),
        ("metrics_port: 1", "bootstrap is missing; set it there or NEPHILA_BOOTSTRAP=HOST:PORT"),
        ("bootstrap: a:1\nparser: {max_link: 5}", "unknown setting 'max_link'; did you mean 'max_links'"),
        ("bootstrap: a:1\nparser: 5", "parser is no map of settings"),
        ("bootstrap: a:1\nbootstrap: b:1", "bootstrap"),
        ("bootstrap: a:1\nmetrics_port: 99999", "metrics_port"),
        ("bootstrap: a:1\ngrace_s: -1", "grace_s must be a number from 0 on"),
        ("bootstrap: a:1\nlog_level: loud", "log_level 'loud' is none of debug, info, warning, error"),
        ("- a", "is no map of settings"),
    ],
)
def test_mistakes_in_settings_are_one_line(tmp_path, monkeypatch, text, says):
    """The file, the key and the remedy."""
    monkeypatch.delenv("NEPHILA_BOOTSTRAP", raising=False)
    file = tmp_path / "nephila.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        read("parser", str(file))
    assert str(error.value).startswith(str(file))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_one_line():
    """Its name and what is wrong."""
    with pytest.raises(UsageError, match=r"nowhere\.yaml: No such file"):
        read("parser", "nowhere.yaml")


def test_log_lines_are_json_with_what_they_are_about(capsys):
    """A URL of a hostile page stays within its string."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        logs.configure("parser", "p-0")
        request = FetchRequest("j", b"k" * 16, 'http://a/"\n{"x', "a", fetch_no=2, attempt=1)
        logging.getLogger("x").warning("too %s", "late", extra=logs.about(request, 5))
    finally:
        root.handlers[:], root.level = before
    (line,) = capsys.readouterr().err.splitlines()
    found = json.loads(line)
    assert found["message"] == "too late"
    assert (found["service"], found["member"], found["level"]) == ("parser", "p-0", "warning")
    assert (found["url"], found["host"], found["partition"]) == (request.url, "a", 5)
    assert found["fetch_id"] == b"k".hex() * 16 + "-2-1"


@pytest.fixture
def json_log(capsys):
    """The lines that a service has written, and the loggers as they were."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    root.handlers[:], root.level = before


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (
            UserError("disk full writing a.db; free space and run again with --resume"),
            1,
            "free space and start it again",
        ),
        (UsageError("store is postgresql://a here and postgresql://b in the storage s-1"), 2, "in the storage s-1"),
        (UserError("remove the frontier: --resume then crawls again"), 1, "a new start then crawls again"),
        (KeyError("x"), 1, "KeyError: 'x'"),
    ],
)
def test_the_last_line_of_a_service_is_json_too(monkeypatch, tmp_path, json_log, error, code, says):
    """With a level that is looked for, and without an option that a service does not have."""

    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setenv("NEPHILA_BOOTSTRAP", "a:1")
    monkeypatch.setattr(run, "run_service", fail)
    with pytest.raises(typer.Exit) as ended:
        service.run("parser", "")
    assert ended.value.exit_code == code
    (line,) = json_log()
    assert (line["level"], line["service"]) == ("critical", "parser")
    assert says in line["message"]
    assert "--resume" not in line["message"]


def test_wrong_settings_are_told_as_json(tmp_path, json_log):
    """As everything that a service says."""
    with pytest.raises(typer.Exit) as ended:
        service.run("parser", str(tmp_path / "nowhere.yaml"))
    assert ended.value.exit_code == 2
    (line,) = json_log()
    assert "nowhere.yaml: No such file" in line["message"]
