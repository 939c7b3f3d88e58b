"""`nephila explain URL`: what became of a URL in a crawl, and why; changes nothing.

Without --bootstrap and --server the program that runs in DIR answers; where none runs, DIR is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from nephila.cli.options import Json
from nephila.cli.output import print_json

from nephila_control.commands.target import ControlTarget, with_target

if TYPE_CHECKING:
    from nephila_control.explain.explain import Explanation


@with_target()
def explain(
    url: Annotated[str, typer.Argument(metavar="URL", help="A URL, in any spelling.")],
    target: ControlTarget,
    job: Annotated[str, typer.Option(metavar="NAME", help="In this job only.")] = "",
    json: Json = False,
) -> None:
    """Explain what became of a URL: seen, scope, robots.txt, queue, pace, budget, fetches."""
    from nephila.kernel.seeds import seed_url

    from nephila_control.explain.render import show

    answer = _explanation(target, seed_url(url), job)
    if target.is_directory:
        answer.lane = _lane(target, answer)
    if json:
        print_json(answer)
    else:
        show(answer)


def _lane(target: ControlTarget, answer: Explanation) -> str:
    """The verdict of `render: auto` on pages like this one, as last stored."""
    from nephila.downloader.browser_port import VERDICT_FILE
    from nephila_browser.auto.verdict_file import VerdictFile

    stored = VerdictFile(str(target.out / VERDICT_FILE)).load()
    if not stored:
        return ""
    from nephila_browser.auto.verdicts import describe

    return describe(stored, answer.job, answer.url)


def _explanation(target: ControlTarget, href: str, job: str) -> Explanation:
    from nephila_control.commands.client import call
    from nephila_control.http.client import at_directory
    from nephila_control.job_types import ExplainUrl

    if target.is_directory and at_directory(target.out) is None:
        from nephila.programs.output_directory import OutputDirectory

        from nephila_control.commands.explain_offline import explain_directory

        return explain_directory(OutputDirectory(target.out), href, job)
    return call(target, lambda control: control.explain(ExplainUrl(url=href, job=job))).explanation
