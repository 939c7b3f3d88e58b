"""`nephila doctor`: checks whether this machine can crawl, and what would make it faster. Sends nothing to the network.

Each check is a function that returns one `Check`; the list `CHECKS` is the order in which they are printed.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from nephila import __version__
from nephila.cli.options import Json
from nephila.cli.output import print_json
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.extras import install_line, library_line

OPEN_FILES = 4096
"""Connections, their pipes and the database: 1,000 fetches at once need about twice as many descriptors."""
DISK_BYTES = 1 << 30
"""A page takes some 15 KB in nephila.db: below this there is room for fewer than 70,000."""
CLUSTER = "Kubernetes"
"""Panel of the options in --help."""
PYTHON = (3, 11)
SQLITE = (3, 24)
"""First version with ON CONFLICT DO UPDATE."""

FASTER = {
    "uvloop": "a faster event loop",
    "isal": "faster gzip",
    "brotli": "pages sent with Content-Encoding: br",
    **({} if sys.version_info >= (3, 14) else {"backports.zstd": "pages sent with Content-Encoding: zstd"}),
}
"""Library that some machines have no wheel for → its purpose."""

KAFKA = ("aiokafka", "protobuf", "zstandard", "prometheus-client", "structlog")
COMMANDS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("service scheduler, downloader, parser, storage, topics, dead", KAFKA, "kafka"),
    ("crawl, jobs, explain --bootstrap", ("aiokafka", "protobuf", "zstandard"), "kafka"),
    ("crawl, up, storage --store postgresql://…", ("psycopg",), "postgres"),
    ("crawl --rules, rules", ("lxml", "cssselect", "jsonpath-rfc9535", "iregexp-check", "jmespath"), "rules"),
    ("up, console, api, jobs", ("starlette", "uvicorn", "h11", "jinja2", "lxml"), "console"),
    ("text of PDF and office files", ("pypdfium2", "python-calamine", "lxml"), "documents"),
    ("crawl, up, export --format parquet", ("pyarrow",), "parquet"),
    ("scheduler.blobs, kafka.blobs, storage.dataset: s3://…", ("obstore",), "s3"),
    ("crawl --render auto, always", ("playwright",), "browser"),
    ("rules with js", ("quickjs",), "javascript"),
    ("mcp", ("mcp",), "mcp"),
    ("spiders over a frontier", ("scrapy",), "scrapy"),
    ("crawl --main-text trafilatura", ("trafilatura", "lxml_html_clean"), "trafilatura"),
)
"""What a command or option needs in addition to a plain installation: libraries, and the extra that has them."""


class CommandNeed(msgspec.Struct):
    """A row of the table of commands."""

    command: str
    needs: list[str]
    found: str
    remedy: str = ""
    """The command line that installs missing libraries; empty when none is missing."""


class Check(msgspec.Struct):
    """What one check found. A `fail` means that crawling does not work; a `warn` has a remedy but may be ignored."""

    name: str
    state: Literal["ok", "warn", "fail"]
    found: str
    remedy: str = ""


Folder = Annotated[str, typer.Option("--middleware", metavar="DIR", help="Check the Python files of this folder.")]


def doctor(
    json: Json = False,
    middleware: Folder = "",
    cluster: Annotated[
        bool,
        typer.Option("--cluster", help="Check a release on Kubernetes, not this machine.", rich_help_panel=CLUSTER),
    ] = False,
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Of the release; default: of the context.", rich_help_panel=CLUSTER)
    ] = "",
    release: Annotated[
        str, typer.Option(metavar="NAME", help="Needed where there are several.", rich_help_panel=CLUSTER)
    ] = "",
    context: Annotated[
        str, typer.Option(metavar="NAME", help="Of the kubeconfig; default: the current one.", rich_help_panel=CLUSTER)
    ] = "",
) -> None:
    """Check that this machine can crawl, and what would make it faster. Exit code 1 when it cannot."""
    if cluster:
        from nephila_tools.doctor_cluster import doctor_cluster

        doctor_cluster(context, namespace, release, json=json)
        return
    if namespace or release or context:
        raise UsageError("--namespace, --release and --context need --cluster")
    checks = [check for run in CHECKS for check in run()]
    checks += check_middleware(middleware or os.environ.get("NEPHILA_DOWNLOADER__MIDDLEWARE__DIRECTORY", ""))
    usable = all(check.state != "fail" for check in checks)
    if json:
        print_json({"usable": usable, "version": __version__, "checks": checks, "commands": check_commands()})
    else:
        _show(checks, usable)
        _show_commands(check_commands())
    if not usable:
        raise typer.Exit(1)


def _show(checks: list[Check], usable: bool) -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        typer.echo(f"{check.state:<4}  {check.name:<{width}}  {sanitize(check.found)}")
        if check.remedy:
            typer.echo(f"{'':<4}  {'':<{width}}  → {sanitize(check.remedy)}")
    failed = [check.name for check in checks if check.state == "fail"]
    typer.echo("This machine can crawl." if usable else f"This machine cannot crawl yet: {', '.join(failed)}.")


def check_python() -> list[Check]:
    """Check the interpreter."""
    version = f"{platform.python_implementation()} {platform.python_version()}"
    if sys.version_info[:2] < PYTHON:
        return [Check("python", "fail", version, "install Python 3.11 or newer, then: make install PYTHON=python3.12")]
    return [Check("python", "ok", version)]


def check_native() -> list[Check]:
    """Check which native core runs."""
    try:
        from nephila.native import IMPLEMENTATION, KEY_VERSION
    except ImportError as error:
        return [Check("native core", "fail", str(error), "make install")]
    core = f"{'Rust' if IMPLEMENTATION == 'rust' else 'Python fallback'}, URL keys of version {KEY_VERSION}"
    if IMPLEMENTATION == "rust":
        return [Check("native core", "ok", core)]
    return [
        Check("native core", "warn", core + ": slow, and its main text is simpler", _native_remedy()),
    ]


def _native_remedy() -> str:
    if os.environ.get("NEPHILA_NATIVE", "").strip().lower() == "python":
        return "NEPHILA_NATIVE=python selects it; unset that"
    return "install Rust (https://rustup.rs), then: make clean install; or a wheel, which has the core"


def base_libraries() -> list[str]:
    """Libraries of every installation, by this distribution's own metadata; those with a condition are in `FASTER`."""
    requirements = metadata.requires("nephila") or []
    return [name[0] for line in requirements if ";" not in line and (name := re.match(r"[\w.-]+", line))]


