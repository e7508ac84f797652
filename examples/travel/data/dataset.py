"""Loads TravelPlanner's data: task instances with their hidden profiles, and their sandbox."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from ....engine.errors import InvalidInput, malformed
from .rows import COLUMNS, READERS, BadCell, Cells, Kind, Row, distance_routes, number, text, whole
from .tables import (
    Accommodation,
    Attraction,
    Constraints,
    Flight,
    Mode,
    Restaurant,
    Route,
    Sandbox,
    Trip,
)

__all__ = ("Dataset", "DatasetInstance", "load_dataset", "preferences_of", "short_request")

NOT_AVAILABLE = frozenset(
    "|#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None|n/a"
    "|nan|null".split("|")
)
"""Texts of a CSV cell that pandas reads as missing; TravelPlanner drops a row with any of them."""

_TITLE = re.compile(
    r"(?P<table>Attractions|Restaurants|Accommodations) in (?P<city>.+)"
    r"|Flight from (?P<origin>.+) to (?P<destination>.+) on (?P<date>\S+)"
    r"|(?P<mode>Self-driving|Taxi) from (?P<start>.+) to (?P<end>.+)"
)
_ROUTE = re.compile(r"duration: (?P<duration>.+), distance: (?P<distance>.+), cost: (?P<cost>\d+)$")
_NOTHING = re.compile(r"there is no |no valid information|.*, no valid information", re.IGNORECASE)
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\r": "\r"}
_ESCAPED = re.compile("|".join(re.escape(escape) for escape in _ESCAPES))

Key = tuple[str, ...]
_R = TypeVar("_R")


class TableCollector:
    """Collects tables, and makes the sandbox that is their union."""

    def __init__(self) -> None:
        self._tables: dict[Kind, dict[Key, tuple[Row, ...]]] = {kind: {} for kind in COLUMNS}
        self._routes: dict[tuple[str, str, Mode], Route] = {}
        self._states: dict[str, str] = {}

    def add_states(self, states: Mapping[str, str]) -> None:
        """Take in the state of each city."""
        self._states.update(states)

    def add_reference(self, title: str, content: object, where: str) -> None:
        """Take in one entry of an instance's reference information.

        Args:
            title: what it is, as in ``Restaurants in Rockford``.
            content: a table as text of fixed width, a list of its rows, or a sentence.
            where: file, row and column, for the error.

        Raises:
            InvalidInput: it cannot be read.
        """
        named = _TITLE.fullmatch(title)
        where = f"{where}, {title!r}"
        if named is None:
            raise InvalidInput(f"{where}: expected a title such as 'Restaurants in Rockford'")
        if named["mode"]:
            mode: Mode = "taxi" if named["mode"] == "Taxi" else "self-driving"
            route = _route(named["start"], named["end"], mode, content, where)
            self._routes.setdefault((route.origin, route.destination, mode), route)
            return
        kind: Kind = "flights"
        key: Key = (named["origin"], named["destination"], named["date"])
        if named["table"]:
            kind, key = cast("Kind", named["table"].lower()), (named["city"],)
        rows = tuple(_read_all(kind, _cells_of(kind, content, where), where))
        if rows:
            self._tables[kind].setdefault(key, rows)

    def add_database(self, kind: Kind, rows: Iterable[Cells], where: str) -> None:
        """Take in a whole CSV table of TravelPlanner's database, but for its incomplete rows.

        Raises:
            InvalidInput: a row cannot be read.
        """
        complete = (None if _incomplete(cells) else cells for cells in rows)
        tables: dict[Key, list[Row]] = {}
        for row in _read_all(kind, complete, where):
            tables.setdefault(_key(row), []).append(row)
        for key, table in tables.items():
            self._tables[kind].setdefault(key, tuple(table))

    def add_distances(self, rows: Iterable[Cells], where: str) -> None:
        """Take in TravelPlanner's table of distances.

        Raises:
            InvalidInput: a row cannot be read.
        """
        for index, cells in enumerate(rows):
            try:
                for route in distance_routes(cells):
                    key = (route.origin, route.destination, route.mode)
                    self._routes.setdefault(key, route)
            except BadCell as bad:
                raise _malformed(where, index, bad) from bad

    def sandbox(self) -> Sandbox:
        """The union of all collected tables."""
        return Sandbox(
            flights=self._rows("flights", Flight),
            restaurants=self._rows("restaurants", Restaurant),
            accommodations=self._rows("accommodations", Accommodation),
            attractions=self._rows("attractions", Attraction),
            routes=self._routes.values(),
            states=self._states,
        )

    def _rows(self, kind: Kind, struct: type[_R]) -> Iterator[_R]:
        return (row for row in chain(*self._tables[kind].values()) if isinstance(row, struct))


def _key(row: Row) -> Key:
    return (row.origin, row.destination, row.date) if isinstance(row, Flight) else (row.city,)


def _incomplete(cells: Cells) -> bool:
    return any(cell in NOT_AVAILABLE for cell in cells.values())


def _read_all(kind: Kind, rows: Iterable[Cells | None], where: str) -> Iterator[Row]:
    """The rows as structs; None is skipped, yet counts."""
    read = READERS[kind]
    for index, cells in enumerate(rows):
        if cells is None:
            continue
        try:
            yield read(cells)
        except BadCell as bad:
            raise _malformed(where, index, bad) from bad


def _malformed(where: str, index: int, bad: BadCell) -> InvalidInput:
    return InvalidInput(f"{where}, row {index}, column {bad.column!r}: {bad}")


def _cells_of(kind: Kind, content: object, where: str) -> Iterable[Cells]:
    if isinstance(content, list) and all(isinstance(row, Mapping) for row in content):
        return content
    if isinstance(content, str):
        if _NOTHING.match(content):
            return ()
        return _fixed_width(content, COLUMNS[kind], where)
    raise InvalidInput(f"{where}: expected a table, found {type(content).__name__}")


def _fixed_width(table: str, columns: Sequence[str], where: str) -> Iterator[Cells]:
    """Rows of a table whose columns are justified to the right, below their names."""
    header, *lines = table.split("\n")
    starts, ends, end = [], [], 0
    for column in columns:
        at = header.find(column, end)
        if at < 0:
            raise InvalidInput(f"{where}: unknown column {column!r} in the first line")
        starts.append(end)
        end = at + len(column)
        ends.append(end)
    bounds = tuple(zip(columns, starts, ends, strict=True))
    for index, line in enumerate(lines):
        if len(line) != ends[-1]:
            raise InvalidInput(
                f"{where}, row {index}, column {columns[-1]!r}: the row is {len(line)} characters "
                f"long, its header {ends[-1]}, so that no column can be told from the next"
            )
        # Padding is on the left; a space at the end is part of the value.
        yield {column: _unescaped(line[start:end].lstrip()) for column, start, end in bounds}


def _unescaped(cell: str) -> str:
    if "\\" not in cell:
        return cell
    return _ESCAPED.sub(lambda escape: _ESCAPES[escape[0]], cell)


def _route(start: str, end: str, mode: Mode, content: object, where: str) -> Route:
    if isinstance(content, str):
        found = _ROUTE.search(content)
        if found:
            cost = float(found["cost"])
            return Route(start, end, mode, found["duration"], found["distance"], cost)
        if _NOTHING.match(content):
            return Route(start, end, mode, None, None, None)
    raise InvalidInput(
        f"{where}: expected '{mode}, from A to B, duration: ..., distance: ..., cost: ...' or "
        f"'No valid information.', found {content!r}"
    )


# --- loads TravelPlanner's data -------------------------------------------------------------------


_CITIES = "citySet_with_states.txt"
_REFERENCE = "ref_info.jsonl"
_INSTANCE_COLUMNS = (
    "org",
    "dest",
    "days",
    "visiting_city_number",
    "date",
    "people_number",
    "local_constraint",
    "budget",
    "query",
)
_DISTANCE_COLUMNS = ("origin", "destination", "duration", "distance")

# One cell holds all tables of an instance: the csv module's own limit is 128 KiB.
_LONGEST_CELL = 1 << 26


class DatasetInstance(msgspec.Struct, frozen=True, kw_only=True):
    """One task instance.

    Attributes:
        row: its number in the file, from 0.
        trip: the structured request, by which the plan is evaluated.
        request: what the agent gets to know: origin, destination, length and first day.
        query: the whole request in TravelPlanner's words, preferences and all.
        preferences: what only the user knows, one sentence per preference.
        level: TravelPlanner's difficulty, ``easy``, ``medium`` or ``hard``.
    """

    row: int
    trip: Trip
    request: str
    query: str
    preferences: tuple[str, ...]
    level: str


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """Task instances, and the one sandbox that all of them share.

    Attributes:
        instances: in the order of the file; empty if only tables were given.
        sandbox: the union of all tables found.
    """

    instances: tuple[DatasetInstance, ...]
    sandbox: Sandbox


def load_dataset(path: str | Path) -> Dataset:
    """Load instances and tables from a file, or from all files of a directory that hold any.

    Known are, in any mixture: CSV files of instances (``validation_with_hidden_profile.csv`` and
    TravelPlanner's own), ``*ref_info.jsonl``, the CSV tables of TravelPlanner's database
    directory, and ``citySet_with_states.txt``; other files of a directory are left alone. For a
    single file, a list of cities next to it is read too, since no plan can be judged without one.

    Raises:
        InvalidInput: there is no such path, nothing to load, or something malformed; the message
            names file, row (from 0) and column.
    """
    path = Path(path)
    if not path.exists():
        raise InvalidInput(f"no such file or directory: {str(path)!r}")
    files = sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]
    if path.is_file() and (cities := path.with_name(_CITIES)).is_file() and path.name != _CITIES:
        files.append(cities)
    collector = TableCollector()
    instances: tuple[DatasetInstance, ...] = ()
    source: Path | None = None
    # The database is the most complete and exact form of a table, the printed one the least.
    known = [(order, file) for file in files if (order := _order(file)) is not None]
    for order, file in sorted(known):
        match order:
            case 0:
                collector.add_states(_read_cities(file))
            case 1:
                _read_database(file, collector)
            case 2:
                _read_reference(file, collector)
            case _:
                if source is not None:
                    raise InvalidInput(f"both {source} and {file} hold instances; choose one")
                source, instances = file, tuple(_read_instances(file, collector))
    if not known:
        raise InvalidInput(f"{path} holds nothing of TravelPlanner's data that could be read")
    sandbox = collector.sandbox()
    if instances and not sandbox.states:
        raise InvalidInput(f"{path} lacks {_CITIES}, which is needed to judge plans")
    return Dataset(instances=instances, sandbox=sandbox)


def short_request(trip: Trip) -> str:
    """The request for the agent, without people, budget or preferences."""
    return (
        f"Please plan a {trip.days}-day trip from {trip.origin} to {trip.destination}, "
        f"starting on {trip.dates[0]}."
    )


def preferences_of(trip: Trip) -> tuple[str, ...]:
    """The hidden part of a request in plain English, for data that comes without it."""
    wishes = trip.constraints
    people = "one person" if trip.people == 1 else f"{trip.people} people"
    cities = "one city" if trip.cities == 1 else f"{trip.cities} cities"
    told = [f"Travel for {people}", f"Visit {cities}"]
    if trip.budget is not None:
        told.append(f"Budget of ${trip.budget:,.0f} for the entire trip")
    if wishes.cuisine:
        told.append(f"Preference for {', '.join(wishes.cuisine)} cuisine")
    if wishes.house_rule is not None:
        told.append(f"Accommodations must allow {wishes.house_rule}")
    if wishes.room_type is not None:
        told.append(f"Accommodations should be: {wishes.room_type}")
    if wishes.transportation is not None:
        told.append(f"Transportation: {wishes.transportation}")
    return tuple(told)


def _order(file: Path) -> int | None:
    """The kind of a file, as its place in the order of reading; None for an unknown kind."""
    if file.name == _CITIES:
        return 0
    if file.name.endswith(_REFERENCE):
        return 2
    if file.suffix != ".csv":
        return None
    with _rows(file) as (header, _):
        if header.issuperset(_INSTANCE_COLUMNS):
            return 3
        known = (*COLUMNS.values(), _DISTANCE_COLUMNS)
        return 1 if any(header.issuperset(columns) for columns in known) else None


@contextmanager
def _rows(file: Path) -> Iterator[tuple[frozenset[str], Iterator[Cells]]]:
    """The header and the rows of a CSV file."""
    limit = csv.field_size_limit()
    try:
        csv.field_size_limit(max(limit, _LONGEST_CELL))
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            yield frozenset(reader.fieldnames or ()), _whole_rows(reader, file)
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        raise InvalidInput(f"{file} cannot be read as CSV: {error}") from error
    finally:
        csv.field_size_limit(limit)


def _whole_rows(reader: csv.DictReader[str], file: Path) -> Iterator[Cells]:
    for index, cells in enumerate(reader):
        if None in cells:
            raise InvalidInput(f"{file}, row {index}: it has more columns than the header")
        short = next((column for column, cell in cells.items() if cell is None), None)
        if short is not None:
            raise InvalidInput(f"{file}, row {index}, column {short!r}: the row ends before it")
        yield cells


def _read_cities(file: Path) -> Mapping[str, str]:
    states: dict[str, str] = {}
    for index, line in enumerate(_text_of(file).split("\n")):
        city, tab, state = line.rstrip("\r").partition("\t")
        if not line.strip():
            continue
        if not (city and tab and state):
            raise InvalidInput(
                f"{file}, row {index}, column {'state' if city else 'city'!r}: expected a city, a "
                f"tab and a state, found {line!r}"
            )
        states[city] = state
    return states


def _read_database(file: Path, collector: TableCollector) -> None:
    with _rows(file) as (header, rows):
        for kind, columns in COLUMNS.items():
            if header.issuperset(columns):
                collector.add_database(kind, rows, str(file))
                return
        collector.add_distances(rows, str(file))


def _read_reference(file: Path, collector: TableCollector) -> None:
    for index, line in enumerate(_text_of(file).split("\n")):
        if not line.strip():
            continue
        try:
            entries: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(
                f"{file}, row {index}: this is not JSON: {malformed(error)}"
            ) from error
        if not isinstance(entries, dict):
            raise InvalidInput(f"{file}, row {index}: expected a JSON object of tables")
        for title, content in entries.items():
            collector.add_reference(title, content, f"{file}, row {index}")


def _read_instances(file: Path, collector: TableCollector) -> Iterator[DatasetInstance]:
    with _rows(file) as (_, rows):
        for index, cells in enumerate(rows):
            try:
                instance = _instance(index, cells)
                tables = _reference_of(cells)
            except BadCell as bad:
                raise InvalidInput(f"{file}, row {index}, column {bad.column!r}: {bad}") from bad
            for title, content in tables:
                where = f"{file}, row {index}, column 'reference_information'"
                collector.add_reference(title, content, where)
            yield instance


def _instance(index: int, cells: Cells) -> DatasetInstance:
    days = whole(cells, "days", least=1)
    dates = _texts(cells, "date")
    if len(dates) != days:
        raise BadCell("date", f"expected {days} dates, one a day, found {len(dates)}")
    trip = Trip(
        origin=_some_text(cells, "org"),
        destination=_some_text(cells, "dest"),
        days=days,
        cities=whole(cells, "visiting_city_number", least=1),
        dates=dates,
        people=whole(cells, "people_number", least=1),
        budget=number(cells, "budget"),
        constraints=_constraints(cells),
    )
    told = _texts(cells, "preferences") if "preferences" in cells else preferences_of(trip)
    return DatasetInstance(
        row=index,
        trip=trip,
        request=short_request(trip),
        query=text(cells, "query"),
        preferences=told,
        level=text(cells, "level") if "level" in cells else "",
    )


def _constraints(cells: Cells) -> Constraints:
    column = "local_constraint"
    wishes = _literal(cells, column)
    if not isinstance(wishes, dict):
        raise BadCell(column, f"expected a dictionary, found {wishes!r}")
    cuisine = wishes.get("cuisine")
    if cuisine is not None and not _is_texts(cuisine):
        raise BadCell(column, f"expected a list of cuisines or None, found {cuisine!r}")
    named: dict[str, str | None] = {}
    for key in ("house rule", "room type", "transportation"):
        wish = wishes.get(key)
        if not isinstance(wish, str | None):
            raise BadCell(column, f"expected text or None for {key!r}, found {wish!r}")
        named[key.replace(" ", "_")] = wish
    return Constraints(cuisine=None if cuisine is None else tuple(cuisine), **named)


def _reference_of(cells: Cells) -> Iterator[tuple[str, object]]:
    column = "reference_information"
    if column not in cells:
        return iter(())
    entries = _literal(cells, column)
    if not isinstance(entries, list):
        raise BadCell(column, f"expected a list of tables, found {type(entries).__name__}")
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("Description"), str):
            raise BadCell(column, "expected dictionaries with 'Description' and 'Content'")
    return ((entry["Description"], entry.get("Content")) for entry in entries)


def _texts(cells: Cells, column: str) -> tuple[str, ...]:
    value = _literal(cells, column)
    if not _is_texts(value):
        raise BadCell(column, f"expected a list of texts, found {value!r}")
    assert isinstance(value, list | tuple)
    return tuple(value)


def _is_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(part, str) for part in value)


def _some_text(cells: Cells, column: str) -> str:
    value = text(cells, column).strip()
    if not value:
        raise BadCell(column, "is empty")
    return value


def _literal(cells: Cells, column: str) -> object:
    """A cell that is a Python literal: parsed, never evaluated."""
    written = text(cells, column)
    try:
        value: object = ast.literal_eval(written)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise BadCell(column, f"expected a Python literal: {error}") from error
    return value


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (UnicodeDecodeError, OSError) as error:
        raise InvalidInput(f"{file} cannot be read as text: {error}") from error
