"""The summary of a crawl: counts per outcome, host and rule, where the result is, useful next commands."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from nephila import native
from nephila.cli.output import program
from nephila.cli.terminal import sanitize
from nephila.kernel.outputs import OUTPUTS
from nephila.kernel.reasons.table import Reason, row_of
from nephila.programs.crawl.plan import run_formats, spec_of_run
from nephila.storage.source import display_name

if TYPE_CHECKING:
    from rich.console import Console

    from nephila.programs.crawl.changes import Changed
    from nephila.programs.crawl.program import Result
    from nephila.programs.output_directory import OutputDirectory, RunFile
    from nephila.storage.read.reader import Summary

HOSTS = 10
"""Hosts shown; all of them are in the database."""
MARKS = {"new": "+", "changed": "~", "moved": ">", "gone": "-"}
"""What a refresh found → how its lines begin."""
ENDS = {
    "done": "Done",
    "max_pages": "Done: --max-pages reached",
    "quota": "Stopped: a quota is used up; --resume continues in its next period",
    "max_time": "Stopped: --max-time is over",
    "waiting": "Done: all that is left waits longer than --max-wait",
    "interrupted": "Interrupted",
    "failed": "Failed",
}


def show(
    directory: OutputDirectory,
    run: RunFile,
    result: Result,
    counts: Summary,
    changed: Changed | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print the summary: for people on a terminal or a log, or one JSON object with --json. `changed`: of a refresh."""
    if as_json:
        values = facts(directory, run, result, counts)
        if changed is not None:
            values |= {name: [url for url, _ in getattr(changed, name)] for name in MARKS}
        sys.stdout.write(msgspec.json.encode(values).decode() + "\n")
        return
    if changed is not None:
        show_changes(changed, quiet=quiet)
    if quiet:
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True)
    _outcomes(console, run, result)
    _hosts(console, counts)
    _items(console, counts, result)
    for line in remarks(run, result):
        console.print(line)
    pages, links = counts.links_left_out
    if pages:
        console.print(
            f"{pages:,} pages have more links than the limit per page; {links:,} links were left out"
            " (meta.links_left_out of their rows)"
        )
    if counts.shells:
        console.print(
            f"{counts.shells:,} of {run.outcomes.get('stored', 0):,} pages look as if they need --render auto: few"
            " words, and scripts (meta.shell of their rows)"
        )
    if counts.near_copies:
        console.print(f"{counts.near_copies:,} pages are near-copies of other pages (near_copy_of of their rows)")
    where = display_name(directory.rows(run)) if run.store else directory.path / "nephila.db"
    table = f"table pages, job {run.uid}" if run.store else "table pages"
    folder = directory.path / "markdown"
    also = f"pages in {folder}, " if folder.is_dir() else ""
    console.print(f"\nResult: {where} ({table}), {also}counts in {directory.run_file}")
    for line in next_commands(directory, run, counts):
        console.print(f"  {line}")
    if _lacks_bodies(run):
        console.print(
            "\nBodies were not kept: a rule, format, main text or --links that is added later needs every page fetched"
            " again (--refresh). --keep-raw keeps them."
        )


def _lacks_bodies(run: RunFile) -> bool:
    """Whether the first run of a crawl has stored pages and no bodies; later runs do not repeat it."""
    if run.runs != 1 or not run.outcomes.get("stored"):
        return False
    return not any(OUTPUTS[name].of_bodies for name in run_formats(run))


_REQUISITES: Final = "requisites of pages, in the archive"


def show_changes(changed: Changed, *, quiet: bool) -> None:
    """A line per page: + new, ~ changed, > moved, - gone; with `quiet` nothing without changes, as suits cron."""
    for name, mark in MARKS.items():
        for url, title in getattr(changed, name):
            print(f"{mark} {sanitize(url, 500)}" + (f"  {sanitize(title, 80)}" if title else ""))
    if not quiet:
        print(", ".join(f"{len(getattr(changed, name)):,} {name}" for name in MARKS))


