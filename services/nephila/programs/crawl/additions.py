"""Additions: what a run makes of pages that earlier runs of the crawl did not make.

A page that an earlier run stored lacks them until it is parsed again. `run.json` names them in `incomplete` until a
--refresh has queued every stored page, without validators: a 304 brings no page. Pure.
"""

from __future__ import annotations

from nephila.kernel.outputs import OUTPUTS
from nephila.programs.crawl.plan import run_formats, spec_of_run
from nephila.programs.output_directory import RunFile

RULES, LINKS, MAIN_TEXT, NEAR_COPIES, FOLLOW, RENDER, REQUISITES, SCOPE = (
    "rules",
    "links",
    "main text",
    "near-copies",
    "kinds of links",
    "rendered pages",
    "requisites of pages",
    "links that were out of scope",
)
"""Additions that are not formats, by the name that people see."""


def additions(before: RunFile, after: RunFile) -> list[str]:
    """The additions of the options of `after`. Rules and links out of scope are found with the plan of the run."""
    (_, old), (_, new) = spec_of_run(before), spec_of_run(after)
    was, now = old.parse, new.parse
    had = run_formats(before)
    found = [name for name in run_formats(after) if name not in had and not OUTPUTS[name].of_database]
    checks = {
        LINKS: new.links and not old.links,
        MAIN_TEXT: now.main_text != was.main_text,
        NEAR_COPIES: now.near_copies not in ("store", was.near_copies),
        FOLLOW: not set(now.follow) <= set(was.follow),
        REQUISITES: now.requisites > was.requisites,
        RENDER: new.render != old.render,
    }
    return found + [name for name, added in checks.items() if added]
