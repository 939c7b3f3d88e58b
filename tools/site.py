"""The documentation site: the Markdown of the repository as pages by reader and task, with generated references.

`make site` writes build/site (static files); ARGS=--serve shows it. ARGS='--into DIR' adds it to DIR as this version,
beside those of other versions: each page then has a list of them. `assemble` needs no generator: it copies every
page, turns links between files of the repository into links between pages, and names each link that leads nowhere. A
link to a source file becomes the name of the file, since the site has no sources. The built site is then crawled by
this program, which finds what the generator has made of the links.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "site"
LATEST: Final = "latest"
"""Another name of the newest version, in the addresses of its pages."""
PAGES: Final[dict[str, Any]] = {
    "Start": {
        "Nephila": "README.md",
        "Ten minutes": "docs/walkthrough.md",
        "Examples": "examples/README.md",
        "Beside others": "docs/compared.md",
        "中文": "docs/zh/index.md",
        "中文：十分钟": "docs/zh/walkthrough.md",
    },
    "Get data": {
        "Outputs": "docs/outputs.md",
        "Quality": "docs/quality.md",
        "Twenty pages of the web": "docs/quality-pages.md",
        "Search": "docs/search.md",
        "Crawling again": "docs/again.md",
        "Why a URL was not crawled": "docs/explain.md",
        "Pages that need a browser": "docs/browser.md",
        "From Python": "docs/python.md",
        "In a browser: the console": "docs/console.md",
        "For agents: MCP": "docs/agents.md",
        "Clients of Firecrawl": "docs/firecrawl.md",
        "Spiders of Scrapy": "docs/scrapy.md",
        "Sites, directories, keywords": "docs/harvest.md",
    },
    "Write rules": {"Rules": "docs/rules.md", "Middleware": "docs/middleware.md"},
    "Operate": {
        "Many jobs": "docs/jobs.md",
        "Services over Kafka": "docs/services.md",
        "Kubernetes": "docs/kubernetes.md",
        "Helm chart": "charts/nephila/README.md",
        "Operations": "docs/operations.md",
        "Proxies": "docs/proxies.md",
        "Reliability": "docs/reliability.md",
        "Security": "docs/security.md",
        "Growth": "docs/scale.md",
        "Versions": "docs/versions.md",
        "Formats": "docs/formats.md",
    },
    "Look up": {
        "Commands": "generated:commands",
        "Control API": "docs/control.md",
        "Access": "docs/access.md",
        "Operations of the API": "generated:operations",
        "Configuration": "docs/configuration.md",
        "Metrics": "docs/metrics.md",
        "Identity of URLs": "docs/identity.md",
        "Glossary": "docs/glossary.md",
        "Changes": "CHANGELOG.md",
    },
    "Develop": {
        "Architecture": "docs/architecture.md",
        "Contributing": "CONTRIBUTING.md",
        "Report a vulnerability": "SECURITY.md",
        "Conduct": "CODE_OF_CONDUCT.md",
        "Benchmarks": "benchmarks/README.md",
        "Decisions": "docs/adr/README.md",
        "Notes on main text": "docs/notes/main-text.md",
        "Notes on rows": "docs/notes/storage.md",
        "Notes on speed": "docs/notes/speed.md",
    },
}
"""Heading → title → file of the repository. Decisions and the READMEs of the code are added to the last one."""
SEPARATOR: Final = r"[\s\-/_.,:;()\"'`\[\]，。、：；（）]+|(?=[\u4e00-\u9fff])"
"""Of words in the search: each Chinese character is one."""
_SPAN: Final = re.compile(r"^(`{3,}|~{3,}).*?^\1|(?<!`)(`+)(?!`)[^\n]+?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL)
"""Code: a block, or a part of a line."""
_LINK: Final = re.compile(r"(?<!\\)(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


@dataclass
class Site:
    """The pages, and what is wrong with them."""

    pages: dict[str, str] = field(default_factory=dict)
    """Place in the site → Markdown."""
    files: dict[str, Path] = field(default_factory=dict)
    """Place in the site → picture or schema."""
    broken: list[str] = field(default_factory=list)
    """file: link that leads nowhere."""
    nav: list[Any] = field(default_factory=list)


def assemble() -> Site:
    """All pages. Pure but for reading the repository."""
    site, listed = Site(), dict(_listed())
    places = {source: place_of(source) for source in listed if not source.startswith("generated:")}
    code = [one for one in tracked() if re.fullmatch(r"services/nephila.*README\.md", one)]
    decisions = sorted(one for one in tracked() if re.fullmatch(r"docs/adr/\d{4}-.*\.md", one))
    for source in (*code, *decisions):
        places[source] = place_of(source)
    for source, place in places.items():
        site.pages[place] = _rewritten(source, place, places, site)
    site.pages["reference/commands.md"] = commands()
    site.pages["reference/operations.md"] = operations()
    for heading, titles in PAGES.items():
        entries: list[Any] = [{title: _place(source)} for title, source in titles.items()]
        if heading == "Develop":
            entries.append({"Code": [{_title(site.pages[places[one]]): places[one]} for one in code]})
            entries.append({"All decisions": [{_title(site.pages[places[one]]): places[one]} for one in decisions]})
        site.nav.append({heading: entries})
    check_anchors(site)
    return site


def code_with_brackets(text: str) -> Iterator[re.Match[str]]:
    """Code in which brackets are no link. A link may have code in its words, so other code is not in the way."""
    return (span for span in _SPAN.finditer(text) if span[1] or "](" in span[0])


def without_code(text: str) -> str:
    """The text without code in which brackets are no link."""
    return _SPAN.sub(lambda span: "" if span[1] or "](" in span[0] else span[0], text)


def slugs(text: str) -> set[str]:
    """The anchors of a page, as the generator makes them of its headings."""
    found: dict[str, None] = {}
    for title in re.findall(r"^#{1,6} +(.+?) *#*$", without_code(text), re.MULTILINE):
        words = _LINK.sub(lambda link: link[2], title)
        plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
        slug = name = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        number = 0
        while name in found or not name:
            number += 1
            name = f"{slug}_{number}"
        found[name] = None
    return set(found)


def check_anchors(site: Site) -> None:
    """Name the links to headings that are not there."""
    known = {place: slugs(text) for place, text in site.pages.items()}
    for place, text in site.pages.items():
        for found in _LINK.finditer(without_code(text)):
            path, _, anchor = found[3].partition("#")
            if not anchor or re.match(r"[a-z][a-z0-9+.-]*:", path):
                continue
            target = normpath(f"{PurePosixPath(place).parent}/{path}") if path else place
            if target in known and anchor not in known[target]:
                site.broken.append(f"{place}: {found[3]}")


def tracked() -> list[str]:
    """Files that git has."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return sorted(name for name in found if name and (ROOT / name).is_file())


