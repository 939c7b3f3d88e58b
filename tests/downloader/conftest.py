"""No test may leave a slot in use."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def all_slots_are_free_at_the_end() -> Iterator[None]:
    """A request that has ended, in whatever stage, holds no slot of its host, of the downloader or of an address."""
    from tests.downloader.downloader_room import rooms

    rooms.clear()
    yield
    for room in rooms:
        pipeline = room.downloader._pipeline
        flying = room.downloader.in_flight
        assert pipeline.global_stage.slots.held <= flying, "a slot of the downloader leaked"
        assert sum(pipeline._host_slots._held.values()) <= flying, "a slot of a host leaked"
        pipeline.global_stage.slots.check()
        pipeline._host_slots.check()
    rooms.clear()