def facts(directory: OutputDirectory, run: RunFile, result: Result, counts: Summary) -> dict[str, Any]:
    """The summary as one JSON object."""
    return {
        "directory": str(directory.path),
        "database": display_name(directory.rows(run)) if run.store else str(directory.path / "nephila.db"),
        "state": run.state,
        "reason": run.reason,
        "rows": run.rows,
        "outcomes": run.outcomes,
        "reasons": run.reasons,
        "left": run.left,
        "requests": result.requests,
        "refetched": result.refetched,
        "out_of_scope": result.out_of_scope,
        "links_lost": result.links_lost,
        "items": items_by_rule(counts, result),
        "near_copies": counts.near_copies,
        "shells": counts.shells,
        "links_left_out": counts.links_left_out[1],
        "resumed_urls": result.resumed_urls,
        "refetches_at_most": result.resumed_leased,
        "window": run.window,
        "errors": result.errors,
        "refused_seeds": result.refused_seeds[:100],
        "degraded_rules": result.degraded,
        "dead_letters": run.dead_letters,
        "seed_hosts": result.anchors,
        "elapsed_s": round(result.elapsed_s, 3),
        "native": native.IMPLEMENTATION,
        "error": run.error,
        **({"browser": result.browser} if result.browser else {}),
    }


def items_by_rule(counts: Summary, result: Result) -> dict[str, int]:
    """Rule → its items; a rule of the job that made none is there with 0."""
    return {**dict.fromkeys(result.rules, 0), **counts.items}


