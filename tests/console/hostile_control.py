"""A control API whose every answer is written by a stranger: each text of each field is one of the hostile ones."""

from __future__ import annotations

import types
import typing
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from nephila_control.api import OPERATIONS, NotFound


class HostileControl:
    """Answers every question with `texts`: a list has one element for each of them, in all of its fields; what is no
    list has all of them in each field."""

    def __init__(self, texts: list[str], *, title: str = "") -> None:
        """`title`: stands in fields of this name."""
        self._texts = texts
        self._whole = "\n".join(texts)
        self._title = title

    def __getattr__(self, name: str) -> Any:
        kind = OPERATIONS[name].answer

        async def answer(request: Any) -> Any:
            if name == "get_page" and not self._texts:
                raise NotFound("there is no row")
            return self.filled(kind, self._whole)

        return answer

    def filled(self, kind: Any, text: str, depth: int = 0) -> Any:
        """A value of a type with `text` in it wherever a text may be."""
        origin, inner = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):
            return self.filled(next(one for one in inner if one is not type(None)), text, depth)
        if origin is Literal:
            return next((one for one in inner if one), inner[0])
        if origin is typing.Annotated:
            return self.filled(inner[0], text, depth)
        if origin in (list, tuple):
            element = inner[0] if inner else str
            return [self.filled(element, one, depth + 1) for one in (self._texts if depth == 0 else [text])]
        if origin is dict:
            keys = self._texts if depth == 0 and inner[0] is str else [text]
            return {one if inner[0] is str else 1: self.filled(inner[1], one, depth + 1) for one in keys}
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            hints = typing.get_type_hints(kind)
            names = [one.name for one in msgspec.structs.fields(kind)]
            titles = {"title": self._title} if self._title and hints.get("title") is str else {}
            return kind(**{name: self.filled(hints[name], text, depth) for name in names} | titles)
        return {int: 7, float: 7.0, bool: True}.get(kind, text if kind in (str, Any) else None)
