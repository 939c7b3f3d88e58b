"""Formatting of rule files: keys in the order of the schema, short maps on one line, indent of two, comments kept.

A comment is written before the key that it precedes or follows on the line. Invariants: the formatted file has the same
content; formatting it again changes nothing.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import inspect
from nephila.kernel.documents.struct_reader import type_of, unwrapped
from nephila.kernel.documents.yaml import Node, parse
from nephila.kernel.runtime.errors import UserError

from nephila_rules.files import find, read
from nephila_rules.runtime.load import load
from nephila_rules.runtime.rule_schema import ParseRule

WIDTH: Final = 110
_PLAIN: Final = re.compile(r"[A-Za-z0-9_/][\w ./+*@$()=-]*")
_SPECIAL: Final = re.compile(r"(?i)true|false|yes|no|on|off|null|~|[-+.\d][\d._:xeE+-]*")

Comments = dict[int, list[str]]
"""Line of a key or item → the comments before it; -1: comments at the end of the file."""


def reformatted(paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """The files that would change, with their new text. Raises `UsageError` for a rule that cannot be read."""
    for path in find(paths):
        read(path)
        data = path.read_bytes()
        text = format_rules(data, str(path))
        if text.encode() != data:
            yield path, text


def format_rules(data: bytes, name: str) -> str:
    """A formatted file of rules. Raises `UsageError`."""
    nodes = parse(data, name)
    comments = _comments(data.decode("utf-8-sig"), [line for node in nodes for line in _lines(node)])
    writer = _Writer(comments)
    parts = [writer.document(node) for node in nodes]
    text = "---\n".join(parts) + "".join(f"{comment}\n" for comment in comments[-1])
    before, after = ([rule.content for rule in load(each, name)] for each in (data, text.encode()))
    if before != after:
        raise UserError(f"{name}: cannot be formatted without changing its content; it is left unchanged")
    return text


def _line(node: Node) -> int:
    return int(node.location.rsplit(":", 2)[1])


def _lines(node: Node) -> Iterator[int]:
    """Lines on which keys and items start."""
    if isinstance(node.value, dict):
        for entry in node.value.values():
            yield _line(entry.key)
            yield from _lines(entry.value)
    elif isinstance(node.value, list):
        for item in node.value:
            yield _line(item)
            yield from _lines(item)


def _comments(text: str, lines: list[int]) -> Comments:
    """Every comment, by the line of the key that it precedes."""
    spans = [(token.start_mark.index, token.end_mark.index) for token in yaml.scan(text) if hasattr(token, "style")]
    comments: Comments = defaultdict(list)
    starts = sorted(set(lines))
    at = 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        for sign in re.finditer(r"(?:^|(?<=\s))#", line):
            if any(start <= at + sign.start() < end for start, end in spans):
                continue
            own = not line[: sign.start()].strip()
            target = next((line_start for line_start in starts if line_start >= number), -1)
            if not own:
                target = next((line_start for line_start in reversed(starts) if line_start <= number), target)
            comments[target].append(line[sign.start() :].strip())
            break
        at += len(line)
    return comments


class _Writer:
    def __init__(self, comments: Comments) -> None:
        self._comments = comments
        self._written: set[int] = set()

    def document(self, node: Node) -> str:
        """One document in block style."""
        # Comments above a document are about the whole document, whichever key is sorted first.
        head = self._before(min(_lines(node)), 0)
        return "".join(f"{line}\n" for line in [*head, *self._map(node, type_of(ParseRule), 0)])

    def _before(self, line: int, indent: int) -> list[str]:
        if line in self._written:
            return []
        self._written.add(line)
        return [" " * indent + comment for comment in self._comments.get(line, ())]

    def _map(self, node: Node, kind: Any, indent: int) -> list[str]:
        lines = []
        keys = _keys(kind)
        entries: dict[str, Any] = node.value  # type: ignore[assignment]
        for name in sorted(entries, key=lambda key: list(keys).index(key) if key in keys else len(keys)):
            entry = entries[name]
            inner = keys.get(name) or _named(kind)
            lines += self._before(_line(entry.key), indent)
            lines += self._entry(" " * indent + name + ":", entry.value, inner, indent)
        return lines

    def _entry(self, head: str, node: Node, kind: Any, indent: int) -> list[str]:
        flow = self._flow(node, kind)
        if flow is not None and len(head) + 1 + len(flow) <= WIDTH:
            return [f"{head} {flow}"]
        if isinstance(node.value, dict):
            return [head, *self._map(node, kind, indent + 2)]
        if isinstance(node.value, list):
            return [head, *self._list(node, kind, indent + 2)]
        return [f"{head} {flow}"] if flow is not None else self._block(head, str(node.value), indent + 2)

    def _list(self, node: Node, kind: Any, indent: int) -> list[str]:
        lines = []
        inner = _item(kind)
        items: list[Node] = node.value  # type: ignore[assignment]
        for item in items:
            lines += self._before(_line(item), indent)
            flow = self._flow(item, inner)
            if (flow is not None and indent + 2 + len(flow) <= WIDTH) or not isinstance(item.value, dict):
                text = json.dumps(item.value, ensure_ascii=False) if flow is None else flow
                lines.append(f"{' ' * indent}- {text}")
            else:
                first, *rest = self._map(item, inner, indent + 2)
                lines += [f"{' ' * indent}- {first.lstrip()}", *rest]
        return lines

    def _block(self, head: str, text: str, indent: int) -> list[str]:
        if text.startswith((" ", "\n")) or text.endswith("\n\n") or not text.replace("\n", "").isprintable():
            return [f"{head} {json.dumps(text, ensure_ascii=False)}"]
        sign = "|" if text.endswith("\n") else "|-"
        body = [" " * indent + line if line else "" for line in text.rstrip("\n").split("\n")]
        return [f"{head} {sign}", *body]

    def _flow(self, node: Node, kind: Any) -> str | None:
        """The value on one line; None if comments or a group of fields need lines of their own."""
        if isinstance(node.value, str):
            return None if "\n" in node.value.strip("\n") else _scalar(node)
        if any(self._comments.get(line) for line in _lines(node) if line != _line(node)):
            return None
        if isinstance(node.value, list):
            flows = [self._flow(item, _item(kind)) for item in node.value]
            return None if None in flows else f"[{', '.join(map(str, flows))}]"
        keys = _keys(kind)
        if _is_spec(keys) or (not keys and node.value and _in_lines(node)):
            return None
        names = sorted(node.value, key=lambda key: list(keys).index(key) if key in keys else len(keys))
        parts = []
        for name in names:
            inner = keys.get(name) or _named(kind)
            part = self._flow(node.value[name].value, inner)
            if part is None:
                return None
            parts.append(f"{name}: {part}")
        return f"{{{', '.join(parts)}}}"


def _line_of_last(node: Node) -> int:
    return max(_lines(node), default=_line(node))


def _in_lines(node: Node) -> bool:
    """Whether a map was written in block style: without a brace it starts at its first key."""
    entries: dict[str, Any] = node.value  # type: ignore[assignment]
    return _line(node) != _line_of_last(node) or node.location == next(iter(entries.values())).key.location


def _is_spec(keys: Any) -> bool:
    return "apiVersion" in keys or "match" in keys


def _keys(kind: Any) -> dict[str, Any]:
    """The keys of a section in order, each with its type; empty for any other type."""
    section = _item(kind)
    return (
        {field.encode_name: field.type for field in section.fields} if isinstance(section, inspect.StructType) else {}
    )


def _item(kind: Any) -> Any:
    """The type of the items of a list, else the type itself."""
    plain = unwrapped(kind)[0] if kind is not None else None
    return unwrapped(plain.item_type)[0] if isinstance(plain, inspect.ListType) else plain


def _named(kind: Any) -> Any:
    """The type of the values of a map of names."""
    plain = unwrapped(kind)[0] if kind is not None else None
    return plain.value_type if isinstance(plain, inspect.DictType) else None


def _scalar(node: Node) -> str:
    text = str(node.value)
    if node.plain and not re.search(r"[\[\]{},#&*!|>'\"%@`\n]|: |:$|^[-?:] ", text) and text.strip() == text and text:
        return text
    if _PLAIN.fullmatch(text) and not _SPECIAL.fullmatch(text) and text.strip() == text:
        return text
    if not text.isprintable():
        return json.dumps(text, ensure_ascii=False)
    # In double quotes a backslash starts an escape: expressions are easier to read in single quotes.
    return f'"{text}"' if '"' not in text and "\\" not in text else "'" + text.replace("'", "''") + "'"