def check_libraries() -> list[Check]:
    """Check the libraries that crawling needs, and those that make it faster."""
    missing = [name for name in base_libraries() if not _version(name)]
    if missing:
        checks = [Check("libraries", "fail", f"not installed: {', '.join(missing)}", "make install, or pip install .")]
    else:
        checks = [Check("libraries", "ok", "all that crawl, up, extract and the Python API need")]
    for name, purpose in FASTER.items():
        if version := _version(name):
            checks.append(Check(name, "ok", f"{version}: {purpose}"))
        else:
            checks.append(Check(name, "warn", f"not installed: {purpose}", library_line(name)))
    return checks


def check_commands() -> list[CommandNeed]:
    """The table of commands that need more than every installation has."""
    rows = []
    for command, needs, extra in COMMANDS:
        missing = [name for name in needs if not _version(name)]
        state = f"not installed: {', '.join(missing)}" if missing else "all"
        rows.append(CommandNeed(command, list(needs), state, install_line(extra) if missing else ""))
    return rows


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _show_commands(rows: list[CommandNeed]) -> None:
    cells = [("command", "needs", "found", "remedy")]
    cells += [(row.command, ", ".join(row.needs), row.found, row.remedy) for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    typer.echo("\nMore is needed by:")
    for row in cells:
        line = " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo(line.rstrip(" |"))


def check_browser() -> list[Check]:
    """Check what --render needs, and whether Chromium has its sandbox."""
    from nephila_browser.chromium import without_sandbox
    from nephila_browser.command import start_fault
    from nephila_browser.installation import find_executable, missing

    configured = os.environ.get("NEPHILA_DOWNLOADER__BROWSER__EXECUTABLE", "")
    if reason := missing(configured):
        problem, _, remedy = reason.partition(": ")
        return [Check("browser", "warn", f"{problem}; crawl --render does not work", remedy)]
    path = find_executable(configured)
    if fault := start_fault(path):
        return [Check("browser", "warn", f"{path} does not start: {fault.cause}", fault.remedy)]
    sandbox = os.environ.get("NEPHILA_DOWNLOADER__BROWSER__SANDBOX", "").strip().lower() not in (
        "false",
        "0",
        "no",
        "off",
    )
    cause, _, remedy = without_sandbox(sandbox=sandbox).partition("; ")
    return [Check("browser", "warn" if cause else "ok", f"{path}; {cause}" if cause else path, remedy)]


def check_sqlite() -> list[Check]:
    """Check the database library."""
    import sqlite3

    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < SQLITE:
        return [Check("sqlite", "fail", version, "nephila.db needs SQLite 3.24 or newer; use a newer Python")]
    return [Check("sqlite", "ok", version)]


def check_open_files(limits: tuple[int, int] | None = None) -> list[Check]:
    """The limit of open files; the crawler lifts the soft limit itself, so the hard one counts."""
    if limits is None:
        try:
            import resource
        except ImportError:  # not on this platform
            return []
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (limit if limit >= 0 else sys.maxsize for limit in limits)
    limit_text = f"{'unlimited' if hard == sys.maxsize else hard} (now {'unlimited' if soft == sys.maxsize else soft})"
    if hard < OPEN_FILES:
        return [
            Check("open files", "warn", limit_text, f"ulimit -n {OPEN_FILES}, or use a --concurrency below {hard // 4}")
        ]
    return [Check("open files", "ok", limit_text)]


def check_directory() -> list[Check]:
    """The current directory, where a crawl is written without --out."""
    here = Path.cwd()
    try:
        with tempfile.TemporaryFile(dir=here):
            pass
    except OSError as error:
        return [Check("directory", "fail", f"{here}: {error.strerror}", "change to a directory that can be written")]
    checks = [Check("directory", "ok", f"{here} can be written")]
    free = shutil.disk_usage(here).free
    space = f"{free / 1e9:.1f} GB free"
    if free < DISK_BYTES:
        checks.append(Check("disk", "warn", space, "free space, or crawl to another disk with --out"))
    else:
        checks.append(Check("disk", "ok", space))
    return checks


def check_names(resolv_conf: Path = Path("/etc/resolv.conf")) -> list[Check]:
    """Name resolution, as far as can be seen without asking anyone: localhost, and a name server to ask."""
    try:
        socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)
    except OSError as error:
        return [Check("dns", "warn", f"localhost does not resolve: {error.strerror}", "correct /etc/hosts")]
    try:
        words = [line.split() for line in resolv_conf.read_text(errors="replace").splitlines()]
    except OSError:
        return [Check("dns", "ok", "localhost resolves")]
    servers = [line[1] for line in words if len(line) > 1 and line[0] == "nameserver"]
    if not servers:
        remedy = "add a nameserver line; until then only addresses, /etc/hosts and --host-map work"
        return [Check("dns", "warn", f"{resolv_conf} names no server", remedy)]
    return [Check("dns", "ok", f"localhost resolves; name server {', '.join(servers)}")]


