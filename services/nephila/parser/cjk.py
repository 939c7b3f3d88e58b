"""Chinese, Japanese or Korean double-byte text told by its structure: which bytes pair, and in which rows they fall.

Three facts decide, each counted over a sample: double-byte text hardly ever breaks its own pairing (single-byte words
of odd length do, every other time); running text uses its standard's row of common characters; Japanese has kana.
Invariant: "" unless all of that speaks for one encoding; the time is that of a few `bytes` scans of the sample.
"""

from __future__ import annotations

import re
from typing import Final

MIN_PAIRS: Final = 4
"""Fewer pairs say nothing."""
MAX_BROKEN: Final = 0.02
"""Share of undecodable places in real double-byte text: cut words, a stray byte."""
MIN_COMMON: Final = 0.6
"""Share of pairs that lie in the rows of common characters (measured: 0.75-0.98 in running text)."""
MIN_KANA: Final = 0.25
"""Share of kana in Japanese text (measured: 0.35-0.7)."""

_HIGH_PAIR: Final = re.compile(rb"[\xa1-\xfe][\xa1-\xfe]")
_KANA: Final = re.compile("[\u3041-\u30fe]")
_HAN: Final = re.compile("[\u3041-\u30fe\u4e00-\u9fff]")
_BIG5_COMMON: Final = re.compile(rb"[\xa4-\xc6][\x40-\x7e\xa1-\xfe]|[\xa1-\xa3][\x40-\x7e\xa1-\xfe]")
_BIG5_PAIR: Final = re.compile(rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]")


def double_byte(sample: bytes) -> str:
    """WHATWG name of the double-byte encoding of `sample` (words with non-ASCII bytes, no markup), or ""."""
    return _euc(sample) or _with_low_trails(sample)


def _euc(sample: bytes) -> str:
    """EUC-KR, EUC-JP and GBK write both bytes of a common character above 0xA0."""
    pairs = _HIGH_PAIR.findall(sample)
    high = len(sample) - len(sample.translate(None, bytes(range(0x80, 0x100))))
    if len(pairs) < MIN_PAIRS or 2 * len(pairs) < 0.9 * high:
        return ""
    leads = [pair[0] for pair in pairs]
    letters = [lead for lead in leads if lead >= 0xA4]
    if not letters:
        return ""
    kana = sum(lead in (0xA4, 0xA5) for lead in letters) / len(letters)
    if kana >= MIN_KANA:
        return "euc-jp" if _broken(sample, "euc_jp") <= MAX_BROKEN else ""
    if _broken(sample, "gb18030") > MAX_BROKEN:
        return ""
    if sum(0xB0 <= lead <= 0xC8 for lead in letters) / len(letters) >= 0.9:
        return "euc-kr"
    common = sum(0xB0 <= lead <= 0xD7 for lead in letters) / len(letters)
    return "gbk" if common >= MIN_COMMON else ""


def _with_low_trails(sample: bytes) -> str:
    """Shift_JIS and Big5 use ASCII bytes as second bytes."""
    if _broken(sample, "cp932") <= MAX_BROKEN:
        text = sample.decode("cp932", "ignore")
        han = len(_HAN.findall(text))
        if han >= MIN_PAIRS and len(_KANA.findall(text)) >= MIN_KANA * han and 3 * han >= len(sample) / 2:
            return "shift_jis"
    if _broken(sample, "big5") <= MAX_BROKEN:
        pairs = len(_BIG5_PAIR.findall(sample))
        common = len(_BIG5_COMMON.findall(sample))
        if pairs >= MIN_PAIRS and common >= MIN_COMMON * pairs and 4 * pairs >= len(sample):
            return "big5"
    return ""


def _broken(sample: bytes, codec: str) -> float:
    """Undecodable places as a share of the characters."""
    text = sample.decode(codec, "replace")
    return text.count("\ufffd") / max(1, len(text))
