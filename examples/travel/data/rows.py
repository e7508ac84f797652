"""Rows of TravelPlanner's tables, from their columns as text or JSON values to our structs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

from .tables import Accommodation, Attraction, Flight, Mode, Restaurant, Route

__all__ = (
    "COLUMNS",
    "READERS",
    "BadCell",
    "Cells",
    "Kind",
    "Row",
    "distance_routes",
    "number",
    "text",
    "whole",
)

Kind = Literal["flights", "restaurants", "accommodations", "attractions"]
Row = Flight | Restaurant | Accommodation | Attraction
Cells = Mapping[str, object]

COLUMNS: Mapping[Kind, tuple[str, ...]] = {
    "flights": (
        "Flight Number",
        "Price",
        "DepTime",
        "ArrTime",
        "ActualElapsedTime",
        "FlightDate",
        "OriginCityName",
        "DestCityName",
        "Distance",
    ),
    "restaurants": ("Name", "Average Cost", "Cuisines", "Aggregate Rating", "City"),
    "accommodations": (
        "NAME",
        "price",
        "room type",
        "house_rules",
        "minimum nights",
        "maximum occupancy",
        "review rate number",
        "city",
    ),
    "attractions": ("Name", "Latitude", "Longitude", "Address", "Phone", "Website", "City"),
}
"""TravelPlanner's columns of each table, in the order in which its texts print them."""

# TravelPlanner's own loader computes costs from distances: dollars per km for self-driving; a taxi
# takes one dollar.
_DOLLARS_PER_KM = 0.05


class BadCell(Exception):
    """A cell that cannot be read; the caller adds file and row to the message."""

    def __init__(self, column: str, why: str) -> None:
        super().__init__(why)
        self.column = column


def text(cells: Cells, column: str) -> str:
    """A cell as text; numbers are written out.

    Raises:
        BadCell: there is no such cell, or it holds neither text nor number.
    """
    value = _cell(cells, column)
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise BadCell(column, f"expected text, found {value!r}")


def number(cells: Cells, column: str) -> float:
    """A cell as a finite number.

    Raises:
        BadCell: it holds none.
    """
    value = _cell(cells, column)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            read = float(value)
        except (ValueError, OverflowError):
            read = math.nan
        if math.isfinite(read):
            return read
    raise BadCell(column, f"expected a number, found {value!r}")


def whole(cells: Cells, column: str, *, least: int = 0) -> int:
    """A cell as a whole number of at least `least`.

    Raises:
        BadCell: it holds none.
    """
    read = number(cells, column)
    if read != int(read) or read < least:
        raise BadCell(column, f"expected a whole number from {least} on, found {cells[column]!r}")
    return int(read)


def _cell(cells: Cells, column: str) -> object:
    if column not in cells:
        raise BadCell(column, "is missing")
    return cells[column]


def _flight(cells: Cells) -> Flight:
    return Flight(
        number=text(cells, "Flight Number"),
        price=number(cells, "Price"),
        departs=text(cells, "DepTime"),
        arrives=text(cells, "ArrTime"),
        elapsed=text(cells, "ActualElapsedTime"),
        date=text(cells, "FlightDate"),
        origin=text(cells, "OriginCityName"),
        destination=text(cells, "DestCityName"),
        distance=number(cells, "Distance"),
    )


def _restaurant(cells: Cells) -> Restaurant:
    return Restaurant(
        name=text(cells, "Name"),
        average_cost=number(cells, "Average Cost"),
        cuisines=text(cells, "Cuisines"),
        rating=number(cells, "Aggregate Rating"),
        city=text(cells, "City"),
    )


def _accommodation(cells: Cells) -> Accommodation:
    rating = cells.get("review rate number")
    unrated = rating is None or str(rating).lower() in ("", "nan")
    return Accommodation(
        name=text(cells, "NAME"),
        price=number(cells, "price"),
        room_type=text(cells, "room type"),
        house_rules=text(cells, "house_rules"),
        minimum_nights=number(cells, "minimum nights"),
        maximum_occupancy=whole(cells, "maximum occupancy", least=1),
        rating=None if unrated else number(cells, "review rate number"),
        city=text(cells, "city"),
    )


def _attraction(cells: Cells) -> Attraction:
    return Attraction(
        name=text(cells, "Name"),
        latitude=number(cells, "Latitude"),
        longitude=number(cells, "Longitude"),
        address=text(cells, "Address"),
        phone=text(cells, "Phone"),
        website=text(cells, "Website"),
        city=text(cells, "City"),
    )


READERS: Mapping[Kind, Callable[[Cells], Row]] = {
    "flights": _flight,
    "restaurants": _restaurant,
    "accommodations": _accommodation,
    "attractions": _attraction,
}
"""The reader of each table's rows; all raise `BadCell`."""


def distance_routes(cells: Cells) -> tuple[Route, Route]:
    """Both ways over land from a row of the distance table: by car and by taxi.

    There is none if the table has no distance in km, or if the drive takes a day or more.

    Raises:
        BadCell: a cell cannot be read.
    """
    origin, destination = text(cells, "origin"), text(cells, "destination")
    duration, distance = text(cells, "duration"), text(cells, "distance")
    km: float | None = None
    if duration and distance.endswith("km") and "day" not in duration:
        km = number({"distance": distance.removesuffix("km").replace(",", "")}, "distance")

    def way(mode: Mode, dollars_per_km: float) -> Route:
        if km is None:
            return Route(origin, destination, mode, None, None, None)
        return Route(origin, destination, mode, duration, distance, float(int(km * dollars_per_km)))

    return way("self-driving", _DOLLARS_PER_KM), way("taxi", 1)
