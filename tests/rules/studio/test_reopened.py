"""A rule in the studio again: the same rule, or a line that says why not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from nephila.kernel.runtime.errors import UsageError
from nephila_rules.runtime import load
from nephila_rules.studio.draft import Draft, DraftField, Source
from nephila_rules.studio.reopened import reopened
from nephila_rules.studio.rule import document_of

DRAFT = Draft(
    "http://a.test/1",
    name="shop",
    pattern="^http://a\\.test/",
    fields=(
        DraftField("title", Source("css", "h1"), required=True),
        DraftField("price", Source("jsonld", "Product", path="jsonpath", query="$.offers.price"), "number"),
        DraftField("image", Source("css", "img", attr="src"), "url", many=True),
    ),
    next_page=Source("css", ".next"),
)


def rule(**spec):
    content = {"apiVersion": "nephila.dev/v1", "kind": "ParseRule", "metadata": {"name": "shop"}}
    return load.from_json({**content, "spec": {"match": {"url": "x"}, "fields": {"title": "h1"}, **spec}})


LIST = replace(DRAFT, each=".card", fields=DRAFT.fields[:1])


@pytest.mark.parametrize("draft", [DRAFT, LIST])
def test_the_rule_of_a_draft_is_opened_as_that_draft(draft):
    assert reopened(load.from_json(document_of(draft)), draft.url) == draft


def test_short_forms_are_opened_too():
    assert reopened(rule(), "http://a.test/").fields == (DraftField("title", Source("css", "h1")),)


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ({"priority": 5}, "priority"),
        ({"match": {"url": ["x", "y"]}}, "urls"),
        ({"fields": {"title": {"css": "h1", "replace": {"pattern": "a", "with": "b"}}}}, "'title'"),
        ({"fields": {"box": {"css": "div", "fields": {"title": "h1"}}}}, "'box'"),
        ({"steps": [{"click": ".more"}]}, "steps"),
    ],
)
def test_a_rule_with_more_than_a_draft_holds_is_refused(spec, part):
    """Nothing of it is lost."""
    with pytest.raises(UsageError, match=rf"has .*{part}.*edit its file"):
        reopened(rule(**spec), "http://a.test/")
