"""The draft of a rule that exists, so that it can be changed by clicks.

A draft has fewer keys than a rule. A rule is opened only if the rule of its draft is the same one: nothing of it is
lost by a visit to the studio.
"""

from __future__ import annotations

from msgspec.structs import asdict
from nephila.kernel.runtime.errors import UsageError

from nephila_rules.runtime import load
from nephila_rules.runtime.load import RuleDocument
from nephila_rules.runtime.spec import ItemField, Rule, Selection
from nephila_rules.studio.draft import Draft, DraftField, Source
from nephila_rules.studio.rule import document_of


def reopened(document: RuleDocument, url: str) -> Draft:
    """The draft with the page of the URL. Raises `UsageError` for a rule that has more than a draft can hold."""
    rule = document.rule
    try:
        draft = Draft(
            url,
            name=document.name,
            pattern=rule.urls[0] if rule.urls else "",
            fields=tuple(_field(field) for field in rule.fields),
            each=rule.each.expression if rule.each is not None else "",
            next_page=_source(rule.pages.selection) if rule.pages is not None else Source(),
        )
        same = load.from_json(document_of(draft))
    except (UsageError, TypeError, ValueError):
        more = "keys"
    else:
        more = _more(document, same)
    if more:
        raise UsageError(f"rule {document.name!r} has {more}, which the studio does not change; edit its file")
    return draft


def _field(field: ItemField) -> DraftField:
    return DraftField(
        field.name,
        _source(field.selection),
        field.type,  # type: ignore[arg-type]
        many=field.many,
        required=field.required,
    )


def _source(selection: Selection) -> Source:
    keys = asdict(selection)
    return Source(**{name: keys[name] for name in Source.__struct_fields__})


def _more(document: RuleDocument, same: RuleDocument) -> str:
    """The first part that a draft does not hold; empty if there is none. Steps of a browser are in no `Rule`."""
    keys = sorted(document.content["spec"].keys() - same.content["spec"].keys())
    if keys:
        return f"the key spec.{keys[0]}"
    fields = zip(document.rule.fields, same.rule.fields, strict=True)
    if name := next((field.name for field, other in fields if field != other), ""):
        return f"more keys in the field {name!r}"
    differing = [
        name
        for name in Rule.__struct_fields__
        if name not in ("version", "bounded", "shape") and getattr(document.rule, name) != getattr(same.rule, name)
    ]
    return f"its own {differing[0]}" if differing else ""
