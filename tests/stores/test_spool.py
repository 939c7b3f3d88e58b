"""The spool of a remote sink: after a crash each segment has exactly its committed bytes, or it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.kernel.runtime.errors import UserError
from nephila.storage.config import StorageConfig
from nephila.storage.ledgers.sqlite import Sqlite
from nephila.storage.rows import RowBatch
from nephila_stores.remote.spool import Spool


class Spooled:
    """A spool and its database."""

    def __init__(self, directory: Path) -> None:
        config = StorageConfig(directory=directory, fsync=False)
        self.ledger = Sqlite(config)
        self.ledger.open()
        self.spool = Spool(config, self.ledger, "search")
        self.spool.open()

    def commit(self, data: bytes) -> None:
        """Append and commit."""
        self.spool.append(data)
        self.ledger.stage(RowBatch())
        self.ledger.commit(dict(self.spool.lengths))
        self.spool.after_commit()

    def close(self) -> None:
        self.spool.close()
        self.ledger.close()

    def contents(self) -> list[bytes]:
        """Sealed segments and the last one."""
        return [path.read_bytes() for path in (*self.spool.sealed, self.spool.file.path)]


def three_segments(directory: Path) -> list[Path]:
    """Two sealed segments and one that is written to; returns their files."""
    found = Spooled(directory)
    found.commit(b"one")
    found.spool.seal()
    found.commit(b"two")
    found.spool.seal()
    found.commit(b"three")
    paths = [*found.spool.sealed, found.spool.file.path]
    found.close()
    return paths


def test_segments_come_back_in_order(tmp_path: Path) -> None:
    """Names, order and bytes are those before."""
    paths = three_segments(tmp_path)
    again = Spooled(tmp_path)
    assert [*again.spool.sealed, again.spool.file.path] == paths
    assert again.contents() == [b"one", b"two", b"three"]
    again.close()


def test_bytes_that_were_not_committed_are_cut(tmp_path: Path) -> None:
    """A crash between the write and the commit."""
    *_, last = three_segments(tmp_path)
    with last.open("ab") as file:
        file.write(b"torn")
    again = Spooled(tmp_path)
    assert again.contents()[-1] == b"three"
    again.close()


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("damage", ["gone", "short"])
def test_a_segment_that_is_gone_or_short_is_refused(tmp_path: Path, which: int, damage: str) -> None:
    """What was committed and is not delivered is not lost in silence."""
    path = three_segments(tmp_path)[which]
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=path.name):
        Spooled(tmp_path)


def test_a_delivered_segment_does_not_come_back(tmp_path: Path) -> None:
    """Killed between the ledger's word and the removal of the file, or after it."""
    found = Spooled(tmp_path)
    found.commit(b"one")
    found.spool.seal()
    (path,) = found.spool.sealed
    found.spool.delivered(path)
    found.close()
    path.write_bytes(b"one")
    again = Spooled(tmp_path)
    assert again.spool.sealed == []
    assert not path.exists()
    again.close()