def _listed() -> Iterator[tuple[str, str]]:
    for heading, titles in PAGES.items():
        for source in titles.values():
            yield source, heading


def _place(source: str) -> str:
    return f"reference/{source.removeprefix('generated:')}.md" if source.startswith("generated:") else place_of(source)


def place_of(source: str) -> str:
    """Place of a file in the site: docs/ is its root."""
    if source == "README.md":
        return "index.md"
    if source == "docs/adr/README.md":
        return "adr/index.md"
    if source.startswith("docs/"):
        return source.removeprefix("docs/")
    if source.startswith("services/"):
        folder = source.removeprefix("services/").removesuffix("/README.md").removeprefix("nephila/")
        return f"code/{'index' if folder == 'nephila' else folder}.md"
    return source.removesuffix("/README.md").lower().replace("/", "-").removesuffix(".md") + ".md"


def _title(text: str) -> str:
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1].replace("`", "") if found else "?"


def _rewritten(source: str, place: str, places: dict[str, str], site: Site) -> str:
    """The page with links of the site."""
    text = (ROOT / source).read_text()
    folder = str(PurePosixPath(source).parent)

    def link(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        if re.match(r"[a-z][a-z0-9+.-]*:|#|<", target):
            return found[0]
        path, _, anchor = target.partition("#")
        wanted = normpath(f"{folder}/{path}" if folder != "." else path)
        if wanted in places:
            to = relpath(places[wanted], str(PurePosixPath(place).parent))
            return f"{picture}[{words}]({to}{'#' + anchor if anchor else ''})"
        if (ROOT / wanted).is_file() and PurePosixPath(wanted).suffix in (".png", ".svg", ".json"):
            at = wanted.removeprefix("docs/")
            site.files[at] = ROOT / wanted
            return f"{picture}[{words}]({relpath(at, str(PurePosixPath(place).parent))})"
        if (ROOT / wanted).exists():
            return words if "`" in words else f"`{words}`"
        site.broken.append(f"{source}: {target}")
        return found[0]

    out, at = [], 0
    for code in code_with_brackets(text):
        out += [_LINK.sub(link, text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*out, _LINK.sub(link, text[at:])])


def commands() -> str:
    """The reference of commands, from the table of commands."""
    from nephila.cli import main as cli
    from nephila.cli.examples import EXAMPLES

    lines = ["# Commands", "", "Generated from the program; `nephila COMMAND --help` shows the same.", ""]
    panels: dict[str, list[str]] = {}
    for name, row in cli.COMMANDS.items():
        panels.setdefault(row.panel, []).append(name)
    for panel, names in panels.items():
        lines += [f"## {panel}", ""]
        for name in names:
            for words, command in leaves(cli.command_of(name), name):
                lines += [f"### nephila {words}", "", paragraph(command.help or command.short_help or ""), ""]
                if words in EXAMPLES:
                    lines += ["```sh", EXAMPLES[words], "```", ""]
                lines += [*_options(command), ""]
    return "\n".join(lines)


def leaves(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", {})
    for name, one in below.items():
        yield from leaves(one, f"{words} {name}")
    if not below:
        yield words, command


def paragraph(text: str) -> str:
    return " ".join(text.replace("\b", "").split("\f")[0].split())


def _options(command: Any) -> list[str]:
    rows = []
    for one in command.params:
        if getattr(one, "hidden", False) or one.name == "help":
            continue
        names = (
            ", ".join(f"`{name}`" for name in one.opts)
            if one.param_type_name == "option"
            else f"`{one.human_readable_name}`"
        )
        kind = (one.metavar or "") if one.param_type_name == "option" and not getattr(one, "is_flag", False) else ""
        # Help speaks of [text](URL), which is no link here.
        text = paragraph(getattr(one, "help", "") or "").replace("|", "\\|").replace("[", "\\[")
        rows.append(f"| {names} | {kind.replace('|', ' or ')} | {text} |")
    return ["| option | value | |", "|---|---|---|", *rows] if rows else []


def operations() -> str:
    """The reference of the control API's operations, from its OpenAPI document."""
    document = json.loads((ROOT / "docs" / "openapi.json").read_text())
    lines = [
        "# Operations of the control API",
        "",
        "Generated from [openapi.json](../openapi.json); how to call them: [the control API](../control.md).",
        "",
    ]
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            if method not in ("get", "post", "patch", "delete"):
                continue
            lines += [f"## {method.upper()} {path}", "", f"{one['summary']}.", ""]
            fields = [*one.get("parameters", []), *_body_fields(document, one)]
            if fields:
                lines += ["| field | type | |", "|---|---|---|"]
                lines += [_field_row(field) for field in fields] + [""]
            answer = one["responses"].get("200", {})
            lines += [f"Answer: {answer.get('description', 'JSON')}.", ""]
    return "\n".join(lines)


def _body_fields(document: dict[str, Any], operation: dict[str, Any]) -> list[dict[str, Any]]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    schema = document["components"]["schemas"].get(name, {})
    return [
        {"name": key, "schema": value, "required": key in schema.get("required", [])}
        for key, value in schema.get("properties", {}).items()
    ]


def _field_row(found: dict[str, Any]) -> str:
    schema = found.get("schema", {})
    kind = schema.get("type") or schema.get("$ref", "").rpartition("/")[2] or "any"
    text = paragraph(str(found.get("description") or schema.get("description") or "")).replace("|", "\\|")
    return f"| `{found['name']}`{' (required)' if found.get('required') else ''} | {kind} | {text} |"


def settings(site: Site) -> dict[str, Any]:
    """mkdocs.yml."""
    return {
        "site_name": "Nephila",
        "site_description": "A polite web crawler: one command on one machine, the same services over Kafka on many.",
        "docs_dir": "pages",
        "site_dir": "html",
        "theme": {
            "name": "material",
            "language": "en",
            "font": False,
            "logo": "site/icon.svg",
            "favicon": "site/icon.svg",
            "features": [
                *("navigation.tabs", "navigation.top", "navigation.indexes"),
                *("search.highlight", "content.code.copy"),
            ],
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "custom", "accent": "custom",
                 "toggle": {"icon": "material/weather-night", "name": "Dark"}},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "custom", "accent": "custom",
                 "toggle": {"icon": "material/weather-sunny", "name": "Light"}},
            ],
        },
        "extra_css": ["site/site.css"],
        # The theme reads ../versions.json, which `publish` writes.
        "extra": {"generator": False, "version": {"provider": "mike", "default": LATEST}},
        # Without the trimmer, which takes Chinese for punctuation, and the stemmer: politeness is not polite.
        "plugins": [{"search": {"lang": ["en"], "separator": SEPARATOR, "pipeline": ["stopWordFilter"]}}],
        "markdown_extensions": [
            "admonition", "attr_list", "tables", "md_in_html",
            {"toc": {"permalink": True}},
            {"pymdownx.highlight": {"use_pygments": True}},
            "pymdownx.superfences",
        ],
        "validation": {"omitted_files": "info", "links": {"anchors": "warn", "not_found": "warn"}},
        "nav": site.nav,
    }  # fmt: skip


