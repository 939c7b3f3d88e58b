"""Text with gaps for addresses: a writer names the files, the caller decides which address a browser gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec
from nephila.native import UrlError, parse_url

FileKind = Literal["style", "media"]
"""media: a picture or a font; style sheets name both by the same function."""
MAX_FILES: Final = 1000
"""Files of one page or style sheet; further ones have no address."""
MAX_CANDIDATES: Final = 20
MAX_DATA_CHARS: Final = 200_000
"""Characters of a data: URL."""


class NamedFile(msgspec.Struct, array_like=True, frozen=True):
    """A file that a page or a style sheet names."""

    kind: FileKind
    url: str
    """http, https or data."""


class Pieces(msgspec.Struct, array_like=True):
    """Each file stands behind the text with the same number; one text more follows."""

    texts: list[str] = msgspec.field(default_factory=lambda: [""])
    files: list[NamedFile] = msgspec.field(default_factory=list)

    def joined(self, address: Callable[[NamedFile], str]) -> str:
        parts = [text + address(file) for text, file in zip(self.texts, self.files, strict=False)]
        return "".join([*parts, self.texts[-1]])


class PieceWriter:
    """Collects texts and files. Amortised O(1) per call."""

    def __init__(self) -> None:
        self._parts: list[list[str]] = [[]]
        self._files: list[NamedFile] = []

    def text(self, text: str) -> None:
        self._parts[-1].append(text)

    def file(self, file: NamedFile) -> None:
        self._files.append(file)
        self._parts.append([])

    @property
    def full(self) -> bool:
        return len(self._files) >= MAX_FILES

    def pieces(self) -> Pieces:
        return Pieces(["".join(parts) for parts in self._parts], self._files)


def file_of(kind: FileKind, reference: str, base: str) -> NamedFile | None:
    """The file of a reference; None for one that no picture, font or style sheet can have."""
    reference = reference.strip()
    if reference[:5].lower() == "data:":
        return NamedFile(kind, reference) if len(reference) <= MAX_DATA_CHARS else None
    if not reference or reference.startswith("#"):
        return None
    try:
        url = parse_url(reference, base).href
    except UrlError:
        return None
    return NamedFile(kind, url) if urlsplit(url).scheme in ("http", "https") else None


def srcset_of(text: str) -> Sequence[tuple[str, str]]:
    """(reference, descriptor) of the candidates of a srcset, 20 at most. A data: URL has a comma of its own."""
    candidates: list[tuple[str, str]] = []
    rest = text.strip()
    while rest and len(candidates) < MAX_CANDIDATES:
        reference, _, after = rest.lstrip(", \t\n\f\r").partition(" ")
        if reference.endswith(","):
            descriptor, rest = "", after
        else:
            descriptor, _, rest = after.partition(",")
        candidates.append((reference.rstrip(","), descriptor.strip()))
    return [(reference, descriptor) for reference, descriptor in candidates if reference]
