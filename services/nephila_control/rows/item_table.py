"""Items as a table for screens: pages of rows with filters on a field, and sorted by a field. Read-only.

Invariant: a query looks at no more than `LOOKED_AT` items, however many there are, and says where it stopped. Filters
and order are evaluated here, not by the database: nephila.db and PostgreSQL have other rules for values of JSON.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple

import msgspec
from nephila.kernel.runtime.errors import UNREADABLE
from nephila.storage.ledgers.read_connection import NoTables, ReadConnection, only_jobs, open_for_reading
from nephila.storage.source import Source

from nephila_control.rows.patterns import contains, pattern

LOOKED_AT: Final = 20_000
"""Items of one query with a filter or an order: some 100 ms."""
Test = Literal["", "contains", "is", "not", "empty", "filled", "above", "below"]
_Key = tuple[str, str, str, int]
_FIRST: Final[_Key] = ("", "", "", -1)
_NOTHING: Final = object()


class FieldTest(NamedTuple):
    """A comparison of one field."""

    field: str
    """Dotted name."""
    test: Test
    value: str = ""


class Wanted(NamedTuple):
    """The selection and order of items."""

    jobs: Collection[str] | None = None
    """Items of these; None: of all."""
    rule: str = ""
    search: str = ""
    """Part of the data; letters of ASCII in any case."""
    field: str = ""
    """Dotted name of a field that `test` looks at."""
    test: Test = ""
    value: str = ""
    where: tuple[FieldTest, ...] = ()
    """Further comparisons; all of them have to hold."""
    sort: str = ""
    """Dotted name of a field, with - before it for the largest first; empty: the order of the key."""

    @property
    def in_python(self) -> bool:
        """Whether data have to be read for the choice."""
        return bool(self.sort or self.tests)

    @property
    def tests(self) -> tuple[FieldTest, ...]:
        first = (FieldTest(self.field, self.test, self.value),) if self.field and self.test else ()
        return first + self.where


class FoundItem(NamedTuple):
    """A row of the table `items`, with the URL of its page."""

    job: str
    url_key: str
    rule: str
    ordinal: int
    rule_version: int
    data: str
    url: str


class FoundItems(NamedTuple):
    """Some items."""

    items: list[FoundItem]
    next: str
    """Pass it as `after` for more; empty: these were the last."""
    complete: bool = True
    """False: more items than were looked at; an order is that of the first ones."""


def items(source: Source, selection: Wanted, *, after: str = "", limit: int = 50) -> FoundItems:
    """Items behind a key, in its order: job, page, rule, number; or in the order of a field. Raises `ValueError` for an
    `after` that is of no answer."""
    skip, start = (_skip(after), _FIRST) if selection.sort else (0, _key_of(after))
    try:
        with open_for_reading(source) as connection:
            if selection.sort:
                return _sorted(connection, selection, skip, limit)
            return _in_order(connection, selection, start, limit)
    except NoTables:
        return FoundItems([], "")


def _skip(after: str) -> int:
    if not after:
        return 0
    if not (after.isascii() and after.isdecimal() and len(after) < 9):
        raise ValueError(after)
    return int(after)


def _key_of(after: str) -> _Key:
    if not after:
        return _FIRST
    key = json.loads(after)
    if not isinstance(key, list) or [type(part) for part in key] != [str, str, str, int]:
        raise ValueError(after)
    return key[0], key[1], key[2], key[3]


def _in_order(connection: ReadConnection, selection: Wanted, start: _Key, limit: int) -> FoundItems:
    most = LOOKED_AT if selection.rule or selection.search or selection.in_python else limit
    window, tests = _Window(connection, selection, start, most), selection.tests
    rows = []
    for row in window.rows(0 if selection.in_python else limit):
        if _fits(tests, row[5]):
            rows.append(row)
            if len(rows) == limit:
                break
    if len(rows) == limit:
        last: tuple[Any, ...] | None = rows[-1][:4]
    else:
        last = window.end()
    key = json.dumps(list(last), ensure_ascii=False) if last is not None else ""
    return FoundItems(_with_urls(connection, rows), key)


def _sorted(connection: ReadConnection, selection: Wanted, skip: int, limit: int) -> FoundItems:
    down = selection.sort.startswith("-")
    name = selection.sort.removeprefix("-")
    window, tests = _Window(connection, selection, _FIRST, LOOKED_AT), selection.tests
    filled: list[tuple[tuple[int, float, str], Any]] = []
    empty: list[Any] = []
    read = object_of if tests else _reader(name)
    for row in window.rows():
        data = read(row[5])
        if not tests or _fits_object(tests, data):
            key = _order(field_of(data, name))
            filled.append((key, row)) if key is not None else empty.append(row)
    filled.sort(key=itemgetter(0), reverse=down)
    ordered = [*(row for _, row in filled), *empty]
    page = ordered[skip : skip + limit]
    following = str(skip + limit) if len(ordered) > skip + limit else ""
    return FoundItems(_with_urls(connection, page), following, window.end() is None)


class _Window:
    """The next `most` items behind a key; the rule and the search choose among them."""

    def __init__(self, connection: ReadConnection, selection: Wanted, start: _Key, most: int) -> None:
        self._connection = connection
        # The key begins with the job: of one job, the walk begins at its first item and ends at its last one.
        only, named = only_jobs("job", selection.jobs)
        # What a query reads, without its columns and its limit.
        self._walk = (
            f"FROM items WHERE (job, url_key, rule, ordinal) > (:job, :key, :after_rule, :ordinal){only}"
            " ORDER BY job, url_key, rule, ordinal"
        )
        self._values: dict[str, Any] = {
            **dict(zip(("job", "key", "after_rule", "ordinal"), start, strict=True)),
            **named,
            "rule": selection.rule,
            "most": most,
        }
        terms = (
            " AND i.rule = :rule" if selection.rule else "",
            f" AND {contains('i.data')}" if selection.search else "",
        )
        self._where = "".join(terms)
        if selection.search:
            self._values["part"] = pattern(selection.search)

    def rows(self, limit: int = 0) -> Iterator[Any]:
        """The chosen items, the first `limit` or all."""
        query = f"SELECT job, url_key, rule, ordinal, rule_version, data {self._walk} LIMIT :most"
        values = {**self._values, "limit": limit}
        if self._where:  # this sorts all of them once more, so it takes as long again
            query = (
                f"SELECT i.job, i.url_key, i.rule, i.ordinal, i.rule_version, i.data FROM ({query}) AS i"
                f" WHERE 1 = 1{self._where} ORDER BY i.job, i.url_key, i.rule, i.ordinal"
                f"{' LIMIT :limit' if limit else ''}"
            )
        elif limit:
            values["most"] = min(limit, self._values["most"])
        return iter(self._connection.execute(query, values))

    def end(self) -> tuple[Any, ...] | None:
        """The key of the last item that was looked at; None when no further one is there."""
        query = f"SELECT job, url_key, rule, ordinal {self._walk} LIMIT 1 OFFSET :before"
        values = {**self._values, "before": self._values["most"] - 1}
        key: tuple[Any, ...] | None = self._connection.execute(query, values).fetchone()
        return key


def data_of(source: Source, key: _Key) -> Mapping[str, Any] | None:
    """Data of one item: job, page, rule, number."""
    query = "SELECT data FROM items WHERE job = :job AND url_key = :key AND rule = :rule AND ordinal = :ordinal"
    try:
        with open_for_reading(source) as connection:
            row = connection.execute(query, dict(zip(("job", "key", "rule", "ordinal"), key, strict=True))).fetchone()
            return object_of(row[0]) if row is not None else None
    except NoTables:
        return None


def chosen(connection: ReadConnection, selection: Wanted, most: int) -> tuple[list[Mapping[str, Any]], bool]:
    """Data of the chosen items among the first `most`, and whether these were all."""
    window, tests = _Window(connection, selection, _FIRST, most), selection.tests
    data = (object_of(row[5]) for row in window.rows())
    return [item for item in data if _fits_object(tests, item)], window.end() is None


def _with_urls(connection: ReadConnection, rows: list[Any]) -> list[FoundItem]:
    """Items whose page has a row."""
    query = "SELECT url FROM pages WHERE job = :job AND url_key = :key"
    urls: dict[tuple[str, str], Any] = {}
    for job, key, *_ in rows:
        if (job, key) not in urls:
            urls[job, key] = connection.execute(query, {"job": job, "key": key}).fetchone()
    return [FoundItem._make((*row, urls[row[0], row[1]][0])) for row in rows if urls[row[0], row[1]]]


# ---- values


def _fits(tests: Sequence[FieldTest], data: str) -> bool:
    return not tests or _fits_object(tests, object_of(data))


def _fits_object(tests: Sequence[FieldTest], data: Mapping[str, Any]) -> bool:
    return all(_holds(test, field_of(data, test.field)) for test in tests)


def _holds(test: FieldTest, value: Any) -> bool:
    if test.test in ("empty", "filled"):
        return (value in (None, "", [], {})) == (test.test == "empty")
    if test.test == "contains":
        return test.value.lower() in _text(value).lower()
    if test.test in ("is", "not"):
        return (_text(value) == test.value) == (test.test == "is")
    number, limit = number_of(value), number_of(test.value)
    if number is None or limit is None:
        return False
    return number > limit if test.test == "above" else number < limit


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def object_of(data: str) -> Mapping[str, Any]:
    try:
        content = msgspec.json.decode(data)
    except UNREADABLE:
        return {"data": data}
    return content if isinstance(content, dict) else {"data": content}


def _reader(name: str) -> Callable[[str], Mapping[str, Any]]:
    """Reads one field of an item, in half the time of `object_of`; the others are skipped."""
    field: Any = msgspec.defstruct("OneField", [("value", Any, _NOTHING)], rename={"value": name}, gc=False)
    decode = msgspec.json.Decoder(field).decode

    def read(data: str) -> Mapping[str, Any]:
        try:
            value = decode(data).value
        except UNREADABLE:
            return object_of(data)
        # A dotted name may be of a field inside another one.
        return object_of(data) if value is _NOTHING and "." in name else {name: value}

    return read


def field_of(data: Mapping[str, Any], name: str) -> Any:
    """The value of a dotted name, as the columns of the table are named; None without one."""
    value: Any = data.get(name, _NOTHING)
    if value is not _NOTHING:
        return value
    head, dot, rest = name.partition(".")
    while dot:
        inner = data.get(head)
        if isinstance(inner, dict) and (value := field_of(inner, rest)) is not None:
            return value
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return None


def number_of(value: Any) -> float | None:
    if isinstance(value, str) and len(value) <= 40:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if abs(number) < float("inf") else None


def is_number(text: str) -> bool:
    """Whether `above` and `below` can compare with it."""
    return number_of(text) is not None


def _order(value: Any) -> tuple[int, float, str] | None:
    """Numbers, then texts; None for an empty value, which is last in both directions."""
    if value in (None, "", [], {}):
        return None
    number = number_of(value)
    if number is not None:
        return 0, number, ""
    return 1, 0.0, (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:1000].casefold()


def rules_of_items(source: Source, jobs: Collection[str] | None = None) -> list[str]:
    """Names of the rules that have items, of some jobs or of all, by a walk of `LOOKED_AT` items at most."""
    try:
        with open_for_reading(source) as connection:
            only, named = only_jobs("job", jobs)
            walk = f"SELECT rule FROM items WHERE 1 = 1{only} LIMIT {LOOKED_AT}"
            query = f"SELECT DISTINCT rule FROM ({walk}) AS i ORDER BY rule"
            return [rule for (rule,) in connection.execute(query, named).fetchall()]
    except NoTables:
        return []
