"""The task actions of data analysis: the schema, queries, and charts; the same for human and agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, NamedTuple

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON
from ...tasks.actions import ActionTable, action
from .database import MOST_ROWS, Cell, Database
from .instances import Instance

__all__ = ("ACTIONS", "Chart", "Query", "Schema", "World")

_MOST_BARS = 12
_WIDEST = 8  # characters of a bar
_MOST_VALUES = 24  # of a column that the schema lists

_TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "people": ("id", "region", "age", "channel", "wave", "role"),
    "ratings": ("person", "product", "rating"),
    "prices": ("store", "site", "region", "product", "price"),
}
_LISTED = ("region", "channel", "wave", "role", "product", "rating", "site")


class World(NamedTuple):
    """The data behind an instance's actions and utility.

    Attributes:
        instance: the survey with its analyst.
        database: its tables.
        known: the results of earlier actions, as JSON, by name and arguments.
    """

    instance: Instance
    database: Database
    known: dict[str, bytes]


_Sql = Annotated[
    str,
    msgspec.Meta(
        description="One SELECT statement of SQLite on people, ratings and prices.",
        examples=["SELECT product, AVG(rating), COUNT(*) FROM ratings GROUP BY product"],
    ),
]


class Schema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """List the tables: numbers of rows, columns, and the values of those that have few."""


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Select from the tables with SQL, read only. Numbers of rows and of steps are limited."""

    sql: _Sql
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS, description="Rows at most.")] = MOST_ROWS


class Chart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Draw a bar chart of a query: the first column labels the bars, the last is their length.

    Gives a line of text for the report, and the chart as a Vega-Lite specification.
    """

    sql: _Sql
    title: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=80,
            description="What the bars show.",
            examples=["Latte by channel"],
        ),
    ]


def _schema(world: World, asked: Schema) -> JSON:
    tables: dict[str, JSON] = {}
    for table, columns in _TABLES.items():
        described: dict[str, JSON] = {}
        for column in columns:
            described[column] = _column(world.database, table, column)
        rows = world.database.select(f"SELECT COUNT(*) FROM {table}").rows[0][0]
        tables[table] = {"rows": rows, "columns": described}
    return tables


def _column(database: Database, table: str, column: str) -> JSON:
    """The values of a column with their numbers, the most frequent first; or their range."""
    if column not in _LISTED:
        found = database.select(f"SELECT MIN({column}), MAX({column}) FROM {table}").rows[0]
        return {"least": found[0], "most": found[1]}
    counted = database.select(
        f"SELECT {column}, COUNT(*) FROM {table} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {_MOST_VALUES}"
    )
    return {"values": {str(value): number for value, number in counted.rows}}


def _query(world: World, asked: Query) -> JSON:
    found = world.database.select(asked.sql, asked.limit)
    shown: dict[str, JSON] = {"columns": found.columns, "rows": found.rows}
    return {**shown, "more": True} if found.more else shown


def _chart(world: World, asked: Chart) -> JSON:
    found = world.database.select(asked.sql, _MOST_BARS)
    if found.more or not found.rows:
        raise InvalidInput(
            f"a chart has from 1 to {_MOST_BARS} bars, and the query gives "
            f"{'more' if found.rows else 'no'} rows: change its WHERE or GROUP BY"
        )
    bars = [(str(row[0]), _length(row[-1])) for row in found.rows]
    longest = max(abs(length) for _, length in bars) or 1.0
    drawn = [
        f"{label} {'▇' * max(1, round(_WIDEST * abs(length) / longest))} {length:g}"
        for label, length in bars
    ]
    label, value = found.columns[0], found.columns[-1]
    return {
        "text": f"Chart of {asked.title}: {', '.join(drawn)}",
        "spec": {
            "title": asked.title,
            "mark": "bar",
            "data": {"values": [{label: name, value: length} for name, length in bars]},
            "encoding": {
                "x": {"field": label, "type": "nominal", "sort": None},
                "y": {"field": value, "type": "quantitative"},
            },
        },
    }


def _length(cell: Cell) -> float:
    if isinstance(cell, str) or cell is None:
        raise InvalidInput(
            f"the last column of a chart's query is its length, and {cell!r} is none"
        )
    return float(cell)


ACTIONS: Final[ActionTable[World]] = ActionTable(
    (
        action(Schema, _schema, seconds=0.5),
        action(Query, _query, seconds=1.5),
        action(Chart, _chart, seconds=1.5),
    )
)
"""All task actions."""
