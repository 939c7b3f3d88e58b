"""What the child of `othertext` imports: the library is loaded with it, since nothing can be opened afterwards."""

from __future__ import annotations

from nephila.parser.sandbox.trafilatura_text import prepare, run

__all__ = ["run"]

prepare()
