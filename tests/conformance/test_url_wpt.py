"""URLs against web-platform-tests: every http(s) case, the others with their known differences, and IDNA."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.conformance

WEB = ("http:", "https:")


def cases(data: Path, name: str) -> list[dict[str, Any]]:
    """The cases of one file, comments left out."""
    path = data / "wpt-url" / "tests" / "wpt" / name
    return [case for case in json.loads(path.read_text("utf-8")) if isinstance(case, dict)]


def href(core: ModuleType, case: dict[str, Any]) -> str | None:
    """What we make of a case; None = refused."""
    try:
        return str(core.parse_any(case["input"], case["base"]))
    except core.UrlError:
        return None


def wanted(case: dict[str, Any]) -> str | None:
    """What the case asks for; None = a failure."""
    return None if case.get("failure") else case["href"]


def is_web(case: dict[str, Any]) -> bool:
    """Is this a case of http(s), by its result, its input or its base?"""
    texts = (case.get("href") or "", case["input"].strip().lower(), (case["base"] or "").lower())
    return any(text.startswith(WEB) for text in texts)


_DRIVE = "the crate drops the host of a file URL with a drive letter"
_SLASHES = "the crate drops slashes at the start of a file path"
_OPAQUE = "the crate keeps the spaces at the end of an opaque path"
_PLAIN = "the crate reads backslashes and drive letters in schemes that know none"
KNOWN = {
    _DRIVE: [
        "file:///w|/m", "/", "C|", "C|#", "C|?", "C|/", "C|\n/", "C|\\", "/c:/foo/bar", "..", "file://example.net/C:/",
        "file://1.2.3.4/C:/", "file://[1::8]/C:/", "/C:/", "file:C:/", "file:/C:/",
    ],
    _SLASHES: [
        "file:\\\\//", "file:\\\\\\\\", "file:\\\\\\\\?fox", "file:\\\\\\\\#guppy", "file://spider///",
        "file:\\\\localhost//", "file://\\/localhost//cat", "file://localhost//a//../..//", "/////mouse",
        "\\/localhost//pig", "//localhost//pig", "/..//localhost//pig", "file://localhost//a//../..//foo",
        "file://localhost////foo", "file:////foo", "file:////one/two", "////one/two", "file:///.//", "file:.//p",
        "file:/.//p", "/\\//\\/a/../",
    ],
    _OPAQUE: [
        "non-special:opaque  ?hi", "non-special:opaque  #hi", "non-special:opaque \t\t  \t#hi",
        "non-special:opaque \t\t  #hi", "non-special:opaque\t\t  \r #hi",
    ],
    _PLAIN: ["..", "\\a", "\\/a", "\\\\a"],
}  # fmt: skip


def test_every_http_case(core: ModuleType, conformance_data: Path) -> None:
    """All http(s) cases of urltestdata.json come out as the standard says."""
    web = [case for case in cases(conformance_data, "urltestdata.json") if is_web(case)]
    failed = [(case["input"], case["base"]) for case in web if href(core, case) != wanted(case)]
    print(f"WPT http(s): {len(web) - len(failed)}/{len(web)}")
    assert failed == []
    assert len(web) > 400


def test_other_schemes(core: ModuleType, conformance_data: Path) -> None:
    """Other schemes differ only in the ways that are known, and each known way is still there."""
    others = [case for case in cases(conformance_data, "urltestdata.json") if not is_web(case)]
    failed = [case["input"] for case in others if href(core, case) != wanted(case)]
    print(f"WPT other schemes: {len(others) - len(failed)}/{len(others)}")
    known = {} if core.__name__.endswith("fallback") else KNOWN
    assert set(failed) == {text for texts in known.values() for text in texts}
    assert len(failed) == (48 if known else 0)


_EMPTY = {"": "an empty host: the case asks the bare algorithm, a URL has no such host"}
_UNICODE = "another Unicode version than the test data's decides what is assigned"
IDNA_KNOWN = {
    ("rust", "IdnaTestV2.json"): _EMPTY
    | dict.fromkeys(["\U0003e8ac。ܩ。쯙5", "\U0003e8ac。ܩ。\u110d\u1173\u11ac5"], _UNICODE),
    ("python", "IdnaTestV2.json"): _EMPTY,
}


@pytest.mark.parametrize("name", ["IdnaTestV2.json", "IdnaTestV2-removed.json", "toascii.json"])
def test_domains(core: ModuleType, conformance_data: Path, name: str) -> None:
    """Domains become ASCII as UTS 46 in the URL Standard's profile says, but for the listed ones."""
    rows = cases(conformance_data, name)
    failed = []
    for case in rows:
        try:
            found = core.parse_url(f"https://{case['input']}/x").host_key
        except core.UrlError:
            found = None
        if found != case["output"]:
            failed.append(case["input"])
    print(f"{name}: {len(rows) - len(failed)}/{len(rows)}")
    implementation = "python" if core.__name__.endswith("fallback") else "rust"
    assert set(map(ascii, failed)) == set(map(ascii, IDNA_KNOWN.get((implementation, name), {})))
