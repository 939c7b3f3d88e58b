"""SVG that draws and does nothing else: elements and attributes of a list, references to parts of itself only."""

from __future__ import annotations

import re
from html import escape
from typing import Any, Final

from lxml import etree

from nephila_rules.studio.styled.css import rewritten

MAX_ELEMENTS: Final = 20_000
MAX_DEPTH: Final = 60
_NAMESPACE: Final = "http://www.w3.org/2000/svg"
_XLINK: Final = "{http://www.w3.org/1999/xlink}href"
_TAG_WORDS: Final = """
svg g defs symbol use path rect circle ellipse line polyline polygon text tspan textPath linearGradient radialGradient
stop clipPath mask pattern marker filter feGaussianBlur feOffset feBlend feColorMatrix feComposite feFlood feMerge
feMergeNode feMorphology feTurbulence feDropShadow switch
"""
TAGS: Final = frozenset(_TAG_WORDS.split())
_ATTRIBUTE_WORDS: Final = """
class id style viewBox preserveAspectRatio width height x y x1 y1 x2 y2 cx cy r rx ry fx fy d points transform offset
fill fill-opacity fill-rule clip-rule clip-path mask filter marker-start marker-mid marker-end opacity stroke
stroke-width stroke-linecap stroke-linejoin stroke-miterlimit stroke-dasharray stroke-dashoffset stroke-opacity
stop-color stop-opacity color display visibility overflow font-family font-size font-weight font-style text-anchor
dominant-baseline letter-spacing dx dy rotate textLength lengthAdjust startOffset gradientUnits gradientTransform
spreadMethod clipPathUnits maskUnits maskContentUnits patternUnits patternContentUnits patternTransform markerWidth
markerHeight markerUnits orient refX refY filterUnits primitiveUnits in in2 result stdDeviation mode type values
operator k1 k2 k3 k4 flood-color flood-opacity radius baseFrequency numOctaves seed vector-effect role
"""
ATTRIBUTES: Final = frozenset(_ATTRIBUTE_WORDS.split())
_OWN_PART: Final = re.compile(r"#[^\s\"'<>()]{1,200}\Z")


def attribute(name: str, value: str) -> str | None:
    """The value of an attribute as it is written; None for one that is left out."""
    if name in ("href", "xlink:href"):
        return value.strip() if _OWN_PART.match(value.strip()) else None
    if name not in ATTRIBUTES:
        return None
    return own_addresses(value) if "(" in value or "\\" in value else value


def own_addresses(css: str) -> str:
    """CSS without files: an address is that of a part of the same document, or there is none."""
    return "".join(part for part in rewritten(css, "") if isinstance(part, str))


def cleaned_svg(body: bytes) -> str | None:
    """An SVG file, rewritten; None for what is no SVG. Entities, instructions and comments are left out."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=True, huge_tree=False,
                             remove_comments=True, remove_pis=True)  # fmt: skip
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    if root is None or root.tag != f"{{{_NAMESPACE}}}svg":
        return None
    parts: list[str] = []
    _write(root, parts, MAX_DEPTH)
    return "".join(parts)


def _write(node: Any, parts: list[str], depth: int) -> None:
    name = _local(node)
    if name == "style":
        parts.append(f"<style>{escape(own_addresses(node.text or ''))}</style>")
        return
    if name not in TAGS or not depth or len(parts) > 4 * MAX_ELEMENTS:
        return
    parts.append(f"<{name}")
    if name == "svg":
        parts.append(f' xmlns="{_NAMESPACE}"')
    for key, value in node.attrib.items():
        clean = attribute("href" if key == _XLINK else key, value)
        if clean is not None:
            parts.append(f' {"href" if key == _XLINK else key}="{escape(clean)}"')
    parts.append(f">{escape(node.text or '')}")
    for child in node:
        _write(child, parts, depth - 1)
        parts.append(escape(child.tail or ""))
    parts.append(f"</{name}>")


def _local(node: Any) -> str:
    tag = node.tag if isinstance(node.tag, str) else ""
    return tag.removeprefix(f"{{{_NAMESPACE}}}")
