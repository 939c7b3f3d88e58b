"""Names that somebody else chose lead to files inside the folder of their archive only."""

from __future__ import annotations

import os

import pytest
from nephila.kernel.member_names import is_file_name, is_member_name, open_member


@pytest.mark.parametrize(
    "name", ["a", "frontier/00000001.log", "markdown/a.test/x-1.md", "..a", "a..", "ä/日本", "a b"]
)
def test_a_path_inside_is_a_name(name) -> None:
    assert is_member_name(name)
    assert is_file_name(name) == ("/" not in name)


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "../a", "a/../../b", "a/..", "a/./b", "/a", "//a", "a//b", "a/"),
        *("C:/a", "c:a", "a\\..\\b", "\\\\h\\s", "a\0b", "a\nb", "a" * 1025),
    ],
)
def test_a_path_that_may_lead_outside_is_none(name) -> None:
    assert not is_member_name(name)
    assert not is_file_name(name)


def test_a_regular_file_is_opened(tmp_path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"content")
    with open_member(tmp_path, "a/b/c") as file:
        assert file.read() == b"content"


def test_links_devices_and_names_outside_are_refused(tmp_path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to(tmp_path)
    (folder / "sub").mkdir()
    os.mkfifo(folder / "fifo")
    for name in ("link", "up/secret", "fifo", "sub"):
        with pytest.raises(OSError):
            open_member(folder, name).close()
    for name in ("../secret", str(tmp_path / "secret"), "sub/../../secret"):
        with pytest.raises(ValueError, match="no name of a file in an archive"):
            open_member(folder, name)


def test_no_descriptor_stays_open(tmp_path) -> None:
    (tmp_path / "a").mkdir()
    before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    with pytest.raises(FileNotFoundError):
        open_member(tmp_path, "a/b/c")
    assert before == (set(os.listdir("/proc/self/fd")) if before else set())
