"""The output directory of a crawl: its lock, its `run.json`, and the checks before a crawl starts in it.

One program at a time works in a directory. `run.json` holds the crawl, its options, and after its end the counts of the
table `pages`.
"""

import contextlib
import errno
import fcntl
import itertools
import logging
import os
import re
import shutil
import stat
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from nephila.kernel.outputs import patterns
from nephila.kernel.runtime.errors import UNREADABLE, UsageError, UserError
from nephila.kernel.url_credentials import redacted
from nephila.scheduler.group.partition_logs import has_parts
from nephila.storage.source import Source, is_url, with_password

log = logging.getLogger(__name__)

FORMAT = 1
MAX_ENTRIES = 20_000
"""Entries of an output directory that are looked at for FIFOs and devices."""
OLD = "old"
"""Where --fresh moves an earlier result, in a directory of its own."""
RESULT = (
    *("run.json", "run.tmp", "rules.json", "rules.tmp", "applied-rules.json", "control.sock", "frontier"),
    *("render-verdicts.json", "render-verdicts.json.*.part", "captures"),
    *patterns(),
)
"""Names of what a crawl writes; other files in the directory are never touched."""
_CHOICES = (
    "continue it with --resume, fetch it again with --refresh, start a new crawl with --fresh (the old result is moved"
    " to DIR/old), or choose another --out"
)
_NO_CHECK = "crc32:00000000"
_CHECK = re.compile(rb'(?<="check": ")[^"]*')
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def cpu_seconds() -> float:
    """CPU time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class JobRun(msgspec.Struct, frozen=True, kw_only=True):
    """What `run.json` holds of one of many jobs."""

    generation: int = 0
    state: str = ""
    left: int = 0
    """URLs queued or in flight."""
    outcomes: dict[str, int] = {}
    """URLs that have ended, by outcome."""
    tenant: str = ""
    site: str = ""
    browser_s: float = 0.0
    """Seconds in a browser."""


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `run.json`. A value: a program replaces it as a whole."""

    format: int = FORMAT
    """Version of the directory's layout; another one is refused."""
    program: str = ""
    command: str = "crawl"
    """crawl (one job, ends) or up (many jobs, runs until it is stopped)."""
    state: str = "running"
    """running, finished, or stopped (resumable)."""
    reason: str = ""
    """Why the last run ended: done, max_pages, quota, max_time, waiting, interrupted, failed."""
    seeds: list[str] = []
    seed_file: str = ""
    seeds_read: bool = False
    """All of them have been taken into the frontier."""
    options: dict[str, Any] = {}
    """Options in force, by name. Of options that the job file has as well, only those that override it."""
    store: str = ""
    """Where the rows are when not in nephila.db: the URL of a database, without a password."""
    uid: str = ""
    """Of `crawl` with rows in such a database, which may hold other crawls: its job's key there."""
    writer: str = ""
    """Name under which that database keeps the lengths of the files here."""
    document: dict[str, Any] | None = None
    """The job file, if there was one."""
    jobs: dict[str, JobRun] = {}
    """Of `up`: the jobs by name."""
    started_at: float = 0.0
    """Seconds since 1970 UTC, first run."""
    ended_at: float = 0.0
    runs: int = 0
    cpu_s: float = 0.0
    """CPU time of all programs that ended without a kill, with their children."""
    outcomes: dict[str, int] = {}
    """Rows of the table `pages` by outcome."""
    reasons: dict[str, int] = {}
    """Rows by "outcome(reason)"."""
    rows: int = 0
    left: int = 0
    """URLs left in the queues."""
    dead_letters: dict[str, int] = {}
    """Topic → messages that no service could process, in all runs."""
    degraded_rules: dict[str, str] = {}
    """Rule → the finding, for rules that no longer fit their site; their rows are marked."""
    shells: int = 0
    """Stored pages that look as if a browser had to render them."""
    agent: str = ""
    """Name whose groups of robots.txt count."""
    window: int = 0
    """Requests without receipt at most: what one kill can make a resumed crawl fetch again."""
    error: str = ""
    check: str = ""
    """Checksum of the file with zeros in this place; absent in a file that was edited by hand."""
    refetch: list[str] = []
    """Kinds of ended URLs that are to be fetched once more and are not queued yet."""
    rules: dict[str, int] = {}
    """Version of each rule of the job, at the start of the last run."""
    incomplete: list[str] = []
    """What pages lack that were stored before it was added (`crawl.differences`)."""


