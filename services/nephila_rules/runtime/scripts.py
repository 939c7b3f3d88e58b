"""JavaScript in rules: a function (value, page) => value, in QuickJS with limits of time, memory and stack.

It runs only in the rules' child process, without files, network or other processes. JSON in and out; no module, no
timer, no host object. Invariant: effects of a script on its context end with the page.
"""

from __future__ import annotations

import json
from typing import Any, Final

from nephila.kernel.runtime.extras import install_line

from nephila_rules.runtime.document import Document

TIME_S: Final = 1
"""CPU seconds of one page's scripts, as QuickJS looks at them; for what it does in one step the process is killed."""
MEMORY_BYTES: Final = 64 << 20
STACK_BYTES: Final = 512 << 10
MAX_CHARS: Final = 4 << 20
"""Of a result as JSON."""


class PageScripts:
    """The scripts of one page."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._context: Any = None
        self._functions: dict[str, Any] = {}

    def call(self, source: str, value: Any) -> Any:
        """What the function in `source` gives for a value. Raises ValueError with the reason."""
        try:
            import quickjs
        except ModuleNotFoundError:
            raise ValueError(f"js: quickjs is not installed: {install_line('javascript')}") from None
        try:
            function = self._function(source)
            text = function(json.dumps(value))
        except quickjs.JSException as error:
            raise ValueError(f"js: {' '.join(str(error).split())[:200]}") from None
        if not isinstance(text, str):
            return None
        if len(text) > MAX_CHARS:
            raise ValueError(f"js: the result is longer than {MAX_CHARS >> 20} Mi characters")
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise ValueError("js: the result is no JSON") from None

    def _function(self, source: str) -> Any:
        if self._context is None:
            self._context = self._open()
        function = self._functions.get(source)
        if function is None:
            wrapped = f"(() => {{ const f = (\n{source}\n); return v => JSON.stringify(f(JSON.parse(v), page)); }})()"
            function = self._functions[source] = self._context.eval(wrapped)
        return function

    def _open(self) -> Any:
        import quickjs

        context = quickjs.Context()
        context.set_memory_limit(MEMORY_BYTES)
        context.set_max_stack_size(STACK_BYTES)
        context.set_time_limit(TIME_S)
        page = {
            "url": self._document.url,
            "title": self._document.facts.get("title", ""),
            "html": self._document.source,
        }
        context.set("text", json.dumps(page))
        context.eval("const page = Object.freeze(JSON.parse(text)); delete globalThis.text;")
        return context