def check_clock(now: float | None = None, installed_at: float | None = None) -> list[Check]:
    """The clock: it cannot be before the installation of this program. Times are part of every row."""
    now = time.time() if now is None else now
    if installed_at is None:
        installed_at = Path(__file__).stat().st_mtime
    clock = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now < installed_at - 86_400:
        return [Check("clock", "warn", f"{clock} is before this program was installed", "set the clock (NTP)")]
    return [Check("clock", "ok", clock)]


def check_middleware(directory: str) -> list[Check]:
    """Each middleware file of a folder, with its functions; the files are loaded."""
    if not directory:
        return []
    from nephila.downloader.middleware.user.user_files import load_files

    try:
        files = load_files(os.path.abspath(directory))
    except UsageError as error:
        return [Check("middleware", "fail", str(error), "correct the file, or leave it out of the folder")]
    if not files:
        return [Check("middleware", "warn", f"{directory} has no Python file", "name the folder with the files")]
    return [Check("middleware", "ok", f"{file.path}: {', '.join(file.hooks)}") for file in files]


CHECKS: tuple[Callable[[], list[Check]], ...] = (
    check_python,
    check_native,
    check_libraries,
    check_browser,
    check_sqlite,
    check_open_files,
    check_directory,
    check_names,
    check_clock,
)
