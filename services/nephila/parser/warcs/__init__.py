"""WARC files, read back: the pages in them, and what is wrong with them.

`read_warc` gives one `Archived` for each page and one `Bad` for each fault, in the order of the file.
"""

from nephila.parser.warcs.records import Archived, Bad, read_warc

__all__ = ["Archived", "Bad", "read_warc"]
