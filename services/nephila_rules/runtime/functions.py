"""Python functions of rules: files of one directory that the operator names, loaded in the rules' child process.

A rule author names a file and a function; the operator decides which there are. So the name reaches only what a file
of the directory defines itself: no package, no attribute, nothing that the file has imported. The files are loaded
before the child is locked down, with the rights of the parser, and called after it: on Linux a call can neither open a
file nor connect. Values go in and come out as JSON, as for JavaScript.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec
from nephila.kernel.process.call_time_limit import CallTimeout, TimeLimit
from nephila.kernel.runtime.errors import suggest

from nephila_rules.runtime.document import Document

TIME_S: Final = 1.0
"""CPU seconds of the functions of one page; code that cannot be interrupted ends with its process."""
LOAD_S: Final = 20.0
"""Seconds to load one file with its imports."""
MAX_CHARS: Final = 4 << 20
"""Of a result as JSON."""
_LONGEST: Final = 200
"""Characters of the text of an exception."""
_PREFIX: Final = "nephila_rule_functions_"
"""Of the names of the modules: a file json.py is not the json of Python."""
_LOCKED: Final = "; a call opens no file, no connection and no module: do that where the file is loaded"

Function = Callable[[Any, "Page"], Any]


class Page(msgspec.Struct, frozen=True):
    """What a function may read of its page."""

    url: str
    title: str
    html: str


class FunctionFiles:
    """The files of a directory, loaded, and their functions by name."""

    def __init__(self, directory: str) -> None:
        """Load every file. One that fails is kept as the reason, which each call of its functions reports."""
        self._directory = directory
        self._files: dict[str, ModuleType | str] = {}
        self._functions: dict[str, Function | ValueError] = {}
        # Files may import each other; a name of Python or of a library comes first.
        sys.path.append(directory)
        sys.dont_write_bytecode = True
        for path in sorted(Path(directory).glob("*.py")):
            if path.stem.isidentifier() and not path.name.startswith(("_", "test_")):
                self._files[path.stem] = _load(path)

    def path(self, name: str) -> Path:
        """The file of file:function."""
        return Path(self._directory, name.partition(":")[0] + ".py")

    def function(self, name: str) -> Function:
        """The function of file:function. Raises ValueError with the reason."""
        if name not in self._functions:
            try:
                self._functions[name] = self._find(name)
            except ValueError as error:
                self._functions[name] = error
        function = self._functions[name]
        if isinstance(function, ValueError):
            raise ValueError(str(function))
        return function

    def _find(self, name: str) -> Function:
        stem, _, attribute = name.partition(":")
        module = self._files.get(stem)
        if module is None:
            remedy = suggest(stem, self._files) if self._files else "it has no Python file"
            raise ValueError(f"there is no {stem}.py in the directory of functions; {remedy}")
        if isinstance(module, str):
            raise ValueError(module)
        own = {key: value for key, value in vars(module).items() if _is_own(key, value, module)}
        if attribute not in own:
            remedy = suggest(attribute, own) if own else "it defines none"
            raise ValueError(f"{stem}.py defines no function {attribute!r}; {remedy}")
        return _adapted(name, own[attribute])


def _is_own(key: str, value: Any, module: ModuleType) -> bool:
    """Whether a name of a module is a function that the module defines; what it has imported is not offered."""
    return (
        not key.startswith("_")
        and callable(value)
        and not isinstance(value, type)
        and getattr(value, "__module__", "") == module.__name__
    )


def _load(path: Path) -> ModuleType | str:
    """The module of a file, or why it cannot be loaded."""
    spec = importlib.util.spec_from_file_location(_PREFIX + path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        TimeLimit(LOAD_S).call(spec.loader.exec_module, module)
    except SyntaxError as error:
        return f"{Path(error.filename or path).name}:{error.lineno or 1}: SyntaxError: {error.msg}"
    except BaseException as error:
        return _failure(error, path)
    return module


def _failure(error: BaseException, path: Path) -> str:
    """Line of the file, kind and text of an exception, in one line."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    try:
        text = " ".join(str(error).split())[:_LONGEST]
    except Exception:
        text = ""
    kind = type(error).__name__
    return f"{path.name}:{lines[-1] if lines and lines[-1] else 1}: {kind}" + (f": {text}" if text else "")


