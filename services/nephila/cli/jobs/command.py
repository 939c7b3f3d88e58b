"""`nephila jobs …`: the jobs of a program that runs (`nephila up`), by way of its control socket, or of a system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from nephila.cli.client import Client, needed
from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UsageError

app = typer.Typer(add_completion=False, help="The jobs of a program that runs (nephila up).")

SEED_BATCH = 1000
BATCH_CHARS = 1 << 20
"""Seeds of a request at most, and when their length ends it: far below the longest line."""
COLUMNS = ("name", "state", "generation", "queued", "leased", "stored", "denied", "failed", "dropped", "rate")

Out = Annotated[Path, typer.Option(metavar="DIR", help="Directory of the program.")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A job's name.")]
Bootstrap = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="The jobs of the services at this Kafka broker, not of a program.")
]
HERE = Path("crawl-out")
START_S = 5.0
"""`nephila up &` on the line before: it may not have made its directory yet."""


@app.command()
def apply(
    files: Annotated[list[str], typer.Option("--file", "-f", metavar="FILE", help="Job files; - is standard input.")],
    out: Out = HERE,
    json: Json = False,
) -> None:
    """Make the jobs what the files say: new ones are created, others changed while they run."""
    from nephila.programs.job_files import read_jobs

    documents = read_jobs(files)
    _check_sources(documents)
    with needed(out, START_S) as client:
        for document in documents:
            refused: list[tuple[str, str]] = []
            answer = _apply(client, document, refused)
            if json:
                print_json({**answer, "ok": True})
            else:
                typer.echo(f"{answer['name']}: {answer['verdict']} (generation {answer['generation']})")
            _tell_refused(refused, answer["refused_count"] - len(answer["refused"]))


@app.command("list")
def list_jobs(out: Out = HERE, bootstrap: Bootstrap = "", json: Json = False) -> None:
    """How all jobs stand."""
    columns: tuple[str, ...] = COLUMNS
    if bootstrap:
        from nephila.cli.jobs import cluster as systemjobs

        columns, jobs = systemjobs.COLUMNS, systemjobs.list_jobs(bootstrap)
    else:
        with needed(out) as client:
            jobs = client.ask("jobs.list")["jobs"]
    if json:
        print_json(jobs)
    elif not jobs:
        note("there is no job; see nephila jobs apply")
    else:
        _table([columns, *([_cell(job[name]) for name in columns] for job in jobs)])


@app.command()
def pause(name: Name, out: Out = HERE, bootstrap: Bootstrap = "", json: Json = False) -> None:
    """Hand out nothing more of a job; what is under way still ends."""
    _tell("pause", name, out, bootstrap, json)


@app.command()
def resume(name: Name, out: Out = HERE, bootstrap: Bootstrap = "", json: Json = False) -> None:
    """Go on with a job."""
    _tell("resume", name, out, bootstrap, json)


@app.command()
def delete(name: Name, out: Out = HERE, bootstrap: Bootstrap = "", json: Json = False) -> None:
    """Forget a job and all that is known of its URLs; the rows of the table pages stay."""
    _tell("delete", name, out, bootstrap, json)


@app.command()
def quarantines(name: Name, out: Out = HERE, json: Json = False) -> None:
    """Parts of hosts that a job no longer fetches from, and why."""
    with needed(out) as client:
        found = client.ask("traps.list", name=name)["quarantines"]
    if json:
        print_json(found)
        return
    if not found:
        note(f"no part of a host is in quarantine for {name}")
    for one in found:
        facts = one if isinstance(one, dict) else {"place": one}
        typer.echo(sanitize(" ".join(f"{key}={value}" for key, value in facts.items()), 2000))


@app.command()
def release(
    name: Name,
    host: Annotated[str, typer.Argument(metavar="HOST", help="A host key, as quarantines lists it.")],
    place: Annotated[str, typer.Argument(metavar="PLACE", help="A part of it, as quarantines lists it.")],
    out: Out = HERE,
    bootstrap: Bootstrap = "",
    json: Json = False,
) -> None:
    """Take a part of a host out of quarantine."""
    if bootstrap:
        from nephila.cli.explain import cluster as systemexplain

        systemexplain.release(bootstrap, name, host, place)
        answer = {"name": name, "verdict": "released"}
    else:
        with needed(out) as client:
            answer = client.ask("traps.release", name=name, host=host, place=place)
    print_json(answer) if json else typer.echo(f"{name}: {host}{sanitize(place)} released")


def _tell(what: str, name: str, out: Path, bootstrap: str, as_json: bool) -> None:
    if bootstrap:
        from nephila.cli.jobs import cluster as systemjobs

        answer = systemjobs.change(bootstrap, name, what)
    else:
        with needed(out) as client:
            answer = client.ask(f"jobs.{what}", name=name)
    if as_json:
        print_json(answer)
    else:
        typer.echo(f"{answer['name']}: {answer['verdict']} (generation {answer['generation']})")


def _check_sources(documents: Iterable[Any]) -> None:
    """A file of seeds that cannot be read is told before any job is changed."""
    for document in documents:
        for kind, name in document.sources:
            if kind == "file":
                try:
                    Path(name).open("rb").close()
                except OSError as error:
                    raise UsageError(f"{document.place}: cannot read the seeds {name}: {error.strerror}") from None


def _apply(client: Client, document: Any, refused: list[tuple[str, str]]) -> dict[str, Any]:
    """The job, then the seeds of its files piece by piece; each piece is taken before the next is read."""
    from nephila.programs.job_files import read_sources

    files = any(kind == "file" for kind, _ in document.sources)
    answer = client.ask("jobs.apply", job=document.content, more=files)
    refused += [(url, reason) for url, reason in answer["refused"]]
    for urls in _batches(read_sources(document, refused)):
        more = client.ask("jobs.seeds", name=document.name, urls=urls)
        refused += [(url, reason) for url, reason in more["refused"]]
        answer["refused_count"] += more["refused_count"] - len(more["refused"])
    if files:
        client.ask("jobs.seeded", name=document.name)
    return answer


def _batches(urls: Iterator[str]) -> Iterator[list[str]]:
    """In pieces of bounded number and size."""
    batch: list[str] = []
    size = 0
    for url in urls:
        batch.append(url)
        size += len(url)
        if len(batch) >= SEED_BATCH or size >= BATCH_CHARS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _tell_refused(refused: list[tuple[str, str]], more: int) -> None:
    for place, reason in refused[:5]:
        note(f"seed left out: {sanitize(place, 100)}: {sanitize(reason, 150)}")
    if len(refused) + more > 5:
        note(f"… and {len(refused) + more - 5:,} more seeds left out")


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _table(rows: list[Any]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        text = [
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        typer.echo("  ".join(text).rstrip())
