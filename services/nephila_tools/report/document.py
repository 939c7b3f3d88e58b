"""The report as one HTML file without scripts and without requests. Pure but for reading its style sheet."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from importlib import resources
from typing import Final

from nephila.kernel.reasons.status_words import status_of
from nephila.kernel.reasons.table import row_of, words
from nephila_console.figures import count, share, size, span

from nephila_tools.report.charts import shares, timeline
from nephila_tools.report.facts import BROKEN, TOP, BrokenFact, Facts, PageFact, host_of
from nephila_tools.report.markup import bars, instant, link, section, table, text

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_ENDS: Final = {
    "max_pages": "It ended at its limit of pages.",
    "quota": "It was stopped because a quota is used up.",
    "max_time": "It was stopped when its time was over.",
    "waiting": "It ended because all that was left would have waited too long.",
    "interrupted": "It was interrupted.",
    "failed": "It failed.",
}


@dataclass(slots=True)
class ReportHead:
    """What the tables do not say."""

    name: str = ""
    """Of the directory or database."""
    seeds: list[str] = field(default_factory=list)
    reason: str = ""
    left: int = 0
    started_at: float = 0.0
    program: str = ""
    made_at: float = 0.0
    options: list[tuple[str, str]] = field(default_factory=list)
    degraded: dict[str, str] = field(default_factory=dict)


def render(facts: Facts, head: ReportHead) -> str:
    """The whole document."""
    title = _title(facts, head)
    style = resources.files("nephila_tools.report").joinpath("style.css").read_text(encoding="utf-8")
    parts = (
        _opening(facts, head, title),
        _when(facts),
        _outcomes(facts),
        _hosts(facts),
        _shapes(facts),
        _lists(facts),
        _rules(facts, head),
        _broken(facts),
        _settings(head),
        _closing(head),
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><meta name="robots" content="noindex">'
        f"<title>{title}</title><style>{style}</style></head><body><main>{''.join(parts)}</main></body></html>\n"
    )


def _title(facts: Facts, head: ReportHead) -> str:
    """The hosts of the seeds, or those with most pages."""
    named = list(dict.fromkeys(host_of(seed) for seed in head.seeds if "://" in seed))
    hosts = named or [host.name for host in facts.hosts] or head.seeds
    if not hosts:
        return "Crawl"
    named_hosts, more = hosts[:2], max(len(hosts), 0 if named else facts.hosts_total) - 2
    if more > 0:
        return f"Crawl of {', '.join(text(host, 80) for host in named_hosts)} and {count(more)} more"
    return f"Crawl of {' and '.join(text(host, 80) for host in named_hosts)}"


def _opening(facts: Facts, head: ReportHead, title: str) -> str:
    took = max(facts.last - facts.first, 0.0)
    failed, stored = facts.outcomes.get("failed", 0), facts.stored
    lead = f"{_many(stored, 'page')} from {_many(facts.hosts_stored, 'host')} {'was' if stored == 1 else 'were'} stored"
    lead += f" in {span(took)}." if took >= 1 else "."
    if failed:
        lead += f" {_many(failed, 'URL')} could not be fetched."
    if head.left:
        lead += f" {_many(head.left, 'URL')} {'is' if head.left == 1 else 'are'} left in the queue."
    if head.reason in _ENDS:
        lead += f" {_ENDS[head.reason]}"
    figures = [(count(stored), "pages stored"), (count(facts.rows), "URLs ended"), (size(facts.bytes), "of content")]
    if took >= 1:
        figures.append((f"{facts.fetches / took:.1f}", "fetches/s"))
    figures.append((share(failed, facts.rows), "failed"))
    if facts.links_kept:
        figures.append((count(facts.links), "links"))
    if facts.items:
        figures.append((count(sum(items for _, _, items in facts.items)), "items"))
    tiles = "".join(f"<li><b>{value}</b><span>{words}</span></li>" for value, words in figures)
    when = instant(facts.first or head.started_at)
    return (
        f"<header><p class=kicker>Crawl report · {when[:10]}</p><h1>{title}</h1><p class=summary>{lead}</p>"
        f"<ul class=figures>{tiles}</ul></header>"
    )


def _many(number: int, noun: str) -> str:
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def _when(facts: Facts) -> str:
    if len(facts.timeline.counts) < 2:
        return ""
    parts = [
        f"{count(facts.changes[name])} {name}"
        for name in ("changed", "same", "moved", "gone")
        if facts.changes.get(name)
    ]
    lead = f"Pages that were fetched again: {', '.join(parts)}." if parts else ""
    return section("Pages over time", timeline(facts.timeline), lead)


def _outcomes(facts: Facts) -> str:
    if not facts.rows:
        return ""
    rows = []
    for outcome, reason, number in facts.reasons:
        name = f"{outcome}({text(reason, 40)})" if reason not in ("", outcome) else outcome
        meaning = row_of(reason).words if reason == outcome else words(outcome, reason)
        rows.append((f'<span class="dot {outcome}"></span>{name}', text(meaning), count(number)))
    heads = (("Outcome", "reason"), ("What it means", "wide soft"), ("URLs", "num"))
    return section("How URLs ended", shares(facts.outcomes) + table(heads, rows))


def _hosts(facts: Facts) -> str:
    rows = []
    for host in facts.hosts:
        of = host.outcomes.get
        trouble = of("failed", 0) + of("denied", 0)
        name = f"<bdi>{text(host.name, 80)}</bdi>"
        rows.append((name, count(of("stored", 0)), size(host.bytes), count(of("dropped", 0)), count(trouble)))
    numbers = [(words, "num") for words in ("Stored", "Content", "Dropped", "Failed or denied")]
    more = facts.hosts_total - len(facts.hosts)
    note = f"<p class=caption>and {_many(more, 'more host')}</p>" if more > 0 else ""
    return section("Hosts", table((("Host", "wide url"), *numbers), rows) + note) if rows else ""


def _shapes(facts: Facts) -> str:
    if not facts.stored:
        return ""
    parts = []
    groups = (("Size of pages", facts.sizes), ("Depth of links", facts.depths), ("Content types", facts.types))
    for title, rows in groups:
        columns = [(text(name, 60), number, count(number)) for name, number in rows]
        if len(columns) > 1:
            parts.append(section(title, bars(columns)))
    return f"<div class=pair>{''.join(parts)}</div>"


def _lists(facts: Facts) -> str:
    parts = []
    lists = (("Slowest pages", facts.slowest, span, "Time"), ("Largest pages", facts.largest, size, "Size"))
    for title, pages, form, unit in lists:
        if pages:
            rows = [(_page(page), form(page.value)) for page in pages]
            parts.append(section(title, table((("Page", "wide"), (unit, "num")), rows)))
    return f"<div class=pair>{''.join(parts)}</div>"


def _page(page: PageFact) -> str:
    return link(page.url) + (f"<span class=title><bdi>{text(page.title, 160)}</bdi></span>" if page.title else "")


def _broken(facts: Facts) -> str:
    if not facts.broken:
        return section("Broken links", "<p>No URL has failed.</p>") if facts.rows else ""
    lead = f"{_many(facts.broken_total, 'URL')} could not be fetched"
    lead += ", with the pages that link to them." if facts.links_kept else "."
    if not facts.links_kept:
        lead += (
            " The pages that link to them are unknown, since the links of this crawl were not kept:"
            " <code>nephila crawl --links</code> keeps them."
        )
    rows = [(link(fact.url) + _referrers(fact, facts), _why(fact.reason)) for fact in facts.broken]
    more = facts.broken_total - len(facts.broken)
    note = f"<p class=caption>and {_many(more, 'more URL')}; this list ends at {BROKEN}</p>" if more > 0 else ""
    return section("Broken links", table((("URL", "wide"), ("Why", "soft reason")), rows) + note, lead)


def _why(reason: str) -> str:
    """A few words for a column, the sentence as a tooltip."""
    short = reason.replace("_", " ")
    if number := status_of(reason):
        standard = number in set(HTTPStatus)
        short = f"{number} {HTTPStatus(number).phrase}" if standard else str(number)
    return f'<span title="{text(words("failed", reason))}">{text(short, 40)}</span>'


def _referrers(fact: BrokenFact, facts: Facts) -> str:
    if not facts.links_kept:
        return ""
    if not fact.total:
        return "<ul class=on><li class=soft>no page that was stored links to it</li></ul>"
    lines = []
    for url, anchor in fact.referrers:
        quote = f" <span class=soft>“<bdi>{text(anchor, 60)}</bdi>”</span>" if anchor.strip() else ""
        lines.append(f"<li>on {link(url)}{quote}</li>")
    more = fact.total - len(fact.referrers)
    if more > 0:
        lines.append(f"<li class=soft>and on {_many(more, 'more page')}</li>")
    return f"<ul class=on>{''.join(lines)}</ul>"


def _rules(facts: Facts, head: ReportHead) -> str:
    if not facts.items and not head.degraded:
        return ""
    warned = "".join(
        f"<p class=warn><b>{text(rule, 80)}</b> does not fit its site any more: {text(why, 400)}</p>"
        for rule, why in head.degraded.items()
    )
    rows = [(text(rule, 80), count(pages), count(items)) for rule, pages, items in facts.items]
    listed = table((("Rule", "wide"), ("Pages", "num"), ("Items", "num")), rows) if rows else ""
    return section("Rules and items", warned + listed)


def _settings(head: ReportHead) -> str:
    more = f" and {len(head.seeds) - 5:,} more" if len(head.seeds) > 5 else ""
    pairs = [("seeds", ", ".join(head.seeds[:5]) + more)]
    pairs += head.options
    body = "".join(f"<dt>{text(name, 40)}</dt><dd><bdi>{text(value, 500)}</bdi></dd>" for name, value in pairs if value)
    return section("Options of the crawl", f"<dl>{body}</dl>") if body else ""


def _closing(head: ReportHead) -> str:
    made = f"Made from {text(head.name, 200)} on {instant(head.made_at)} UTC by {text(head.program, 60)}."
    return f"<footer>{made} Lists show the first {TOP}. URLs and titles are as their sites wrote them.</footer>"
