"""The subset of YAML that settings and documents need: maps, lists and scalars, each with its location in the file.

Invariant: a scalar stays the text of the file; the reader decides its type, so `no`, `1.10` and `0x10` never become a
boolean or a number by accident. Aliases, anchors, tags and duplicate keys are refused. Size, depth and number of values
are bounded. No schema is involved.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec

from nephila.kernel.runtime.errors import FormError, UsageError

MAX_BYTES = 1 << 20
"""Maximum size of a file; a longer list of seeds belongs into a file of seeds."""
_SPLIT = "long lists of seeds go into a file of seeds, rules into more files"
MAX_DEPTH = 16
MAX_VALUES = 100_000
_TOO_DEEP = f"nested more than {MAX_DEPTH} deep"
_TOO_DEEP_OF_LIBYAML = "exceeded maximum nesting depth"
"""Of newer versions: their scanner looks 1,000 levels ahead, so it refuses such a text before its first event."""


class Node(msgspec.Struct, frozen=True):
    """A value and its location."""

    value: str | list[Node] | dict[str, YamlEntry]
    location: str
    """As "job.yaml:3:12"; in JSON a path like "job.spec.scope"."""
    plain: bool = False
    """A scalar without quotes; only these can be numbers or booleans."""
    typed: bool = False
    """Parsed JSON: a scalar without quotes is no text."""

    def error(self, text: str) -> UsageError:
        """An error at this location, in one line."""
        return UsageError(f"{self.location}: {text}")

    def form_error(self, text: str) -> FormError:
        """An error at this location that a JSON Schema reports as well."""
        return FormError(f"{self.location}: {text}")


class YamlEntry(msgspec.Struct, frozen=True):
    """A value of a map with its key; errors about the key use the location of the key."""

    key: Node
    value: Node


def parse(data: bytes, name: str, loader: Any = None) -> list[Node]:
    """The documents of a file without empty ones. Raises `UsageError` in one line. O(size).

    `loader` is a loader of PyYAML; the default is the one with libyaml where it is installed (20 times as fast).
    """
    import yaml

    if len(data) > MAX_BYTES:
        raise UsageError(f"{name}: larger than {MAX_BYTES >> 20} MiB; {_SPLIT}")
    text = _decoded(data, name)
    events = yaml.parse(text, Loader=loader or getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        return list(_Builder(events, name).documents())
    except yaml.reader.ReaderError as error:
        location = _location_of(text, error.position, name)
        raise UsageError(f"{location}: a control character or another one that YAML does not allow") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        location = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        problem = " ".join(str(error.problem or error.context).split())
        if mark and _is_indented_by_tab(text, mark.line):
            problem = "this line is indented by a tab; YAML takes spaces only"
        raise UsageError(f"{location}: {_TOO_DEEP if problem == _TOO_DEEP_OF_LIBYAML else problem}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # Other errors of libyaml: one line, without its own position.
        raise UsageError(f"{name}: not YAML ({' '.join(str(error).split())[:200]})") from None


def _is_indented_by_tab(text: str, line: int) -> bool:
    """Whether a tab stands before the first word of a line."""
    lines = text.splitlines()[line : line + 1]
    return any("\t" in line_text[: len(line_text) - len(line_text.lstrip())] for line_text in lines)


def from_builtins(value: Any, location: str) -> Node:
    """The same tree from parsed JSON; locations are paths like "job.spec.scope". Raises `UsageError`."""
    return _from_builtins(value, location, 0, itertools.count(1))


def to_builtins(node: Node) -> Any:
    """The tree without locations, each scalar a text; for settings, whose struct converts them."""
    if isinstance(node.value, dict):
        return {key: to_builtins(entry.value) for key, entry in node.value.items()}
    if isinstance(node.value, list):
        return [to_builtins(item) for item in node.value]
    return node.value


def _from_builtins(value: Any, location: str, depth: int, numbers: Iterator[int]) -> Node:
    if depth > MAX_DEPTH or next(numbers) > MAX_VALUES:
        raise UsageError(f"{location}: nested too deep or too many values")
    if isinstance(value, str):
        return Node(value, location)
    if isinstance(value, list):
        items = [_from_builtins(item, f"{location}[{i}]", depth + 1, numbers) for i, item in enumerate(value)]
        return Node(items, location)
    if isinstance(value, dict):
        entries = {}
        for key, item in value.items():
            where = f"{location}.{key}"
            entries[str(key)] = YamlEntry(Node(str(key), location), _from_builtins(item, where, depth + 1, numbers))
        return Node(entries, location)
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return Node(text, location, plain=True, typed=True)


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise UsageError(f"{name}:{line}:{column}: not UTF-8 text") from None


def _location_of(text: str, position: int, name: str) -> str:
    return f"{name}:{text.count(chr(10), 0, position) + 1}:{position - text.rfind(chr(10), 0, position)}"


class _Builder:
    """Converts parser events to nodes. Recursion and number of nodes are bounded by the limits."""

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
            if node.value or not node.plain:  # an empty document between two --- is left out
                yield node

    def _node(self, event: Any, depth: int) -> Node:
        import yaml

        location = self._location(event)
        self._check(event, location, depth)
        if isinstance(event, yaml.ScalarEvent):
            return Node(event.value, location, plain=event.style in (None, ""))
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
                items.append(self._node(event, depth + 1))
            return Node(items, location)
        return Node(self._map(depth), location)

    def _map(self, depth: int) -> dict[str, YamlEntry]:
        import yaml

        entries: dict[str, YamlEntry] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise UsageError(f"{self._location(event)}: a key must be a word, not a list, a map or an alias")
            key = self._node(event, depth + 1)
            name = str(key.value)
            if name in entries:
                first = entries[name].key.location
                raise key.error(f"the key {name[:60]!r} comes twice, first at {first}")
            entries[name] = YamlEntry(key, self._node(next(self._events), depth + 1))
        return entries

    def _location(self, event: Any) -> str:
        mark = event.start_mark
        return f"{self._name}:{mark.line + 1}:{mark.column + 1}"

    def _check(self, event: Any, location: str, depth: int) -> None:
        """Raise `UsageError` for syntax that could make a small file a large tree, or change the type of a text."""
        import yaml

        if isinstance(event, yaml.AliasEvent):
            raise UsageError(f"{location}: aliases (*{event.anchor}) are not supported; write the value out")
        if event.anchor is not None:
            raise UsageError(f"{location}: anchors (&{event.anchor}) are not supported; write the value out")
        if event.tag is not None:
            raise UsageError(
                f"{location}: tags ({event.tag}) are not supported; the key determines the type of a value"
            )
        if depth > MAX_DEPTH:
            raise UsageError(f"{location}: {_TOO_DEEP}")
        self._values += 1
        if self._values > MAX_VALUES:
            raise UsageError(f"{location}: more than {MAX_VALUES:,} values; {_SPLIT}")
