"""Module of the child process of `trafilatura_text`: it imports the library, since later no file can be opened."""

from __future__ import annotations

from nephila.parser.page.trafilatura_text import preload, run

__all__ = ["run"]

preload()
