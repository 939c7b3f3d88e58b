"""Checkpoints of the fallback: one file each, refused when damaged, of another format or of the core."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from nephila import native
from nephila.native import fallback
from nephila.native.fallback.files import FORMAT

from .conftest import load
from .host_stores import url


def host_store(directory: Path) -> tuple[Any, bytes, Path]:
    """A store with a checkpoint, its manifest, its file."""
    store = fallback.HostStore(str(directory))
    store.push(store.host("a.test"), 0, 0, url(1))
    store.set_state(0, b"state")
    return fallback.HostStore(str(directory)), store.checkpoint(), directory / "queue-00000001.hosts"


def trie(directory: Path) -> tuple[Any, bytes, Path]:
    """A trie with a checkpoint, its manifest, its file."""
    found = fallback.Trie(directory, "job")
    found.add(bytes(range(64)))
    return fallback.Trie(directory, "job"), found.checkpoint(), directory / "seen-job-00000001.run"


BOTH = pytest.mark.parametrize("made", [host_store, trie])


def of_format(data: bytes, number: int) -> bytes:
    """The same bytes with another format number."""
    return data[:8] + struct.pack("<I", number) + data[12:]


@BOTH
@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda data: b"GIF89a--" + data[8:], "not a file of nephila's Python fallback"),
        (lambda data: b"", "not a file of nephila's Python fallback"),
        (lambda data: data[:-1], "is damaged; restore it from a backup"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "is damaged; restore it from a backup"),
        (lambda data: of_format(data, FORMAT + 1), f"format {FORMAT + 1}, this program reads {FORMAT}; resume with"),
        (lambda data: of_format(data, FORMAT - 1), f"format {FORMAT - 1}, this program reads {FORMAT}; resume with"),
    ],
)
def test_other_bytes_are_refused(made: Any, harm: Any, says: str, tmp_path: Path) -> None:
    """One line names the file and the remedy, for the file and for the manifest; the structure stays empty."""
    fresh, manifest, path = made(tmp_path)
    whole = path.read_bytes()
    for data, named, name in ((harm(whole), manifest, path.name), (whole, harm(manifest), "manifest of")):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=says) as caught:
            fresh.restore(named)
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(fresh) == 0
    fresh.restore(manifest)
    assert len(fresh) > 0


@BOTH
def test_a_missing_file_and_one_of_another_checkpoint(made: Any, tmp_path: Path) -> None:
    """Each is named with its remedy."""
    fresh, manifest, path = made(tmp_path)
    other = (fallback.HostStore if made is host_store else lambda where: fallback.Trie(where, "job"))(
        str(tmp_path / "b")
    )
    other.checkpoint()
    path.write_bytes((tmp_path / "b" / path.name).read_bytes())
    with pytest.raises(ValueError, match="belongs to another checkpoint; restore it from a backup"):
        fresh.restore(manifest)
    path.unlink()
    with pytest.raises(ValueError, match="is missing; restore it from a backup"):
        fresh.restore(manifest)


def test_an_unchanged_trie_writes_nothing(tmp_path: Path) -> None:
    """Its manifest stays."""
    fresh, manifest, _ = trie(tmp_path)
    fresh.restore(manifest)
    assert fresh.checkpoint() == manifest
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(("writer", "reader"), [("rust", "python"), ("python", "rust")])
def test_a_store_of_the_other_implementation_is_refused(
    writer: str, reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its manifest, before a file is opened."""
    store = load(writer).HostStore(str(tmp_path))
    store.host("a.test")
    manifest = store.checkpoint()
    monkeypatch.setattr(native, "IMPLEMENTATION", writer)
    native.check_implementation(manifest)
    monkeypatch.setattr(native, "IMPLEMENTATION", reader)
    with pytest.raises(ValueError, match=r"^written by the .*, this program runs the "):
        native.check_implementation(manifest)
    with pytest.raises(ValueError, match="manifest"):
        load(reader).HostStore(str(tmp_path)).restore(manifest)
