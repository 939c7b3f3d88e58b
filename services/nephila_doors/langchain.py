"""A document loader of LangChain: `NephilaLoader("https://example.org/", max_pages=100).lazy_load()`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from nephila_doors.documents import Source


class NephilaLoader(BaseLoader):
    """Pages as documents: Markdown as content, the key of the URL as id, the URL as `source` in the metadata."""

    def __init__(
        self,
        *urls: str,
        directory: str | Path | None = None,
        server: str = "",
        token: str = "",
        job: str = "",
        search: str = "",
        **options: Any,
    ) -> None:
        """See `nephila_doors.documents.Source`."""
        self._source = Source(*urls, directory=directory, server=server, token=token, job=job, search=search, **options)

    def lazy_load(self) -> Iterator[Document]:
        """Page by page."""
        for one in self._source:
            yield Document(page_content=one.text, metadata=one.metadata, id=one.key)
