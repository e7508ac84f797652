"""Each constraint, and each way in which the published evaluator is odd, on a small world."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from duolog.examples.travel.data.tables import (
    Accommodation,
    Attraction,
    Constraints,
    Flight,
    Restaurant,
    Route,
    Sandbox,
    Trip,
)
from duolog.examples.travel.evaluation import (
    VARIANTS,
    ConstraintResult,
    Evaluation,
    Variant,
    evaluate,
)
from msgspec.structs import replace

Day = dict[str, object]
Plan = list[Day]

DATES = tuple(f"2022-03-0{day}" for day in range(1, 6))
SANDBOX = Sandbox(
    flights=[
        Flight("F100", 50, "08:00", "09:00", "1 hour", DATES[0], "Aston", "Bexley", 100),
        Flight("F200", 70, "18:00", "19:00", "1 hour", DATES[2], "Bexley", "Aston", 100),
    ],
    restaurants=[
        Restaurant("Blue Door (bar)", 10, "Thai, Cafe", 4, "Bexley"),
        Restaurant("Old Mill", 20, "Indian", 4, "Bexley"),
        Restaurant("Old Mill Annex", 5, "French", 4, "Bexley"),
        Restaurant("Yard", 20, "Italian", 4, "Bexley"),
        Restaurant("Quay", 30, "Greek", 4, "Bexley"),
        Restaurant("Nook", 10, "Thai", 4, "Carlow"),
        Restaurant("Loft", 10, "French", 4, "Carlow"),
        Restaurant("Pier", 10, "French", 4, "Carlow"),
        Restaurant("Home Kitchen", 10, "Thai", 4, "Aston"),
    ],
    accommodations=[
        Accommodation("Garden Flat", 100, "Entire home/apt", "No pets", 2, 2, 5, "Bexley"),
        Accommodation("Bunk", 20, "Shared room", "No parties & No smoking", 1, 1, 3, "Bexley"),
        Accommodation("Bunk Deluxe", 60, "Private room", "", 1, 2, 3, "Bexley"),
        Accommodation("Mill House", 80, "Private room", "No visitors", 1, 4, None, "Carlow"),
    ],
    attractions=[
        Attraction("Castle", 0, 0, "", "", "", "Bexley"),
        Attraction("Lake", 0, 0, "", "", "", "Bexley"),
        Attraction("Bunk", 0, 0, "", "", "", "Bexley"),
        Attraction("Tower", 0, 0, "", "", "", "Carlow"),
    ],
    routes=[
        Route("Aston", "Bexley", "self-driving", "2 hours", "200 km", 10),
        Route("Bexley", "Aston", "self-driving", "2 hours", "200 km", 10),
        Route("Aston", "Bexley", "taxi", "2 hours", "200 km", 200),
        Route("Bexley", "Carlow", "taxi", "1 hour", "100 km", 100),
        Route("Carlow", "Aston", "taxi", "3 hours", "300 km", 300),
        Route("Bexley", "Dunmore", "self-driving", None, None, None),
    ],
    states={"Aston": "West", "Bexley": "East", "Carlow": "East", "Dunmore": "North"},
)
SHORT = Trip(
    origin="Aston",
    destination="Bexley",
    days=3,
    cities=1,
    dates=DATES[:3],
    people=3,
    budget=2000,
    constraints=Constraints(),
)


def wishing(**wishes: object) -> Trip:
    """The short trip with hard constraints."""
    return replace(SHORT, constraints=Constraints(**wishes))  # type: ignore[arg-type]


def good() -> Plan:
    """A plan for the short trip that satisfies everything."""
    return [
        {
            "days": 1,
            "current_city": "from Aston to Bexley",
            "transportation": "Flight Number: F100, from Aston to Bexley, Departure Time: 08:00",
            "breakfast": "-",
            "attraction": "Castle, Bexley;",
            "lunch": "Blue Door (bar), Bexley",
            "dinner": "Old Mill, Bexley",
            "accommodation": "Garden Flat, Bexley",
        },
        {
            "days": 2,
            "current_city": "Bexley",
            "transportation": "-",
            "breakfast": "Old Mill Annex, Bexley",
            "attraction": "Lake, Bexley;",
            "lunch": "Quay, Bexley",
            "dinner": "Yard, Bexley",
            "accommodation": "Garden Flat, Bexley",
        },
        {
            "days": 3,
            "current_city": "from Bexley to Aston",
            "transportation": "Flight Number: F200, from Bexley to Aston",
            "breakfast": "-",
            "attraction": "-",
            "lunch": "-",
            "dinner": "-",
            "accommodation": "-",
        },
    ]


def changed(day: int, **fields: object) -> Plan:
    """The plan with other fields on a day; a field set to ... is left out."""
    plan = good()
    plan[day - 1] |= fields
    plan[day - 1] = {k: v for k, v in plan[day - 1].items() if v is not ...}
    return plan


def verdict(evaluation: Evaluation, name: str) -> ConstraintResult:
    found: Mapping[str, ConstraintResult] = {
        **(evaluation.commonsense or {}),
        **(evaluation.hard or {}),
    }
    return found[name]


def judged(
    plan: object, name: str, trip: Trip = SHORT, variant: Variant = "published"
) -> bool | None:
    return verdict(evaluate(plan, trip, SANDBOX, variant), name).passed


def both(plan: object, name: str, trip: Trip = SHORT) -> tuple[bool | None, bool | None]:
    """Published and strict."""
    return judged(plan, name, trip), judged(plan, name, trip, "strict")


@pytest.mark.parametrize("variant", ["published", "strict"])
def test_a_good_plan_passes_everything_that_applies(variant: Variant) -> None:
    trip = wishing(house_rule="smoking", cuisine=("Thai", "Greek"), room_type="entire room")
    found = evaluate(good(), trip, SANDBOX, variant)
    assert found.commonsense is not None
    assert all(v.passed for v in found.commonsense.values()), found.commonsense
    assert found.hard is not None
    assert {name: v.passed for name, v in found.hard.items()} == {
        "valid_cuisine": True,
        "valid_room_rule": True,
        "valid_transportation": None,
        "valid_room_type": True,
        "valid_cost": True,
    }
    # Flights (50 + 70) x 3, meals (10 + 20 + 5 + 30 + 20) x 3, two nights in two rooms of 100.
    assert found.total_cost == 360 + 255 + 400
    assert found.performance == 1


def test_rates_leave_out_what_does_not_apply() -> None:
    found = evaluate(good(), wishing(house_rule="pets"), SANDBOX)
    assert found.commonsense_pass_rate == 1
    # The budget is kept, and no other wish made.
    assert found.preference_pass_rate == 0.5
    assert found.performance == 0.75


# --- Reasonable cities ---


@pytest.mark.parametrize(
    ("cities", "published", "strict"),
    [
        (["from Aston to Bexley", "Bexley", "from Bexley to Aston"], True, True),
        (["from Bexley to Bexley", "Bexley", "from Bexley to Aston"], False, False),
        (["from Aston to Bexley", "Bexley", "from Bexley to Carlow"], False, False),
        (["from Aston to Bexley", "from Bexley to Carlow", "from Carlow to Aston"], True, False),
        (["from Aston to Bexley", "Carlow", "from Bexley to Aston"], False, False),
        (["from Aston to Nowhere", "Nowhere", "from Nowhere to Aston"], False, False),
        (["from Aston (West) to Bexley", "Bexley", "from Bexley to Aston"], False, True),
        (["from Aston(West) to Bexley(East)", "Bexley", "from Bexley to Aston"], True, True),
        # Without "from" on day 1 the origin is not looked at.
        (["Bexley", "Bexley", "Bexley"], True, False),
        # A trip of three days may go anywhere.
        (["from Aston to Dunmore", "Dunmore", "from Dunmore to Aston"], True, False),
    ],
)
def test_reasonable_cities(cities: list[str], published: bool, strict: bool) -> None:
    plan = [day | {"current_city": city} for day, city in zip(good(), cities, strict=True)]
    assert both(plan, "is_reasonable_visiting_city") == (published, strict)


def test_states_count_on_longer_trips_only() -> None:
    trip = replace(SHORT, days=5, dates=DATES, destination="East", cities=2)
    tour = [
        "from Aston to Bexley",
        "Bexley",
        "from Bexley to Carlow",
        "Carlow",
        "from Carlow to Aston",
    ]
    detour = [city.replace("Carlow", "Dunmore") for city in tour]
    for cities, expected in ((tour, True), (detour, False)):
        plan = [good()[0] | {"current_city": city} for city in cities]
        assert both(plan, "is_reasonable_visiting_city", trip) == (expected, expected)


# --- Restaurants and attractions ---


def test_a_restaurant_is_visited_once() -> None:
    assert both(changed(2, lunch="Old Mill, Bexley"), "is_valid_restaurants") == (False, False)
    # The same place in other words: texts are compared, not places.
    again = changed(2, lunch="Old Mill, Bexley(East)")
    assert both(again, "is_valid_restaurants") == (True, False)


def test_an_attraction_is_visited_once_and_the_last_needs_its_semicolon() -> None:
    assert both(changed(2, attraction="Castle, Bexley;"), "is_valid_attractions") == (False, False)
    assert both(changed(2, attraction="Castle, Bexley"), "is_valid_attractions") == (True, False)
    unknown = changed(2, attraction="Moon Base, Bexley")
    assert both(unknown, "is_valid_information_in_sandbox") == (True, False)
    assert (
        judged(changed(2, attraction="Moon Base, Bexley;"), "is_valid_information_in_sandbox")
        is False
    )


# --- Accommodation ---


def test_minimum_nights_count_where_one_place_matches() -> None:
    short_stay = changed(2, accommodation="Bunk Deluxe, Bexley")
    assert both(short_stay, "is_valid_accommodation") == (False, False)
    missing = changed(3, accommodation=...)
    assert both(missing, "is_valid_accommodation") == (False, True)


def test_minimum_nights_of_an_ambiguous_name_are_not_checked() -> None:
    rooms = [
        Accommodation("Den", 10, "Private room", "", 3, 2, None, "Bexley"),
        Accommodation("Den Two", 10, "Private room", "", 1, 2, None, "Bexley"),
    ]
    sandbox = Sandbox(accommodations=rooms, states=SANDBOX.states)
    plan = changed(1, accommodation="Den, Bexley")
    plan[1]["accommodation"] = "Den, Bexley"
    name = "is_valid_accommodation"
    assert verdict(evaluate(plan, SHORT, sandbox), name).passed is True
    assert verdict(evaluate(plan, SHORT, sandbox, "strict"), name).passed is False


# --- Transportation ---


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("Self-driving, from Aston to Bexley", False),
        ("Taxi, from Aston to Bexley", True),
        ("-", False),
        ("", False),
    ],
)
def test_vehicles_do_not_conflict_and_day_1_has_one(way: str, expected: bool) -> None:
    assert both(changed(1, transportation=way), "is_valid_transportation") == (expected, expected)


def test_a_taxi_and_a_car_of_ones_own_conflict() -> None:
    plan = changed(1, transportation="Taxi, from Aston to Bexley")
    plan[2]["transportation"] = "Self-driving, from Bexley to Aston"
    assert both(plan, "is_valid_transportation") == (False, False)


# --- Within the current city ---


def test_places_lie_in_the_city_of_the_day() -> None:
    name = "is_valid_information_in_current_city"
    for field in ("lunch", "dinner", "attraction", "accommodation"):
        elsewhere = "Nook, Carlow;" if field == "attraction" else "Nook, Carlow"
        assert both(changed(1, **{field: elsewhere}), name) == (False, False)
    way = changed(1, transportation="Flight Number: F100, from Aston to Carlow")
    assert both(way, name) == (False, False)


def test_on_a_stay_the_characters_of_the_city_are_looked_for() -> None:
    name = "is_valid_information_in_current_city"
    # One letter of "Bexley" is enough for a restaurant, the last for a room, and all of them, in
    # whatever order, for transportation.
    assert both(changed(2, lunch="The Nook, Carlow"), name) == (True, False)
    assert both(changed(2, lunch="Nook, Cork"), name) == (False, False)
    assert both(changed(2, accommodation="Any, Carlow"), name) == (True, False)
    assert both(changed(2, accommodation="Mill House, Carlow"), name) == (False, False)
    assert both(changed(2, transportation="Bus by flex"), name) == (True, False)
    assert both(changed(2, transportation="Bus by Len"), name) == (False, False)


def test_the_city_counts_wherever_it_occurs() -> None:
    plan = changed(1, lunch="Bexley Pizza, Carlow")
    assert both(plan, "is_valid_information_in_current_city") == (True, False)


# --- Within the sandbox ---


@pytest.mark.parametrize(
    ("fields", "published", "strict"),
    [
        ({"lunch": "Nowhere, Bexley"}, False, False),
        ({"lunch": "old mill, Bexley"}, False, False),
        ({"lunch": "Door (bar), Bexley"}, True, True),
        ({"lunch": ", Bexley"}, True, False),
        ({"lunch": "Old Mill"}, False, False),
        ({"lunch": "line\nOld Mill, Bexley"}, True, False),
        ({"accommodation": "Castle, Bexley"}, False, False),
        ({"attraction": "Garden Flat, Bexley;"}, False, False),
        ({"transportation": "Flight Number: F999, from Aston to Bexley"}, False, False),
        ({"transportation": "Flight Number: F200, from Aston to Bexley"}, False, False),
        ({"transportation": "Flight Number: F100"}, True, True),  # the route is the day's
        ({"transportation": "flight F100 by air, from Aston to Bexley"}, True, True),
        ({"transportation": "Taxi, from Bexley to Dunmore"}, False, False),
        ({"transportation": "Self-driving, from Bexley to Dunmore"}, False, False),
        ({"transportation": "Bus, from Aston to Bexley"}, True, False),
        ({"transportation": "Taxi from Aston(West) to Bexley(East), 2 hours"}, True, True),
    ],
)
def test_what_is_planned_exists(fields: Day, published: bool, strict: bool) -> None:
    assert both(changed(1, **fields), "is_valid_information_in_sandbox") == (published, strict)


def test_the_date_of_a_flight_is_not_looked_at() -> None:
    trip = replace(SHORT, dates=("2022-05-01", "2022-05-02", "2022-05-03"))
    assert both(good(), "is_valid_information_in_sandbox", trip) == (True, False)
    assert both(good(), "valid_cost", trip) == (True, False)


def test_cogym_looks_for_accommodations_among_attractions() -> None:
    name = "is_valid_information_in_sandbox"
    assert judged(good(), name, variant="cogym") is False
    plan = changed(1, accommodation="Bunk, Bexley")
    plan[1]["accommodation"] = "Castle, Bexley"
    assert judged(plan, name, variant="cogym") is True
    assert judged(plan, name) is False
    # Everything else is as published.
    for variant in ("published", "cogym"):
        assert evaluate(plan, SHORT, SANDBOX, variant).total_cost == 675


# --- Completeness ---


@pytest.mark.parametrize(
    ("day", "fields", "published", "strict"),
    [
        (1, {"transportation": "-"}, False, False),
        (1, {"lunch": "-", "dinner": "-", "attraction": "-"}, True, False),
        (1, {"accommodation": "-"}, False, False),
        (2, {"breakfast": "-"}, False, False),
        (2, {"attraction": "-"}, False, False),
        (2, {"attraction": ...}, False, False),
        (2, {"attraction": None}, True, False),
        (2, {"breakfast": None}, True, False),
        (3, {"accommodation": ""}, True, True),
        (3, {"lunch": ...}, False, True),
        (3, {"current_city": "You don't need to fill in the information for this or later days."},
         False, False),
        (3, {"current_city": "from Bexley to Carlow"}, False, False),
    ],
)  # fmt: skip
def test_nothing_is_absent(day: int, fields: Day, published: bool, strict: bool) -> None:
    assert both(changed(day, **fields), "is_not_absent") == (published, strict)


def test_a_plan_has_as_many_days_as_the_trip() -> None:
    assert both(good()[:2], "is_not_absent") == (False, False)
    assert both([*good(), {}], "is_not_absent") == (True, False)
    assert judged([*good()[:2], {}], "is_not_absent", variant="strict") is False


# --- Hard constraints ---


def test_cuisines_are_those_of_the_first_place_that_matches() -> None:
    trip = wishing(cuisine=("Indian",))
    plan = changed(1, dinner="Mill, Bexley")  # a part of two names
    assert both(plan, "valid_cuisine", trip) == (True, True)
    plan[1]["breakfast"] = "Yard, Bexley"
    assert both(plan, "valid_cuisine", wishing(cuisine=("French",))) == (False, False)


def test_a_meal_at_the_origin_ends_the_search_of_the_day() -> None:
    plan = changed(1, breakfast="Home Kitchen, Aston")
    assert both(plan, "valid_cuisine", wishing(cuisine=("Thai",))) == (False, True)


def test_a_name_that_is_there_exactly_goes_first_in_strict_only() -> None:
    rows = [
        Restaurant("Grand Palace", 90, "French", 4, "Bexley"),
        Restaurant("Palace", 10, "Thai", 4, "Bexley"),
    ]
    sandbox = Sandbox(restaurants=rows, states=SANDBOX.states)
    plan: Plan = [dict.fromkeys(good()[0], "-")]
    plan[0] |= {"current_city": "from Aston to Bexley", "lunch": "Palace, Bexley"}
    trip = wishing(cuisine=("Thai",))
    assert evaluate(plan, trip, sandbox).total_cost == 270
    assert evaluate(plan, trip, sandbox, "strict").total_cost == 30
    assert verdict(evaluate(plan, trip, sandbox), "valid_cuisine").passed is False


@pytest.mark.parametrize(
    ("rule", "room", "expected"),
    [
        ("pets", "Garden Flat, Bexley", False),
        ("smoking", "Garden Flat, Bexley", True),
        ("parties", "Bunk, Bexley", False),
        ("smoking", "Bunk, Bexley", False),
        ("visitors", "Mill House, Carlow", False),
        ("children under 10", "Mill House, Carlow", True),
    ],
)
def test_house_rules(rule: str, room: str, expected: bool) -> None:
    plan = changed(1, accommodation=room)
    plan[1]["accommodation"] = room
    assert both(plan, "valid_room_rule", wishing(house_rule=rule)) == (expected, expected)


@pytest.mark.parametrize(
    ("wish", "fitting"),
    [
        ("entire room", {"Garden Flat"}),
        ("private room", {"Bunk Deluxe"}),
        ("shared room", {"Bunk"}),
        ("not shared room", {"Garden Flat", "Bunk Deluxe"}),
    ],
)
def test_room_types(wish: str, fitting: set[str]) -> None:
    for name in ("Garden Flat", "Bunk", "Bunk Deluxe"):
        plan = changed(1, accommodation=f"{name}, Bexley")
        plan[1]["accommodation"] = f"{name}, Bexley"
        expected = name in fitting
        assert both(plan, "valid_room_type", wishing(room_type=wish)) == (expected, expected)


def test_what_is_unknown_fulfils_every_wish_and_costs_nothing() -> None:
    plan = changed(1, accommodation="Castle in the Air, Bexley")
    plan[1]["accommodation"] = "-"
    trip = wishing(house_rule="pets", room_type="entire room")
    for name in ("valid_room_rule", "valid_room_type", "valid_cost"):
        assert both(plan, name, trip) == (True, False)
    assert evaluate(plan, trip, SANDBOX).total_cost == 615


def test_wishes_for_transportation_are_sensitive_to_case() -> None:
    name = "valid_transportation"
    assert both(good(), name, wishing(transportation="no flight")) == (False, False)
    assert both(good(), name, wishing(transportation="no self-driving")) == (True, True)
    plan = changed(1, transportation="self-driving, from Aston to Bexley")
    assert both(plan, name, wishing(transportation="no self-driving")) == (True, False)


@pytest.mark.parametrize(
    ("people", "way", "fare"),
    [
        (5, "Self-driving, from Aston to Bexley", 10),
        (6, "Self-driving, from Aston to Bexley", 20),
        (4, "Taxi, from Aston to Bexley", 200),
        (5, "Taxi, from Aston to Bexley", 400),
        (3, "Flight Number: F100, from Aston to Bexley", 150),
        (3, "Flight Number: F100, from Bexley to Carlow", 150),
        (3, "A walk, from Aston to Bexley", 0),
        (3, "Taxi around the town", 600 / 3),
    ],
)
def test_fares(people: int, way: str, fare: float) -> None:
    trip = replace(SHORT, people=people, budget=None)
    plan: Plan = [dict.fromkeys(good()[0], "-")]
    plan[0] |= {"current_city": "from Aston to Bexley", "transportation": way}
    found = evaluate(plan, trip, SANDBOX)
    assert found.total_cost == fare
    assert verdict(found, "valid_cost").passed is None


def test_rooms_cost_by_occupancy_and_listed_day() -> None:
    plan: Plan = [dict.fromkeys(good()[0], "-") for _ in range(3)]
    for day in plan:
        day["accommodation"] = "Garden Flat, Bexley"
    assert evaluate(plan, SHORT, SANDBOX).total_cost == 3 * 2 * 100


def test_the_budget_is_kept() -> None:
    for budget, expected in ((1015, True), (1014, False)):
        trip = replace(SHORT, budget=budget)
        assert both(good(), "valid_cost", trip) == (expected, expected)


# --- What the published evaluator stumbles over ---


@pytest.mark.parametrize(
    ("plan", "commonsense", "hard"),
    [
        (None, "TypeError", "TypeError"),
        ([], "IndexError", None),
        ({"output": "Day 1: ..."}, "KeyError", "KeyError"),
        ([*good()[:2], {}], "KeyError", "KeyError"),
        (changed(1, current_city=None), "TypeError", None),
        (changed(1, current_city="from Aston"), "TypeError", None),
        (changed(2, transportation=...), "KeyError", "KeyError"),
        (changed(1, transportation=...), "KeyError", "KeyError"),
        (changed(2, lunch=...), None, "KeyError"),
        (changed(2, lunch=7), "TypeError", "TypeError"),
        (changed(1, transportation="Flight Number:F100, from Aston to Bexley"),
         "IndexError", "IndexError"),
        (changed(2, transportation="Flight Number: F100"), "ValueError", None),
        (changed(1, transportation="Taxi, from Bexley to Dunmore"), None, "TypeError"),
        (changed(2, attraction=["Lake, Bexley"]), "AttributeError", None),
    ],
)  # fmt: skip
def test_an_exception_costs_one_kind_and_is_reported(
    plan: object, commonsense: str | None, hard: str | None
) -> None:
    found = evaluate(plan, SHORT, SANDBOX)
    for error, kind, rate, expected in (
        (found.commonsense_error, found.commonsense, found.commonsense_pass_rate, commonsense),
        (found.hard_error, found.hard, found.preference_pass_rate, hard),
    ):
        assert (error.partition(":")[0] if error else None) == expected, error
        assert (kind is None) == (expected is not None)
        if expected:
            assert rate == 0
    assert (found.total_cost is None) == (hard is not None)


def test_an_error_says_what_was_wrong_and_where() -> None:
    found = evaluate(changed(1, transportation="Taxi, from Bexley to Dunmore"), SHORT, SANDBOX)
    assert found.hard_error == (
        "TypeError: no price is known from Bexley to Dunmore by taxi, so none can be added "
        "(in valid_cost)"
    )


def test_strict_fails_everything_where_nothing_is_planned() -> None:
    plans: tuple[object, ...] = (None, [], {}, "Day 1: rest")
    for plan in plans:
        found = evaluate(plan, wishing(house_rule="pets"), SANDBOX, "strict")
        assert found.performance == 0
        assert found.total_cost is None
        assert verdict(found, "valid_room_type").passed is None


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_json_shape(variant: Variant) -> None:
    line = evaluate(good(), replace(SHORT, budget=1000), SANDBOX, variant).to_json(12)
    assert list(line) == [
        "row_index",
        "commonsense",
        "hard",
        "commonsense_error",
        "hard_error",
        "commonsense_pass_rate",
        "preference_pass_rate",
        "performance",
        "total_cost",
    ]
    assert line["row_index"] == 12
    hard = line["hard"]
    assert isinstance(hard, dict)
    assert hard["valid_cost"] == [False, "it costs $1,015, more than the budget of $1,000"]