def write(site: Site, place: Path) -> None:
    """The directory that the generator reads."""
    import yaml

    shutil.rmtree(place, ignore_errors=True)
    pages = place / "pages"
    for name, text in site.pages.items():
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        (pages / name).write_text(text)
    style = ROOT / "docs" / "site"
    files = {**site.files, "openapi.json": ROOT / "docs" / "openapi.json", "site/site.css": style / "site.css"}
    files["site/icon.svg"] = ROOT / "services/nephila_console/static/icon.svg"
    for name, path in files.items():
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, pages / name)
    (place / "mkdocs.yml").write_text(yaml.safe_dump(settings(site), sort_keys=False, allow_unicode=True))


def publish(built: Path, into: Path, number: str) -> None:
    """Add a built site to a directory of versions, as the newest one if no higher number is there. A site of the same
    minor version is replaced."""
    name = ".".join(number.split(".")[:2])
    shutil.rmtree(into / name, ignore_errors=True)
    shutil.copytree(built, into / name)
    table = into / "versions.json"
    known = {one["version"]: one["title"] for one in json.loads(table.read_text())} if table.is_file() else {}
    known[name] = number
    ordered = sorted(known, key=lambda one: [int(part) for part in one.split(".")], reverse=True)
    rows = [{"version": one, "title": known[one], "aliases": []} for one in ordered]
    rows[0]["aliases"] = [LATEST]
    table.write_text(json.dumps(rows, indent=1) + "\n")
    shutil.rmtree(into / LATEST, ignore_errors=True)
    shutil.copytree(into / ordered[0], into / LATEST)
    head = f'<meta charset="utf-8"><title>Nephila</title><meta http-equiv="refresh" content="0; {LATEST}/">'
    (into / "index.html").write_text(f'<!doctype html>{head}<a href="{LATEST}/">Nephila</a>\n')


