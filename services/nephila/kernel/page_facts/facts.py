"""The facts of a page as values, without the rules that find them: `row_facts.py` has those, and costs some
milliseconds when it is imported."""

from __future__ import annotations

from typing import Final, NamedTuple

COMMENTS: Final = "comments"
"""Entry of `meta`: the comments of readers below an article."""


class RowFacts(NamedTuple):
    """Facts of a page; "" and no names if there are none."""

    published: str = ""
    """ISO 8601."""
    modified: str = ""
    authors: tuple[str, ...] = ()
    section: str = ""
    image: str = ""
    """An absolute URL."""
    description: str = ""
    languages: tuple[str, ...] = ()
    """`TAG URL` of each version of the page in another language, by <link rel=alternate hreflang>; absolute URLs."""
    comments: str = ""


NO_FACTS: Final = RowFacts()
FACTS: Final = RowFacts._fields
"""Names of the facts."""
