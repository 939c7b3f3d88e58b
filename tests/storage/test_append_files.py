"""Append-only files: opened at their committed length, cut back to it, synced, and saved when they are deleted."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from nephila.kernel.runtime.errors import UserError
from nephila.storage.append_file import (
    AppendFile,
    check_length,
    committed_lengths,
    keep_tail,
    refuse_unknown_file,
    write_back,
)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The directories, and the files with their size at that time, that were synced, in order."""
    found: list[str] = []

    def fsync(descriptor: int) -> None:
        name, now = Path(os.readlink(f"/proc/self/fd/{descriptor}")).name, os.fstat(descriptor)
        found.append(name if stat.S_ISDIR(now.st_mode) else f"{name}: {now.st_size}")

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def test_a_file_is_opened_cut_and_continued_at_its_committed_length(tmp_path: Path) -> None:
    """Bytes beyond it are those of a crash."""
    path = tmp_path / "f"
    file = AppendFile(path, 0, False)
    file.append(b"one")
    file.after_commit()
    file.append(b"two")
    assert (file.length, path.read_bytes()) == (6, b"onetwo")
    file.rollback()
    assert (file.length, path.read_bytes()) == (3, b"one")
    file.append(bytearray(b"torn"))
    file.close()
    file.close()
    again = AppendFile(path, 3, False)
    assert (again.length, path.read_bytes()) == (3, b"one")
    again.append(b"!")
    again.rollback()
    assert path.read_bytes() == b"one"
    again.close()
    assert stat.S_IMODE(path.stat().st_mode) & 0o711 == 0o600


def test_a_disk_that_takes_a_few_bytes_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All bytes are written, once."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data[:3])))
    file = AppendFile(tmp_path / "f", 0, False)
    file.append(b"0123456789")
    assert (file.length, (tmp_path / "f").read_bytes()) == (10, b"0123456789")
    file.close()


def test_bytes_and_a_new_name_are_synced(tmp_path: Path, synced: list[str]) -> None:
    """The directory once, the file at each write; nothing of both without fsync."""
    file = AppendFile(tmp_path / "f", 0, True)
    assert synced == [tmp_path.name]
    file.append(b"x")
    file.append(b"y")
    file.after_commit()
    file.close()
    assert synced == [tmp_path.name, "f: 1", "f: 2"]
    AppendFile(tmp_path / "f", 2, True).close()
    other = AppendFile(tmp_path / "g", 0, False)
    other.append(b"x")
    other.close()
    assert synced == [tmp_path.name, "f: 1", "f: 2"]


def test_an_error_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's error of a descriptor has no name."""
    file = AppendFile(tmp_path / "f", 0, False)

    def broken(descriptor: int, data: bytes) -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", broken)
        with pytest.raises(OSError, match="Input/output error") as caught:
            file.append(b"x")
    assert (caught.value.errno, caught.value.filename) == (5, str(tmp_path / "f"))
    file.close()


@pytest.mark.parametrize("size", [0, 5, (1 << 20) + 5, 2 << 20])
@pytest.mark.parametrize("how", ["deleted", "deleted with its directory", "replaced"])
def test_a_file_that_lost_its_name_is_saved(tmp_path: Path, synced: list[str], how: str, size: int) -> None:
    """Its committed bytes, at its name or beside the other file; synced before it has the name."""
    path = tmp_path / "d" / "f"
    path.parent.mkdir()
    file = AppendFile(path, 0, False)
    committed = os.urandom(size)
    file.append(committed)
    file.after_commit()
    assert file.restore() == ""
    file.append(b"not committed")
    path.unlink()
    if how == "replaced":
        path.write_bytes(b"mine")
        (tmp_path / "d" / "f.part").write_bytes(b"of an earlier attempt")
    elif how == "deleted with its directory":
        path.parent.rmdir()
    kept = path.with_name("f.rescued") if how == "replaced" else path
    assert file.restore() == (f"{path} was {how.split()[0]} while it was written to; all of it was saved as {kept}")
    assert kept.read_bytes() == committed
    assert how != "replaced" or path.read_bytes() == b"mine"
    assert synced == [f"f.part: {size}", "d"]
    assert {one.name for one in path.parent.iterdir()} == {path.name, kept.name}
    file.close()
    assert file.restore() == ""


