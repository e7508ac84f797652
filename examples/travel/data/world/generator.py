"""Generates worlds from a seed: the tables of every city, road and flight.

A world is endless for practical purposes (155 cities, every date), so that its tables are made
when they are first asked for, each from its own random source. A city's tables depend only on the
seed and the city, never on earlier requests. A trip sees a `Sandbox`: the slice of the world with
the trip's origin and all the cities of the state it goes to.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date as Date
from math import ceil
from random import Random
from typing import final

import msgspec

from .....engine.errors import InvalidInput
from ...language.facts import CUISINES, HOUSE_RULES
from ..tables import Accommodation, Attraction, Flight, Restaurant, Route, Sandbox, Trip
from .cities import CITIES, STATES, City, kilometres

__all__ = ("World", "generate_world")

_FIRST = (
    "Amber Anchor Aspen Birch Blue Brass Bright Canyon Cedar Clover Copper Coral Corner Crimson "
    "Driftwood Eagle Elm Ember Falcon Fern Flint Foxglove Garnet Golden Granite Harbor Hazel Heron "
    "Hickory Indigo Iron Ivory Jade Juniper Kestrel Lantern Laurel Lighthouse Lilac Linden Lucky "
    "Lupine Maple Marigold Meadow Mesa Midtown Millstone Moonlit Mulberry Oak Old Olive Orchard "
    "Osprey Pepper Pine Plum Poplar Prairie Quail Quarry Red Ridge River Robin Rosewood Rustic "
    "Saffron Sage Sandstone Silver Sparrow Spruce Summit Sunny Sycamore Tamarack Teal Thistle "
    "Timber Tulip Valley Velvet Violet Walnut Willow Wren"
).split()

_RESTAURANTS = (
    "{a} Table;{a} Kitchen;{a} & {b};The {a} Spoon;{a} Street Grill;Cafe {a};{a} Bistro;"
    "The {a} {b};{a} Diner;House of {a};{a} Tavern;{a} Garden;Little {a};{a} Noodle Bar;"
    "{a} Smokehouse;{a} Bakehouse;Chez {a};{a} Cantina;{a} Trattoria;{a} Spice;The {a} Plate;"
    "{a} Corner Deli;{a} Fork"
).split(";")

_ROOMS = {
    "Entire home/apt": (
        "{a} Street Loft;{adj} {n}-bedroom house near {b} Park;{adj} apartment with a view;"
        "The {a} Cottage;{adj} {n}BR flat in {b} Heights;{a} Bungalow;Whole floor on {a} Avenue;"
        "{adj} townhouse by {b} Square"
    ).split(";"),
    "Private room": (
        "{adj} room on {a} Street;Private room in {b} House;{adj} bedroom near {a} Station;"
        "Guest room at the {a};{adj} attic room, {b} quarter;Room {n} in a {a} villa;"
        "{adj} queen room near {b} Market"
    ).split(";"),
    "Shared room": (
        "{a} Hostel, bed {n};{adj} shared dorm at {b} House;Bunk in the {a} Lodge;"
        "{adj} shared room near {b} Campus;{a} Backpackers, dorm {n}"
    ).split(";"),
}

_ADJECTIVES = (
    "Airy Bright Calm Charming Clean Comfy Cozy Cute Elegant Handy Homey Large Lovely Modern Neat "
    "Peaceful Quaint Quiet Relaxing Renovated Roomy Simple Snug Spacious Stylish Sunlit Tidy "
    "Vintage Warm"
).split()

_SIGHTS = (
    "{a} Museum of Art;{a} Park;{a} Botanical Garden;{a} Science Center;{a} Zoo;{a} Bridge;"
    "{a} History Museum;{a} Theater;{a} Overlook;{a} Farmers Market;{a} Nature Preserve;"
    "{a} Railway Museum;{a} Observatory;{a} Aquarium;Fort {a};{a} Mansion;{a} Waterfront;"
    "{a} Sculpture Walk;{a} Cathedral;{a} Planetarium"
).split(";")


@final
class NameMaker:
    """Makes names for the places of one city, none of which contains another.

    Args:
        random: the source of all its choices.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._taken: list[str] = []

    def restaurant(self) -> str:
        """A name for a restaurant."""
        return self._name(_RESTAURANTS)

    def room(self, room_type: str) -> str:
        """A name for a place to stay of this room type (as the tables write it)."""
        return self._name(_ROOMS[room_type])

    def sight(self) -> str:
        """A name for an attraction."""
        return self._name(_SIGHTS)

    def _name(self, patterns: Sequence[str]) -> str:
        choice = self._random.choice
        while True:
            name = choice(patterns).format(
                a=choice(_FIRST),
                b=choice(_FIRST),
                adj=choice(_ADJECTIVES),
                n=self._random.randint(1, 4),
            )
            if not any(name in other or other in name for other in self._taken):
                self._taken.append(name)
                return name


# --- generates worlds from a seed -----------------------------------------------------------------


