"""Title, main text, metadata, links and media of one document: `nephila extract`, without a crawl or network.

Pure: bytes in, a dict out. It may build a tree (for media and JSON-LD), which the parser service does only for rules.
"""

from __future__ import annotations

import contextlib
import mimetypes
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from nephila.kernel.pages import mime
from nephila.native import PagePass, page_pass, parse_url, sniff_encoding
from nephila.parser.config import ParserConfig
from nephila.parser.documents.read import TEXTS
from nephila.parser.lists.detection import form_of
from nephila.parser.page.body_kind import HEAD_BYTES, BodyKind, kind_of
from nephila.parser.page.charset import encoding_of
from nephila.parser.page.html_tree import tree_is_linear
from nephila.parser.sandbox import BlockingSandbox, ChildError
from nephila.parser.single.documents import fill_document, fill_list
from nephila.parser.single.html import MAX_TREE_BYTES, NOWHERE, fill_html

MAX_FILE_BYTES: Final = 64 * 1024 * 1024
"""A larger file is refused: the downloader's limit is below it as well."""

TEXT_FIELDS: Final = (
    "url",
    "title",
    "text",
    "comments",
    "lang",
    "published",
    "modified",
    "author",
    "section",
    "description",
    "canonical",
    "image",
    "encoding",
)
"""Fields of an answer that are a text, "" if the document has none; for each kind of document the same."""

_encode = msgspec.json.Encoder().encode


def extract(
    body: bytes,
    url: str,
    content_type: str = "",
    charset: str = "",
    sandbox: BlockingSandbox | None = None,
    *,
    markdown: bool = False,
    hidden_text: bool = False,
) -> dict[str, Any]:
    """What a reader would want of the document at `url` ("" when unknown: relative links are left out).

    `content_type` is a media type without parameters, "" is taken for HTML; `charset` is the header's. `text` is the
    main text, and with `markdown` there is a key of that name with the same as Markdown; with `hidden_text` it has text
    that the page hides by its own attributes. PDF and office files are read in a child process: of `sandbox`, or one
    that ends with the call. What is not HTML has its `kind`, and a `problem` where not all could be read. Raises
    `UrlError` when `url` is neither empty nor absolute http(s).
    """
    config = ParserConfig(hidden_text=hidden_text)
    result: dict[str, Any] = {
        **dict.fromkeys(TEXT_FIELDS, ""),
        "authors": [],
        "links": [],
        "images": [],
        "videos": [],
        "media": [],
    }
    result["url"] = parse_url(url).href if url else ""
    base = result["url"] or NOWHERE
    form = form_of(content_type, url, body)
    kind, _ = kind_of(content_type or "text/html", body[:HEAD_BYTES])
    if form is not None:
        fill_list(result, form, body, base, charset, config, _is_somewhere)
    elif kind is BodyKind.HTML:
        encoding = encoding_of(body, charset, sniff_encoding)
        passed = page_pass(body, result["url"] or NOWHERE, encoding, config.pass_options)
        if len(body) > MAX_TREE_BYTES or tree_is_linear(body, passed.depth):
            fill_html(result, body, encoding, passed, config, markdown)
        else:
            _in_child(result, body, encoding, passed, config, markdown, sandbox)
    else:
        with contextlib.nullcontext(sandbox) if sandbox is not None else BlockingSandbox() as box:
            fill_document(
                result, kind, body, content_type, base, charset, config, box, _is_somewhere, markdown=markdown
            )
    return result


def _is_somewhere(url: str) -> bool:
    return not url.startswith(NOWHERE)


def _in_child(
    result: dict[str, Any],
    body: bytes,
    encoding: str,
    passed: PagePass,
    config: ParserConfig,
    markdown: bool,
    sandbox: BlockingSandbox | None,
) -> None:
    """A page whose tree may take a time that grows with its square: in a child, and without a tree where that fails."""
    from nephila.parser.single.child import EXTRACT, payload_of

    payload = payload_of(result["url"], body, encoding, markdown, config.pass_options)
    try:
        with contextlib.nullcontext(sandbox) if sandbox is not None else BlockingSandbox() as box:
            found_there = box.call(EXTRACT, payload, attempts=1)
        result.update(found_there)
        result["encoding"] = encoding
    except ChildError as broken:
        fill_html(result, body, encoding, passed, config, markdown, trees=False)
        result["problem"] = f"media are not complete: {broken}"


def extract_batch(lines: Iterable[str], defaults: Mapping[str, Any] | None = None) -> Iterator[str]:
    """JSON lines {"file": path, "url": ...} in, one JSON line each out, in order; {"error": ...} for what fails.

    "url" may be left out; "content_type" and "charset" may be given as the server sent them; "markdown": true adds
    that, too. `defaults` hold for lines that do not say it.
    """
    with BlockingSandbox() as sandbox:
        for line in lines:
            yield _encode(_one(line, sandbox, defaults or {})).decode()


def _one(line: str, sandbox: BlockingSandbox, defaults: Mapping[str, Any]) -> dict[str, Any]:
    request: Any = None
    try:
        request = msgspec.json.decode(line)
        if not isinstance(request, dict) or not isinstance(request.get("file"), str):
            return {"error": 'expected an object with "file": path'}
        request = {**defaults, **request}
        marked = request.get("markdown") is True
        fields = [request.get(name) or "" for name in ("url", "content_type", "charset")]
        if not all(isinstance(field, str) for field in fields):
            return {"error": '"url", "content_type" and "charset" are strings'}
        path = Path(request["file"])
        url, content_type, charset = fields
        content_type, stated_charset = mime.media_type(content_type)
        charset = charset or stated_charset
        hidden = request.get("hidden_text") is True
        kind, body = content_type or type_by_name(path), read_file(path)
        return extract(body, url, kind, charset, sandbox, markdown=marked, hidden_text=hidden)
    except OSError as error:
        return {"error": f"cannot read {request['file']!r}: {error.strerror or error}"}
    except Exception as error:
        # One document never ends the batch.
        expected = isinstance(error, ValueError | msgspec.DecodeError)
        text = str(error) if expected else f"{type(error).__name__}: {error}"
        return {"error": text.encode("utf-8", "replace").decode()}


def read_file(path: Path) -> bytes:
    """The file's bytes; `ValueError` when it is larger than `MAX_FILE_BYTES`."""
    with path.open("rb") as file:
        body = file.read(MAX_FILE_BYTES + 1)
    if len(body) > MAX_FILE_BYTES:
        raise ValueError(f"{path} is larger than {MAX_FILE_BYTES // 2**20} MiB")
    return body


def type_by_name(path: Path) -> str:
    """Media type by the file's name, for kinds of text; "" for all others, which are recognised by their bytes."""
    guessed = mimetypes.guess_type(path.name)[0] or ""
    return guessed if guessed and kind_of(guessed, b"")[0] in TEXTS else ""
