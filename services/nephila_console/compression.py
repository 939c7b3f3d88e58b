"""Pages are compressed for browsers that take gzip: a long table is a tenth of its size.

The length of a compressed page tells how well its parts repeat each other, so a page with a secret and a text of a
stranger could give the secret away, one letter at a time (BREACH). The head of each answer therefore has a name of
random length, which gzip allows and browsers skip: an observer measures noise.
"""

from __future__ import annotations

import secrets
import struct
import zlib
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

LEAST_BYTES: Final = 1000
"""Smaller answers are sent as they are."""
LEVEL: Final = 5
MOST_NOISE: Final = 100
"""Bytes of the random name."""


def compressed(request: Request, response: Response) -> Response:
    """Compresses a page. Streams and files stay as they are."""
    kind = response.headers.get("content-type", "")
    if isinstance(response, StreamingResponse) or not kind.startswith("text/html") or not _takes_gzip(request):
        return response
    if len(response.body) >= LEAST_BYTES:
        response.body = _gzip(bytes(response.body))
        response.headers["content-encoding"] = "gzip"
        response.headers["content-length"] = str(len(response.body))
    response.headers.add_vary_header("accept-encoding")
    return response


def _takes_gzip(request: Request) -> bool:
    parts = (part.replace(" ", "") for part in request.headers.get("accept-encoding", "").lower().split(","))
    return any(
        name == "gzip" and weight not in ("q=0", "q=0.0") for name, _, weight in (part.partition(";") for part in parts)
    )


def _gzip(body: bytes) -> bytes:
    """RFC 1952 with a file name."""
    name = secrets.token_hex(MOST_NOISE // 2)[: secrets.randbelow(MOST_NOISE) + 1].encode()
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    data = packer.compress(body) + packer.flush()
    head = b"\x1f\x8b\x08\x08\0\0\0\0\0\xff" + name + b"\0"
    return head + data + struct.pack("<II", zlib.crc32(body), len(body) & 0xFFFFFFFF)
