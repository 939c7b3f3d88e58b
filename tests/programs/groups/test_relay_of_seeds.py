"""A seed between partitions is confirmed when it is written down, and arrives though the program dies."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.messages import Seed
from nephila.kernel.runtime.errors import UserError
from nephila.programs.groups.seed_relay import SeedRelay
from nephila.scheduler.group.partition_logs import RELAY


class Partitions:
    """The groups; a receipt resolves when the test says so."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, str]] = []
        self.receipts: list[Receipt] = []

    def send(self, partition: int, seed: Seed) -> Receipt:
        self.sent.append((partition, seed.url))
        self.receipts.append(Receipt())
        return self.receipts[-1]


def opened(directory: Path) -> tuple[SeedRelay, Partitions]:
    partitions = Partitions()
    relay = SeedRelay(directory, partitions.send)
    relay.open()
    return relay, partitions


def test_a_seed_is_sent_again_until_its_partition_has_it(tmp_path):
    relay, partitions = opened(tmp_path)
    assert relay.relay(3, Seed("job", "http://a.test/")).done
    relay.relay(5, Seed("job", "http://b.test/"))
    partitions.receipts[0].resolve_one()
    relay.close()  # as a kill: nothing else is written
    relay, partitions = opened(tmp_path)
    assert partitions.sent == [], "the jobs are not there yet"
    relay.send_again()
    assert partitions.sent == [(3, "http://a.test/"), (5, "http://b.test/")]


def test_the_file_is_empty_when_all_have_arrived(tmp_path):
    relay, partitions = opened(tmp_path)
    for number in range(3):
        relay.relay(number, Seed("job", f"http://a.test/{number}"))
    assert (tmp_path / RELAY).stat().st_size > 0
    for receipt in partitions.receipts:
        receipt.resolve_one()
    assert (tmp_path / RELAY).stat().st_size == 0


def test_seeds_of_the_run_before_stay_while_new_ones_arrive(tmp_path):
    relay, _ = opened(tmp_path)
    relay.relay(1, Seed("job", "http://old.test/"))
    relay.close()
    relay, partitions = opened(tmp_path)
    relay.relay(2, Seed("job", "http://new.test/"))
    partitions.receipts[0].resolve_one()
    relay.close()
    _, partitions = opened(tmp_path)
    assert (tmp_path / RELAY).stat().st_size > 0


@pytest.mark.parametrize("cut", [1, 7, 12])
def test_a_torn_entry_was_never_confirmed(tmp_path, cut):
    relay, _ = opened(tmp_path)
    relay.relay(1, Seed("job", "http://a.test/"))
    whole = (tmp_path / RELAY).stat().st_size
    relay.relay(2, Seed("job", "http://b.test/"))
    relay.close()
    data = (tmp_path / RELAY).read_bytes()
    (tmp_path / RELAY).write_bytes(data[: whole + cut])
    relay, partitions = opened(tmp_path)
    relay.send_again()
    assert partitions.sent == [(1, "http://a.test/")]
    assert (tmp_path / RELAY).stat().st_size == whole


def test_a_directory_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / RELAY).mkdir()
    with pytest.raises(UserError):
        opened(tmp_path)
