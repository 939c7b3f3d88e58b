"""The latest message per key of a compacted topic: a table that a reader keeps."""

from __future__ import annotations

from typing import Any, TypeVar

from nephila.kernel.topics import Topic

M = TypeVar("M")


class Latest(dict[str, M]):
    """Key → its latest message that is not deleted."""

    def __init__(self, topic: Topic) -> None:
        super().__init__()
        self._key = topic.key

    def take(self, message: Any) -> None:
        """A message of the topic: the whole desired state of its key, or that the key is deleted."""
        key = getattr(message, self._key)
        if message.deleted:
            self.pop(key, None)
        else:
            self[key] = message
