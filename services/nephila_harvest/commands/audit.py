"""`nephila audit …`: people label samples; the reports estimate precision and recall, and propose expressions."""

from __future__ import annotations

import csv
import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from nephila.cli.options import DEFAULT_OUT, Json
from nephila.cli.output import note, print_json
from nephila.cli.terminal import sanitize, sanitize_lines
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.programs.output_directory import find_rows
from nephila_control.audit_types import MAX_SIZE
from nephila_control.commands.jobs.table import print_table

if TYPE_CHECKING:
    from nephila_harvest.audit.precision import Interval, StratumCount
    from nephila_harvest.audit.store import AuditStore, Drawn, SampleInfo

app = typer.Typer(add_completion=False, help="Precision and recall, from samples that people label.")

Out = Annotated[str, typer.Option("--out", metavar="DIR|URL", help="Directory of the crawl, or a database's URL.")]
SampleName = Annotated[str, typer.Option("--sample", metavar="NAME", help="A sample; by default the newest.")]
LINES = 25
"""Lines of a page that are shown for labelling."""


@app.command()
def sample(
    out: Out = str(DEFAULT_OUT),
    size: Annotated[int, typer.Option(metavar="N", min=1, max=MAX_SIZE, help="Pages or items to draw.")] = 300,
    by: Annotated[str, typer.Option(metavar="directory|rule|job|reason", help="The strata.")] = "directory",
    items: Annotated[bool, typer.Option("--items", help="Draw items of rules, not pages.")] = False,
    links: Annotated[
        bool, typer.Option("--links", help="Draw links that were not stored: what is wrongly left out is missed.")
    ] = False,
    name: Annotated[str, typer.Option(metavar="NAME", help="By default the instant.")] = "",
    seed: Annotated[str, typer.Option(metavar="TEXT", help="The same seed draws the same pages.")] = "nephila",
    job: Annotated[str, typer.Option(metavar="NAME", help="Only rows of this job.")] = "",
    json: Json = False,
) -> None:
    """Draw a stratified sample. Pages whose text was labelled before keep their labels."""
    from nephila_harvest.audit.session import draw_sample
    from nephila_harvest.audit.store import open_store

    source, only = find_rows(out)
    if items and links:
        raise UsageError("--items and --links are two samples; leave one of them out")
    kind = "items" if items else "links" if links else "pages"
    info, drawn_sample = draw_sample(source, size=size, by=by, kind=kind, name=name, seed=seed, job=job or only or "")
    with open_store(source) as store:
        drawn = store.drawn(info.name)
    labelled = sum(row.label is not None for row in drawn)
    total, without = sum(drawn_sample.sizes.values()), len(drawn_sample.sizes) - len(drawn_sample.drawn)
    if json:
        print_json(
            {**info._asdict(), "drawn": len(drawn), "of": total, "labelled": labelled, "sizes": drawn_sample.sizes}
        )
        return
    typer.echo(f"{info.name}: {len(drawn):,} of {total:,} {info.kind} from {len(drawn_sample.drawn):,} strata")
    if without:
        note(f"{without:,} strata have no page in the sample; a larger --size has one of each")
    if labelled:
        note(f"{labelled:,} of them have a label of an earlier sample")
    note(f"next: nephila audit label --out {out}")


