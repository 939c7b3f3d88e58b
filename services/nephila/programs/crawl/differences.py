"""The differences between the options of a run and those of the runs before. Pure.

Additions: what a run makes of pages that earlier runs did not make. A page that an earlier run stored lacks them until
it is parsed again. `run.json` names them in `incomplete` until a --refresh has queued every stored page, without
validators: a 304 brings no page. Lifted limits: reasons for which URLs have ended, and would not end now.
"""

import msgspec

from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.net.robots import product_token
from nephila.kernel.outputs import OUTPUTS
from nephila.kernel.reasons.table import Reason
from nephila.programs.crawl.plan import LINKS as REFUSED_LINKS
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
    formats = [name for name in run_formats(after) if name not in had and not OUTPUTS[name].of_database]
    checks = {
        LINKS: new.links and not old.links,
        MAIN_TEXT: now.main_text != was.main_text,
        NEAR_COPIES: now.near_copies not in ("store", was.near_copies),
        FOLLOW: not set(now.follow) <= set(was.follow),
        REQUISITES: now.requisites > was.requisites,
        RENDER: new.render != old.render,
    }
    return formats + [name for name, added in checks.items() if added]


def lifted_limits(before: RunFile, after: RunFile) -> list[str]:
    """Reasons for which URLs ended under the options of one run and would not end under those of another: kinds of rows
    (`ended_urls.ROW_KINDS`) and links that were refused."""
    (_, old), (_, new) = spec_of_run(before), spec_of_run(after)
    was, now = before.options, after.options
    reasons = []
    if (now["allow_private"], now["host_map"]) != (was.get("allow_private"), was.get("host_map")):
        reasons.append(Reason.ADDRESS.ended)
    if (now["insecure"], now["ca_file"]) != (was.get("insecure", False), was.get("ca_file", "")):
        reasons.append(Reason.TLS.ended)
    lifts = old.politeness.respect_robots and not new.politeness.respect_robots
    if lifts or product_token(now["user_agent"]) != product_token(was.get("user_agent", "")):
        reasons.append(Reason.ROBOTS.ended)
    if _without_budget(old.scope) != _without_budget(new.scope):
        reasons += [Reason.EXCLUDED.ended, REFUSED_LINKS]
    if new.traps.off and not old.traps.off:
        reasons.append(Reason.TRAP.ended)
    if (now["accept"], now["reject"]) != (was.get("accept", ""), was.get("reject", "")):
        reasons.append(Reason.CONTENT_TYPE.ended)
    if old.max_page_bytes and not 0 < new.max_page_bytes <= old.max_page_bytes:
        reasons.append(Reason.TOO_LARGE.ended)
    return reasons


def _without_budget(scope: Scope) -> Scope:
    return msgspec.structs.replace(scope, max_pages=0)