class OutputDirectory:
    """An output directory by its path; nothing is touched before `locked()`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def frontier(self) -> Path:
        """Where the commit log lies."""
        return self.path / "frontier"

    @property
    def has_log(self) -> bool:
        """Whether there is a commit log: without one a crawl begins at its seeds again."""
        return any(self.frontier.glob("*.log")) or self.has_parts

    @property
    def has_parts(self) -> bool:
        """Whether each partition of the frontier has a log of its own (`scheduler/group`)."""
        return has_parts(self.frontier)

    @property
    def run_file(self) -> Path:
        """Where the counts lie."""
        return self.path / "run.json"

    def read(self) -> RunFile | None:
        """The content of `run.json`; None without a crawl here. Raises `UserError` when the file is damaged, and for
        `check_files`."""
        self.check_files()
        try:
            data = self.run_file.read_bytes()
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise UsageError(f"{self.path} is a file; a result is a directory: choose another --out") from None
        except OSError as error:
            raise UserError(f"cannot read {self.run_file}: {error.strerror}") from None
        try:
            run = msgspec.json.decode(data, type=RunFile)
        except UNREADABLE as error:
            raise UserError(f"{self.run_file} is damaged ({error}); move it away or choose another --out") from None
        if run.format != FORMAT:
            raise UserError(
                f"{self.path} was written in directory format {run.format}, this program reads {FORMAT}; "
                "use the program version that wrote it or choose another --out"
            )
        if run.check and run.check != checksum(data):
            raise UserError(
                f"{self.run_file} is damaged, or was edited: its checksum is wrong; put it back, or remove its line "
                '"check" if it is as it should be'
            )
        return run

    def check_files(self) -> None:
        """Raise `UserError` for a FIFO or a device in the directory: a program that opens one waits for ever, or writes
        past the disk. O(entries), `MAX_ENTRIES` at most."""
        left = MAX_ENTRIES
        folders = [self.path]
        while folders and left > 0:
            with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
                for entry in itertools.islice(entries, left):
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    elif not entry.is_file(follow_symlinks=False):
                        self._check_file(Path(entry.path))

    @staticmethod
    def _check_file(path: Path) -> None:
        try:
            mode = path.stat().st_mode
        except OSError:
            return
        for is_kind, kind in ((stat.S_ISFIFO, "FIFO"), (stat.S_ISCHR, "device"), (stat.S_ISBLK, "device")):
            if is_kind(mode):
                raise UserError(f"{path} is a {kind} and no file; remove it, or choose another --out")

    def write(self, run: RunFile) -> None:
        """Replace `run.json` as a whole. Raises `UserError` when the disk refuses."""
        temporary = self.run_file.with_suffix(".tmp")
        data = msgspec.json.format(msgspec.json.encode(_without_secrets(run)), indent=2) + b"\n"
        data = _CHECK.sub(checksum(data).encode(), data)
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                # Before the rename: after a power cut, an empty file would make a resume impossible.
                os.fsync(file.fileno())
            temporary.replace(self.run_file)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            if error.errno not in FULL or not self._overwrite(data):
                raise self._refused(error) from None

    def _overwrite(self, data: bytes) -> bool:
        """On a full disk: write over the old one, in the blocks it has. One write, blanks up to the old end."""
        with contextlib.suppress(OSError), self.run_file.open("r+b", buffering=0) as file:
            status = os.fstat(file.fileno())
            if len(data) <= status.st_blocks * 512:
                return file.write(data.ljust(status.st_size)) >= len(data)
        return False

    def rows(self, run: RunFile | None) -> Source:
        """Where the rows of the crawl that `run` describes are."""
        return with_password(run.store) if run is not None and run.store else self.path

    def holder(self) -> int:
        """The process that works in the directory; 0 when none does."""
        try:
            with (self.path / ".lock").open() as lock:
                process = int(lock.read())
                # The process number may have been reused: only the lock is certain. This check takes it briefly.
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return process
        except (OSError, ValueError):
            pass
        return 0

    def leftovers(self) -> tuple[str, ...]:
        """Names of the files of a crawl that are here, beside run.json."""
        return tuple(name for name in ("nephila.db", "frontier") if (self.path / name).exists())

    def check_fresh(self, run: RunFile | None, holder: int, leftovers: tuple[str, ...]) -> None:
        """Refuse to start a new crawl where one already is. Raises `UserError` and `UsageError`. Reads nothing."""
        if run is not None:
            self.check_command(run, "crawl")
            if holder:
                raise self._in_use(str(holder))
            what = "a finished crawl" if run.state == "finished" else "an unfinished crawl"
            of = f" of {run.seeds[0]}" if run.seeds else ""
            raise UsageError(f"{self.path} holds {what}{of}; {_CHOICES}")
        for name in leftovers:
            raise UsageError(f"{self.path} holds {name} of an unknown crawl; {_CHOICES}")

    def remove_result(self) -> None:
        """Delete what a crawl has written here; the caller holds the lock. Raises `UserError`."""
        try:
            for path in self._result():
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        except OSError as error:
            raise self._refused(error) from None

    def move_result(self) -> Path | None:
        """Move what a crawl has written here into a directory below `old`, where it can be read as before; None when
        there is nothing. The caller holds the lock. Raises `UserError`."""
        paths = self._result()
        if not paths:
            return None
        try:
            ended = max(path.stat().st_mtime for path in paths)
            target = self.path / OLD / time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime(ended))
            while (target / "run.json").exists():
                target = target.with_name(target.name + "+")
            target.mkdir(parents=True, exist_ok=True)
            for path in paths:
                path.rename(target / path.name)
        except OSError as error:
            raise self._refused(error) from None
        return target

    def _result(self) -> list[Path]:
        """Files and directories of a result, run.json last: it identifies the result while other files are moved."""
        paths = {path for pattern in RESULT for path in self.path.glob(pattern)}
        return sorted(paths, key=lambda path: (path.name == "run.json", path.name))

    def check_command(self, run: RunFile, command: str) -> None:
        """Refuse what another command has made. Raises `UsageError`."""
        if run.command == command:
            return
        if run.command == "up":
            holds, goes_on = "the jobs of nephila up", f"nephila up --out {self.path}"
        else:
            holds, goes_on = "a crawl", f"nephila crawl --resume --out {self.path}"
        raise UsageError(f"{self.path} holds {holds}; continue with {goes_on}, or choose another --out")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory for this program. Raises `UserError` when it is in use or cannot be written.

        The directory itself is locked as well as `.lock` in it, which may be deleted; a file system that locks no
        directories has the file alone.
        """
        fd = itself = -1
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
            itself = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            if fd >= 0:
                os.close(fd)
            raise self._refused(error) from None
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _lock_directory(itself)
            except BlockingIOError:
                owner = os.read(fd, 32).decode(errors="replace").strip() or "?"
                raise self._in_use(owner) from None
            os.ftruncate(fd, 0)
            os.write(fd, f"{os.getpid()}\n".encode())
            yield
        except OSError as error:
            raise self._refused(error) from None
        finally:
            os.close(itself)
            os.close(fd)

    def _in_use(self, owner: str) -> UserError:
        return UserError(
            f"{self.path} is in use by another nephila (process {owner}); end that one or choose another --out"
        )

    def _refused(self, error: OSError) -> UserError:
        if error.errno in FULL:
            return UserError(f"disk full in {self.path}; free space and run again with --resume")
        return UserError(f"cannot write to {self.path}: {error.strerror}; choose another --out")