@app.command()
def label(
    out: Out = str(DEFAULT_OUT),
    sample: SampleName = "",
    file: Annotated[
        str, typer.Option("--file", "-f", metavar="FILE", help="Read the labels of a CSV file, all or none.")
    ] = "",
    template: Annotated[
        str, typer.Option("--template", metavar="FILE", help="Write the sample as CSV, to be labelled elsewhere.")
    ] = "",
    person: Annotated[str, typer.Option(metavar="NAME", help="Who labels; by default the user's name.")] = "",
) -> None:
    """Label what has no label yet: right, or wrong with a reason."""
    from nephila_harvest.audit import labels_file
    from nephila_harvest.audit.session import now, sample_named
    from nephila_harvest.audit.store import open_store

    if file and template:
        raise UsageError("--file reads labels and --template writes a sample; leave one of them out")
    source, _ = find_rows(out)
    with open_store(source) as store:
        info = sample_named(store, sample)
        drawn = store.drawn(info.name)
        if template:
            try:
                with Path(template).open("w", encoding="utf-8", newline="") as stream:
                    labels_file.write(stream, drawn)
            except OSError as error:
                raise UserError(f"cannot write {template}: {error.strerror}") from None
            note(f"{len(drawn):,} rows written to {template}; read them with: nephila audit label --file {template}")
            return
        person = person or getpass.getuser()
        if file:
            labels = labels_file.read(Path(file), drawn, person, now())
            store.label(labels)
            typer.echo(f"{info.name}: {len(labels):,} labels stored")
            return
        _ask(store, out, drawn, person)


def _ask(store: AuditStore, out: str, drawn: list[Drawn], person: str) -> None:
    """Show each page and store the verdict at once, so that a session can end at any time."""
    from nephila.storage.ledgers.read_connection import open_for_reading

    from nephila_harvest.audit.candidates import shown
    from nephila_harvest.audit.session import labelling_order, now
    from nephila_harvest.audit.store import Label

    if not sys.stdin.isatty():
        raise UsageError("labels are read from a terminal; without one use --template and --file")
    todo = [row for row in labelling_order(drawn) if row.label is None]
    with open_for_reading(find_rows(out)[0]) as rows:
        for position, row in enumerate(todo, 1):
            page = shown(rows, row.candidate)
            typer.echo(f"\n[{position}/{len(todo)}] {sanitize(row.candidate.url, 500)}")
            if page is None:
                note("the crawl has this page no more; it stays without a label")
                continue
            typer.echo(typer.style(sanitize(page.title, 200), bold=True))
            lines = list(sanitize_lines(page.text))
            typer.echo("\n".join(lines[:LINES]) + ("\n…" if len(lines) > LINES else ""))
            answer = ""
            while answer not in ("r", "w", "s", "q"):
                answer = typer.prompt("right, wrong, skip, quit", default="r")[:1].lower()
            if answer == "q":
                return
            if answer == "s":
                continue
            reason = typer.prompt("reason", default="") if answer == "w" else ""
            verdict = Label("right" if answer == "r" else "wrong", reason, person, now())
            store.label([(row.candidate, verdict)])
    note(f"nothing is left without a label; next: nephila audit report --out {out}")


@app.command()
def report(
    out: Out = str(DEFAULT_OUT),
    sample: SampleName = "",
    at_least: Annotated[
        float, typer.Option("--at-least", metavar="P", min=0.0, max=1.0, help="Exit 1 for a stratum below this.")
    ] = 0.0,
    csv_file: Annotated[str, typer.Option("--csv", metavar="FILE", help="Write the table as CSV.")] = "",
    json: Json = False,
) -> None:
    """Show precision with its 95 % interval by stratum, over all, and over the samples before."""
    from nephila_harvest.audit.precision import of_all, of_stratum
    from nephila_harvest.audit.session import sample_named
    from nephila_harvest.audit.store import open_store

    source, _ = find_rows(out)
    with open_store(source) as store:
        info = sample_named(store, sample)
        counts = store.counts(info.name)
        before = [
            sample_info
            for sample_info in store.samples()
            if (sample_info.kind, sample_info.strata) == (info.kind, info.strata)
        ]
        trend = [(sample_info.name, of_all(store.counts(sample_info.name))) for sample_info in before]
    below = [
        stratum for stratum in counts if (interval := of_stratum(stratum)) is not None and interval.estimate < at_least
    ]
    if csv_file:
        _write_csv(csv_file, counts)
    if json:
        strata = [{**_counts(stratum), "precision": of_stratum(stratum)} for stratum in counts]
        print_json({**info._asdict(), "precision": of_all(counts), "strata": strata, "trend": trend})
    else:
        _print(info, counts, trend)
    for stratum in below:
        note(f"below {at_least:.1%}: {stratum.name} with {_text(of_stratum(stratum))} of {stratum.labelled} labels")
    if below:
        raise typer.Exit(1)


