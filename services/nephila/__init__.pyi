from nephila.api import (
    Crawl,
    End,
    Found,
    Fragment,
    Hit,
    Link,
    Options,
    Page,
    UsageError,
    UserError,
    crawl,
    extract,
    fetch,
    search,
)

__all__ = [
    "Crawl", "End", "Found", "Fragment", "Hit", "Link", "Options", "Page", "UsageError", "UserError", "__version__",
    "crawl", "extract", "fetch", "search",
]  # fmt: skip

__version__: str
