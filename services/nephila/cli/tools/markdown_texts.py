"""Where the Markdown of stored pages comes from: the files of the crawl (--format markdown), or the bodies that it kept
(--keep-raw, --format warc). Pages without either are written as plain text; one line has their number.

Bodies are read once, at the first page that has no file; their Markdown waits in a temporary directory by digest.
"""

from __future__ import annotations

import tempfile
from hashlib import sha256
from pathlib import Path

from nephila.cli.output import note
from nephila.kernel.runtime.errors import UserError
from nephila.storage.rows import CONTENT_TYPE, SHA256, Row
from nephila.storage.sinks.markdown_file import FOLDER, path_of, read_document


class MarkdownTexts:
    """Callable that returns the Markdown of a row."""

    def __init__(self, directory: Path | None) -> None:
        """`directory` of the crawl; None: its rows are on a server, without files."""
        self._directory = directory
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._plain = 0
        self._rows = 0

    def __call__(self, row: Row) -> str:
        """The Markdown of a row's text; "" where there is none."""
        self._rows += 1
        digest = row[SHA256]
        if self._directory is None:
            self._plain += 1
            return ""
        text: str | None = read_document(self._directory / FOLDER / path_of(row), digest) or self._of_body(digest)
        self._plain += text is None and "html" in row[CONTENT_TYPE]
        return text or ""

    def close(self) -> None:
        """Remove the temporary files and print how many pages are plain text."""
        if self._temporary is not None:
            self._temporary.cleanup()
        if self._plain:
            note(
                f"{self._plain:,} of {self._rows:,} pages are plain text: their bodies were not kept; crawl with"
                " --format markdown, or with --keep-raw"
            )

    def _of_body(self, digest: str) -> str | None:
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="nephila-")
            self._read_bodies(Path(self._temporary.name))
        path = Path(self._temporary.name, digest)
        return path.read_text("utf-8") if digest and path.is_file() else None

    def _read_bodies(self, into: Path) -> None:
        from nephila.parser.markdown import document_markdown
        from nephila.rulekit.stored_pages import holds_bodies, stored_pages

        assert self._directory is not None
        if not holds_bodies(self._directory):
            return
        try:
            for page in stored_pages(self._directory):
                path = into / sha256(page.body).hexdigest()
                if not path.exists():
                    text = document_markdown(page.body, page.url, page.content_type, page.charset)
                    path.write_bytes(text)
        except UserError as error:
            note(str(error))
