"""The shape of the source: files below a length, no circles of imports, and no test that sleeps through a wait."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import grimp

from tools.import_arrows import PACKAGES, SERVICES, circles, crate_arrows, used_paths

ROOT = Path(__file__).parents[2]

MOST_LINES = 450
"""Generated files, in `kernel/messages/`, may be longer."""

SERVES = "a server that answers slowly"
PACES = "the rate of a stream of messages"
OUTSIDE = "drives whole programs, by hand or in make targets"
SLEEPS = {
    "adversary/adversary_server.py": (2, SERVES),
    "benchmarks/bench_clients.py": (2, "a client that keeps the delay of a host"),
    "canary/canary.py": (1, "a page that starts requests by itself announces no end of them"),
    "chaos/chaos.py": (3, OUTSIDE),
    "chaos/conductor.py": (1, OUTSIDE),
    "cluster/many.py": (1, OUTSIDE),
    "cluster/release.py": (2, OUTSIDE),
    "cluster/sections.py": (1, OUTSIDE),
    "contracts/test_fetcher.py": (1, SERVES),
    "browser/test_chromium_faults.py": (1, "a page that computes announces nothing"),
    "downloader/http/test_hostile_servers.py": (2, SERVES),
    "cluster/kafka/test_partitions_move_over_kafka.py": (1, "a heartbeat that takes the time of a network"),
    "e2e/test_documents_in_a_crawl.py": (1, "two signals, the second after the first was handled"),
    "e2e/test_live_settings_over_kafka.py": (1, SERVES),
    "e2e/test_one_address_two_schedulers.py": (1, SERVES),
    "e2e/test_rendered_pages.py": (1, SERVES),
    "e2e/test_groups.py": (2, SERVES),
    "e2e/test_workers.py": (2, SERVES),
    "cluster/kafka/client/test_secured_broker.py": (1, "messages for longer than a token is valid"),
    "cluster/kafka/consumer/test_poison_over_kafka.py": (1, "a member without CPU for a session"),
    "cluster/kafka/group/test_rebalance.py": (1, PACES),
    "cluster/kafka/test_broker_trouble.py": (1, PACES),
    "cluster/kafka/test_kafka_bus.py": (3, f"{PACES}; work that is longer than the client's limit of a poll"),
    "metrics/recording.py": (2, OUTSIDE),
    "metrics/web.py": (1, SERVES),
    "parser/sandbox_tasks.py": (2, "work of a child that must be ended"),
    "cluster/scheduler/cluster_rig.py": (2, "a thread writes snapshots beside a busy loop"),
    "cluster/scheduler/test_orders_of_growth.py": (1, "threads load and write snapshots beside a busy loop"),
    "cluster/scheduler/test_snapshot_store.py": (1, "owners that change at random instants of such a thread"),
    "waits.py": (2, "the polls of all tests"),
}
"""File → calls of sleep with a duration, and why there is nothing to wait for."""


def test_no_file_is_too_long() -> None:
    lengths = {
        path.relative_to(SERVICES).as_posix(): len(path.read_text("utf-8").splitlines())
        for path in SERVICES.rglob("*.py")
        if path.parent != SERVICES / "nephila" / "kernel" / "messages"
    }
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def test_no_files_import_each_other_in_a_circle() -> None:
    """Imports for types, and those within functions, count too."""
    graph = grimp.build_graph(*PACKAGES)
    assert circles({(one, two) for one in graph.modules for two in graph.find_modules_directly_imported_by(one)}) == []


def sleeps(text: str) -> Iterator[ast.Call]:
    """Calls of `sleep`, but for `sleep(0)`, which lets other tasks run."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "sleep":
            continue
        if not (isinstance(node.args[0], ast.Constant) and node.args[0].value == 0):
            yield node


def test_no_test_sleeps() -> None:
    """A test waits for the event, by `tests/waits.py` where nothing announces it, or moves a `ManualClock`."""
    found = {}
    for path in (ROOT / "tests").rglob("*.py"):
        if count := len(list(sleeps(path.read_text("utf-8")))):
            found[path.relative_to(ROOT / "tests").as_posix()] = count
    assert found == {name: count for name, (count, _) in SLEEPS.items()}


def test_modules_of_a_crate_import_in_no_circle():
    """The searches of the tokenizer have its table of kinds of bytes."""
    crates = [
        path.parent / "src" for path in ROOT.glob("services/**/Cargo.toml") if not {"fuzz", "target"} & {*path.parts}
    ]
    assert len(crates) == 3
    found = [group for crate in crates for group in circles(crate_arrows(crate))]
    assert [group for group in found if group != ["search", "tokenizer"]] == []


def test_nested_imports_of_rust_are_read():
    assert used_paths("crate::a::{b, c::{d, e}, self}") == [
        "crate::a::b",
        "crate::a::c::d",
        "crate::a::c::e",
        "crate::a::self",
    ]
