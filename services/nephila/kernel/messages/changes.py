"""Generated from proto/nephila/v1/changes.proto by tools/protogen.py; do not edit."""

import msgspec



class PageChange(msgspec.Struct, array_like=True, gc=False):
    """A page that is new, changed, moved, gone or returned. Topic `changes`, on the partition of the page's URL."""

    # Stable: the same for a change that is published twice.
    id: str = ""
    # When it was recorded, ISO 8601 in UTC.
    at: str = ""
    job: str = ""
    url_key: bytes = b""
    fetch_no: int = 0
    # new, changed, moved, gone or returned.
    change: str = ""
    url: str = ""
    title: str = ""
    fetched_at: str = ""
    old_hash: bytes = b""
    text_hash: bytes = b""
    # Of a changed text: removed lines after "-", added lines after "+". Of a page that moved: the target
    # after "+".
    diff: str = ""
