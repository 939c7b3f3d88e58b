"""The tokenizer and the encoding prescan against html5lib-tests."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.conformance

Token = tuple[str, str, list[tuple[str, str]]]
ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})")


def unescape(value: Any) -> Any:
    """Undo the double escaping of some test files, at every depth."""
    if isinstance(value, str):
        return ESCAPE.sub(lambda found: chr(int(found[1], 16)), value)
    if isinstance(value, list):
        return [unescape(item) for item in value]
    if isinstance(value, dict):
        return {unescape(key): unescape(item) for key, item in value.items()}
    return value


def wanted(output: list[Any]) -> list[Token]:
    """The tokens a case asks for, without the comments and doctypes that the page pass steps over."""
    tokens: list[Token] = []
    for kind, *rest in output:
        if kind == "Character":
            before = tokens.pop()[1] if tokens and tokens[-1][0] == "C" else ""
            tokens.append(("C", before + rest[0], []))
        elif kind == "StartTag":
            tokens.append(("s" if len(rest) > 2 and rest[2] else "S", rest[0], list(rest[1].items())))
        elif kind == "EndTag":
            tokens.append(("E", rest[0], []))
    return tokens


def is_utf8(text: str) -> bool:
    """Lone surrogates cannot come out of a decoder, so cases about them do not apply."""
    return not any(0xD800 <= ord(char) < 0xE000 for char in text)


@pytest.mark.parametrize("core", ["rust"], indirect=True)
def test_tokenizer(core: ModuleType, conformance_data: Path) -> None:
    """Every applicable tokenizer case gives the tokens it asks for, from every state it names."""
    count = 0
    for path in sorted((conformance_data / "html5lib-tests" / "tokenizer").glob("*.test")):
        for case in json.loads(path.read_text("utf-8")).get("tests", []):
            if case.get("doubleEscaped"):
                case = unescape(case)
            if not is_utf8(case["input"]):
                continue
            for state in case.get("initialStates", ["Data state"]):
                count += 1
                found = core._tokens(case["input"], state, case.get("lastStartTag", ""))
                assert found == wanted(case["output"]), (path.name, state, case["input"])
    print(f"tokenizer: {count}/{count}")
    assert count > 7000


KNOWN = {b"<!DOCTYPE HTML>\n<script>document.write": "the declaration is written by a script"}


IN_A_TREE = {
    b'<!DOCTYPE HTML>\n<%b type="text/plain"><meta charset="iso8859-2"></%b>'
    % (name, name): "the fallback reads a tree, "
    "which has no <meta> inside a script; the prescan of the standard does not know scripts"
    for name in (b"script", b"style")
}


def test_prescan(core: ModuleType, conformance_data: Path) -> None:
    """Every encoding case gives its encoding, but for those listed; the default there is windows-1252."""
    count = 0
    differ = set()
    for path in sorted((conformance_data / "html5lib-tests" / "encoding").rglob("*.dat")):
        for part in (b"\n" + path.read_bytes()).split(b"\n#data\n")[1:]:
            body, _, rest = part.partition(b"\n#encoding\n")
            encoding = rest.split(b"\n")[0].strip().decode().lower()
            count += 1
            # Nothing declared: our own rule looks at the bytes, the cases' default does not.
            found = core.sniff_encoding(body + b"\xff") or "windows-1252"
            if found != encoding:
                differ.add(next((start for start in KNOWN if body.startswith(start)), body))
    print(f"encoding: {count - len(differ)}/{count}")
    in_tree = set(IN_A_TREE) if core.__name__.endswith("fallback") else set()
    assert differ == set(KNOWN) | in_tree
    assert count == 83
