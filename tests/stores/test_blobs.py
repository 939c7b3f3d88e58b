"""The blob store: one contract over a directory and over obstore's stores."""

from __future__ import annotations

import os
import socket

import pytest
from nephila.kernel.runtime.errors import PermanentError, TemporaryError, UsageError
from nephila_stores.remote import blobs as blobs_module
from nephila_stores.remote.blobs import DirectoryBlobs, ObjectBlobs, open_blobs


@pytest.fixture(params=["directory", "obstore memory", "obstore directory", "s3"])
def blobs(request, tmp_path):
    """An empty store of each kind."""
    if request.param == "s3":
        return open_blobs(request.getfixturevalue("bucket"))
    if request.param == "directory":
        return DirectoryBlobs(tmp_path / "blobs")
    obstore = pytest.importorskip("obstore")
    if request.param == "obstore memory":
        return ObjectBlobs(obstore.store.MemoryStore(), "memory://")
    return ObjectBlobs(obstore.store.LocalStore(tmp_path / "blobs", mkdir=True), "file://")


def test_objects_are_read_as_written(blobs, tmp_path):
    """Bytes and files, also empty ones; a second put replaces the content."""
    file = tmp_path / "a.run"
    file.write_bytes(bytes(range(256)) * 5000)
    blobs.put("frontier/p0001/e5/a.run", file)
    blobs.put("frontier/p0001/empty", b"")
    blobs.put("frontier/p0001/manifest", b"one")
    blobs.put("frontier/p0001/manifest", b"two")
    assert blobs.get("frontier/p0001/e5/a.run") == file.read_bytes()
    assert blobs.get("frontier/p0001/empty") == b""
    assert blobs.get("frontier/p0001/manifest") == b"two"


def test_an_object_of_many_parts_is_whole(bucket, tmp_path, monkeypatch):
    """Objects of any size relative to the part size are written and read in parts."""
    store = open_blobs(bucket)
    content = os.urandom(1 << 20) * 20
    file = tmp_path / "a.run"
    for size in (len(content), len(content) - 1, 3 * 4096, 1):
        file.write_bytes(content[:size])
        store.put(f"size/{size}", file)
        for part in (4096, 1 << 20, 16 << 20):
            if size < 1000 * part:
                monkeypatch.setattr(blobs_module, "PART_BYTES", part)
                assert store.get(f"size/{size}") == content[:size]


def test_a_bucket_that_cannot_be_used_is_one_line(bucket, monkeypatch):
    """A missing bucket, no server, a silent server: a TemporaryError with location and reason, in time."""
    with pytest.raises(TemporaryError, match=r"s3://nobody/x: .*NoSuchBucket") as found:
        open_blobs("s3://nobody/x").put("p/a", b"x")
    assert "RetryErrorImpl" not in str(found.value)
    monkeypatch.setattr(blobs_module, "REQUEST_S", 0.2)
    monkeypatch.setattr(blobs_module, "RETRIES", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(TemporaryError, match=f"{bucket}: .*after 1 retries"):
            open_blobs(bucket).put("p/a", b"x")
    with pytest.raises(TemporaryError, match=f"{bucket}: .*after 1 retries"):
        open_blobs(bucket).names("p")


def test_names_are_those_below_a_path(blobs):
    """Sorted, complete path parts only: p1 is not below p."""
    for name in ("p/b/2", "p/a/1", "p1/c", "q"):
        blobs.put(name, b"x")
    assert blobs.names("p") == ["p/a/1", "p/b/2"]
    assert blobs.names("nothing") == []


def test_what_is_deleted_is_gone(blobs):
    """A second delete is no error."""
    blobs.put("p/a", b"x")
    blobs.delete(["p/a", "p/b"])
    blobs.delete(["p/a"])
    assert blobs.names("p") == []
    with pytest.raises(PermanentError, match="object p/a is gone"):
        blobs.get("p/a")


@pytest.mark.parametrize("name", ["", "/etc/passwd", "a/../b", "a//b", ".hidden", "a b", "ä"])
def test_only_plain_names_are_names(blobs, name):
    """No path can leave the store."""
    with pytest.raises(PermanentError, match="no name of an object"):
        blobs.put(name, b"x")


def test_a_store_that_refuses_is_temporary(tmp_path):
    """A file in the place of the directory: the line names it."""
    (tmp_path / "blobs").write_text("")
    with pytest.raises(TemporaryError, match=r"blobs/p/a: Not a directory|blobs/p/a: File exists"):
        DirectoryBlobs(tmp_path / "blobs").put("p/a", b"x")


def test_a_file_that_is_not_there_leaves_nothing(blobs, tmp_path):
    """The object does not appear."""
    with pytest.raises(TemporaryError):
        blobs.put("p/a", tmp_path / "missing")
    assert blobs.names("p") == []


def test_locations(tmp_path):
    """A path is a directory, a URL a store of obstore; other values are refused in one line."""
    assert isinstance(open_blobs(str(tmp_path)), DirectoryBlobs)
    assert isinstance(open_blobs(f"file://{tmp_path}"), DirectoryBlobs)
    pytest.importorskip("obstore")
    assert isinstance(open_blobs("memory://"), ObjectBlobs)
    assert isinstance(open_blobs("s3://bucket/path"), ObjectBlobs)
    with pytest.raises(UsageError, match="nowhere://x: "):
        open_blobs("nowhere://x")