@app.command()
def recall(
    out: Out = str(DEFAULT_OUT),
    sample: Annotated[str, typer.Option("--sample", metavar="NAME", help="Of pages; by default the newest.")] = "",
    links: Annotated[str, typer.Option("--links", metavar="NAME", help="Of links; by default the newest.")] = "",
    json: Json = False,
) -> None:
    """Show precision and recall with their 95 % intervals, and expressions that the labels propose for the scope."""
    from nephila_harvest.audit.recall import outcome_of
    from nephila_harvest.audit.store import open_store

    source, _ = find_rows(out)
    with open_store(source) as store:
        outcome = outcome_of(store, sample, links)
    if json:
        print_json({**outcome._asdict(), "proposals": [proposal._asdict() for proposal in outcome.proposals]})
        return
    typer.echo(f"precision: {_text(outcome.precision)}")
    typer.echo(f"recall:    {_text(outcome.recall)}")
    if outcome.recall is None:
        note(f"recall needs labels of pages and of links; next: nephila audit sample --links --out {out}")
    if outcome.proposals:
        head = ("for", "expression", "labels", "against", "share (95 %)")
        rows = [
            (
                proposal.kind,
                sanitize(proposal.expression, 120),
                f"{proposal.hits:,}",
                f"{proposal.against:,}",
                _text(proposal.share),
            )
            for proposal in outcome.proposals
        ]
        print_table([head, *rows])


def _print(info: SampleInfo, counts: list[StratumCount], trend: list[tuple[str, Interval | None]]) -> None:
    from nephila_harvest.audit.precision import of_all, of_stratum

    rows: list[tuple[str, ...]] = [("stratum", "precision (95 %)", info.kind, "sampled", "right", "wrong")]
    for stratum in counts:
        if stratum.sampled:
            numbers = (stratum.size, stratum.sampled, stratum.right, stratum.wrong)
            rows.append(
                (sanitize(stratum.name, 80), _text(of_stratum(stratum)), *(f"{number:,}" for number in numbers))
            )
    sums = [sum(getattr(stratum, name) for stratum in counts) for name in ("size", "sampled", "right", "wrong")]
    rows.append(("all", _text(of_all(counts)), *(f"{number:,}" for number in sums)))
    print_table(rows)
    for reason, number in sum((stratum.reasons for stratum in counts[1:]), counts[0].reasons).most_common(10):
        typer.echo(f"wrong: {number:,} {sanitize(reason, 200)}")
    if len(trend) > 1:
        print_table([("run", "precision (95 %)"), *((sanitize(name, 80), _text(interval)) for name, interval in trend)])


def _write_csv(path: str, counts: list[StratumCount]) -> None:
    from nephila_harvest.audit.precision import of_stratum

    head = ("stratum", "size", "sampled", "right", "wrong", "precision", "low", "high")
    try:
        with Path(path).open("w", encoding="utf-8", newline="") as stream:
            out = csv.writer(stream)
            out.writerow(head)
            for stratum in counts:
                interval = of_stratum(stratum)
                bounds = (
                    [f"{value:.4f}" for value in (interval.estimate, interval.low, interval.high)]
                    if interval
                    else [""] * 3
                )
                name = f"'{stratum.name}" if stratum.name.startswith(("=", "+", "-", "@")) else stratum.name
                out.writerow([name, stratum.size, stratum.sampled, stratum.right, stratum.wrong, *bounds])
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def _counts(stratum: StratumCount) -> dict[str, object]:
    names = ("name", "size", "sampled", "right", "wrong", "reasons")
    return {name: getattr(stratum, name) for name in names}


def _text(interval: Interval | None) -> str:
    return f"{interval.estimate:.1%} ({interval.low:.1%} to {interval.high:.1%})" if interval else "no label"
