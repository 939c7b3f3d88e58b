"""WARC files, read back: the pages in them, and what is wrong with them.

`read_warc` gives one `ArchivedPage` for each page and one `BadRecord` for each fault, in the order of the file.
"""

from nephila.parser.warcs.records import ArchivedPage, BadRecord, read_warc

__all__ = ["ArchivedPage", "BadRecord", "read_warc"]
