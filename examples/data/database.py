"""The tables of a survey in SQLite, in memory, and read only: limits on rows, steps and functions.

A user who can write SQL can also write queries that never end, fill the memory, or differ from run to
run. So statements are authorized word by word, and stopped after a number of steps.
"""

from __future__ import annotations

import sqlite3
from threading import Lock
from typing import Final, TypeAlias, final
from weakref import finalize

import msgspec

from ...engine.errors import InvalidInput
from .truth import Tables

__all__ = ("MOST_ROWS", "Cell", "Database", "Selected")

Cell: TypeAlias = str | int | float | None

MOST_ROWS: Final = 80
"""Rows that a query gives at most."""

_MOST_STEPS = 2_000_000  # of SQLite's virtual machine; a pass over all ratings takes some 30,000
_STRIDE = 1_000  # steps between two looks at the count
_LONGEST = 4_000  # characters of a statement
_DIGITS = 4  # of numbers in results, so that they are alike on every machine

_STARTS: Final = ("SELECT", "WITH", "VALUES")
_FUNCTIONS: Final = frozenset(
    "abs avg coalesce count dense_rank first_value glob group_concat ifnull iif instr lag last_value "
    "lead length like lower ltrim max min ntile nullif rank round row_number rtrim sign sqrt "
    "substr substring sum total trim typeof upper".split()
)

_CREATE = """
CREATE TABLE people (id INTEGER PRIMARY KEY, region TEXT, age INTEGER, channel TEXT, wave TEXT,
    role TEXT);
CREATE TABLE ratings (person INTEGER, product TEXT, rating INTEGER);
CREATE TABLE prices (store INTEGER, site TEXT, region TEXT, product TEXT, price REAL);
"""


class Selected(msgspec.Struct, frozen=True):
    """The result of a query: names of columns, rows, and whether there were more."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: bool = False


@final
class Database:
    """The tables of one survey. It may be asked from any thread, one at a time.

    Args:
        tables: its content; stored at the first query.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._connection: sqlite3.Connection | None = None
        self._lock = Lock()

    def select(self, sql: str, limit: int = MOST_ROWS) -> Selected:
        """The rows of one SELECT statement.

        Args:
            sql: the statement.
            limit: rows at most.

        Raises:
            InvalidInput: it is something else than one SELECT, has an error, uses what is not
                allowed, or takes too long.
        """
        if len(sql) > _LONGEST:
            raise InvalidInput(f"the query has {len(sql)} characters; {_LONGEST} are allowed")
        if sql.split(maxsplit=1)[:1] and sql.split(maxsplit=1)[0].upper() not in _STARTS:
            raise InvalidInput("write one SELECT statement: the tables can only be read")
        with self._lock:
            connection = self._open()
            steps = _Steps()
            connection.set_progress_handler(steps.count, _STRIDE)
            try:
                cursor = connection.execute(sql)
                if cursor.description is None:  # an empty text, or a comment
                    raise InvalidInput("that is not a query: write one SELECT statement")
                columns = tuple(column[0] for column in cursor.description)
                rows = cursor.fetchmany(limit + 1)
                cursor.close()
            except (sqlite3.Error, sqlite3.Warning) as error:
                raise InvalidInput(_explained(error, spent=steps.spent)) from None
        shown = tuple(tuple(_plain(cell) for cell in row) for row in rows[:limit])
        return Selected(columns, shown, len(rows) > limit)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            made = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            finalize(self, made.close)  # Python 3.13 warns of one that is left open
            made.executescript(_CREATE)
            made.execute("BEGIN")
            made.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", self._tables.people)
            made.executemany("INSERT INTO ratings VALUES (?, ?, ?)", self._tables.ratings)
            made.executemany("INSERT INTO prices VALUES (?, ?, ?, ?, ?)", self._tables.prices)
            made.execute("COMMIT")
            made.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 200_000)
            made.set_authorizer(_authorize)
            self._connection = made
        return self._connection


@final
class _Steps:
    """Counts the steps of a statement, and stops it."""

    def __init__(self) -> None:
        self.taken = 0

    @property
    def spent(self) -> bool:
        """Whether they are used up."""
        return self.taken >= _MOST_STEPS

    def count(self) -> int:
        """Called at regular intervals of steps; returning 1 stops the statement."""
        self.taken += _STRIDE
        return int(self.spent)


def _authorize(
    action: int, first: str | None, second: str | None, _database: str | None, _by: str | None
) -> int:
    """Allows reading the three tables, and functions that do no harm."""
    if action == sqlite3.SQLITE_SELECT:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_READ and not (first or "").startswith(("sqlite_", "pragma_")):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _explained(error: Exception, *, spent: bool) -> str:
    text = str(error)
    if spent:
        return f"the query was stopped after {_MOST_STEPS:,} steps: make it simpler"
    if "not authorized" in text or "prohibited" in text:
        return (
            f"{text}: only SELECT on the tables people, ratings and prices is allowed, with plain "
            "functions such as AVG, COUNT and ROUND"
        )
    if "one statement" in text:
        return "write one SELECT statement at a time"
    return f"SQLite cannot run this: {text}"


def _plain(cell: object) -> Cell:
    if isinstance(cell, float):
        return round(cell, _DIGITS)
    if cell is None or isinstance(cell, str | int):
        return cell
    raise InvalidInput("a column of the query holds binary data: select text and numbers only")
