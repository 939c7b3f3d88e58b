"""An option of a setting is one row of the table; an option of a job is its row and the field of the document."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from nephila import programs
from nephila.cli.options import with_options
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.runtime.config import settings, value_of
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.crawl.job_options import apply_options
from nephila.programs.option_converters import same
from nephila.programs.option_fields import JOB, config_classes, field_facts, place_of
from nephila.programs.option_row import DIR, SIZE, TIME, N, Option
from nephila.programs.option_table import defaults, rows, table
from nephila.programs.option_values import read, settings_of
from nephila.programs.options import LIMITS, CommandOptions, Seconds
from nephila.programs.service_configs import make_configs

REDACTED = "run.json keeps no passwords of proxies"
LIFTS = "URLs that ended under the option of an earlier run are fetched again without it"
BESIDE = {
    "crawl/differences.py": {
        "accept": LIFTS,
        "allow_private": LIFTS,
        "ca_file": LIFTS,
        "host_map": LIFTS,
        "insecure": LIFTS,
        "reject": LIFTS,
        "user_agent": LIFTS,
    },
    "crawl/resolve.py": {"proxy": REDACTED},
}
"""File of the programs → options that it reads beside the table, and why. A name that is gone is taken off the list."""
Row = tuple[str, Any, Option]


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Adds a row to the table for one test."""

    def add(name: str, kind: Any, row: Option) -> Option:
        monkeypatch.setitem(CommandOptions.__annotations__, name, Annotated[kind, row])
        clear()
        return table()[name][1]

    def clear() -> None:
        rows.cache_clear()
        table.cache_clear()

    yield add
    monkeypatch.undo()
    clear()


def parameter(name: str) -> Any:
    """The option of a command as Typer sees it."""

    @with_options("crawl")
    def command(**options: Any) -> None: ...

    return inspect.signature(command).parameters[name]


SETTINGS: list[tuple[Row, Any, Any]] = [
    (("keepalive", Seconds, Option("Idle time.", LIMITS, "downloader.http.keepalive_s", TIME)), "2m", 120.0),
    (("pool", int | str, Option("Idle connections.", LIMITS, "downloader.http.pool_size", N)), "1k", 1000),
    (("body", int | str, Option("Largest body.", LIMITS, "downloader.http.max_body_bytes", SIZE)), "2MiB", 2 << 20),
    (("owner", str, Option("Address.", LIMITS, "downloader.http.contact", DIR)), "/x", "/x"),
    (("full", bool, Option("All text.", LIMITS, "parser.full_text")), True, True),
    (("pause", Seconds, Option("First pause.", LIMITS, "scheduler.backoff_s", TIME)), 5, 5.0),
]


@pytest.mark.parametrize(("row", "value", "setting"), SETTINGS, ids=[row[0] for row, _, _ in SETTINGS])
def test_a_row_is_all_that_an_option_of_a_setting_needs(added, tmp_path, row, value, setting):
    """Default and bounds are those of the setting, and the value reaches it."""
    name, kind, _ = row
    option = added(*row)
    ((path, _),) = option.fields.items()
    service, _, field = path.partition(".")
    default = settings(config_classes()[service])[field].field.default
    assert (option.default, parameter(name).default) == (default, default)
    assert name in rows()
    assert option.in_service
    assert not option.in_job

    def in_service(value: Any) -> Any:
        configs = make_configs({**defaults(), name: value}, tmp_path, ("sqlite",))
        return value_of(getattr(configs, service), field)

    assert in_service(default) == default
    assert in_service(read(kind, option, value)) == setting
    if option.metavar in (N, SIZE):
        with pytest.raises(ValueError, match="is not in the range 0"):
            read(kind, option, -1)


def test_a_row_and_its_field_are_all_that_an_option_of_a_job_needs(added):
    number = added("links_per_page", int | str, Option("New links.", LIMITS, "job.scope.linksPerPage", N))
    assert (number.default, number.least, number.most) == (0, 0, 10**12)
    assert number.in_job
    assert not number.in_service
    words = added("nofollow", str, Option("Links with nofollow.", LIMITS, "job.parse.nofollow"))
    assert (words.default, words.metavar) == ("follow", "follow|skip")
    spec = JobSpec()
    apply_options(spec, {"links_per_page": 7, "nofollow": "skip"})
    assert (spec.scope.links_per_page, spec.parse.nofollow) == (7, "skip")
    with pytest.raises(UsageError, match="--nofollow 'jump'"):
        apply_options(spec, {"nofollow": "jump"})


def test_an_option_with_its_default_sets_nothing():
    """A variable of the environment, or a default of the service, counts then."""
    assert not any(settings_of(defaults()).values())
    assert settings_of({}) == {service: {} for service in config_classes()}


def test_each_path_names_a_field():
    """`plan` holds what a program uses itself."""
    for _, option in rows().values():
        for path in option.fields:
            section, _, rest = path.partition(".")
            if section == JOB:
                place_of(JobSpec(), rest)
            else:
                assert section == "plan" or rest in settings(config_classes()[section])


def test_a_flag_is_off_where_its_field_has_its_default():
    """The only default that a row does not take from its field."""
    for kind, option in rows().values():
        for path, convert in option.fields.items() if kind is bool else ():
            if convert is same:
                assert field_facts(path).default is False


def test_no_file_beside_the_table_maps_an_option():
    """An option with converters in its row is named by no other file of the programs, but for a reason."""
    mapped = {name for name, (_, option) in rows().items() if None not in option.fields.values()}
    mapped = {name for name in mapped if rows()[name][1].fields}
    folder = Path(programs.__file__).parent
    files = {path.relative_to(folder).as_posix(): keys(path) & mapped for path in folder.rglob("*.py")}
    assert {name: names for name, names in files.items() if names} == {name: set(why) for name, why in BESIDE.items()}


def keys(path: Path) -> set[Any]:
    """Texts that a file uses as keys: x["key"], x.get("key"), x.pop("key")."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Subscript):
            found.add(getattr(node.slice, "value", None))
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("get", "pop") and node.args:
            found.add(getattr(node.args[0], "value", None))
    return {key for key in found if isinstance(key, str)}
