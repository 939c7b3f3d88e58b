"""`nephila backup` and `nephila restore`: a directory or a system over Kafka, while it crawls."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from nephila.cli.options import DEFAULT_OUT, Json, Out
from nephila.cli.output import note, print_json, program
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.output_directory import OutputDirectory

from nephila_tools.backup import archive, directory

System = Annotated[
    str,
    typer.Option(
        "--bootstrap", metavar="FILE", help="The system over Kafka of this settings file of the services, not DIR."
    ),
]
WithoutRows = Annotated[
    bool, typer.Option("--without-rows", help="Leave out the rows on a PostgreSQL server: they are saved otherwise.")
]


def backup(
    out: Out = DEFAULT_OUT,
    to: Annotated[
        str, typer.Option("--to", metavar="PLACE", help="Directory of backups; each is a directory named by its time.")
    ] = "",
    bootstrap: System = "",
    keep: Annotated[
        int, typer.Option(metavar="N", help="Then delete all but the newest N backups in PLACE; 0 keeps all.")
    ] = 0,
    without_rows: WithoutRows = False,
    json: Json = False,
) -> None:
    """Back a crawl up while it runs: frontier, rows and files as of one time. `nephila restore` reads it."""
    if not to:
        raise UsageError("--to is missing: the directory of backups")
    if keep < 0:
        raise UsageError(f"--keep {keep}: a number of backups, or 0 for all")
    folder = Path(to)
    if bootstrap:
        from nephila_tools.backup.system import back_up

        path = back_up(bootstrap, folder, time.time(), without_rows=without_rows)
    else:
        path = directory.back_up(OutputDirectory(out), folder, time.time(), without_rows=without_rows)
    gone = archive.keep_newest(folder, keep) if keep else []
    manifest = archive.read_manifest(path)
    if json:
        print_json(
            {
                "path": str(path),
                "kind": manifest.kind,
                "taken_at": manifest.taken_at,
                "files": len(manifest.files),
                "bytes": manifest.total_bytes,
                "rows": manifest.rows,
                "deleted": [str(deleted) for deleted in gone],
            }
        )
        return
    typer.echo(f"{path}: {len(manifest.files):,} files, {manifest.total_bytes:,} bytes")
    if gone:
        note(f"{len(gone)} older backups deleted (--keep {keep})")


def restore(
    path: Annotated[str, typer.Argument(metavar="BACKUP", help="One backup: PLACE/TIME.")],
    out: Out = DEFAULT_OUT,
    bootstrap: System = "",
    without_rows: WithoutRows = False,
    json: Json = False,
) -> None:
    """Restore a backup into an empty directory, or into a system without a frontier whose services are stopped."""
    source = Path(path)
    manifest = archive.read_manifest(source)
    kind = "system" if bootstrap else directory.KIND
    if manifest.kind != kind:
        where = "the system of --bootstrap FILE" if manifest.kind == "system" else "a directory: --out DIR"
        raise UsageError(f"{source} is a backup of {manifest.source}; restore it into {where}")
    if bootstrap:
        from nephila_tools.backup.system import restore as restore_system

        restore_system(source, manifest, bootstrap, without_rows=without_rows)
        then = "start the services"
    else:
        directory.restore(source, manifest, OutputDirectory(out), without_rows=without_rows)
        then = continuation(out)
    if json:
        print_json({"path": str(source), "kind": manifest.kind, "taken_at": manifest.taken_at, "next": then})
        return
    typer.echo(f"restored to the state of {manifest.taken_at}; continue: {then}")


def continuation(out: Path) -> str:
    """The command that continues what a directory holds."""
    run = OutputDirectory(out).read()
    return f"{program()} {'up' if run is not None and run.command == 'up' else 'crawl --resume'} --out {out}"
