"""The lengths of several logs are those of one instant, however often they are written meanwhile."""

from __future__ import annotations

import os
import threading

from nephila.scheduler.durability.commit_log import CommitLog
from nephila_tools.backup.log_cut import cut_of

CUTS = 40


def test_a_log_is_never_ahead_of_one_that_is_written_before_it(tmp_path) -> None:
    """A thread writes a byte to the second log, then one to the first, again and again."""
    paths = [tmp_path / part / "00000001.log" for part in ("00", "01")]
    files = []
    for path in paths:
        path.parent.mkdir()
        files.append(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    over, begun = threading.Event(), threading.Event()

    def write() -> None:
        while not over.wait(0.0001):
            os.write(files[1], b"b")
            os.write(files[0], b"a")
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(10)
        logs = [CommitLog(path.parent, read_only=True) for path in paths]
        cuts = [cut_of(tmp_path, logs).lengths for _ in range(CUTS)]
    finally:
        over.set()
        writer.join()
    assert all(cut[paths[1]] - cut[paths[0]] in (0, 1) for cut in cuts)
    assert cuts[-1][paths[0]] > cuts[0][paths[0]]


def test_a_segment_that_begins_during_a_reading_is_part_of_the_cut(tmp_path) -> None:
    (tmp_path / "00").mkdir()
    (tmp_path / "00" / "00000001.log").write_bytes(b"one")
    begins = [tmp_path / "00" / "00000002.log"]

    class Growing(CommitLog):
        def segments(self) -> list[int]:
            found = super().segments()
            if begins:
                begins.pop().write_bytes(b"second")
            return found

    cut = cut_of(tmp_path, [Growing(tmp_path / "00", read_only=True)])
    assert sorted(cut.lengths.values()) == [3, 6]
