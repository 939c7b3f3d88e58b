"""Rules for all tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.browser_fixtures import chromium  # noqa: F401 - fixtures of all tests
from tests.bucket_fixtures import bucket, s3_server  # noqa: F401 - fixtures of all tests
from tests.command_fixtures import nephila  # noqa: F401 - fixtures of all tests
from tests.fetcher_fixtures import make_fetcher  # noqa: F401 - fixtures of all tests
from tests.postgres_fixtures import database_url, mortal, postgres, store  # noqa: F401 - fixtures of all tests
from tests.required import required
from tests.time_budget import register as register_time_budget
from tools.install import Missing
from tools.kafka_broker import Broker


class CoreAlone:
    """With NEPHILA_CORE_ALONE=1 no package beside the core is found, as where it is left out (`make test-alone`)."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.startswith("nephila_"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


# A deadline of an example fails on a busy machine; speed is measured by benches.
hypothesis.settings.register_profile("nephila", deadline=None)
hypothesis.settings.load_profile("nephila")

# Programs that tests start are those of this tree, not those that are installed.
os.environ["PYTHONPATH"] = str(Path(__file__).parent.parent / "services")
if sys.dont_write_bytecode:
    # Each of these programs would compile its modules again, half of the CPU of its start.
    sys.dont_write_bytecode = False
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(base / "nephila" / "pycache")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # absent with python -B

if os.environ.get("NEPHILA_CORE_ALONE"):
    sys.meta_path.insert(0, CoreAlone())

# Skips that say something about the machine's user or about the copy of the sources, not about a part that is missing.
ALLOWED = ("root may", "no RLIMIT_FSIZE", "is not in this history")


FULL = ("tests/e2e/",)
"""Tests of whole programs. They carry the mark `full` unless they carry the mark `smoke`."""


def pytest_configure(config: pytest.Config) -> None:
    """Count the time of folders on CI."""
    register_time_budget(config)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the mark `full` to what `make test` leaves out; drop `whole` where the core is alone."""
    if os.environ.get("NEPHILA_CORE_ALONE"):
        items[:] = [item for item in items if not _needs_packages(item)]
    for item in items:
        if item.nodeid.startswith(FULL) and not item.get_closest_marker("smoke"):
            item.add_marker(pytest.mark.full)


def _needs_packages(item: pytest.Item) -> bool:
    """Whether the test has the mark `whole`, or uses a PostgreSQL server, whose ledger is of nephila_stores."""
    return item.get_closest_marker("whole") is not None or "postgres" in item.fixturenames


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """With NEPHILA_REQUIRE_ALL=1, as on CI, a test that skips because a part is missing fails."""
    report = yield
    if os.environ.get("NEPHILA_REQUIRE_ALL") and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(word in reason for word in ALLOWED):
            report.outcome = "failed"
            report.longrepr = f"a part that is required here is missing: {reason}"
    return report


@pytest.fixture(scope="session", autouse=True)
def page_cache() -> Iterator[None]:
    """Files of this process stay in the page cache: a test has no power failure, and an fsync takes 4 ms and more."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, lambda fd: None)
        yield


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real Kafka broker on a port of its own; tests keep apart by prefixes. A test that kills it starts it again."""
    with required(Missing):
        found = Broker(tmp_path_factory.mktemp("kafka")).start()
    yield found
    found.stop()
