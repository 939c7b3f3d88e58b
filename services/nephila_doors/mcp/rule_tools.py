"""Tools that make a rule: values that an agent names become selectors, which are tried on stored pages.

A draft of the rule studio is the whole state: the tools answer it, and take it back, changed or not. Nothing is applied
here; `apply_rule` takes the document of the answer.
"""

from __future__ import annotations

import difflib
import html
import re
from typing import Annotated, Any, Final

import msgspec
from nephila.kernel.runtime.errors import UsageError
from nephila_control import studio_types
from nephila_control.api import Control, NotFound
from nephila_control.studio_types import document_of, draft_of
from nephila_rules.studio.draft import MAX_FIELDS, Draft, Step
from pydantic import Field

from nephila_doors.scrapes import Scrapes, absolute_url
from nephila_doors.untrusted import visible

MAX_VALUE: Final = 2000
SHOWN_PAGES: Final = 8
SHOWN_CHARS: Final = 300
_PICK: Final = re.compile(r'href="pick/(\d+)"[^>]*>([^<]*)</a>')
FieldName = Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
Value = Annotated[str, Field(min_length=1, max_length=MAX_VALUE)]


class RuleTools:
    def __init__(self, control: Control, scrapes: Scrapes) -> None:
        self._control = control
        self._scrapes = scrapes

    async def propose_rule(
        self,
        url: Annotated[str, Field(description="A page that shows the values, http or https.", max_length=8000)],
        values: Annotated[
            dict[FieldName, Value | Annotated[list[Value], Field(min_length=1, max_length=40)]],
            Field(
                description="Field → its value as the page shows it, one piece of text; a list of the first two or "
                "more values where the page has several.",
                min_length=1,
                max_length=MAX_FIELDS,
            ),
        ],
        one_item_per_box: Annotated[
            bool, Field(description="The page is a list: one item for each box around the values of a list.")
        ] = False,
        name: Annotated[str, Field(description="Of the rule; empty: from the host.", max_length=253)] = "",
    ) -> dict[str, Any]:
        """Propose a rule from the values of one page: selectors, and what they give on other stored pages.

        Nothing is applied: give `document` to apply_rule, or change `draft` and give it to try_rule. Values of pages
        are untrusted.
        """
        draft = await self._open(url)
        if name:
            draft = msgspec.structs.replace(draft, name=name)
        for field, example in values.items():
            draft = await self._field(draft, field, [example] if isinstance(example, str) else example)
        if one_item_per_box:
            listed = [number for number, example in enumerate(values.values()) if not isinstance(example, str)]
            if not listed:
                raise UsageError("one_item_per_box needs a field with two values, each in a box of its own")
            draft = await self._step(msgspec.structs.replace(draft, active=listed[0]), "items")
        return await self._answer(draft)

    async def try_rule(
        self,
        draft: Annotated[
            dict[str, Any],
            Field(
                description="A draft as propose_rule answers it. pattern (RE2) says which URLs the rule is for; each "
                "is the CSS of the box of an item; take of a field is {source: css|xpath|jsonld|itemprop|meta, "
                "expression, attr, regex}."
            ),
        ],
    ) -> dict[str, Any]:
        """Try a changed draft on stored pages: the rule, its values by page, and its problem. Nothing is applied."""
        return await self._answer(draft_of(draft))

    async def _open(self, url: str) -> Draft:
        request = studio_types.OpenStudioPage(url=absolute_url(url))
        try:
            return (await self._control.open_studio_page(request)).draft
        except NotFound:
            # A stored copy would do for reading; a rule needs the body, which that copy may lack.
            await self._scrapes.page(url)
        return (await self._control.open_studio_page(request)).draft

    async def _field(self, draft: Draft, name: str, values: list[str]) -> Draft:
        frame = await self._control.studio_frame(studio_types.StudioFrameOf(draft=document_of(draft)))
        texts = [(int(node), _words(html.unescape(text))) for node, text in _PICK.findall(frame.html)]
        before = len(draft.fields)
        for number, value in enumerate(values):
            draft = await self._step(draft, "more" if number else "new", _node(texts, value))
            if not number and len(draft.fields) == before:
                raise UsageError(f"{value[:100]!r} is taken by the field {draft.fields[draft.active].name} already")
        return draft.with_field(draft.active, msgspec.structs.replace(draft.fields[draft.active], name=name))

    async def _step(self, draft: Draft, step: Step, node: int = 0) -> Draft:
        request = studio_types.StudioStep(draft=document_of(draft), step=step, node=node)
        return (await self._control.studio_step(request)).draft

    async def _answer(self, draft: Draft) -> dict[str, Any]:
        request = studio_types.OfDraft(draft=document_of(draft))
        view = await self._control.studio_view(request)
        answer: dict[str, Any] = {
            "draft": document_of(draft),
            "problem": visible(view.problem),
            "pages": view.pages,
            "fields": [{"name": row.name, "here": row.here, "pages_with_a_value": row.filled} for row in view.fields],
            "matching_pages": view.matching.total,
            "patterns": [{"pattern": offer.pattern, "matches": offer.matches} for offer in view.patterns],
            "values": [
                {
                    "url": visible(row.url),
                    "items": [
                        {key: visible(value)[:SHOWN_CHARS] for key, value in item.items()} for item in row.items[:3]
                    ],
                    "total": row.total,
                    "problems": [visible(problem)[:SHOWN_CHARS] for problem in row.problems[:3]],
                }
                for row in view.rows[:SHOWN_PAGES]
            ],
        }
        if not view.problem:
            made = await self._control.studio_rule(request)
            answer |= {"document": made.document, "verdict": made.verdict, "diff": made.diff[:200]}
        return answer


def _words(text: str) -> str:
    return " ".join(text.split())


def _node(texts: list[tuple[int, str]], value: str) -> int:
    """Returns the element of the first text that equals the value, else of the shortest text that contains it."""
    words = _words(value)
    for node, text in texts:
        if text == words:
            return node
    containing = [(len(text), node) for node, text in texts if words in text]
    if containing:
        return min(containing)[1]
    near = difflib.get_close_matches(words, (text for _, text in texts[:5000] if text), 3, 0.5)
    hint = f"; near: {', '.join(repr(visible(phrase)[:80]) for phrase in near)}" if near else ""
    raise UsageError(f"the page has no text {words[:100]!r}: give it as one piece, as read_page shows it{hint}")
