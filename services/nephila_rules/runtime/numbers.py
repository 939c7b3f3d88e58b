"""Numbers and prices as people write them: 1,234.50 · 1.234,50 · 1 234,50 · 1'234.50 · .99 · € 19,- · 1,5 Mio. · 2½.

If "." and "," both occur, the last one is the decimal sign. A single one is the decimal sign unless exactly three
digits follow and it can separate thousands. Invariants: a text without digits or with two separate numbers is an error;
separated digits are one number only as thousands (in India, hundreds of thousands); a text that may be two numbers - a
raised digit behind a number, "mil", a glued "m" - is an error. Currencies: `currencies.py`.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from typing import Any, Final

from nephila.kernel.runtime.late_pattern import late_pattern

from nephila_rules.runtime.currencies import MAX_CHARS, SIGN, currency_of

_NUMBER: Final = late_pattern(
    r"(?:\d[\d.,'\u2019\u00a0\u202f\u2009 ]*\d|\d)(?:[eE][-+]?\d{1,3}(?![^\W_]))?|(?<![\w.,])[.,]\d+"
)
_THOUSANDS: Final = late_pattern(r"\d*|\d{1,3}(?:\D\d{3})+|\d{1,2}(?:,\d\d)+,\d{3}")
_BLANKS: Final = late_pattern(r"[\u00a0\u202f\u2009 ]")
_DASHES: Final = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212\ufe58\ufe63\uff0d"), "-")
_MINUS: Final = late_pattern(rf"(?:^|[\s(:;/|])-\s?$|(?:^|[\s(:;/|])-\s?{SIGN}\s?$|{SIGN}\s?-\s?$")
"""Before a number: -5 · - 5 at the start · -$5 · $-5 · € -5."""
_APART: Final = late_pattern(r"[^\s:(;/|]\s+-\s+$")
"""A dash between a word and a number."""
_MINUS_AFTER: Final = late_pattern(rf"-(?:\s*{SIGN})?$")
_POWER_OF_TEN: Final = late_pattern(r"\s?[×x·*]\s?10([⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_RAISED: Final = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_LOWERED: Final = "₀₁₂₃₄₅₆₇₈₉"
_AS_DIGITS: Final = str.maketrans(_RAISED + "⁺⁻", "0123456789+-")
_RAISED_BEHIND: Final = late_pattern(rf"\d[{_RAISED}]")
_CENTS: Final = late_pattern(rf"(?<![\d.,])(\d[\d'\u00a0\u202f ]*)([{_RAISED}]{{2}})(?![{_RAISED}\d.,])")
_NOT_DIGITS: Final = str.maketrans("", "", _RAISED + _LOWERED)
_AREA: Final = late_pattern(r"(?<=[\d\s])((?:[kcdm]?m|ft|yd|in|mi)\.?)\s?\^?[23]\b", re.IGNORECASE)
_FRACTION: Final = late_pattern(r"(\d*)\s?([¼½¾⅕⅖⅗⅘⅛⅜⅝⅞⅐⅑⅒⅓⅔⅙⅚])")
_EXACT: Final = frozenset("¼½¾⅕⅖⅗⅘⅛⅜⅝⅞⅒")

_WORDS: Final = {
    3: (
        "k thousand thousands tsd tausend th mille milliers tys tis тыс тысяч тысяча тысячи тис 千 천 ribu "
        "rb nghìn bin tusen ألف हज़ार "
    ),
    4: "万 萬 만 หมื่น",
    5: "lakh lakhs lac แสน लाख",
    6: (
        "m mio mill mln mn million millions millionen milión millió millones millón milhões milhão "
        "milioni milione milion miliony milionów miljoner miljoen miljoenen miljon millioner milyon млн "
        "миллион миллиона миллионов мільйон juta jt triệu 百万 百萬 백만 مليون ล้าน "
    ),
    7: "crore crores cr करोड़",
    8: "亿 億 억",
    9: (
        "b bn mrd mia mld mlrd md mds billion billions milliard milliards milliarden miliardi miliardo "
        "miliard miliardy miliardów miljarder miljard miljarden milyar млрд миллиард миллиарда "
        "миллиардов мільярд tỷ مليار "
    ),
    12: "trn tn trillion trillions трлн 兆 조",
}
MAGNITUDES: Final = {word: power for power, words in _WORDS.items() for word in words.split()}
"""Word behind a number → power of ten. Languages differ in "billion": the English one counts."""
_AMBIGUOUS: Final = {"mil": "thousand or million", "bilhões": "10⁹ or 10¹²", "billones": "10⁹ or 10¹²"}
_MAGNITUDE: Final = late_pattern(r"([\s-]?)([^\W\d_]+)")


def number(text: str, decimal: str = "") -> int | float:
    """The one number in a text; an int where no decimal part is written. Raises ValueError with the reason."""
    return _number(_plain(text), decimal)


def price(text: str, decimal: str = "", currency: str = "") -> dict[str, Any]:
    """{"amount", "currency"} of a price; the currency is what the text names, else `currency`. Two raised digits behind
    the whole number are its hundredths. Raises ValueError."""
    sign = decimal or "."
    text = _CENTS.sub(lambda match: f"{match[1]}{sign}{match[2].translate(_AS_DIGITS)}", _plain(text))
    return {"amount": _number(text, decimal), "currency": currency_of(text) or currency}


def _plain(text: str) -> str:
    """The text with digits, signs and letters of one kind. Raised and lowered digits stay."""
    text = text.strip()
    if len(text) > MAX_CHARS:
        raise ValueError("too long for a number")
    if text.isascii():
        return text
    return "".join(map(_plain_character, text)).translate(_DASHES)


def _plain_character(character: str) -> str:
    if character.isascii() or character in _RAISED or character in _LOWERED or character in "⁺⁻":
        return character
    if character in "\u066b\u066c\u00b7":
        return {"\u066b": ".", "\u066c": ",", "\u00b7": "."}[character]
    category = unicodedata.category(character)
    if category == "No" and unicodedata.numeric(character, 0.0) % 1:
        return character
    form = unicodedata.normalize("NFKC", character)
    # A sign of a unit, as ㎡: its digits are no number.
    return f" {''.join(letter for letter in form if not letter.isdigit())}" if category == "So" else form


def _number(text: str, decimal: str) -> int | float:
    text = _AREA.sub(r"\1", _POWER_OF_TEN.sub(lambda match: f"e{match[1].translate(_AS_DIGITS)}", text))
    if _RAISED_BEHIND.search(text):
        raise ValueError("a raised digit behind the number: a power or a note")
    if "±" in text:
        raise ValueError("no number of one sign in it")
    text = _FRACTION.sub(_with_fraction, text.translate(_NOT_DIGITS))
    matches = list(_NUMBER.finditer(text))
    if not matches:
        raise ValueError("no number in it")
    if len(matches) > 1:
        raise ValueError("more than one number in it")
    figure = matches[0]
    before, after = text[: figure.start()], text[figure.end() :]
    value = _value(figure[0], decimal)
    power = _power(before, figure[0], after)
    if power:
        scaled = Decimal(repr(value)) * 10**power
        value = int(scaled) if scaled == scaled.to_integral_value() else float(scaled)
    return -value if value and _is_negative(before, figure[0], after) else value


def _with_fraction(match: re.Match[str]) -> str:
    if match[2] not in _EXACT:
        raise ValueError(f"{match[2]} has no exact decimals")
    return f"{int(match[1] or 0) + unicodedata.numeric(match[2])}"


def _power(before: str, digits: str, after: str) -> int:
    """The power of ten that the word behind a number names."""
    unit = _MAGNITUDE.match(after)
    if unit is None:
        return 0
    word = unit[2].lower()
    if word in _AMBIGUOUS:
        raise ValueError(f"{unit[2]!r} may be {_AMBIGUOUS[word]}")
    power = MAGNITUDES.get(word)
    if power is None:
        # Signs of Chinese, Japanese and Korean stand before the unit without a blank: 3万円.
        power = MAGNITUDES.get(word[:2]) or MAGNITUDES.get(word[:1]) if word[:1] > "\u2e80" else None
    if word not in ("k", "m", "b") or not power:
        return power or 0
    has_currency = bool(currency_of(f"{before} {after[unit.end() :]}"))
    if unit[2] == "m" and not has_currency:
        if unit[1]:
            return 0  # metres
        raise ValueError("'m' may be million or metre")
    if unit[2] in ("b", "B") and unit[1] and not has_currency:
        raise ValueError(f"{unit[2]!r} may be billion or bytes")
    return power


def _is_negative(before: str, digits: str, after: str) -> bool:
    if before.endswith("-") or before.rstrip().endswith("-") or _MINUS.search(before):
        if _APART.search(before):
            return False
        return _MINUS.search(before) is not None
    if _MINUS_AFTER.match(after.strip()):
        # 19,- and 19.- are whole prices; 12.50- is what accountants write.
        if not after.startswith("-") or not re.search(r"[.,]\d\d$", digits):
            raise ValueError("a minus behind the number")
        return True
    return False


def _value(text: str, decimal: str) -> int | float:
    digits, _, exponent = text.lower().partition("e")
    sign_of_decimals = decimal or _decimal_of(_BLANKS.sub(" ", digits))
    whole, _, part = (
        digits.rpartition(sign_of_decimals) if sign_of_decimals and sign_of_decimals in digits else (digits, "", "")
    )
    if not _THOUSANDS.fullmatch(whole) or not re.fullmatch(r"\d*", part):
        raise ValueError("more than one number in it")
    whole = re.sub(r"\D", "", whole)
    if exponent:
        return float(f"{whole or 0}.{part or 0}e{exponent}")
    return float(f"{whole or 0}.{part}") if part else int(whole or 0)


def _decimal_of(digits: str) -> str:
    """The decimal sign by the look of it, "" when there is none."""
    points, commas = digits.count("."), digits.count(",")
    if points and commas:
        return "." if digits.rfind(".") > digits.rfind(",") else ","
    sign = "." if points else ","
    if points + commas != 1:
        return ""
    whole, _, part = digits.partition(sign)
    # 1.234 and 1,234 are thousands in one country and thousandths in another: money and counts are far more common.
    return "" if len(part) == 3 and whole.strip(" ") not in ("", "0") and len(whole) <= 3 else sign
