"""States of an object by a table: which state may follow which."""

from __future__ import annotations

from collections.abc import Container, Mapping
from enum import Enum
from typing import TypeVar

State = TypeVar("State", bound=Enum)


def checked(table: Mapping[State, Container[State]], before: State, after: State, what: object) -> State:
    """`after`. Raises `RuntimeError` where the table does not have it after `before`: an error of the program. `what`:
    the object, in words."""
    if after not in table[before]:
        raise RuntimeError(f"{what}: {after.value} cannot follow {before.value}")
    return after
