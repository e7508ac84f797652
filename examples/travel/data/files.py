"""Collects the tables of a sandbox from all the forms in which TravelPlanner publishes them.

A table is one city's restaurants, one date's flights between two cities, and so on. The benchmark
has one database of which every form shows a part, so the first occurrence of a table counts and
later ones are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar, cast

from ....engine.errors import InvalidInput
from .rows import COLUMNS, READERS, BadCell, Cells, Kind, Row, distance_routes
from .tables import Accommodation, Attraction, Flight, Mode, Restaurant, Route, Sandbox

__all__ = ("NOT_AVAILABLE", "TableCollector")

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
            raise InvalidInput(f"{where}: there is no column {column!r} in its first line")
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
