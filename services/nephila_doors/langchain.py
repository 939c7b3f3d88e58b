"""A document loader of LangChain: `NephilaLoader("https://example.org/", max_pages=100).lazy_load()`."""

from __future__ import annotations

from collections.abc import Iterator

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from nephila_doors.documents import PageSource


class NephilaLoader(PageSource, BaseLoader):
    """Loads pages as documents: Markdown as content, the key of the URL as id, the URL as `source` in the metadata. The
    arguments are those of `PageSource`."""

    def lazy_load(self) -> Iterator[Document]:
        for page in self:
            yield Document(page_content=page.text, metadata=page.metadata, id=page.key)
