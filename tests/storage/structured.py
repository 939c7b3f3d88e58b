"""Text and structure of a page, as the parser puts them into a record."""

from __future__ import annotations

from nephila.native import page_pass


def structured(html: str) -> dict[str, bytes]:
    """Fields of a record."""
    found = page_pass(html.encode(), "http://a.test/", "utf-8")
    return {"text": found.main_text or found.text, "structure": found.structure}
