"""The currency that a price names: by its code, by a sign with the letters of its country, by a sign or a word.

Invariant: a code in the text decides, not the shared sign beside it; two different codes are an error.
"""

from __future__ import annotations

import re
from typing import Final

from nephila.kernel.runtime.late_pattern import late_pattern

MAX_CHARS: Final = 200
_SIGNS: Final = "$€£¥₹₽₩₺₴₪฿₫₱₦₡₲₵₸₮₼₾₭₨֏៛円元圓원"
SIGN: Final = rf"(?:[A-Za-z]{{0,3}}\s?[{_SIGNS}]|[A-Z]{{3}})"
"""Pattern of a sign with its letters, or of a code."""

_NAMES: Final = {
    "€": "EUR", "£": "GBP", "¥": "JPY", "円": "JPY", "元": "CNY", "人民币": "CNY", "rmb": "CNY", "₹": "INR",
    "₽": "RUB", "₩": "KRW", "원": "KRW", "₺": "TRY", "tl": "TRY", "₴": "UAH", "грн": "UAH", "₪": "ILS", "฿": "THB",
    "บาท": "THB", "₫": "VND", "đ": "VND", "₱": "PHP", "₦": "NGN", "₡": "CRC", "₲": "PYG", "₵": "GHS", "₸": "KZT",
    "₮": "MNT", "₼": "AZN", "₾": "GEL", "₭": "LAK", "֏": "AMD", "៛": "KHR", "zł": "PLN", "kč": "CZK", "ft": "HUF",
    "lei": "RON", "руб": "RUB", "лв": "BGN", "rp": "IDR", "rm": "MYR", "sfr": "CHF", "euro": "EUR", "euros": "EUR",
    "$": "USD", "kr": "SEK", "rs": "INR",
}  # fmt: skip
"""Signs and words of currencies and their ISO 4217 codes; where a sign is shared, the largest user's."""
_DOLLARS: Final = {
    "us": "USD", "u": "USD", "a": "AUD", "au": "AUD", "c": "CAD", "ca": "CAD", "can": "CAD", "nz": "NZD", "hk": "HKD",
    "s": "SGD", "sg": "SGD", "nt": "TWD", "mx": "MXN", "mex": "MXN", "r": "BRL", "rd": "DOP", "j": "JMD", "tt": "TTD",
    "bz": "BZD", "fj": "FJD", "ar": "ARS", "cl": "CLP", "col": "COP",
}  # fmt: skip
_YENS: Final = {"cn": "CNY", "jp": "JPY"}
_CODES: Final = frozenset(
    """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP
    CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR
    ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT
    MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD
    SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND
    VUV WST XAF XCD XOF XPF YER ZAR ZMW
    """.split()  # noqa: SIM905 - a table of words
)
_WORD_LIKE: Final = frozenset(
    """
    ALL BAM COP CUP GEL GIP LAK MAD MOP NAD PAB PEN RON SAR SCR SOS TOP TRY
    """.split()  # noqa: SIM905 - a table of words
)
"""Codes that are words or names, too: they count in capitals beside the number alone."""
_WORD: Final = late_pattern(r"[^\W\d_]+")
_BESIDE: Final = late_pattern(
    rf"\b([A-Z]{{3}})[\s:]*[{_SIGNS}]?[\s+-]*(?=[.,]?\d)|(?<=[\d.,'-])\s*[{_SIGNS}]?\s*([A-Z]{{3}})\b"
)
_BEFORE: Final = late_pattern(r"(?<![^\W\d_])([A-Za-z]{1,3})\s?([$¥])")
_AFTER: Final = late_pattern(r"([$¥])\s?([A-Za-z]{2,3})(?![^\W\d_])")


def currency_of(text: str) -> str:
    """The ISO 4217 code of the currency that a text names; "" for none. Raises ValueError for two codes."""
    text = text[:MAX_CHARS]
    beside = {code for pair in _BESIDE.findall(text) for code in pair if code in _CODES}
    words = _WORD.findall(text)
    upper = {word.upper() for word in words}
    codes = beside or {code for code in upper & _CODES if code not in _WORD_LIKE}
    if len(codes) > 1:
        raise ValueError(f"more than one currency in it: {', '.join(sorted(codes))}")
    if codes:
        return str(codes.pop())
    for letters, sign in (*_BEFORE.findall(text), *(pair[::-1] for pair in _AFTER.findall(text))):
        code = (_DOLLARS if sign == "$" else _YENS).get(letters.lower())
        if code:
            return code
    for name in (*re.findall(f"[{_SIGNS}]", text), *words):
        code = _NAMES.get(name.lower())
        if code:
            return code
    return ""
