"""Queries that answer topics under given rulings, and what follows from their results.

A careful analyst's work: rows are cleaned (spellings of regions, repeated answers, ratings off the
scale, prices in cents), sizes of groups are selected along with their means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from ...engine.errors import InvalidInput
from ...engine.events import JSON
from .facts import (
    CHANNELS,
    RULINGS_OF,
    Claim,
    Group,
    Kind,
    Names,
    Ruling,
    Rulings,
    Topic,
    decide_age,
    decide_channel,
    decide_favourite,
    decide_price,
)

__all__ = (
    "LOOKS",
    "SHEETS",
    "Rows",
    "Sheet",
    "chart_of",
    "claims_of",
    "look_at",
    "query_for",
    "relevant",
    "sheet_of",
)

Sheet = Literal["regions", "ages", "prices", "wrong"]
"""The result of one query: ratings by region, ratings by age and channel, prices by region, or
numbers of wrong rows."""

SHEETS: Final[Mapping[Sheet, tuple[Kind, ...]]] = {
    "regions": ("favourite",),
    "ages": ("age", "channel"),
    "prices": ("price",),
    "wrong": ("quality",),
}
"""The kinds of topics that a sheet answers."""

Rows: TypeAlias = Sequence[Sequence[JSON]]

_REGION: Final = "lower(trim({table}.region))"


def sheet_of(kind: Kind) -> Sheet:
    """The sheet that answers a kind of topic."""
    return next(sheet for sheet, kinds in SHEETS.items() if kind in kinds)


def relevant(sheet: Sheet) -> tuple[Ruling, ...]:
    """The rulings that change which rows a sheet selects."""
    found = {ruling: None for kind in SHEETS[sheet] for ruling in RULINGS_OF[kind]}
    return tuple(ruling for ruling in found if ruling != "within")


LOOKS: Final = ("SELECT * FROM ratings LIMIT 20", "SELECT * FROM prices LIMIT 20")
"""The SQL that shows a few raw rows of a table."""


def look_at(sheet: Sheet) -> str:
    """The SQL that shows a few raw rows of the table that a sheet is about."""
    return LOOKS[sheet in ("prices", "wrong")]


def query_for(sheet: Sheet, rulings: Rulings, *, careful: bool = True) -> str:
    """The SQL of a sheet under rulings.

    Args:
        sheet: the kind of result to select.
        rulings: which rows count.
        careful: whether rows are cleaned first.
    """
    if not careful:
        return _hasty(sheet)
    match sheet:
        case "wrong":
            return (
                "SELECT (SELECT COUNT(*) FROM prices WHERE price > 100) AS prices_in_cents, "
                "(SELECT COUNT(*) FROM prices) AS prices, "
                "(SELECT COUNT(*) FROM ratings) - (SELECT COUNT(*) FROM "
                "(SELECT DISTINCT person, product, rating FROM ratings WHERE rating <= 10)) "
                "AS wrong_ratings, (SELECT COUNT(*) FROM ratings) AS ratings"
            )
        case "prices":
            where = "" if rulings["airport"] else "WHERE p.site <> 'airport' "
            return (
                f"SELECT {_REGION.format(table='p')} AS region, p.product, COUNT(*) AS n, "
                "ROUND(AVG(CASE WHEN p.price > 100 THEN p.price / 100 ELSE p.price END), 3) AS mean "
                f"FROM prices p {where}GROUP BY 1, 2 ORDER BY 2, 1"
            )
        case "regions":
            by = f"{_REGION.format(table='q')} AS region, r.product"
        case "ages":
            by = "r.product, q.channel, q.age < 40 AS younger"
    lowest = 0 if rulings["zeros"] else 1
    where = "".join(
        f" AND q.{column} <> '{value}'" for ruling, column, value in _SORTS if not rulings[ruling]
    )
    grouped = "1, 2" if sheet == "regions" else "1, 2, 3"
    return (
        f"SELECT {by}, COUNT(*) AS n, ROUND(AVG(r.rating), 3) AS mean "
        "FROM (SELECT DISTINCT person, product, rating FROM ratings) r "
        f"JOIN people q ON q.id = r.person WHERE r.rating BETWEEN {lowest} AND 10{where} "
        f"GROUP BY {grouped} ORDER BY {grouped}"
    )


def _hasty(sheet: Sheet) -> str:
    """The query of an analyst in a hurry who has not looked at the rows."""
    match sheet:
        case "wrong":
            return (
                "SELECT 0, (SELECT COUNT(*) FROM prices), "
                "(SELECT COUNT(*) FROM ratings WHERE rating > 10), (SELECT COUNT(*) FROM ratings)"
            )
        case "prices":
            return (
                "SELECT region, product, COUNT(*), ROUND(AVG(price), 3) FROM prices "
                "GROUP BY 1, 2 ORDER BY 2, 1"
            )
        case "regions":
            by, grouped = "q.region, r.product", "1, 2"
        case "ages":
            by, grouped = "r.product, q.channel, q.age < 40", "1, 2, 3"
    return (
        f"SELECT {by}, COUNT(*), ROUND(AVG(r.rating), 3) FROM ratings r "
        f"JOIN people q ON q.id = r.person GROUP BY {grouped} ORDER BY {grouped} DESC"
    )


_SORTS: Final[tuple[tuple[Ruling, str, str], ...]] = (
    ("pilot", "wave", "pilot"),
    ("staff", "role", "staff"),
)


def claims_of(sheet: Sheet, rows: Rows, names: Names, *, within: bool) -> dict[Topic, Claim]:
    """The claims that the rows of a sheet bear out, clear or not."""
    if sheet == "wrong":
        cents, prices, wrong, ratings = (int(str(cell)) for cell in rows[0])
        found = [
            Claim(Topic("quality", "prices"), str(cents), None, prices),
            Claim(Topic("quality", "ratings"), str(wrong), None, ratings),
        ]
    elif sheet == "ages":
        found = []
        cells: dict[str, dict[tuple[str, bool], Group]] = {name: {} for name in names.products}
        for row in rows:
            cells[str(row[0])][str(row[1]), bool(row[2])] = _group(row)
        for product, groups in cells.items():
            found.append(decide_age(product, groups, within=within)[0])
            found.append(decide_channel(product, groups)[0])
    else:
        regions: dict[str, dict[str, Group]] = {name: {} for name in names.regions}
        products: dict[str, dict[str, Group]] = {name: {} for name in names.products}
        for row in rows:
            region, product, group = str(row[0]).strip().title(), str(row[1]), _group(row)
            regions[region][product] = products[product][region] = group
        if sheet == "regions":
            found = [decide_favourite(region, groups)[0] for region, groups in regions.items()]
        else:
            found = [decide_price(product, groups)[0] for product, groups in products.items()]
    return {claim.topic: claim for claim in found}


def chart_of(topic: Topic, rulings: Rulings) -> tuple[str, str]:
    """The title and the SQL of the chart that shows a difference between age groups."""
    sheet = query_for("ages", rulings)
    order = " ".join(f"WHEN '{name}' THEN {i}" for i, name in enumerate(CHANNELS))
    sql = (
        "SELECT channel, ROUND(ABS(SUM(CASE WHEN younger THEN mean ELSE -mean END)), 1) AS points "
        f"FROM ({sheet}) WHERE product = '{topic.about}' "
        f"GROUP BY channel ORDER BY CASE channel {order} END"
    )
    return f"{topic.about} by channel", sql


def _group(row: Sequence[JSON]) -> Group:
    size, mean = row[-2], row[-1]
    if not isinstance(size, int) or not isinstance(mean, int | float):
        raise InvalidInput(f"the row {list(row)!r} does not end with a number and a mean")
    return Group(size, mean)