_OTHER_CUISINES = ("BBQ", "Bakery", "Cafe", "Desserts", "Fast Food", "Pizza", "Seafood", "Tea")
_ROOM_TYPES = ("Entire home/apt", "Private room", "Shared room")
_MINIMUM_NIGHTS = (1, 2, 3, 4, 5, 7, 14, 30)
_ROAD_FACTOR = 1.2  # roads are longer than the great circle
_ROAD_SPEED = 108.0  # kilometres an hour
_SANDBOXES = 256  # slices that a world caches for runs over the same trips
_WINDOW = 92  # dates that share one range of flight numbers
_FLIGHTS_A_DAY = 3
_PRIME = 8_999_993  # scatters flight numbers without ever giving one out twice


class CityTables(msgspec.Struct, frozen=True):
    """The offers in one city."""

    restaurants: tuple[Restaurant, ...]
    accommodations: tuple[Accommodation, ...]
    attractions: tuple[Attraction, ...]


class _Service(msgspec.Struct, frozen=True):
    """A flight of the timetable: minute of departure, weekdays, and usual price."""

    departs: int
    weekdays: tuple[int, ...]
    price: float


@final
class World:
    """A world made from a seed.

    Args:
        seed: the same seed gives the same world.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._tables: dict[str, CityTables] = {}
        self._timetables: dict[tuple[str, str], tuple[_Service, ...]] = {}
        self._sandboxes: dict[tuple[str, str, tuple[str, ...]], Sandbox] = {}

    def tables(self, city: str) -> CityTables:
        """The restaurants, accommodations and attractions of a city.

        Raises:
            InvalidInput: there is no such city.
        """
        tables = self._tables.get(city)
        if tables is None:
            place = _city(city)
            tables = _furnish(place, Random(f"{self.seed}/city/{city}"))
            self._tables[city] = tables
        return tables

    def routes(self, origin: str, destination: str) -> tuple[Route, Route]:
        """The way over land by car and by taxi; both without values if it takes a day or more.

        Costs follow TravelPlanner: five cents a kilometre at the wheel, a dollar in a taxi.

        Raises:
            InvalidInput: there is no such city.
        """
        distance = kilometres(_city(origin), _city(destination)) * _ROAD_FACTOR
        minutes = ceil(distance / _ROAD_SPEED * 60)
        if minutes >= 24 * 60:
            return (
                Route(origin, destination, "self-driving", None, None, None),
                Route(origin, destination, "taxi", None, None, None),
            )
        whole = int(distance)
        time = _spell(minutes, "min")
        return (
            Route(origin, destination, "self-driving", time, f"{whole:,} km", whole * 5 // 100),
            Route(origin, destination, "taxi", time, f"{whole:,} km", whole),
        )

    def flights(self, origin: str, destination: str, date: str) -> tuple[Flight, ...]:
        """The flights of one ISO date, earliest first; none if the cities are close.

        Raises:
            InvalidInput: there is no such city.
        """
        services = self._timetables.get((origin, destination))
        if services is None:
            random = Random(f"{self.seed}/flights/{origin}/{destination}")
            services = _timetable(kilometres(_city(origin), _city(destination)), random)
            self._timetables[origin, destination] = services
        if not services:
            return ()
        distance = kilometres(_city(origin), _city(destination))
        minutes = int(30 + distance / 780 * 60)
        day = Date.fromisoformat(date)
        pair = _INDEX[origin] * len(_INDEX) + _INDEX[destination]
        first = (pair * _WINDOW + day.toordinal() % _WINDOW) * _FLIGHTS_A_DAY
        return tuple(
            Flight(
                number=f"F{(first + k) * 4_321_987 % _PRIME + 1_000_000}",
                price=float(round(service.price * (0.8 + _wobble(self.seed, first + k) * 0.5))),
                departs=_clock(service.departs),
                arrives=_clock(service.departs + minutes),
                elapsed=_spell(minutes, "minute"),
                date=date,
                origin=origin,
                destination=destination,
                distance=float(round(distance / 1.609344)),
            )
            for k, service in enumerate(services)
            if day.weekday() in service.weekdays
        )

    def sandbox(self, trip: Trip) -> Sandbox:
        """The slice of the world for a trip; cached.

        Raises:
            InvalidInput: this world does not have the origin or the destination.
        """
        key = (trip.origin, trip.destination, trip.dates)
        sandbox = self._sandboxes.get(key)
        if sandbox is None:
            sandbox = self._slice(trip)
            if len(self._sandboxes) >= _SANDBOXES:
                del self._sandboxes[next(iter(self._sandboxes))]
            self._sandboxes[key] = sandbox
        return sandbox

    def _slice(self, trip: Trip) -> Sandbox:
        state = trip.destination if trip.destination in STATES else _city(trip.destination).state
        cities = tuple(dict.fromkeys((_city(trip.origin).name, *STATES[state])))
        tables = tuple(self.tables(city) for city in cities)
        pairs = tuple((a, b) for a in cities for b in cities if a != b)
        return Sandbox(
            flights=(f for date in trip.dates for a, b in pairs for f in self.flights(a, b, date)),
            restaurants=(r for table in tables for r in table.restaurants),
            accommodations=(r for table in tables for r in table.accommodations),
            attractions=(r for table in tables for r in table.attractions),
            routes=(route for a, b in pairs for route in self.routes(a, b)),
            states={city: CITIES[city].state for city in cities},
        )


def generate_world(seed: int) -> World:
    """The world of a seed; its tables are made as they are needed."""
    return World(seed)


_INDEX = {name: index for index, name in enumerate(CITIES)}


def _city(name: str) -> City:
    city = CITIES.get(name)
    if city is None:
        raise InvalidInput(f"unknown city {name!r}; see world_cities.CITIES")
    return city


def _furnish(city: City, random: Random) -> CityTables:
    names = NameMaker(random)
    return CityTables(
        restaurants=tuple(_restaurant(city, names, random) for _ in range(random.randint(20, 26))),
        accommodations=tuple(_room(city, names, random) for _ in range(random.randint(18, 24))),
        attractions=tuple(_sight(city, names, random) for _ in range(random.randint(12, 18))),
    )


def _restaurant(city: City, names: NameMaker, random: Random) -> Restaurant:
    offered = [cuisine for cuisine in CUISINES if random.random() < 0.12]
    offered += random.sample(_OTHER_CUISINES, random.randint(1, 3))
    random.shuffle(offered)
    return Restaurant(
        name=names.restaurant(),
        average_cost=float(random.randint(10, 100)),
        cuisines=", ".join(offered),
        rating=round(random.triangular(2.0, 5.0, 3.8), 1),
        city=city.name,
    )


def _room(city: City, names: NameMaker, random: Random) -> Accommodation:
    kind = random.choices(_ROOM_TYPES, (47, 40, 13))[0]
    low, high, sleeps = {
        "Entire home/apt": (110, 650, (2, 8)),
        "Private room": (60, 400, (1, 4)),
        "Shared room": (30, 160, (1, 2)),
    }[kind]
    forbidden = [rule for rule in HOUSE_RULES if random.random() < 0.42]
    random.shuffle(forbidden)
    return Accommodation(
        name=names.room(kind),
        price=float(round(random.triangular(low, high, low + (high - low) / 4))),
        room_type=kind,
        house_rules=" & ".join(f"No {rule}" for rule in forbidden),
        minimum_nights=float(random.choices(_MINIMUM_NIGHTS, (42, 28, 9, 6, 5, 5, 2, 3))[0]),
        maximum_occupancy=random.randint(*sleeps),
        rating=float(random.choices((1, 2, 3, 4, 5), (5, 15, 30, 30, 20))[0]),
        city=city.name,
    )


def _sight(city: City, names: NameMaker, random: Random) -> Attraction:
    name = names.sight()
    page = "".join(letter for letter in name.lower() if letter.isalnum())
    return Attraction(
        name=name,
        latitude=round(city.latitude + random.uniform(-0.1, 0.1), 6),
        longitude=round(city.longitude + random.uniform(-0.1, 0.1), 6),
        address=f"{random.randint(1, 980)} Main Street, {city.name}, {city.state}, USA",
        phone=f"(555) {random.randint(200, 999)}-{random.randint(0, 9999):04}",
        website=f"https://{page}.example",
        city=city.name,
    )


def _timetable(distance: float, random: Random) -> tuple[_Service, ...]:
    """The flights between two cities; none below 150 km, and not always some above."""
    served = random.random() < (0.0 if distance < 150 else 0.45 if distance < 450 else 0.8)
    count = random.randint(1, _FLIGHTS_A_DAY) if served else 0
    times = sorted(random.randint(330, 1230) for _ in range(count))
    return tuple(
        _Service(
            departs=time,
            weekdays=tuple(day for day in range(7) if random.random() < 0.9),
            price=35 + distance * random.uniform(0.08, 0.2),
        )
        for time in times
    )


def _wobble(seed: int, number: int) -> float:
    """A number in [0, 1) from two others, well mixed (the finaliser of SplitMix64)."""
    mask = (1 << 64) - 1
    z = (seed * 0x9E3779B97F4A7C15 + number * 0xD1B54A32D192ED03) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return ((z ^ (z >> 31)) >> 11) / (1 << 53)


def _clock(minutes: int) -> str:
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}"


def _spell(minutes: int, minute: str) -> str:
    """Minutes in words: ``2 hours 5 mins``, ``1 hour``, ``40 mins`` (or ``minutes``)."""
    hours, rest = divmod(minutes, 60)
    words = [f"{hours} hour{'s' * (hours != 1)}"] if hours else []
    if rest or not hours:
        words.append(f"{rest} {minute}{'s' * (rest != 1)}")
    return " ".join(words)