def checksum(data: bytes) -> str:
    """CRC-32 of a `run.json`, computed with zeros in its field `check`."""
    return f"crc32:{zlib.crc32(_CHECK.sub(_NO_CHECK.encode(), data.rstrip())):08x}"


def _lock_directory(fd: int) -> None:
    """Raise `BlockingIOError` when another program holds it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        log.debug("this file system locks no directories: %s", error)


def _without_secrets(run: RunFile) -> RunFile:
    """The run as its file holds it: without the credentials of seeds, and without a checksum yet."""
    document = run.document
    if document is not None and (seeds := document.get("spec", {}).get("seeds")):
        seeds = [{**seed, "url": redacted(seed["url"])} if "url" in seed else seed for seed in seeds]
        document = {**document, "spec": {**document["spec"], "seeds": seeds}}
    seed_urls = [redacted(url) for url in run.seeds]
    return msgspec.structs.replace(run, seeds=seed_urls, document=document, check=_NO_CHECK)


def find_rows(source: str) -> tuple[Source, str | None]:
    """The source of the rows, and their job; None: the rows of all jobs. Raises `UserError`."""
    if is_url(source):
        return with_password(source), None
    directory = OutputDirectory(Path(source))
    if not directory.path.is_dir():
        raise UserError(f"{source} is not a directory; name the one that was given to nephila crawl --out")
    try:
        run = directory.read()
    except UserError:
        run = None  # the rows can be read without run.json
    return directory.rows(run), (run.uid or None) if run is not None else None
