"""Writes docs/nephila.1, the manual page, from the table of commands (`--check` compares instead).

A wheel installs it below share/man, where pip, pipx and uv put it beside the command.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.site import leaves, paragraph

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "nephila.1"
FILES = {
    "DIR/nephila.db": "the rows, an SQLite database: table pages",
    "DIR/run.json": "options and counts of the crawl",
    "DIR/frontier": "the log of the frontier, by which a crawl continues",
}
EXIT = {
    "0": "done",
    "1": "failed, with one line why",
    "2": "wrong arguments",
    "130": "stopped by Ctrl-C; --resume continues",
}


def roff(text: str) -> str:
    """The text with its characters for troff; a line cannot be taken as a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + escaped if escaped.startswith((".", "'")) else escaped


def text() -> str:
    """The content of the file."""
    from nephila.cli import main as cli
    from nephila.cli.examples import EXAMPLES

    lines = [
        '.TH NEPHILA 1 "" "nephila" "User Commands"',
        ".SH NAME",
        "nephila \\- crawl the web politely, and resume always",
        ".SH SYNOPSIS",
        ".B nephila",
        ".I COMMAND",
        "[OPTION]...",
        ".SH DESCRIPTION",
        roff(
            "A crawler: one command crawls a site into a SQLite file; the same services run on many machines. A killed "
            "process loses nothing that was written. Each URL has one row with its outcome."
        ),
        ".PP",
        roff("The documentation: docs/ of the sources, and nephila COMMAND --help."),
    ]
    panels: dict[str, list[str]] = {}
    for name, row in cli.COMMANDS.items():
        panels.setdefault(row.panel, []).append(name)
    for panel, names in panels.items():
        lines += [f'.SH "{roff(panel.upper())}"']
        for name in names:
            for words, command in leaves(cli.command_of(name), name):
                lines += [f'.SS "nephila {roff(words)}"', roff(paragraph(command.help or command.short_help or ""))]
                lines += _options(command)
                if words in EXAMPLES:
                    lines += [".PP", "Example:", ".PP", ".nf", roff(f"    {EXAMPLES[words]}"), ".fi"]
    lines += [".SH FILES", *_pairs(FILES), '.SH "EXIT STATUS"', *_pairs(EXIT)]
    return "\n".join(lines) + "\n"


def _options(command: Any) -> Iterator[str]:
    for one in command.params:
        if getattr(one, "hidden", False) or one.name == "help":
            continue
        is_option = one.param_type_name == "option"
        names = ", ".join(one.opts) if is_option else one.human_readable_name
        value = one.metavar or "" if is_option and not getattr(one, "is_flag", False) else ""
        yield ".TP"
        yield f"\\fB{roff(names)}\\fR" + (f" \\fI{roff(value)}\\fR" if value else "")
        yield roff(paragraph(getattr(one, "help", "") or "")) or "\\&"


def _pairs(rows: dict[str, str]) -> Iterator[str]:
    for name, words in rows.items():
        yield ".TP"
        yield f"\\fI{roff(name)}\\fR"
        yield roff(words)


def main() -> None:
    """Write the file, or with --check compare it."""
    sys.path.insert(0, str(ROOT / "services"))
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when the file differs")
    if not parser.parse_args().check:
        TARGET.write_text(text())
    elif not TARGET.exists() or TARGET.read_text() != text():
        raise SystemExit(f"{TARGET.name} differs from the commands of services/nephila/cli; run `make schema`")


if __name__ == "__main__":
    main()
