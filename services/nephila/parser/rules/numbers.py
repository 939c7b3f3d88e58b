"""Numbers and prices as people write them: 1,234.50 · 1.234,50 · 1 234,50 · 1'234.50 · € 19,- · 12.000 Ft.

If "." and "," both occur, the last one is the decimal sign. A single one is the decimal sign unless exactly three
digits follow and it can separate thousands. Invariants: a text without digits or with two separate numbers is an error;
separated digits are one number only as thousands (in India, hundreds of thousands).
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

from nephila.kernel.runtime.late_pattern import late_pattern

MAX_CHARS: Final = 200
_NUMBER: Final = late_pattern(r"[-+\u2212]?\s?(?:\d[\d.,'\u2019\u00a0\u202f\u2009 ]*\d|\d)(?:[eE][-+]?\d{1,3})?")
_THOUSANDS: Final = late_pattern(r"\d*|\d{1,3}(?:\D\d{3})+|\d{1,2}(?:,\d\d)+,\d{3}")
_MINUS: Final = late_pattern(r"(?<![\w-])-\s?(?:[A-Za-z]{0,3}[$€£¥₹₽₩₺₴₪฿₫₱₦])\s?\d")
"""Before the sign of a currency: -$5."""
_BLANKS: Final = late_pattern(r"[\u00a0\u202f\u2009 ]")

SYMBOLS: Final = {
    "€": "EUR", "£": "GBP", "¥": "JPY", "円": "JPY", "元": "CNY", "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY",
    "₴": "UAH", "₪": "ILS", "฿": "THB", "₫": "VND", "₱": "PHP", "₦": "NGN", "zł": "PLN", "kč": "CZK", "ft": "HUF",
    "руб": "RUB", "лв": "BGN", "us$": "USD", "a$": "AUD", "au$": "AUD", "c$": "CAD", "ca$": "CAD", "r$": "BRL",
    "nz$": "NZD", "hk$": "HKD", "s$": "SGD", "nt$": "TWD", "mx$": "MXN", "$": "USD", "chf": "CHF", "kr": "SEK",
}  # fmt: skip
"""Signs of currencies and their ISO 4217 codes; where a sign is shared, the largest user's."""
_CODES: Final = frozenset(
    """
    AED ARS AUD BGN BHD BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY KRW KWD MAD MXN MYR NGN
    NOK NZD PEN PHP PKR PLN QAR RON RSD RUB SAR SEK SGD THB TRY TWD UAH USD UYU VND ZAR
    """.split()  # noqa: SIM905 - a table of words
)
_WORD: Final = late_pattern(r"(?:[A-Za-z]{1,3})?[$€£¥₹₽₩₺₴₪฿₫₱₦円元]|[^\W\d_]+")


def number(text: str, decimal: str = "") -> int | float:
    """The one number in a text; an int where no decimal part is written. Raises ValueError with the reason."""
    text = text.strip()
    if len(text) > MAX_CHARS:
        raise ValueError("too long for a number")
    text = unicodedata.normalize("NFKC", text).replace("\u2212", "-")
    found = _NUMBER.findall(text)
    if not found:
        raise ValueError("no number in it")
    if len(found) > 1:
        raise ValueError("more than one number in it")
    value = _value(found[0], decimal)
    return -value if value > 0 and _MINUS.search(text) else value


def price(text: str, decimal: str = "", currency: str = "") -> dict[str, Any]:
    """{"amount", "currency"} of a price; the currency is what the text names, else `currency`. Raises ValueError."""
    return {"amount": number(text, decimal), "currency": _currency(text) or currency}


def _value(text: str, decimal: str) -> int | float:
    sign = -1 if text[0] == "-" else 1
    text = text.lstrip("+- ")
    digits, _, exponent = text.lower().partition("e")
    sign_of_decimals = decimal or _decimal_of(_BLANKS.sub(" ", digits))
    whole, _, part = (
        digits.rpartition(sign_of_decimals) if sign_of_decimals and sign_of_decimals in digits else (digits, "", "")
    )
    if not _THOUSANDS.fullmatch(whole) or not re.fullmatch(r"\d*", part):
        raise ValueError("more than one number in it")
    whole = re.sub(r"\D", "", whole)
    if exponent:
        return sign * float(f"{whole or 0}.{part or 0}e{exponent}")
    return sign * float(f"{whole or 0}.{part}") if part else sign * int(whole or 0)


def _decimal_of(digits: str) -> str:
    """The decimal sign by the look of it, "" when there is none."""
    points, commas = digits.count("."), digits.count(",")
    if points and commas:
        return "." if digits.rfind(".") > digits.rfind(",") else ","
    one = "." if points else ","
    if points + commas != 1:
        return ""
    whole, _, part = digits.partition(one)
    # 1.234 and 1,234 are thousands in one country and thousandths in another: money and counts are far more common.
    return "" if len(part) == 3 and whole.strip(" ") not in ("", "0") and len(whole) <= 3 else one


def _currency(text: str) -> str:
    for word in _WORD.findall(text[:MAX_CHARS]):
        if word.upper() in _CODES:
            return str(word.upper())
        code = SYMBOLS.get(word.lower()) or SYMBOLS.get(word[-1])
        if code:
            return code
    return ""
