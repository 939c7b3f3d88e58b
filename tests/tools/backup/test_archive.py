"""The directory of one backup: complete or never read."""

from __future__ import annotations

import hashlib
import json
import os

import pytest
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.programs.output_directory import OutputDirectory
from nephila_tools.backup import archive, directory
from nephila_tools.backup.archive import Archive


def test_an_interrupted_backup_is_not_one(tmp_path) -> None:
    written = Archive(tmp_path, "directory", "o", 1.7e9)
    written.write("a", lambda file: file.write(b"x"))
    (part,) = tmp_path.iterdir()
    with pytest.raises(UserError, match=r"is an unfinished backup: it has no backup\.json$"):
        archive.read_manifest(part)
    assert archive.finished(tmp_path) == []
    path = written.finish()
    assert [path.name] == ["2023-11-14T22-13-20Z"] == [one.name for one in archive.finished(tmp_path)]
    with pytest.raises(UserError, match=f"the newest backup in it is {path}$"):
        archive.read_manifest(tmp_path)


def test_two_backups_of_one_second_are_refused(tmp_path) -> None:
    Archive(tmp_path, "directory", "o", 1.7e9).finish()
    with pytest.raises(UserError, match="exists already; repeat the command"):
        Archive(tmp_path, "directory", "o", 1.7e9)


def test_a_file_shorter_than_committed_is_refused(tmp_path) -> None:
    (tmp_path / "log").write_bytes(b"123")
    written = Archive(tmp_path, "directory", "o", 1.7e9)
    with pytest.raises(UserError, match="lacks 2 of its 5 committed bytes"):
        written.add("log", tmp_path / "log", 5)


def test_another_format_is_refused(tmp_path) -> None:
    path = Archive(tmp_path, "directory", "o", 1.7e9).finish()
    manifest = path / archive.MANIFEST
    manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(UserError, match="was written in backup format 2, this program reads 1"):
        archive.read_manifest(path)


def test_the_new_backup_is_kept(tmp_path) -> None:
    paths = [Archive(tmp_path, "directory", "o", 1.7e9 + number).finish() for number in range(3)]
    for path in paths:
        archive.rows_beside(path).write_bytes(b"")
    with pytest.raises(UsageError, match="1 is the least"):
        archive.keep_newest(tmp_path, 0)
    assert archive.keep_newest(tmp_path, 1) == paths[:2]
    assert sorted(tmp_path.iterdir()) == [paths[2], archive.rows_beside(paths[2])]


def foreign_backup(place, names, content=b"theirs"):
    """A backup whose manifest names these files, written by another program."""
    path = place / "2026-01-01T00-00-00Z"
    (path / archive.FILES).mkdir(parents=True)
    digest = hashlib.sha256(content).hexdigest()
    files = [{"name": name, "bytes": len(content), "sha256": digest} for name in names]
    document = {"format": 1, "kind": "directory", "taken_at": "2026-01-01T00:00:00Z", "source": "x", "files": files}
    (path / archive.MANIFEST).write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("name", ["../a", "sub/../../a", "/etc/a", "", "a//b", "a\\..\\b", "a\0b"])
def test_a_manifest_that_names_files_outside_is_refused(tmp_path, name) -> None:
    path = foreign_backup(tmp_path, ["ok", name])
    with pytest.raises(UserError, match="which is no file of a backup: somebody else has written it"):
        archive.read_manifest(path)


def test_links_and_fifos_in_a_backup_are_not_read(tmp_path) -> None:
    (tmp_path / "private").write_bytes(b"theirs")
    for name, make in (
        ("link", lambda path: path.symlink_to(tmp_path / "private")),
        ("folder/private", lambda path: path.parent.symlink_to(tmp_path)),
        ("fifo", os.mkfifo),
    ):
        path = foreign_backup(tmp_path / name.partition("/")[0], [name])
        make(path / archive.FILES / name)
        with pytest.raises(UserError, match=r"cannot read .*: it is (a link|no regular file); use another backup"):
            directory.restore(path, archive.read_manifest(path), OutputDirectory(tmp_path / "out"), without_rows=True)
        assert not (tmp_path / "out").exists()


def test_a_backup_does_not_write_files_outside(tmp_path) -> None:
    with pytest.raises(UserError, match="no name of a file in a backup"):
        Archive(tmp_path, "directory", "o", 1.7e9).write("../a", lambda file: file.write(b"x"))
