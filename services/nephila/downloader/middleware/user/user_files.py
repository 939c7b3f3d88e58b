"""Middleware of the user: each Python file of a configured folder, in the order of the file names.

A file has any of the functions `on_request(request)`, `on_response(request, response)`, `on_outcome(request, outcome)`;
`nephila.testing` describes their arguments. A file that cannot be loaded is an error at the start. An exception in a
function costs that fetch alone: failed(middleware), a metric, and a log line with file and line. So does a call that
takes longer than `CALL_S`.

Only the configuration of the process names the folder, never a job: the files run with the rights of the process.
"""

from __future__ import annotations

import importlib.util
import linecache
import logging
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from nephila.downloader.http.contract import FetchError, HttpRequest, HttpResponse
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.middleware.contract import Middleware
from nephila.downloader.middleware.user.user_contract import Outcome as UserOutcome
from nephila.downloader.middleware.user.user_contract import Request, Response
from nephila.kernel import messages as m
from nephila.kernel.process.call_time_limit import CallTimeout, TimeLimit
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.errors import UsageError

log = logging.getLogger(__name__)

CALL_S = 2.0
"""Time of one call. A call blocks all fetches of the process meanwhile; one that is useful takes microseconds."""
LOAD_S = 20.0
"""Time to load one file with its imports."""
HOOKS = ("on_request", "on_response", "on_outcome")
_Hook = tuple[str, Callable[..., None]]


class UserFile(msgspec.Struct, frozen=True):
    """A loaded file and its functions by name."""

    path: Path
    hooks: dict[str, Callable[..., None]]


def load_files(directory: str) -> list[UserFile]:
    """The files of a folder. Raises `UsageError` with path and line for a file that cannot be loaded."""
    folder = Path(directory)
    if not folder.is_dir():
        raise UsageError(f"the middleware folder {directory} does not exist")
    return [load_file(path) for path in sorted(folder.glob("*.py")) if not path.name.startswith(("_", "test_"))]


def load_file(path: Path) -> UserFile:
    """Load one file. Raises `UsageError` with path and line."""
    spec = importlib.util.spec_from_file_location(f"nephila_user_middleware_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        TimeLimit(LOAD_S).call(spec.loader.exec_module, module)
    except SyntaxError as error:
        raise UsageError(f"{error.filename or path}:{error.lineno or 1}: {error.msg}") from None
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise UsageError(f"{place_of(error, path)}: {type(error).__name__}: {error}") from None
    hooks = _hooks(module, path)
    if not hooks:
        raise UsageError(f"{path}:1: none of the functions {', '.join(HOOKS)}")
    return UserFile(path, hooks)


def _hooks(module: ModuleType, path: Path) -> dict[str, Callable[..., None]]:
    hooks = {}
    for name in HOOKS:
        hook = getattr(module, name, None)
        if hook is None:
            continue
        code = getattr(hook, "__code__", None)
        parameters = 1 if name == "on_request" else 2
        line = code.co_firstlineno if code is not None else 1
        if not callable(hook) or code is None or code.co_flags & 0x80:  # a coroutine function
            raise UsageError(f"{path}:{line}: {name} is no plain function")
        if code.co_argcount != parameters:
            raise UsageError(f"{path}:{line}: {name} has {code.co_argcount} parameters, expected {parameters}")
        hooks[name] = hook
    return hooks


def place_of(error: BaseException, path: Path) -> str:
    """ "path:line" of the innermost call in a file, or of the file as a whole."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path}:{lines[-1] if lines and lines[-1] else 1}"


class UserMiddleware(Middleware):
    """Calls the functions of the files: requests in the order of the names, responses and outcomes in reverse."""

    def __init__(self, directory: str) -> None:
        """`directory` is empty: no files. Raises `UsageError` for a file that cannot be loaded."""
        self._files = files = load_files(directory) if directory else []
        self._on_request = self._named("on_request", files)
        self._on_response = self._named("on_response", files[::-1])
        self._on_outcome = self._named("on_outcome", files[::-1])
        self._limit = TimeLimit(CALL_S)
        self.failures: Counter[str] = Counter()
        """Exceptions by file name."""

    @staticmethod
    def _named(name: str, files: list[UserFile]) -> tuple[tuple[Path, Callable[..., None]], ...]:
        return tuple((file.path, file.hooks[name]) for file in files if name in file.hooks)

    def acts_on(self, job: m.CrawlJob | None) -> bool:
        return bool(self._files)

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        """Raises `FetchError` (middleware)."""
        if not self._on_request:
            return
        seen = Request(request, http_request.target, http_request.add_secret_header)
        for path, hook in self._on_request:
            self._call(path, hook, seen)

    def on_response(self, request: m.FetchRequest, target: TargetUrl, response: HttpResponse) -> None:
        """Raises `FetchError` (middleware)."""
        if not self._on_response or response.reason:
            return
        seen = Request(request, target)
        answer = Response(response)
        for path, hook in self._on_response:
            self._call(path, hook, seen, answer)

    def on_outcome(self, request: m.FetchRequest, target: TargetUrl, outcome: m.FetchOutcome) -> None:
        """A failure is logged and counted; the outcome stays."""
        if not self._on_outcome:
            return
        seen = Request(request, target)
        ended = UserOutcome(outcome)
        for path, hook in self._on_outcome:
            try:
                self._call(path, hook, seen, ended)
            except FetchError:
                pass  # counted and logged by `_call`

    def _call(self, path: Path, hook: Callable[..., None], *arguments: Any) -> None:
        try:
            self._limit.call(hook, *arguments)
        except (Exception, SystemExit, CallTimeout) as error:  # a call of exit() must not end the process
            self.failures[path.name] += 1
            location = place_of(error, path)
            number = int(location.rpartition(":")[2])
            source = linecache.getline(str(path), number).strip()
            log.error("middleware %s: %s: %s in: %s", location, type(error).__name__, error, source)
            raise FetchError(Reason.MIDDLEWARE, f"{path.name}:{number}: {type(error).__name__}: {error}") from error
