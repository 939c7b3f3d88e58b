"""Generated from proto/nephila/v1/seed.proto by tools/protogen.py; do not edit."""

import msgspec

from nephila.kernel.messages.context import Context, Render


class Seed(msgspec.Struct, array_like=True, gc=False):
    """A URL a job starts from, or one that another partition has found. Topic `seeds`, on the partition of the
    URL's fingerprint.
    """

    # Uid of the job the seed belongs to.
    job: str = ""
    # The URL as given, already absolute.
    url: str = ""
    # Its source ("cli", "file", "sitemap"); empty means cli.
    source: str = ""
    context: Context | None = None
    # Rendering of this URL; UNSPECIFIED: that of the job.
    render: Render = Render.UNSPECIFIED
    # Instead of url: the queue entry of a URL that another partition has found (redirect target, sitemap,
    # link).
    entry: bytes = b""
    # That URL precedes all other URLs of its host.
    head: bool = False
    # A seed redirected there: the scope is anchored there too.
    anchor: bool = False
    # No URL, but anchors of the job's scope: seeds or their redirects in another partition.
    anchors: list[str] = msgspec.field(default_factory=list)
