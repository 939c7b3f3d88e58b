"""Generated from proto/nephila/v1/seed.proto by tools/protogen.py; do not edit."""

from __future__ import annotations

import msgspec



class Seed(msgspec.Struct, array_like=True, gc=False):
    """A URL a job starts from. Topic `seeds`, on the partition of the URL's fingerprint."""

    # Uid of the job the seed belongs to.
    job: str = ""
    # The URL as given, already absolute.
    url: str = ""
    # Where it came from ("cli", "file", "sitemap"); empty means cli.
    source: str = ""
