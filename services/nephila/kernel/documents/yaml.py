"""YAML as far as a document of settings needs it: maps, lists and scalars, each with its place in the file.

Invariant: a scalar stays the text that was written; what it means is said by whoever reads it, so `no`, `1.10` and
`0x10` are never a truth value or a number by accident. Aliases, anchors and tags are refused, and so is a key that
comes twice. Bounded: size, depth, number of values. It does not know any schema.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nephila.kernel.runtime.errors import UsageError

MAX_BYTES = 1 << 20
"""Of a file; a longer list of seeds belongs into a file of seeds."""
_SPLIT = "long lists of seeds go into a file of seeds, rules into more files"
MAX_DEPTH = 16
MAX_VALUES = 100_000


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands."""

    value: str | list[Node] | dict[str, Entry]
    place: str
    """As "job.yaml:3:12", or what else a person finds it by."""
    plain: bool = False
    """A scalar written without quotes: only such a one can be a number or a truth value."""

    def error(self, text: str) -> UsageError:
        """A mistake here, in one line."""
        return UsageError(f"{self.place}: {text}")


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a map, with its key for what is wrong with that."""

    key: Node
    value: Node


def parse(data: bytes, name: str, loader: Any = None) -> list[Node]:
    """The documents of a file, empty ones left out. Raises `UsageError` in one line. O(size).

    `loader` is one of PyYAML's; by default the one on libyaml where it is built, twenty times as fast.
    """
    import yaml

    if len(data) > MAX_BYTES:
        raise UsageError(f"{name}: larger than {MAX_BYTES >> 20} MiB; {_SPLIT}")
    text = _decoded(data, name)
    events = yaml.parse(text, Loader=loader or getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        return list(_Builder(events, name).documents())
    except yaml.reader.ReaderError as error:
        place = _place_of(text, error.position, name)
        raise UsageError(f"{place}: a control character or another one that YAML does not allow") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise UsageError(f"{place}: {' '.join(str(error.problem or error.context).split())}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # Whatever else libyaml finds: one line of it, without its own idea of where.
        raise UsageError(f"{name}: not YAML ({' '.join(str(error).split())[:200]})") from None


def from_builtins(value: Any, place: str) -> Node:
    """The same tree from parsed JSON; places are paths like "job.spec.scope". Raises `UsageError`."""
    return _from_builtins(value, place, 0, itertools.count(1))


def to_builtins(node: Node) -> Any:
    """The tree without places, every scalar a text: for settings, whose struct says what each of them is."""
    if isinstance(node.value, dict):
        return {key: to_builtins(entry.value) for key, entry in node.value.items()}
    if isinstance(node.value, list):
        return [to_builtins(item) for item in node.value]
    return node.value


def _from_builtins(value: Any, place: str, depth: int, numbers: Iterator[int]) -> Node:
    if depth > MAX_DEPTH or next(numbers) > MAX_VALUES:
        raise UsageError(f"{place}: nested or repeated beyond all reason")
    if isinstance(value, str):
        return Node(value, place)
    if isinstance(value, list):
        items = [_from_builtins(item, f"{place}[{i}]", depth + 1, numbers) for i, item in enumerate(value)]
        return Node(items, place)
    if isinstance(value, dict):
        entries = {}
        for key, item in value.items():
            where = f"{place}.{key}"
            entries[str(key)] = Entry(Node(str(key), place), _from_builtins(item, where, depth + 1, numbers))
        return Node(entries, place)
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return Node(text, place, plain=True)


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise UsageError(f"{name}:{line}:{column}: not UTF-8 text") from None


def _place_of(text: str, position: int, name: str) -> str:
    return f"{name}:{text.count(chr(10), 0, position) + 1}:{position - text.rfind(chr(10), 0, position)}"


class _Builder:
    """Events to nodes. Nothing recurses deeper than the limit, and nothing is built beyond it."""

    def __init__(self, events: Iterator[Any], name: str) -> None:
        self._events = events
        self._name = name
        self._values = 0

    def documents(self) -> Iterator[Node]:
        import yaml

        for event in self._events:
            if isinstance(event, (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentEndEvent)):
                continue
            if isinstance(event, yaml.DocumentStartEvent):
                continue
            node = self._node(event, 0)
            if node.value or not node.plain:  # an empty document between two --- is nothing
                yield node

    def _node(self, event: Any, depth: int) -> Node:
        import yaml

        place = self._place(event)
        self._refuse(event, place, depth)
        if isinstance(event, yaml.ScalarEvent):
            return Node(event.value, place, plain=event.style in (None, ""))
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
                items.append(self._node(event, depth + 1))
            return Node(items, place)
        return Node(self._map(depth), place)

    def _map(self, depth: int) -> dict[str, Entry]:
        import yaml

        entries: dict[str, Entry] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise UsageError(f"{self._place(event)}: a key must be a word, not a list, a map or an alias")
            key = self._node(event, depth + 1)
            name = str(key.value)
            if name in entries:
                first = entries[name].key.place
                raise key.error(f"the key {name[:60]!r} comes twice, first at {first}")
            entries[name] = Entry(key, self._node(next(self._events), depth + 1))
        return entries

    def _place(self, event: Any) -> str:
        mark = event.start_mark
        return f"{self._name}:{mark.line + 1}:{mark.column + 1}"

    def _refuse(self, event: Any, place: str, depth: int) -> None:
        """What could make a small file a large tree, or a text something else."""
        import yaml

        if isinstance(event, yaml.AliasEvent):
            raise UsageError(f"{place}: aliases (*{event.anchor}) are not read; write the value out")
        if event.anchor is not None:
            raise UsageError(f"{place}: anchors (&{event.anchor}) are not read; write the value out")
        if event.tag is not None:
            raise UsageError(f"{place}: tags ({event.tag}) are not read; the key says what a value is")
        if depth > MAX_DEPTH:
            raise UsageError(f"{place}: nested more than {MAX_DEPTH} deep")
        self._values += 1
        if self._values > MAX_VALUES:
            raise UsageError(f"{place}: more than {MAX_VALUES:,} values; {_SPLIT}")
