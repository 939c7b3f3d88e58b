"""Stages of a crawl by keyword schemes: values of `Context.stage`."""

from __future__ import annotations

from typing import Final

NAVIGATION: Final = "navigation"
"""A page of search results; it leads to content pages."""
CONTENT: Final = "content"
"""A page with the content; its links are not followed."""
