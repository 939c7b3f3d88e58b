"""Records of keyword schemes: a content page that matches a scheme is an item of its platform.

The item has id, content, resource (the platform), url and time, the title, the keywords and the schemes with their
groups that match. Fields of the platform's rule replace these or are added. A page that matches no scheme is stored
without an item. A navigation page has no item; its own are for its stop rules.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final
from zlib import crc32

import msgspec

from nephila.kernel import messages as m
from nephila.kernel.documents.scheme_schema import Schemes
from nephila.kernel.stages import CONTENT, NAVIGATION
from nephila.parser.keywords.matcher import KeywordMatcher

SEARCH: Final = "search"
"""Key of a row's metadata with the stage, platform, scheme, group and page of its URL."""
_decode_item = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


class SchemeRecords:
    """The matchers of all jobs with schemes."""

    def __init__(self) -> None:
        self._matchers: dict[str, tuple[KeywordMatcher, int]] = {}
        """Job → its matcher, and the version of its items."""

    def update_job(self, job: m.CrawlJob) -> None:
        """Apply a new or changed job. O(keywords)."""
        self._matchers.pop(job.uid, None)
        if job.schemes and not job.deleted:
            schemes = msgspec.json.decode(job.schemes, type=Schemes).schemes
            version = crc32(_encode([(one.name, one.spec) for one in schemes])) | 1 << 31
            self._matchers[job.uid] = KeywordMatcher(schemes), version

    def complete(self, record: m.Record) -> None:
        """Set the item and the metadata of a page with a context, if its job has schemes."""
        context, found = record.context, self._matchers.get(record.job)
        if found is None or context is None or context.stage not in (NAVIGATION, CONTENT):
            return
        note: dict[str, Any] = {"stage": context.stage, "platform": context.platform}
        note |= {"scheme": context.scheme, "group": context.group}
        if context.stage == NAVIGATION:
            note["page"] = max(context.page, 1)
            record.items = []
        elif record.outcome is m.Outcome.STORED and not record.not_modified:
            matcher, version = found
            given = [_decode_item(one) for one in record.items]
            texts = [str(one["content"]) for one in given if one.get("content")]
            text = "\n".join(texts) if texts else str(record.text, "utf-8", "replace")
            match = matcher.match(f"{record.title}\n{text}".encode("utf-8", "replace"))
            record.items = []
            if match.schemes:
                item = _item(record, context, text, given[0] if given else {})
                item |= {"keywords": match.keywords, "schemes": match.schemes}
                record.items = [_encode(item)]
                record.rule, record.rule_version = context.platform, record.rule_version or version
            note |= {"matched": bool(match.schemes)}
        meta = msgspec.json.decode(record.meta) if record.meta else {}
        record.meta = _encode({**meta, SEARCH: note}).decode()


def _item(record: m.Record, context: m.Context, text: str, given: dict[str, Any]) -> dict[str, Any]:
    at = datetime.fromtimestamp(max(record.fetched_at, 0.0), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    meta = msgspec.json.decode(record.meta) if record.meta else {}
    item = {
        "id": record.url_key.hex(),
        "content": text,
        "resource": context.platform,
        "url": record.url,
        "time": meta.get("published") or at,
        "title": record.title,
    }
    return {**item, **{name: value for name, value in given.items() if value not in (None, "", [])}}