def _adapted(name: str, function: Callable[..., Any]) -> Function:
    """A function as one of value and page; it may take the value alone, or nothing. Raises ValueError."""
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise ValueError(f"{name} is no plain function: it has to return a value")
    parameters = inspect.signature(function).parameters.values()
    any_number = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    has_page = len(places) > 1 and (places[1].default is inspect.Parameter.empty or places[1].name == "page")
    count = 2 if any_number or has_page else min(len(places), 1)
    try:
        inspect.signature(function).bind(*(None,) * count)
    except TypeError as error:
        raise ValueError(f"{name} has other parameters than (value) or (value, page): {error}") from None
    return lambda value, page: function(*(value, page)[:count])


class _ResultError(Exception):
    """A function has returned what is no JSON."""


class PageFunctions:
    """Calls of functions for one page; they share its CPU time."""

    def __init__(self, files: FunctionFiles, document: Document) -> None:
        self._files = files
        self._limit = TimeLimit(TIME_S, cpu=True)
        self._left_s = TIME_S
        self._page = Page(document.url, document.facts.get("title", ""), document.source)

    def call(self, name: str, value: Any) -> Any:
        """What a function gives for a value, as JSON values. Raises ValueError with the reason; MemoryError."""
        try:
            text = self._called(name, value)
        except ValueError as error:
            raise ValueError(f"py: {error}") from None
        if len(text) > MAX_CHARS:
            raise ValueError(f"py: {name}: the result is longer than {MAX_CHARS >> 20} Mi characters")
        return json.loads(text)

    def _called(self, name: str, value: Any) -> str:
        function = self._files.function(name)
        late = f"{name}: the functions of the page took longer than {TIME_S:g} s of CPU time"
        if self._left_s <= 0:
            raise ValueError(late)
        # A function may change what it gets: the next field reads the document as it was.
        own = json.loads(json.dumps(value)) if isinstance(value, dict | list) else value
        began_s = time.process_time()
        try:
            return self._limit.call(_json_of, function, own, self._page, limit_s=self._left_s)
        except MemoryError:
            raise
        except CallTimeout:
            raise ValueError(late) from None
        except _ResultError as error:
            raise ValueError(f"{name}: {error}") from None
        except BaseException as error:  # a call of exit() must not end the process
            raise ValueError(_failure(error, self._files.path(name)) + _hint(error)) from None
        finally:
            self._left_s -= time.process_time() - began_s


def _json_of(function: Function, value: Any, page: Page) -> str:
    result = function(value, page)
    try:
        return json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        kind = type(result).__name__
        raise _ResultError(f"the result is no JSON: {kind}: {' '.join(str(error).split())[:_LONGEST]}") from None


def _hint(error: BaseException) -> str:
    """The remedy, if the lock-down of the process is the cause."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ImportError | PermissionError):
            return _LOCKED
        cause = cause.__cause__ or cause.__context__
    return ""


# ---- the child process

_loaded: list[FunctionFiles] = []


def prepare(directory: str, _stamp: str) -> None:
    """Load the files of a directory; once, before the process is locked down."""
    # Python imports and reads these when they are first used.
    import unicodedata  # noqa: F401
    import zoneinfo  # noqa: F401

    time.strptime("2026", "%Y")
    time.localtime()
    _loaded.append(FunctionFiles(directory))


def functions_of(document: Document) -> PageFunctions | None:
    """The functions for a page; None if this process has no directory of them."""
    return PageFunctions(_loaded[0], document) if _loaded else None


def run(payload: bytes) -> bytes:
    """Why each of some functions cannot be called, by name; those that can be are left out. Entry point of a child."""
    faults = {}
    for name in msgspec.msgpack.decode(payload, type=list[str]):
        try:
            _loaded[0].function(name)
        except ValueError as error:
            faults[name] = str(error)
    return msgspec.msgpack.encode(faults)