def _outcomes(console: Console, run: RunFile, result: Result) -> None:
    from rich.table import Table

    rate = run.outcomes.get("stored", 0) / result.elapsed_s if result.elapsed_s > 0 and run.runs == 1 else 0
    pace = f" ({rate:.1f} pages/s)" if rate else ""
    console.print(f"{ENDS.get(run.reason, run.reason)} after {result.elapsed_s:.1f} s{pace}")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right")
    table.add_column()
    for name, count in sorted(run.reasons.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(f"{count:,}", _REQUISITES if name == Reason.REQUISITE else sanitize(name, 60))
    if run.left:
        table.add_row(f"{run.left:,}", "left in the queue")
    console.print(table)


def _hosts(console: Console, counts: Summary) -> None:
    from rich.table import Table

    if counts.hosts_total < 2:
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("host")
    table.add_column("stored", justify="right")
    table.add_column("other", justify="right")
    for host in counts.hosts[:HOSTS]:
        stored = host.outcomes.get("stored", 0)
        table.add_row(sanitize(host.host, 60), f"{stored:,}", f"{host.others:,}")
    console.print(table)
    if counts.hosts_total > HOSTS:
        console.print(f"… and {counts.hosts_total - HOSTS:,} more hosts")


def _items(console: Console, counts: Summary, result: Result) -> None:
    """Items per rule. A rule without items is named: its URL pattern or its selectors may be wrong."""
    from rich.table import Table

    rules = items_by_rule(counts, result)
    if not rules:
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("rule")
    table.add_column("items", justify="right")
    for name, items in sorted(rules.items(), key=lambda row: (-row[1], row[0])):
        table.add_row(sanitize(name, 60), f"{items:,}")
    console.print(table)
    unused = [sanitize(name, 60) for name, items in rules.items() if not items]
    if unused:
        console.print(
            f"No items by {', '.join(unused[:5])}: no page matched, or its fields stayed empty;"
            f" see nephila rules try URL --rule {unused[0]}"
        )


def nothing_fetched(directory: OutputDirectory, run: RunFile, result: Result) -> str:
    """Why a crawl has fetched nothing, in one line."""
    causes = [f"{count:,} {name}" for name, count in sorted(run.reasons.items(), key=lambda item: -item[1])]
    errors = ", ".join(f"{name} {count:,}" for name, count in result.errors.items())
    causes += [f"{run.left:,} left in the queue" + (f" (errors: {errors})" if errors else "")] if run.left else []
    causes += [f"{len(result.refused_seeds):,} seeds left out"] if result.refused_seeds else []
    line = f"no page was stored: {', '.join(map(sanitize, causes[:5])) or 'there was nothing to fetch'}"
    if set(run.reasons) == {Reason.ADDRESS.ended}:
        return f"{line}; --allow-private opens private addresses"
    if run.seeds and run.seeds[0] == sanitize(run.seeds[0], 500):
        explain = f"nephila explain {shlex.quote(run.seeds[0])} --out {shlex.quote(str(directory.path))}"
        return f"{line}; see {explain}"
    return line


def remarks(run: RunFile, result: Result) -> list[str]:
    """Lines that explain the numbers."""
    lines = []
    stored = run.outcomes.get("stored", 0)
    denied = run.reasons.get(Reason.ROBOTS.ended, 0)
    if denied and not stored:
        lines.append("Nothing was fetched because robots.txt forbids it (or could not be read); see --ignore-robots.")
    if run.reasons.get(Reason.ADDRESS.ended):
        lines.append("Private or otherwise non-public addresses were refused; --allow-private opens them.")
    for cause, count in sorted(result.causes.items(), key=lambda item: (-item[1], item[0])):
        row = row_of(cause)
        lines.append(f"{count:,} × failed({row.reported_as}): {row.words}")
    if not stored and not denied and run.rows:
        lines.append("No page was stored; see `nephila explain URL` for each URL.")
    if result.redirect_anchors:
        moved = sanitize(", ".join(result.redirect_anchors[:5]), 200)
        lines.append(f"Seeds redirected to hosts that count as seed hosts too: {moved}")
    if result.out_of_scope:
        lines.append(f"{result.out_of_scope:,} links led out of scope and were not followed; see --scope and --include")
    if result.links_lost:
        lines.append(
            f"{result.links_lost:,} links that the earlier scope refused were not held; --refresh fetches their pages "
            "again and finds them"
        )
    for seed, reason in result.refused_seeds[:5]:
        lines.append(f"Seed left out: {sanitize(seed, 100)}: {sanitize(reason, 150)}")
    if len(result.refused_seeds) > 5:
        lines.append(f"… and {len(result.refused_seeds) - 5:,} more seeds left out")
    if result.window:
        lines.append(f"The job {result.window}; --resume continues")
    for host, wait_s, queued in result.waiting_hosts[:5]:
        lines.append(f"{sanitize(host, 60)} has to wait {wait_s:,.0f} s more; {queued:,} URLs are queued for it")
    for name, findings in result.degraded.items():
        lines.append(
            f"Rule {sanitize(name, 60)} is degraded, its rows are marked: {sanitize(findings, 300)};"
            f" see nephila rules try URL --rule {sanitize(name, 60)}"
        )
    if run.dead_letters:
        lines.append(dead_letters_line(run.dead_letters) + "; the log of the crawl names them")
    if result.browser:
        lines.append(_browser(result.browser))
    if result.resumed_urls:
        lines.append(
            f"Resumed with {result.resumed_urls:,} URLs, {result.resumed_leased:,} of them possibly fetched again"
        )
    if result.refetched:
        lines.append(f"{result.refetched:,} URLs that had ended were queued again")
    if native.IMPLEMENTATION == "python":
        lines.append(
            "The native core is not built: its Python fallback is slow, and its main text is simpler (nephila doctor)."
        )
    return lines


def dead_letters_line(letters: Mapping[str, int]) -> str:
    """How many messages no service could process, and which."""
    kinds = ", ".join(f"{count:,} of {topic}" for topic, count in sorted(letters.items()))
    return f"{sum(letters.values()):,} messages could not be processed and are dead letters ({kinds})"


def _browser(figures: dict[str, float]) -> str:
    """What the browser lane did and cost."""
    pages, seconds = int(figures["pages"]), figures["seconds"]
    line = f"Browser: {pages:,} pages in {seconds:,.1f} browser-seconds, {figures['cpu_s']:,.1f} s of CPU"
    line += f", {int(figures['sub_requests']):,} sub-requests"
    line += f", {int(figures['blocked']):,} without response" if figures["blocked"] else ""
    line += f", {int(figures['crashes']):,} crashes" if figures["crashes"] else ""
    if figures["compared"]:
        line += f"; render auto: {int(figures['compared']):,} pages compared, {int(figures['plain']):,} by HTTP alone"
    return line


def next_commands(directory: OutputDirectory, run: RunFile, counts: Summary) -> list[str]:
    """Commands that make sense now. Each works as it is when it is pasted into a shell."""
    nephila, out = program(), f"--out {shlex.quote(str(directory.path))}"
    lines = []
    if run.state == "stopped" or run.left:
        lines.append(f"{nephila} crawl --resume {_more_pages(run)}{out}")
    if counts.items:
        lines.append(f"{nephila} export {out} --items --format csv -o items.csv")
    if run.outcomes.get("stored"):
        lines.append(f"{nephila} export {out} --format csv -o pages.csv")
        if not run.store and shutil.which("sqlite3"):
            database = shlex.quote(str(directory.path / "nephila.db"))
            lines.append(f'sqlite3 {database} "select url, title from pages limit 10"')
        elif run.store and shutil.which("psql"):
            query = f"select url, title from pages where job = '{run.uid}' limit 10"
            lines.append(f"psql {shlex.quote(run.store)} -c {shlex.quote(query)}")
    if run.seeds and run.seeds[0] == sanitize(run.seeds[0], 500):
        lines.append(f"{nephila} explain {shlex.quote(run.seeds[0])} {out}")
    return lines


def _more_pages(run: RunFile) -> str:
    """The option without which a crawl that has reached its limit would end at once."""
    if run.reason != "max_pages":
        return ""
    _, spec = spec_of_run(run)
    return f"--max-pages {2 * spec.scope.max_pages} "
