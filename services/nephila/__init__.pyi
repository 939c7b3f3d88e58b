from nephila.api import Crawl, End, Link, Options, Page, UsageError, UserError, crawl, extract, fetch

__all__ = [
    "Crawl", "End", "Link", "Options", "Page", "UsageError", "UserError", "__version__", "crawl", "extract", "fetch",
]  # fmt: skip

__version__: str
