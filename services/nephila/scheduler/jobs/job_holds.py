"""What keeps one job from taking URLs for a time. Its queue is kept. Pure."""

from __future__ import annotations

from enum import Enum

from nephila.scheduler.tenants.quotas import Room


class Hold(Enum):
    """Why a job takes nothing for a time, beside a pause."""

    QUOTA = "quota"
    """A quota of the job, its site or its tenant is used up."""
    WINDOW = "window"
    """None of its windows is open."""


class JobHolds:
    """A pause, holds with their words, and the rooms in quotas of fetches in flight."""

    def __init__(self) -> None:
        self._is_paused = False
        self._texts: dict[Hold, str] = {}
        self.is_stopped = False
        """Whether the job is paused or held."""
        self.rooms: tuple[Room, ...] = ()
        """Rooms in the quotas of the job, its site and its tenant."""
        self.changes = 0
        """How often a hold began or ended."""

    def pause(self, paused: bool) -> None:
        """Begin or end the pause."""
        self._is_paused = paused
        self.is_stopped = paused or bool(self._texts)

    def text(self, kind: Hold) -> str:
        """The cause of a hold, and until when, in words; empty: none."""
        return self._texts.get(kind, "")

    def set(self, kind: Hold, text: str) -> bool:
        """Begin a hold or change its words; the empty text ends it. Returns whether it began or ended."""
        changed = bool(text) != (kind in self._texts)
        self.changes += changed
        if text:
            self._texts[kind] = text
        else:
            self._texts.pop(kind, None)
        self.is_stopped = self._is_paused or bool(self._texts)
        return changed

    @property
    def have_room(self) -> bool:
        """Whether the job may take another URL, as far as its holds and rooms say."""
        return not self.is_stopped and (not self.rooms or all(room.in_flight < room.places for room in self.rooms))

    def count(self, leases: int) -> None:
        """So many leases more are in the rooms."""
        for room in self.rooms:
            room.in_flight += leases

    def move(self, rooms: tuple[Room, ...], leases: int) -> None:
        """The leases of the job are in these rooms from now on."""
        self.count(-leases)
        self.rooms = rooms
        self.count(leases)
