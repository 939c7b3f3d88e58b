"""Reader of WARC files.

`read_warc` yields one `ArchivedPage` per page and one `BadRecord` per fault, in the order of the file.
"""

from nephila_rules.warcs.records import ArchivedPage, BadRecord, read_warc

__all__ = ["ArchivedPage", "BadRecord", "read_warc"]