def crawled(built: Path) -> list[str]:
    """Links of a built site that lead nowhere, as this program itself finds them."""
    handler = partial(_Quiet, directory=str(built))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, tempfile.TemporaryDirectory() as place:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        nephila, out = [sys.executable, "-m", "nephila"], ["--out", f"{place}/site"]
        env = {**os.environ, "PYTHONPATH": str(ROOT / "services")}
        url = f"http://127.0.0.1:{server.server_port}/"
        words = ["--allow-private", "--delay", "0", "--links", "--keep-raw", "--quiet"]
        subprocess.run([*nephila, "crawl", url, *words, *out], env=env, check=True)
        listing = [*nephila, "export", "--broken-links", "--json", *out]
        lines = subprocess.run(listing, env=env, capture_output=True, text=True, check=True).stdout.splitlines()
        server.shutdown()
    return [f"{one['from_url'].removeprefix(url)}: {one['to_url'].removeprefix(url)}" for one in map(json.loads, lines)]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """No line for each request."""


def main() -> int:
    """The exit code: 1 when a link leads nowhere or the generator complains."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--serve", action="store_true", help="show it at http://127.0.0.1:8000 until Ctrl-C")
    parser.add_argument("--check", action="store_true", help="look at the links of the pages, and build nothing")
    parser.add_argument("--into", type=Path, metavar="DIR", help="add it to a directory with a site for each version")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT / "services"))
    site = assemble()
    if site.broken:
        print("\n".join(f"broken link: {one}" for one in site.broken), file=sys.stderr)
        return 1
    if given.check:
        return 0
    with one_builder():
        return build(site, serve=given.serve, into=given.into)


@contextlib.contextmanager
def one_builder() -> Iterator[None]:
    """Wait until no other program builds into the same directory."""
    BUILD.parent.mkdir(parents=True, exist_ok=True)
    with (BUILD.parent / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(site: Site, *, serve: bool, into: Path | None) -> int:
    """Write, build and crawl the site; the exit code of `main`."""
    from nephila import __version__

    write(site, BUILD)
    words = ["serve", "--dev-addr", "127.0.0.1:8000"] if serve else ["build", "--strict", "--quiet"]
    command = [sys.executable, "-m", "mkdocs", *words, "-f", str(BUILD / "mkdocs.yml")]
    code = subprocess.run(command, check=False).returncode
    if code == 0 and not serve:
        if broken := crawled(BUILD / "html"):
            print("\n".join(f"broken link: {one}" for one in broken), file=sys.stderr)
            return 1
        print(f"{len(site.pages)} pages in {BUILD.relative_to(ROOT)}/html")
        if into is not None:
            publish(BUILD / "html", into, __version__)
    return code


if __name__ == "__main__":
    sys.exit(main())
