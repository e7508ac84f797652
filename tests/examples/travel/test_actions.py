"""The typed searches: their results, and errors that say what to do next."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import JSON
from duolog.examples.travel.actions import ACTIONS, COLUMNS
from duolog.examples.travel.data.tables import (
    Accommodation,
    Attraction,
    Flight,
    Restaurant,
    Route,
    Sandbox,
)

SANDBOX = Sandbox(
    flights=[
        Flight("F1", 120.0, "08:00", "09:30", "1 hour 30 minutes", "2022-03-19", a, b, 400.0)
        for a, b in (("Omaha", "Detroit"), ("Omaha", "Lansing"), ("Detroit", "Omaha"))
    ],
    restaurants=[Restaurant("Amber Table", 20.0, "Tea, French", 4.5, "Detroit")],
    accommodations=[
        Accommodation("Loft", 99.0, "Private room", "No pets", 2.0, 3, None, "Detroit"),
        Accommodation("Barn", 80.0, "Entire home/apt", "", 1.0, 2, 4.0, "Albany"),
    ],
    attractions=[Attraction("Zoo", 42.0, -83.0, "1 Main Street", "555", "zoo.example", "Detroit")],
    routes=[
        Route("Omaha", "Detroit", "self-driving", "11 hours 57 mins", "1,288 km", 64.0),
        Route("Omaha", "Detroit", "taxi", "11 hours 57 mins", "1,288 km", 1288.0),
        Route("Omaha", "Lansing", "taxi", None, None, None),
    ],
    states={
        "Omaha": "Nebraska",
        "Detroit": "Michigan",
        "Lansing": "Michigan",
        "New York": "New York",
        "Albany": "New York",
    },
)


def rows(name: str, **arguments: JSON) -> list[list[JSON]]:
    observation = ACTIONS.perform(SANDBOX, name, arguments)
    assert isinstance(observation, Mapping)
    assert observation["columns"] == [*COLUMNS[name]]
    decoded: list[list[JSON]] = msgspec.json.decode(msgspec.json.encode(observation["rows"]))
    return decoded


def test_searches_return_the_rows_of_the_tables() -> None:
    assert rows("SearchRestaurants", city="Detroit") == [["Amber Table", 20.0, "Tea, French", 4.5]]
    assert rows("SearchAttractions", city="Detroit") == [["Zoo", "1 Main Street"]]
    assert rows("SearchAccommodations", city="Detroit") == [
        ["Loft", 99.0, "Private room", "No pets", 2.0, 3, None]
    ]
    assert rows("SearchDistance", origin="Omaha", destination="Detroit") == [
        ["Omaha", "Detroit", "self-driving", "11 hours 57 mins", "1,288 km", 64.0],
        ["Omaha", "Detroit", "taxi", "11 hours 57 mins", "1,288 km", 1288.0],
    ]


def test_a_distance_search_keeps_to_its_mode() -> None:
    found = rows("SearchDistance", origin="Omaha", destination="Detroit", mode="taxi")
    assert [row[2] for row in found] == ["taxi"]


def test_a_state_stands_for_its_cities() -> None:
    found = rows("SearchFlights", origin="Omaha", destination="Michigan", date="2022-03-19")
    assert [(row[5], row[6]) for row in found] == [("Omaha", "Detroit"), ("Omaha", "Lansing")]
    back = rows("SearchFlights", origin="Michigan (state)", destination="Omaha", date="2022-03-19")
    assert [(row[5], row[6]) for row in back] == [("Detroit", "Omaha")]


def test_cities_of_a_state_are_those_with_places_to_stay() -> None:
    assert rows("SearchCities", state="Michigan") == [["Detroit"]]
    assert rows("SearchCities", state="New York (state)") == [["Albany"]]


@pytest.mark.parametrize(
    ("name", "arguments", "hint"),
    [
        ("SearchHotels", {"city": "Detroit"}, "unknown action 'SearchHotels'"),
        ("SearchRestaurant", {"city": "Detroit"}, "did you mean 'SearchRestaurants'"),
        ("SearchRestaurants", {"city": "Detriot"}, "did you mean 'Detroit'?"),
        ("SearchRestaurants", {"city": "Michigan"}, "is a state: list its cities"),
        ("SearchRestaurants", {"town": "Detroit"}, "unknown field `town`"),
        ("SearchRestaurants", {}, "missing required field `city`"),
        ("SearchRestaurants", {"city": 5}, "Expected `str`, got `int`"),
        ("SearchRestaurants", {"city": "Lansing"}, "none found: no restaurants in Lansing"),
        ("SearchAttractions", {"city": "Lansing"}, "none found"),
        ("SearchAccommodations", {"city": "Lansing"}, "none found"),
        ("SearchCities", {"state": "Michigann"}, "did you mean 'Michigan'?"),
        ("SearchCities", {"state": "Nebraska"}, "no city of Nebraska has places to stay"),
        ("SearchDistance", {"origin": "Omaha", "destination": "Lansing"}, "try SearchFlights"),
        ("SearchDistance", {"origin": "Omaha", "destination": "Mars"}, "no city or state 'Mars'"),
        (
            "SearchDistance",
            {"origin": "Omaha", "destination": "Detroit", "mode": "bike"},
            "'bike'",
        ),
        (
            "SearchFlights",
            {"origin": "Omaha", "destination": "Detroit", "date": "19 March"},
            "as in 2022-03-19",
        ),
        (
            "SearchFlights",
            {"origin": "Omaha", "destination": "Detroit", "date": "2022-03-20"},
            "none found: no flights from Omaha to Detroit on 2022-03-20",
        ),
    ],
)
def test_what_goes_wrong_is_said(name: str, arguments: Mapping[str, JSON], hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ACTIONS.perform(SANDBOX, name, arguments)
    assert hint in str(caught.value)


def test_a_state_that_shares_its_name_with_a_city_is_the_city() -> None:
    with pytest.raises(InvalidInput, match="no places to stay in New York"):
        ACTIONS.perform(SANDBOX, "SearchAccommodations", {"city": "New York"})
    with pytest.raises(InvalidInput, match="none found"):
        ACTIONS.perform(SANDBOX, "SearchDistance", {"origin": "Omaha", "destination": "New York"})


def test_every_action_comes_with_a_schema_of_its_arguments() -> None:
    assert set(ACTIONS.specs) == set(COLUMNS)
    for name, action in ACTIONS.specs.items():
        assert action.name == name
        assert action.description.endswith(".")
        assert action.parameters["type"] == "object"
        assert action.parameters["additionalProperties"] is False
        assert action.parameters["required"]