def test_a_file_that_cannot_be_saved_is_reported(tmp_path: Path) -> None:
    """The directory became a file: the line says that nothing was saved, and why."""
    path = tmp_path / "d" / "f"
    path.parent.mkdir()
    file = AppendFile(path, 0, False)
    path.unlink()
    path.parent.rmdir()
    path.parent.write_bytes(b"mine")
    found = file.restore()
    assert found.startswith(f"{path} was deleted while it was written to, and could not be saved (")
    assert path.parent.read_bytes() == b"mine"
    file.close()


def test_a_file_that_another_one_replaced_and_that_cannot_be_saved(tmp_path: Path) -> None:
    """The other file stays as it is."""
    path = tmp_path / "f"
    path.write_bytes(b"mine")

    def write(part: Path) -> None:
        raise OSError(28, "No space left on device")

    found = write_back(path, write)
    assert found == (
        f"{path} was replaced while it was written to, and could not be saved ([Errno 28] No space left on device)"
    )
    assert [one.name for one in tmp_path.iterdir()] == ["f"]


def test_a_restored_file_has_its_name_last(tmp_path: Path) -> None:
    """Written, finished, renamed: a closing database deletes its log by its name."""
    path, order = tmp_path / "f", []

    def write(part: Path) -> None:
        order.append(("write", part.name, path.exists()))
        part.write_bytes(b"x")

    def finish() -> None:
        order.append(("finish", "", path.exists()))

    write_back(path, write, finish)
    assert order == [("write", "f.part", False), ("finish", "", False)]
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize(
    ("size", "committed", "found"),
    [(-1, 0, ""), (0, 0, ""), (5, 5, ""), (6, 5, ""), (-1, 1, "is gone"), (0, 1, "has 0 bytes"), (4, 5, "has 4 bytes")],
)
def test_a_file_shorter_than_committed_is_refused(tmp_path: Path, size: int, committed: int, found: str) -> None:
    """A file that was never written need not exist."""
    path = tmp_path / "f"
    if found:
        with pytest.raises(UserError, match=f"{path} {found}, but {committed} were committed; put the file back"):
            check_length(path, size, committed)
    else:
        check_length(path, size, committed)


def test_the_tail_of_a_file_is_kept_before_it_is_cut(tmp_path: Path, synced: list[str]) -> None:
    """Under a name with the length, synced."""
    path = tmp_path / "f"
    path.write_bytes(b"committed and more")
    keep_tail(path, 9)
    assert (tmp_path / "f.cut-9").read_bytes() == b" and more"
    assert path.read_bytes() == b"committed and more"
    assert synced == ["f.cut-9: 9"]


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    """An empty one, as `touch` makes it, is nobody's."""
    refuse_unknown_file(tmp_path / "f")
    (tmp_path / "f").touch()
    refuse_unknown_file(tmp_path / "f")
    (tmp_path / "f").write_bytes(b"x")
    with pytest.raises(UserError, match=r"f is there, but not of this crawl; move it away"):
        refuse_unknown_file(tmp_path / "f")


@pytest.mark.parametrize("name", ["../victim", "/etc/victim", "crawl-/../../victim-00001.warc.gz", "folder/file"])
def test_a_database_of_somebody_else_truncates_no_file_outside_its_directory(name: str) -> None:
    assert committed_lengths([("pages.jsonl", 7)]) == {"pages.jsonl": 7}
    with pytest.raises(UserError, match="is no file of an output directory"):
        committed_lengths([("pages.jsonl", 7), (name, 0)])
