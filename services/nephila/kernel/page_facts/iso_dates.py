"""Dates as pages write them, converted to ISO 8601: machine formats, and day, month and year with the name of a month.

A date stays a date (2026-11-21); a time without a zone stays without one; a time with a zone becomes UTC. Invariant: an
ambiguous date (03/04/2026) is an error, unless the rule names the part that is the day; today's date is never used.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from nephila.kernel.runtime.late_pattern import late_pattern

MAX_CHARS: Final = 200

_MONTHS: Final = """
jan january januar janvier enero gennaio janeiro januari styczeń stycznia января январь januari jänner
feb february februar février fevrier febrero febbraio fevereiro februari luty lutego февраля февраль févr
mar march märz maerz mars marzo março marco maart marzec marca марта март mär mrz
apr april avril abril aprile kwiecień kwietnia апреля апрель avr abr
may mai mayo maggio maio mei maj maja мая май mag
jun june juni juin junio giugno junho czerwiec czerwca июня июнь giu
jul july juli juillet julio luglio julho lipiec lipca июля июль juil lug
aug august août aout agosto augustus sierpień sierpnia августа август ago
sep sept september septembre septiembre settembre setembro wrzesień września сентября сентябрь set
oct okt october oktober octobre octubre ottobre outubro październik października октября октябрь ott out
nov november novembre noviembre novembro listopad listopada ноября ноябрь
dec dez december dezember décembre decembre diciembre dicembre dezembro grudzień grudnia декабря декабрь dic déc
""".strip().splitlines()
_MORE_MONTHS: Final = (
    "ocak oca leden ledna január januára januarja siječnja ianuarie gener січня януари јануар ιανουαρίου "
    "ιανουάριος tammikuuta tammikuu sausio jaanuar janvāris ינואר בינואר يناير جانفي जनवरी มกราคม januar sty",
    "şubat şub únor února február februára februarja veljače februarie febrer лютого февруари фебруар "
    "φεβρουαρίου φεβρουάριος helmikuuta helmikuu vasario veebruar februāris פברואר בפברואר فبراير فيفري شباط "
    "फ़रवरी फरवरी กุมภาพันธ์ lut",
    "mart březen března március marec ožujka martie març березня март μαρτίου μάρτιος maaliskuuta maaliskuu "
    "kovo märts marts maret מרץ במרץ مارس آذار मार्च มีนาคม",
    "nisan nis duben dubna április apríl apríla aprila travnja aprilie квітня април απριλίου απρίλιος "
    "huhtikuuta huhtikuu balandžio aprill aprīlis אפריל באפריל أبريل ابريل أفريل نيسان अप्रैल เมษายน kwi",
    "mayıs květen května május máj mája svibnja maig травня мај μαΐου μάιος toukokuuta toukokuu gegužės maijs "
    "מאי במאי مايو أيار मई พฤษภาคม",
    "haziran haz červen června június jún júna junija lipnja iunie juny червня юни јун ιουνίου ιούνιος "
    "kesäkuuta kesäkuu birželio juuni jūnijs יוני ביוני يونيو يونيه جوان حزيران जून มิถุนายน cze",
    "temmuz tem červenec července július júl júla julija srpnja iulie juliol липня юли јул ιουλίου ιούλιος "
    "heinäkuuta heinäkuu liepos juuli jūlijs יולי ביולי يوليو يوليه جويلية تموز जुलाई กรกฎาคม lip",
    "ağustos ağu srpen srpna augusztus augusta avgusta kolovoza augusti agost agustus серпня август αυγούστου "
    "αύγουστος elokuuta elokuu rugpjūčio augusts אוגוסט באוגוסט أغسطس اغسطس آب अगस्त สิงหาคม sie",
    "eylül eyl září szeptember septembra rujna septembrie setembre вересня септември септембар σεπτεμβρίου "
    "σεπτέμβριος syyskuuta syyskuu rugsėjo septembris ספטמבר בספטמבר سبتمبر أيلول सितंबर सितम्बर กันยายน wrz",
    "ekim eki říjen října október októbra oktobra octombrie жовтня октомври октобар οκτωβρίου οκτώβριος "
    "lokakuuta lokakuu spalio oktoober oktobris אוקטובר באוקטובר أكتوبر اكتوبر अक्टूबर अक्तूबर ตุลาคม paź",
    "kasım kasim kas listopadu novembra studenoga studenog noiembrie листопада ноември новембар νοεμβρίου "
    "νοέμβριος marraskuuta marraskuu lapkričio novembris נובמבר בנובמבר نوفمبر नवंबर नवम्बर พฤศจิกายน lis",
    "aralık aralik ara prosinec prosince decembra prosinca decembrie desembre desember грудня декември "
    "децембар δεκεμβρίου δεκέμβριος joulukuuta joulukuu gruodžio detsember decembris דצמבר בדצמבר ديسمبر "
    "दिसंबर दिसम्बर ธันวาคม gru",
)
"""Turkish, Slavic, Baltic, Finnish, Hungarian, Romanian, Greek, Hebrew, Arabic, Hindi, Thai."""
_MONTH: Final = {
    word: number for table in (_MORE_MONTHS, _MONTHS) for number, words in enumerate(table, 1) for word in words.split()
}
_TWO_WORDS: Final = {
    "كانون الثاني": "يناير", "تشرين الأول": "أكتوبر", "تشرين الثاني": "نوفمبر", "كانون الأول": "ديسمبر",
}  # fmt: skip
_ERAS: Final = {"令和": 2018, "平成": 1988, "昭和": 1925, "民國": 1911, "民国": 1911}
_ERA: Final = late_pattern(r"(令和|平成|昭和|民國|民国)\s?(\d{1,3}|元)\s?年")
_BUDDHIST: Final = range(2443, 2644)
"""Years of the Thai calendar since 1900: 543 more."""
_HALF: Final = late_pattern(
    r"(?:(上午|下午|午前|午後|晚上|오전|오후)\s?(?=\d{1,2}:)|(上午|下午|午前|午後|晚上|오전|오후)?\s?(?=\d{1,2}\s?[時时点點시]))"
    r"(\d{1,2})\s?[:時时点點시](?:\s?(\d{1,2})\s?[分분]?)?"
)
_VIETNAMESE: Final = late_pattern(r"(\d{1,2})\s+tháng\s+(\d{1,2})(?:\s?,|\s+năm)?\s+(\d{4})", re.IGNORECASE)
_BETWEEN: Final = frozenset(("de", "del", "di", "of", "st", "nd", "rd", "th", "er", "the"))
_WORDS: Final = late_pattern(r"(?:[^\W\d_]|[\u0900-\u0903\u093a-\u094f\u0e31\u0e34-\u0e4e])+|\d+")
_ISO: Final = late_pattern(
    r"(?<!\d)\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?"
    r"(?:\s?(?:Z\b|UTC\b|GMT\b|[+-]\d\d(?::?\d\d)?))?(?!\d|\s?[ap]\.?m\b)",
    re.IGNORECASE,
)
_COMPACT: Final = late_pattern(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)?(Z|[+-]\d{4})?)?$")
_YMD: Final = late_pattern(r"(?<!\d)(\d{4})\s?[./年년-]\s?(\d{1,2})\s?[./月월-]\s?(\d{1,2})(?!\d)")
_DMY: Final = late_pattern(r"(?<!\d)(\d{1,2})\s?[./-]\s?(\d{1,2})\s?[./-]\s?(\d{4})(?!\d)")
# An offset is separated by a blank: 10:00-12:00 is a range.
_CLOCK: Final = late_pattern(
    r"(?<![\d:])(\d{1,2}):(\d\d)(?::(\d\d))?(?:\s?([ap]\.?m)\b)?\.?"
    r"(?:\s?(?:(?:UTC|GMT)(?![+-])|(?:\s|UTC|GMT)([+-]\d\d:?\d\d)(?![\w:])))?",
    re.IGNORECASE,
)
_ZULU: Final = late_pattern(r"(?:UTC|GMT)$", re.IGNORECASE)


def iso_date(text: str, formats: list[str] | None = None, day_first: bool | None = None) -> str:
    """The date, or date and time, in a text. Raises ValueError with the reason."""
    text = " ".join(text.split())
    if not text or len(text) > MAX_CHARS:
        raise ValueError("no date in it" if not text else "too long for a date")
    if formats:
        return _by_formats(text, formats)
    if not text.isascii():
        text = _plain(text)
    match = _ISO.search(text)
    if match:
        return _by_iso(match[0])
    compact = _COMPACT.match(text)
    if compact:
        return _by_compact(*compact.groups())
    if re.fullmatch(r"\d{10}(\d{3})?", text):
        return _said(datetime.fromtimestamp(int(text[:10]), UTC), True)
    mail = _by_mail(text)
    if mail:
        return mail
    day = _day(text, day_first)
    clock = _CLOCK.search(text)
    return day.isoformat() if clock is None else _with_clock(day, clock)


def _plain(text: str) -> str:
    """A text with digits of ASCII, without marks of direction; eras as years, and times as 15:30 pm."""
    text = unicodedata.normalize("NFKC", text).replace("\u200e", "").replace("\u200f", "")
    text = "".join(str(unicodedata.digit(char)) if char.isdecimal() else char for char in text)
    for words, month in _TWO_WORDS.items():
        text = text.replace(words, month)
    text = _ERA.sub(lambda match: f"{_ERAS[match[1]] + (1 if match[2] == '元' else int(match[2]))}年", text)
    return _HALF.sub(_clock_of, text)


def _clock_of(match: re.Match[str]) -> str:
    half = match[1] or match[2] or ""
    late = half in ("下午", "午後", "晚上", "오후")
    return f" {match[3]}:{int(match[4] or 0):02d}{' pm' if late else ' am' if half else ''} "


def fault_of_format(form: str) -> str:
    """Why a format of dates is invalid; "" if it is valid."""
    if "%" not in form:
        return "it has no % directives, as in %d.%m.%Y"
    try:
        datetime.strptime("", form)
    except re.error:
        return "a directive comes twice"
    except ValueError as error:
        if "bad directive" in str(error) or "stray" in str(error):
            return f"not as strptime has it: {error}"
    directives = re.findall(r"%(.)", form)
    return "" if {"Y", "y", "G", "c", "x"}.intersection(directives) else "it says no year, and every date has one"


def _by_formats(text: str, formats: list[str]) -> str:
    for form in formats:
        try:
            return _said(datetime.strptime(text, form), any(sign in form for sign in ("%H", "%I", "%X", "%c")))
        except (ValueError, re.error):  # a directive that comes twice
            continue
    raise ValueError(f"not written as {formats[0]}")


def _by_iso(text: str) -> str:
    text = re.sub(r"\s?(?:UTC|GMT|Z)$", "Z", text.upper())
    return _said(datetime.fromisoformat(re.sub(r"\s(?=[+-])", "", text)), True)


def _by_compact(
    year: str, month: str, day: str, hour: str | None, minute: str, second: str | None, zone: str | None
) -> str:
    if hour is None:
        return date(int(year), int(month), int(day)).isoformat()
    return _said(datetime.fromisoformat(f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}{zone or ''}"), True)


def _with_clock(day: date, clock: Any) -> str:
    text = f"{day.isoformat()}T{_time(clock)}"
    zone = clock[5] or ("Z" if _ZULU.search(clock[0]) else "")
    return _said(datetime.fromisoformat(text + zone), True) if zone else text


def _by_mail(text: str) -> str:
    if not re.match(r"(?:[A-Za-z]{3},\s*)?\d{1,2} [A-Za-z]{3} \d{4} \d\d:\d\d", text):
        return ""
    try:
        return _said(parsedate_to_datetime(text), True)
    except (ValueError, TypeError):
        return ""


def _said(instant: datetime, clock: bool) -> str:
    if not clock:
        return instant.date().isoformat()
    if instant.tzinfo is None:
        return instant.isoformat(timespec="seconds")
    return instant.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _day(text: str, day_first: bool | None) -> date:
    match = _YMD.search(text)
    if match:
        return date(int(match[1]), int(match[2]), int(match[3]))
    match = _DMY.search(text)
    if match:
        first, second, year = (int(number) for number in match.groups())
        if day_first is None and "." in match[0]:
            day_first = True  # the month is never first in dates with points
        if day_first is None and first <= 12 and second <= 12 and first != second:
            raise ValueError(f"{match[0]} may be two days; say dayFirst or format")
        day_then_month = day_first if day_first is not None else first > 12
        return date(year, second, first) if day_then_month else date(year, first, second)
    match = _VIETNAMESE.search(text)
    if match:
        return date(int(match[3]), int(match[2]), int(match[1]))
    return _named(text)


def _year(text: str) -> int:
    year = int(text)
    return year - 543 if year in _BUDDHIST else year


def _named(text: str) -> date:
    """The day of a date with a name of a month: 21 November 2026, Nov 21st, 2026, 21. listopada 2026."""
    words: list[str] = _WORDS.findall(text.lower())
    for at, word in enumerate(words):
        month = _MONTH.get(word)
        if month is None:
            continue
        before = next((near for near in reversed(words[max(at - 4, 0) : at]) if near not in _BETWEEN), "")
        after = [near for near in words[at + 1 : at + 5] if near not in _BETWEEN]
        year = next((near for near in after if len(near) == 4 and near.isdecimal()), "")
        if before.isdecimal() and len(before) <= 2 and year:
            return date(_year(year), month, int(before))
        years = [near for near in words[max(at - 3, 0) : at] if len(near) == 4 and near.isdecimal()]
        if years and (days := [near for near in words[max(at - 1, 0) : at + 2] if near.isdecimal() and len(near) <= 2]):
            return date(_year(years[-1]), month, int(days[0]))
        if after and after[0].isdecimal() and len(after[0]) <= 2 and year:
            return date(_year(year), month, int(after[0]))
    raise ValueError("no date in it")


def _time(match: Any) -> str:
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    half = (match[4] or "").lower()
    if half:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{match[0].strip()} is no time of a day")
    return f"{hour:02d}:{minute:02d}:{second:02d}"
