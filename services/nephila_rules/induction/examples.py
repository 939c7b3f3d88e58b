"""Examples that a person writes: pages, and the values that stand on them.

```yaml
- page: product-1.html          # a file, or a URL that is fetched
  fields: {title: A lamp, price: 12.50, tags: [new, sale]}
- page: product-2.html
  fields: {title: A table, price: 99.00, tags: [new, "..."]}   # "...": the page has further ones
```
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from nephila.kernel.documents.yaml import Node, parse
from nephila.kernel.runtime.errors import UsageError

from nephila_rules.files import open_regular

MORE: Final = "..."
"""In a list: the page has further values."""
SUFFIXES: Final = (".yaml", ".yml", ".json")
Values = dict[str, str | list[str]]


class NamedPage(NamedTuple):
    """A page, a file or a URL, and its values."""

    page: str
    values: Values
    partial: frozenset[str]


def read_examples(path: Path) -> list[NamedPage]:
    """The examples of a file. Raises `UsageError` with file, line and column, `UserError`."""
    with open_regular(path) as file:
        documents = parse(file.read(), str(path))
    entries = [entry for node in documents for entry in (node.value if isinstance(node.value, list) else [node])]
    if not entries:
        raise UsageError(f"{path} has no examples; write a list of maps with page and fields")
    return [_example(node, path.parent) for node in entries]


def _example(node: Node, beside: Path) -> NamedPage:
    keys = node.value if isinstance(node.value, dict) else {}
    if set(keys) != {"page", "fields"}:
        raise node.form_error("an example has to be a map with the keys page and fields")
    page, fields = keys["page"].value, keys["fields"].value
    if not isinstance(page.value, str) or not page.value:
        raise page.form_error("page has to be a file or a URL")
    if not isinstance(fields.value, dict) or not fields.value:
        raise fields.form_error("fields has to be a map from names to the values on the page")
    values: Values = {}
    for name, entry in fields.value.items():
        of = entry.value
        content: Any = of.value
        values[name] = [_text(item, name) for item in content] if isinstance(content, list) else _text(of, name)
    target = page.value if "://" in page.value else str(beside / page.value)
    return _named(target, values)


def _text(node: Node, name: str) -> str:
    if node.value is None:
        return ""
    if isinstance(node.value, dict | list | bool):
        raise node.form_error(f"{name} has to be a text, a number or a list of them, as they stand on the page")
    return str(node.value)


def of_words(page: str, words: Iterable[str]) -> NamedPage:
    """The example of a command line: NAME=VALUE, a repeated NAME is a list. Raises `UsageError`."""
    values: Values = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise UsageError(f"{word!r} is no value of a field; write NAME=VALUE, as price=12.50")
        present = values.get(name)
        values[name] = value if present is None else [*([present] if isinstance(present, str) else present), value]
    if not values:
        raise UsageError("which values? write NAME=VALUE behind the page, or give a file of examples (.yaml)")
    return _named(page, values)


def _named(page: str, values: Values) -> NamedPage:
    partial = {name for name, value in values.items() if isinstance(value, list) and MORE in value}
    complete: Values = {
        name: [text for text in value if text != MORE] if isinstance(value, list) else value
        for name, value in values.items()
    }
    return NamedPage(page, complete, frozenset(partial))


def names(examples: Sequence[NamedPage]) -> list[str]:
    """Fields of all examples, in the order in which they were named."""
    return list(dict.fromkeys(name for example in examples for name in example.values))
