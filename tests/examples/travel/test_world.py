"""Invented worlds: the same for a seed however they are asked, in the shapes of the tables."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from duolog.engine.errors import InvalidInput
from duolog.examples.travel.data.instances import make_instance, solution_of
from duolog.examples.travel.data.tables import Constraints, Trip
from duolog.examples.travel.data.world.cities import CITIES, STATES, kilometres
from duolog.examples.travel.data.world.generator import World, generate_world
from duolog.examples.travel.evaluation import evaluate
from duolog.examples.travel.language.facts import HOUSE_RULES, facts_of
from duolog.examples.travel.language.messages import understand_message
from duolog.examples.travel.language.profiles import understand_preferences
from duolog.examples.travel.language.requests import understand_request

DATES = ("2022-03-19", "2022-03-20", "2022-03-21", "2022-03-22", "2022-03-23")


def trip(origin: str = "Omaha", destination: str = "Michigan") -> Trip:
    return Trip(
        origin=origin,
        destination=destination,
        days=5,
        cities=2,
        dates=DATES,
        people=2,
        budget=None,
        constraints=Constraints(),
    )


def test_the_map_has_enough_cities_in_every_state_and_no_name_twice() -> None:
    assert len(CITIES) == sum(len(cities) for cities in STATES.values())
    assert all(len(cities) >= 3 for cities in STATES.values())
    assert not set(CITIES) & set(STATES)
    for city in CITIES.values():
        assert 24 < city.latitude < 50
        assert -125 < city.longitude < -66
        # a slip in a coordinate would put a city far from the others of its state
        assert (
            min(
                kilometres(city, CITIES[other])
                for other in STATES[city.state]
                if other != city.name
            )
            < 620
        ), city


def test_distance_follows_the_great_circle() -> None:
    # From city to city as the crow flies: about 2,390 miles.
    assert kilometres(CITIES["Los Angeles"], CITIES["Philadelphia"]) == pytest.approx(3846, abs=15)
    assert kilometres(CITIES["Omaha"], CITIES["Omaha"]) == 0


def test_a_world_depends_on_its_seed_and_not_on_the_order_of_questions() -> None:
    one, two = generate_world(7), generate_world(7)
    two.tables("Detroit")
    two.flights("Detroit", "Omaha", "2022-03-19")
    two.sandbox(trip("Boston", "Texas"))
    a, b = one.sandbox(trip()), two.sandbox(trip())
    assert a.flights == b.flights
    assert a.restaurants == b.restaurants
    assert a.accommodations == b.accommodations
    assert a.attractions == b.attractions
    assert a.routes == b.routes
    assert a.restaurants != generate_world(8).sandbox(trip()).restaurants
    assert (
        one.tables("Detroit").restaurants == two.sandbox(trip("Boston")).restaurants_in["Detroit"]
    )


def test_a_world_is_pinned_so_that_a_seed_means_the_same_tomorrow() -> None:
    world = World(7)
    first = world.tables("Omaha").restaurants[0]
    assert (first.name, first.average_cost, first.cuisines) == (
        "Falcon Noodle Bar",
        27.0,
        "BBQ, Seafood, Chinese",
    )
    assert world.flights("Omaha", "Detroit", "2022-03-19")[0].number == "F6627688"


def test_a_sandbox_holds_the_origin_and_the_cities_of_the_state() -> None:
    sandbox = World(3).sandbox(trip())
    assert set(sandbox.states) == {"Omaha", *STATES["Michigan"]}
    assert set(sandbox.accommodations_in) == set(sandbox.states)
    assert {flight.date for flight in sandbox.flights} <= set(DATES)
    in_state = World(3).sandbox(trip("Detroit"))
    assert set(in_state.states) == set(STATES["Michigan"])
    to_city = World(3).sandbox(trip("Omaha", "Detroit"))
    assert set(to_city.states) == {"Omaha", *STATES["Michigan"]}


@pytest.mark.parametrize("seed", range(4))
def test_no_name_of_a_city_is_part_of_another_name_there(seed: int) -> None:
    world = World(seed)
    for city in ("Denver", "Miami", "Boston"):
        tables = world.tables(city)
        for rows in (tables.restaurants, tables.accommodations, tables.attractions):
            names = [row.name for row in rows]
            assert not any(
                a in b for i, a in enumerate(names) for j, b in enumerate(names) if i != j
            )


def test_rows_have_the_shapes_of_the_tables() -> None:
    world = World(11)
    for city in STATES["Texas"]:
        for room in world.tables(city).accommodations:
            assert room.room_type in {"Entire home/apt", "Private room", "Shared room"}
            rules = room.house_rules.split(" & ") if room.house_rules else []
            assert set(rules) <= {f"No {rule}" for rule in HOUSE_RULES}
            assert room.maximum_occupancy >= 1
            assert room.minimum_nights >= 1
            assert room.city == city
    drive, taxi = world.routes("Dallas", "Houston")
    assert (drive.mode, taxi.mode) == ("self-driving", "taxi")
    assert drive.duration == taxi.duration
    assert drive.distance is not None
    kilometres_by_road = int(drive.distance.removesuffix(" km").replace(",", ""))
    assert taxi.cost == kilometres_by_road
    assert drive.cost == int(kilometres_by_road * 0.05)
    assert world.routes("Seattle", "Miami")[0].cost is None


def test_flight_numbers_are_unique_across_pairs_and_dates() -> None:
    world = World(5)
    days = [str(date(2022, 3, 1) + timedelta(days=n)) for n in range(21)]
    cities = ("Boston", *STATES["California"], *STATES["Colorado"])
    numbers = [
        flight.number
        for day in days
        for a in cities
        for b in cities
        if a != b
        for flight in world.flights(a, b, day)
    ]
    assert len(numbers) > 1000
    assert len(set(numbers)) == len(numbers)


def test_unknown_places_are_named() -> None:
    with pytest.raises(InvalidInput, match="'Atlantis'"):
        World(1).tables("Atlantis")
    with pytest.raises(InvalidInput, match="'Atlantis'"):
        World(1).sandbox(trip("Omaha", "Atlantis"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 7])
def test_every_instance_has_a_plan_that_satisfies_everything(seed: int) -> None:
    world = World(seed)
    for index in range(150):
        trip = make_instance(world, index).trip
        verdict = evaluate(solution_of(world, index), trip, world.sandbox(trip))
        assert verdict.performance == 1.0, (index, verdict)
        assert verdict.total_cost is not None
        assert trip.budget is not None
        # the budget is tight: rounded up to hundreds from at most a tenth more
        assert verdict.total_cost * 1.02 <= trip.budget <= verdict.total_cost * 1.1 + 100


def test_a_request_tells_where_and_when_and_a_profile_the_rest() -> None:
    world = World(7)
    for index in range(90):
        instance = make_instance(world, index)
        trip = instance.trip
        request = understand_request(instance.request)
        assert request == (trip.origin, trip.destination, trip.dates)
        assert understand_message(instance.request) == ()
        hidden = {fact for fact in facts_of(trip) if fact.slot != "cities" or trip.days > 3}
        assert set(understand_preferences(instance.preferences)) == hidden
        assert len(instance.preferences) == len(hidden)


def test_instances_vary_and_are_the_same_again() -> None:
    instances = [make_instance(World(7), index) for index in range(60)]
    assert instances == [make_instance(World(7), index) for index in range(60)]
    assert len({instance.id for instance in instances}) == 60
    assert {(i.trip.days, i.trip.cities) for i in instances} == {
        (3, 1),
        (5, 1),
        (5, 2),
        (7, 2),
        (7, 3),
    }
    for instance in instances:
        trip = instance.trip
        assert len(trip.dates) == trip.days
        assert trip.origin not in STATES.get(trip.destination, ())
        assert (trip.destination in CITIES) == (trip.days == 3)
    limits = [instance.trip.constraints for instance in instances]
    for field in ("house_rule", "cuisine", "room_type", "transportation"):
        values = {getattr(limit, field) for limit in limits}
        assert None in values
        assert len(values) >= 3
