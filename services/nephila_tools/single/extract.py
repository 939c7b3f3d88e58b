"""`nephila extract`: title, main text, metadata, links and media of one document: of a file, or of a page that is
fetched as a crawl of one page would, robots.txt and the egress guard included."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Unpack

import typer
from nephila.cli.options import Json, values, with_options
from nephila.cli.output import note, print_json, print_pairs
from nephila.cli.terminal import sanitize_lines
from nephila.kernel.pages import mime
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.programs.options import CommandOptions

from nephila_tools.single.batch import lines, scalar_text


@with_options("extract")
def extract(
    file: Annotated[
        str, typer.Argument(metavar="[FILE|URL]", help="A document; - is standard input; a URL is fetched.")
    ] = "",
    url: Annotated[str, typer.Option(help="Where it came from: relative links are resolved against it.")] = "",
    content_type: Annotated[str, typer.Option(help="Content-Type as the server sent it.")] = "",
    batch: Annotated[
        bool, typer.Option("--batch", help='Read JSON lines {"file", "url"} from standard input.')
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Main text as Markdown.")] = False,
    json: Json = False,
    **options: Unpack[CommandOptions],
) -> None:
    """Print title, author, date, language and main text of a document.

    HTML, PDF, JSON, XML, CSV and plain text; of sitemaps and feeds the links, of office files their
    metadata.
    """
    settings = values(options)
    hidden = bool(settings.pop("hidden_text"))
    if batch:
        if file:
            raise UsageError("give a FILE or --batch, not both; each line of a batch names its file")
        _batch({"url": scalar_text(url), "content_type": content_type, "markdown": markdown, "hidden_text": hidden})
        return
    if not file:
        raise UsageError("which document? give a FILE or a URL, - for standard input, or --batch to read JSON lines")
    if "://" in file:
        if url or content_type:
            raise UsageError("--url and --content-type are for files; a page that is fetched has its own")
        document = _fetched(file, markdown, hidden, settings)
    else:
        document = _extract(file, scalar_text(url), content_type, markdown, hidden)
    if json:
        print_json(document)
    else:
        _show(document, file)


def _fetched(url: str, markdown: bool, hidden: bool, options: dict[str, Any]) -> dict[str, Any]:
    from nephila.downloader.fetch_page import config_of, fetch_page
    from nephila.parser.single.extract import extract as extract_document
    from nephila.programs.option_values import settings_of

    obey_robots = not options.pop("ignore_robots")
    settings = settings_of(options, "extract")["downloader"]
    page = fetch_page(url, config_of(settings), obey_robots=obey_robots)
    kind, charset = page.content_type, page.charset
    return extract_document(bytes(page.body), page.url, kind, charset, markdown=markdown, hidden_text=hidden)


def _extract(file: str, url: str, content_type: str, markdown: bool, hidden: bool) -> dict[str, Any]:
    from nephila.parser.single.extract import MAX_FILE_BYTES, read_file, type_by_name
    from nephila.parser.single.extract import extract as extract_document

    media_type, charset = mime.media_type(content_type)
    try:
        if file == "-":
            body = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
            if len(body) > MAX_FILE_BYTES:
                raise UserError(f"standard input is larger than {MAX_FILE_BYTES // 2**20} MiB")
        else:
            path = Path(file)
            body = read_file(path)
            media_type = media_type or type_by_name(path)
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(str(error)) from None
    try:
        return extract_document(body, url, media_type, charset, markdown=markdown, hidden_text=hidden)
    except ValueError as error:
        raise UsageError(f"--url {url}: {error}") from None


_SHOWN = (
    "title",
    "author",
    "published",
    "modified",
    "section",
    "lang",
    "url",
    "description",
    "kind",
    "pages",
    "rows",
    "columns",
    "problem",
)


def _show(document: dict[str, Any], file: str) -> None:
    counts = (("links", "links"), ("images", "images"), ("videos", "videos"))
    print_pairs(
        [
            *((key, document.get(key) or None) for key in _SHOWN),
            *((label, len(document[key])) for label, key in counts if document.get(key)),
        ]
    )
    if text := document.get("markdown") or document.get("text"):
        sys.stdout.write("\n")
        for line in sanitize_lines(text):
            sys.stdout.write(line + "\n")
    elif not document.get("title"):
        note(f"{file} has no text that can be read")


def _batch(defaults: dict[str, Any]) -> None:
    from nephila.parser.single.extract import extract_batch

    out = sys.stdout.buffer

    def questions() -> Iterator[str]:
        for line in lines(sys.stdin.buffer, out.flush):
            yield line.decode("utf-8", "replace")

    for answer in extract_batch(questions(), defaults):
        out.write(answer.encode() + b"\n")
    out.flush()
