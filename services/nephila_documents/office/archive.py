"""Members of an office archive, bounded: sizes are those that come out, not those that the archive states.

Invariant: at most MAX_MEMBER_BYTES of one member and MAX_TOTAL_BYTES of an archive are unpacked.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, Final

from lxml import etree
from nephila.kernel.member_names import is_member_name

MAX_MEMBER_BYTES: Final = 64 << 20
MAX_TOTAL_BYTES: Final = 128 << 20

_ERRORS: Final = (KeyError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


class Archive:
    """The members of an archive by name."""

    def __init__(self, body: bytes) -> None:
        """Raises `zipfile.BadZipFile` or `ValueError` where there is no directory."""
        self._zip = zipfile.ZipFile(io.BytesIO(body))
        self._left = MAX_TOTAL_BYTES
        names = self._zip.namelist()
        self.names = [name for name in names if is_member_name(name.removesuffix("/"))]
        self.problem = ""
        """Why there may be more in it than was read."""
        if len(self.names) < len(names):
            self.problem = "broken archive: a name is no path inside it"

    def read(self, name: str) -> bytes:
        """What is in a member, as far as the limits go; empty where it is absent or broken."""
        most = min(self._left, MAX_MEMBER_BYTES)
        if not most or not is_member_name(name):
            return b""
        data = bytearray()
        try:
            with self._zip.open(name) as member:
                while len(data) <= most and (piece := member.read(1 << 20)):
                    data += piece
        except _ERRORS as error:
            if not isinstance(error, KeyError):
                self.problem = f"broken archive: {name}: {error}"[:200]
        if len(data) > most:
            self.problem = f"more than {MAX_MEMBER_BYTES >> 20} MiB in a member or {MAX_TOTAL_BYTES >> 20} in all"
            del data[most:]
        self._left -= len(data)
        return bytes(data)

    def targets(self, part: str) -> dict[str, tuple[str, bool]]:
        """Relations of an OOXML part: id → target and whether that is outside; inside targets are member names."""
        folder, _, name = part.rpartition("/")
        data = self.read(f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels")
        targets = {}
        for relation in elements(data, ("Relationship",)):
            target, outside = relation.get("Target", ""), relation.get("TargetMode") == "External"
            if not outside:
                target = posixpath.normpath(posixpath.join("/" + folder, target)).lstrip("/")
            targets[relation.get("Id", "")] = (target, outside)
        return targets


def local(element: Any) -> str:
    """Name of an element without its namespace; empty for comments and instructions."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: Any, name: str, default: str = "") -> str:
    """Value of an attribute by its name without namespace."""
    plain = element.get(name)
    if plain is not None:
        return str(plain)
    return next((str(value) for key, value in element.attrib.items() if key.rpartition("}")[2] == name), default)


def elements(data: bytes, names: tuple[str, ...], inside: str = "") -> Iterator[Any]:
    """The outermost elements of these names, each whole, in their order; the tree of all before is freed. `inside`:
    only within an element of that name. Entities are not expanded, nothing is fetched, a fault ends it."""
    if not data:
        return
    depth = 0
    entered = not inside
    tags = tuple(f"{{*}}{name}" for name in (*names, *filter(None, (inside,))))
    events = etree.iterparse(
        io.BytesIO(data),
        events=("start", "end"),
        tag=tags,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        recover=True,
    )
    try:
        for event, element in events:
            if inside and local(element) == inside and not depth:
                entered = event == "start"
            elif event == "start":
                depth += 1
            else:
                depth -= 1
                if not depth:
                    if entered:
                        yield element
                    element.clear()
                    while (before := element.getprevious()) is not None and element.getparent() is not None:
                        element.getparent().remove(before)
    except etree.XMLSyntaxError:
        return
