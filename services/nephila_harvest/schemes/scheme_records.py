"""Records of keyword schemes: a content page that matches a scheme is an item of its platform
(`scheme_items.py`). A page that matches none is stored without an item. A navigation page has no item;
its own are for its stop rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
from nephila.kernel import messages as m
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.stages import CONTENT, NAVIGATION

from nephila_harvest.schemes.scheme_items import SEARCH, ContentPage, SchemeEvaluator, evaluator_of

_decode_item = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


class SchemeRecords:
    """The schemes of all jobs."""

    def __init__(self) -> None:
        self._evaluators: dict[str, SchemeEvaluator] = {}

    def update_job(self, job: m.CrawlJob) -> None:
        """Apply a new or changed job. O(keywords)."""
        self._evaluators.pop(job.uid, None)
        schemes = spec_of(job).schemes
        if schemes is not None and not job.deleted:
            self._evaluators[job.uid] = evaluator_of(schemes)

    def complete(self, record: m.Record, links: Iterable[m.Outlinks] = ()) -> None:
        """Set the item and the metadata of a page with a context, if its job has schemes; of a page of results also
        the content pages among its links."""
        context, evaluator = record.context, self._evaluators.get(record.job)
        if evaluator is None or context is None or context.stage not in (NAVIGATION, CONTENT):
            return
        meta = msgspec.json.decode(record.meta) if record.meta else {}
        note: dict[str, Any] = {"stage": context.stage, "platform": context.platform}
        note |= {"scheme": context.scheme, "group": context.group}
        if context.stage == NAVIGATION:
            note["page"] = max(context.page, 1)
            record.items = []
            record.leads = b"".join(
                group.fingerprints for group in links if group.context and group.context.stage == CONTENT
            )
        elif record.outcome is m.Outcome.STORED and not record.not_modified:
            evaluated = evaluator.evaluate(
                _page(record, context, meta), _fields([_decode_item(item) for item in record.items])
            )
            record.items = []
            if evaluated.item is not None:
                record.items = [_encode(evaluated.item)]
                record.rule, record.rule_version = context.platform, record.rule_version or evaluator.version
            note |= evaluated.note
        record.meta = _encode({**meta, SEARCH: note}).decode()


def _page(record: m.Record, context: m.Context, meta: dict[str, Any]) -> ContentPage:
    at = datetime.fromtimestamp(max(record.fetched_at, 0.0), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return ContentPage(
        record.url_key.hex(),
        record.url,
        context.platform,
        record.title,
        str(record.text, "utf-8", "replace"),
        meta.get("published") or at,
    )


def _fields(items: list[dict[str, Any]]) -> dict[str, Any]:
    """The fields of the first item that are not empty, with the content of all items."""
    if not items:
        return {}
    fields = {name: value for name, value in items[0].items() if value not in (None, "", [])}
    texts = [str(item["content"]) for item in items if item.get("content")]
    return {**fields, "content": "\n".join(texts)} if len(texts) > 1 else fields
