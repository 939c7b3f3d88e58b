"""`--batch`: JSON lines on standard input, one JSON line each on standard output, in order.

Every line gets an answer; a line with an error gets {"error": …}, and the next line is read. Answers are flushed before
each read that may block, so that another program can send a line and wait for its answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeVar

import msgspec
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UserError

Q = TypeVar("Q")
CHUNK_BYTES = 1 << 16

_encode = msgspec.json.Encoder().encode


def lines(stream: BinaryIO, before_wait: Callable[[], None]) -> Iterator[bytes]:
    """Lines of a stream as they come, without their ends; `before_wait` is called before each read that may block."""
    pieces: list[bytes] = []
    while True:
        before_wait()
        chunk: bytes = stream.read1(CHUNK_BYTES)  # type: ignore[attr-defined]
        if not chunk:
            break
        first, *more = chunk.split(b"\n")
        pieces.append(first)
        if more:
            yield b"".join(pieces)
            pieces = [more.pop()]
            yield from more
    last = b"".join(pieces)
    if last:
        yield last


def line_decoder(question: type[Q]) -> Callable[[bytes], Q]:
    """A decoder of lines into the type `question`; it raises ValueError with the reason."""
    decode = msgspec.json.Decoder(question).decode

    def decode_line(line: bytes) -> Q:
        try:
            return decode(line)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            return _decode_leniently(line, question)

    return decode_line


def _decode_leniently(line: bytes, question: type[Q]) -> Q:
    """JSON allows escaped lone surrogates, which msgspec refuses; they count as U+FFFD, as in any USVString."""
    try:
        return msgspec.convert(_scalar(json.loads(line)), question)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a line of JSON: {error}") from None


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        return scalar_text(value)
    if isinstance(value, list):
        return [_scalar(item) for item in value]
    if isinstance(value, dict):
        return {scalar_text(key): _scalar(item) for key, item in value.items()}
    return value


def scalar_text(text: str) -> str:
    """A string of Unicode scalar values: surrogate pairs joined, lone ones replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def answer_batch(answer: Callable[[bytes], Any]) -> None:
    """Answer every line of standard input with what `answer` returns for it, as JSON."""
    out = sys.stdout.buffer
    for line in lines(sys.stdin.buffer, out.flush):
        try:
            reply = _encode(answer(line))
        except Exception as error:
            # One bad line must not keep the other lines from an answer.
            reply = _encode({"error": reason_of(error)})
        out.write(reply + b"\n")
    out.flush()


def reason_of(error: Exception) -> str:
    """Why something could not be done, in one line; unexpected errors with their type."""
    if isinstance(error, OSError) and error.strerror:
        return sanitize(f"{error.filename}: {error.strerror}" if error.filename else error.strerror, 500)
    if isinstance(error, (ValueError, UserError)):
        return sanitize(str(error), 500)
    return sanitize(f"{type(error).__name__}: {error}", 500)
