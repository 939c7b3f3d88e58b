"""A reader of LlamaIndex: `NephilaReader().lazy_load_data("https://example.org/", max_pages=100)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from nephila_doors.documents import PageSource


class NephilaReader(BaseReader):
    """Reads pages as documents: Markdown as text, the key of the URL as id, the URL as `source` in the metadata."""

    def lazy_load_data(self, *urls: str, **where: Any) -> Iterator[Document]:
        """The arguments are those of `PageSource`."""
        for page in PageSource(*urls, **where):
            yield Document(id_=page.key, text=page.text, metadata=page.metadata)
