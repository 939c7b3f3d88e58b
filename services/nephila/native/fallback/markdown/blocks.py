"""The blocks of a page in document order, each with the lists and quotes around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class BlockKind(Enum):
    """What a block is written as."""

    TEXT = "text"
    HEADING = "heading"
    CODE = "code"
    TABLE = "table"


class ContainerKind(Enum):
    """What blocks stand in."""

    QUOTE = "quote"
    LIST = "list"
    ITEM = "item"


@dataclass(eq=False, slots=True)
class BlockContainer:
    """A quote, a list or an item of one."""

    kind: ContainerKind
    ordered: bool = False
    """Of a list."""
    number: int = 0
    """Of an item; of a list that of the item before."""
    begun: bool = False
    """Of an item: its marker is written."""
    marker: str = ""
    last: BlockContainer | None = None
    """Of a list: the item before, to which a <dd> belongs."""


class BlockLine(NamedTuple):
    """A line of a block."""

    plain: str
    """As the page pass has it: white space collapsed, permalink signs and all."""
    written: str
    """As Markdown."""


@dataclass(eq=False, slots=True)
class Cell:
    """A cell of a table."""

    lines: list[BlockLine]
    is_head: bool
    span: int


@dataclass(eq=False, slots=True)
class Block:
    """A paragraph, a heading, code, or a table."""

    kind: BlockKind
    containers: tuple[BlockContainer, ...]
    lines: list[BlockLine] = field(default_factory=list)
    """Of code: as they are, without markup."""
    level: int = 0
    """Of a heading."""
    language: str = ""
    """Of code."""
    rows: list[list[Cell]] = field(default_factory=list)
    """Of a table."""
    caption: bool = False
    """It is said of a picture."""
    kept: bool = False
