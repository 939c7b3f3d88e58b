"""Small PDFs made by hand: pages of text, an address laid over it, metadata; and what goes wrong with them."""

from __future__ import annotations

import zlib


def pdf(*pages: str, info: str = "", link: str = "", encrypted: bool = False) -> bytes:
    """A whole PDF with a line of text on each page."""
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {len(pages)}/Kids[{' '.join(f'{5 + 2 * n} 0 R' for n in range(len(pages)))}]>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        f"<<{info}>>",
    ]
    action = f"/Annots[<</Type/Annot/Subtype/Link/Rect[0 700 600 740]/A<</S/URI/URI({link})>>>>]" if link else ""
    for number, text in enumerate(pages):
        content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects += [
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>"
            f"/Contents {6 + 2 * number} 0 R{action}>>",
            f"<</Length {len(content)}>>stream\n{content}\nendstream",
        ]
    return whole([one.encode("latin-1") for one in objects], encrypted)


def whole(objects: list[bytes], encrypted: bool = False) -> bytes:
    """Objects with their table and trailer."""
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj" % number + one + b"endobj\n"
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer<</Size %d/Root 1 0 R/Info 4 0 R" % (len(objects) + 1)
    if encrypted:
        out += b"/ID[<%s><%s>]" % (b"00" * 16, b"00" * 16)
        out += b"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>" % (b"11" * 32, b"22" * 32)
    return bytes(out + b">>\nstartxref\n%d\n%%%%EOF" % table)


def bomb(megabytes: int) -> bytes:
    """A page whose contents are packed a thousand times smaller, twice."""
    packed = zlib.compress(zlib.compress(b"(x) Tj " * (megabytes * 149_797), 9), 9)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[5 0 R]>>",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<<>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents 6 0 R>>",
        b"<</Length %d/Filter[/FlateDecode/FlateDecode]>>stream\n%s\nendstream" % (len(packed), packed),
    ]
    return whole(objects)


def placed(*texts: tuple[float, float, float, str], rules: tuple[tuple[float, float, float, float], ...] = ()) -> bytes:
    """A page of texts at x and y, with their sizes, and of lines from point to point."""
    content = "".join(f"BT /F1 {size} Tf {x} {y} Td ({text}) Tj ET\n" for x, y, size, text in texts)
    content += "".join(f"{x} {y} m {to_x} {to_y} l S\n" for x, y, to_x, to_y in rules)
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Count 1/Kids[5 0 R]>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        "<<>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents 6 0 R>>",
        f"<</Length {len(content)}>>stream\n{content}\nendstream",
    ]
    return whole([one.encode("latin-1") for one in objects])
