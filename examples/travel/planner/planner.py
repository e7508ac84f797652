"""The planner: the best plan for the known wishes and the search results.

It works out journeys through the cities that were searched, and takes the most comfortable plan
within the budget that meets all wishes; if none does, the one that fails fewest. By default it
assumes one traveller, one city (two if the destination is a state), and that comfort counts more
than money.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, islice, pairwise
from typing import Final, Literal, NamedTuple

from ..data.tables import Accommodation, Restaurant
from ..plan.plan import BLANK, DayPlan, Plan
from .finds import Finds, SearchRequest
from .knowledge import Knowledge
from .legs import Leg
from .routes import (
    Journey,
    candidates,
    city_count,
    even_nights,
    journeys,
    leads_back,
    transfers,
)
from .stays import Table, room_cost

__all__ = ("Draft", "needed_searches", "next_step", "plan_trip")

Meal = Literal["breakfast", "lunch", "dinner"]
_MEALS: Final[tuple[Meal, ...]] = ("breakfast", "lunch", "dinner")

# Hours of the day: a meal is before a later departure, and after an earlier arrival.
_BREAKFAST: Final = 7.5
_LUNCH: Final = 13.5
_DINNER: Final = 20.5
_LATER_MEALS: Final[tuple[tuple[Meal, float], ...]] = (("lunch", _LUNCH), ("dinner", _DINNER))
_SIGHTS_A_DAY: Final = 2
_LAST_SIGHT: Final = 16.0  # no sights on that day after a later arrival


class Slot(NamedTuple):
    """A meal to plan.

    Attributes:
        day: counted from 0.
        meal: which.
        city: the city of the meal.
        travelling: whether the day is one of travel, on which a meal may be left out.
    """

    day: int
    meal: Meal
    city: str
    travelling: bool


def meal_slots(journey: Journey) -> list[Slot]:
    """The meals of a journey, without those for which a day of travel has no time."""
    slots: list[Slot] = []
    moves = transfers(journey.nights)
    for number, day in enumerate(moves):
        slots += (Slot(day, meal, city, True) for meal, city in _on_the_way(journey, number))
        if number < len(journey.stops):
            city = journey.stops[number]
            for full in range(day + 1, moves[number + 1]):
                slots += (Slot(full, meal, city, False) for meal in _MEALS)
    return slots


def _meal_counts(journey: Journey, *, lean: bool) -> dict[str, int]:
    """How many meals there are in each city, or only those that may not be left out."""
    counts: dict[str, int] = {}
    for number in range(len(journey.legs)):
        for _, city in () if lean else _on_the_way(journey, number):
            counts[city] = counts.get(city, 0) + 1
        full = journey.nights[number] - 1 if number < len(journey.stops) else 0
        if full > 0:
            city = journey.stops[number]
            counts[city] = counts.get(city, 0) + len(_MEALS) * full
    return counts


def _on_the_way(journey: Journey, number: int) -> list[tuple[Meal, str]]:
    """The meals for which a day of travel has time, and their cities."""
    leg, stops = journey.legs[number], journey.stops
    left = stops[number - 1] if number else None
    reached = stops[number] if number < len(stops) else None
    found: list[tuple[Meal, str]] = []
    if left is not None and leg.departs >= _BREAKFAST:
        found.append(("breakfast", left))
    for meal, hour in _LATER_MEALS:
        if reached is not None and leg.arrives <= hour:
            found.append((meal, reached))
        elif left is not None and leg.departs >= hour:
            found.append((meal, left))
    return found


def write_days(
    home: str,
    journey: Journey,
    rooms: Sequence[Accommodation | None],
    meals: Mapping[str, Sequence[Restaurant]],
    slots: Iterable[Slot],
    finds: Finds,
) -> Plan:
    """The plan of a journey: each slot is filled as long as there are restaurants for it.

    Args:
        home: where it starts and ends.
        journey: cities, nights and legs.
        rooms: one a stop.
        meals: restaurants by city, at most one a slot there.
        slots: the meals.
        finds: for what there is to see.
    """
    waiting = {city: iter(chosen) for city, chosen in meals.items()}
    eaten: dict[tuple[int, Meal], str] = {}
    for slot in slots:
        restaurant = next(waiting.get(slot.city, iter(())), None)
        if restaurant is not None:
            eaten[slot.day, slot.meal] = f"{restaurant.name}, {slot.city}"
    cities = (home, *journey.stops, home)
    moves = transfers(journey.nights)
    days: list[DayPlan] = []
    for stop, leg in enumerate(journey.legs):
        before, city = cities[stop], cities[stop + 1]
        nights = journey.nights[stop] if stop < len(rooms) else 1
        room = rooms[stop] if stop < len(rooms) else None
        known = () if room is None else finds.attractions.get(city, ())
        sights = _spread(known, city, nights, leg.arrives <= _LAST_SIGHT)
        for index in range(nights):
            day = moves[stop] + index
            days.append(
                DayPlan(
                    days=day + 1,
                    current_city=city if index else f"from {before} to {city}",
                    transportation=BLANK if index else leg.line,
                    breakfast=eaten.get((day, "breakfast"), BLANK),
                    attraction=sights[index],
                    lunch=eaten.get((day, "lunch"), BLANK),
                    dinner=eaten.get((day, "dinner"), BLANK),
                    accommodation=BLANK if room is None else f"{room.name}, {city}",
                )
            )
    return tuple(days)


def _spread(names: Sequence[str], city: str, days: int, on_arrival: bool) -> list[str]:
    """The sights of each day in a city: first one for every full day, then one more for each."""
    shares: list[list[str]] = [[] for _ in range(days)]
    order = [*range(1, days)] * _SIGHTS_A_DAY
    if on_arrival:
        order.insert(days - 1, 0)
    for name, day in zip(names, order, strict=False):
        shares[day].append(f"{name}, {city};")
    return ["".join(share) or BLANK for share in shares]


# --- the planner ----------------------------------------------------------------------------------


_USUAL_COMFORT: Final = 10.0
_COMFORTS: Final = (4.0, 1.5, 0.5, 0.0)
_JOURNEYS: Final = 24  # how many, the best first, are worked out in full
_SPLIT_JOURNEYS: Final = 6  # and how many if the nights are spread unevenly
_NEAR: Final = 1.1  # of the budget: what other spreads of the nights may save
_SPLITS: Final = 40  # how many uneven spreads of the nights are tried
_CITIES_TO_SEARCH: Final = 8


class _Candidate(NamedTuple):
    """A candidate plan, its cost, and the wishes that it fails.

    A lean one has no meals on days of travel.
    """

    journey: Journey
    rooms: tuple[Accommodation | None, ...]
    meals: Table
    lean: bool
    cost: float
    burden: float
    unmet: frozenset[str]


class Draft(NamedTuple):
    """A plan, its known cost in dollars, and the wishes that it fails."""

    plan: Plan
    dollars: float
    unmet: frozenset[str]


def plan_trip(known: Knowledge, finds: Finds) -> Plan:
    """Makes the best plan from the search results; it has blanks for what was not found."""
    return draft_trip(known, finds).plan


def next_step(known: Knowledge, finds: Finds) -> tuple[tuple[SearchRequest, ...], Draft | None]:
    """The searches to make next; or, if no search would improve it, the plan."""
    searches, best = _needed(known, finds)
    if searches:
        return searches, None
    return (), _written(known, finds, best) if best else draft_trip(known, finds)


def draft_trip(known: Knowledge, finds: Finds) -> Draft:
    """Makes the best plan from the search results, and says what is wrong with it."""
    drafts = (_best_draft(known, finds, count) for count in _counts(known))
    best = next((draft for draft in drafts if draft is not None), None) or _sketch(known, finds)
    return _written(known, finds, best)


def _written(known: Knowledge, finds: Finds, draft: _Candidate) -> Draft:
    journey, meals = draft.journey, draft.meals.by_city
    slots = [slot for slot in meal_slots(journey) if not (draft.lean and slot.travelling)]
    plan = write_days(known.origin, journey, draft.rooms, meals, slots, finds)
    return Draft(plan, draft.cost, draft.unmet)


def needed_searches(known: Knowledge, finds: Finds) -> tuple[SearchRequest, ...]:
    """The searches to make next; none if no search would improve the plan.

    First the cities of a state, then the ways there, between them and back, then the offers of
    the cities of the best journey; and where the plan still fails a wish, those of another.
    """
    return _needed(known, finds)[0]


def _needed(known: Knowledge, finds: Finds) -> tuple[tuple[SearchRequest, ...], _Candidate | None]:
    """The searches, and the best plan so far if one was worked out."""
    state = known.destination
    if known.to_state and state not in finds.cities:
        return _not_made(finds, [SearchRequest("SearchCities", {"state": state})]), None
    places = candidates(known, finds)
    for count in _counts(known):
        travel = _not_made(finds, _travel_searches(known, count))
        if travel:
            return travel, None
        if leads_back(known, finds, places, even_nights(known.days - 1, count)):
            break
    else:  # no way to travel was found: at least say what the first cities offer
        return _not_made(finds, _offers_of(places[: city_count(known)])), None
    draft = _best_draft(known, finds, count)
    if draft is not None and not draft.unmet:
        return (), draft
    saving = draft is not None and "budget" in draft.unmet
    cities = _cities_to_search(known, finds, count, saving=saving)
    return _not_made(finds, _offers_of(cities)), draft


def _counts(known: Knowledge) -> tuple[int, ...]:
    """Numbers of cities to try, the likeliest first; the others if nothing can be found for it."""
    likeliest = city_count(known)
    others = (3, 2, 1) if known.to_state else (1,)
    return tuple(dict.fromkeys((likeliest, *(n for n in others if n < known.days))))


def _offers_of(cities: Iterable[str]) -> list[SearchRequest]:
    return [
        SearchRequest(name, {"city": city})
        for city in cities
        for name in ("SearchAccommodations", "SearchRestaurants", "SearchAttractions")
    ]


def _not_made(finds: Finds, searches: Iterable[SearchRequest]) -> tuple[SearchRequest, ...]:
    return tuple(search for search in searches if not finds.made(search))


def _travel_searches(known: Knowledge, count: int) -> list[SearchRequest]:
    home = known.origin
    there = f"{known.destination} (state)" if known.to_state else known.destination
    moves = transfers(even_nights(known.days - 1, count))
    pairs = [(home, there), *[(there, there)] * (count - 1), (there, home)]
    searches = [
        SearchRequest("SearchDistance", {"origin": a, "destination": b})
        for a, b in dict.fromkeys(pairs)
    ]
    if "no flight" not in known.transportation:
        searches += [
            SearchRequest(
                "SearchFlights", {"origin": a, "destination": b, "date": known.dates[day]}
            )
            for (a, b), day in zip(pairs, moves, strict=True)
        ]
    return searches


def _cities_to_search(
    known: Knowledge, finds: Finds, count: int, *, saving: bool
) -> tuple[str, ...]:
    """The cities, not yet searched, of the best journey that leads to any.

    Cities that were searched and have no suitable room are left out.
    """
    places = candidates(known, finds)
    searched = [city for city in places if _is_searched(city, finds)]
    if len(searched) >= _CITIES_TO_SEARCH:
        return ()
    nights = even_nights(known.days - 1, count)
    useless = {city for city in searched if finds.rooms.pick(known, city, min(nights), 0.0)[1]}
    useful = [city for city in places if city not in useless]
    for journey in journeys(known, finds, useful, nights, saving=saving):
        fresh = tuple(city for city in journey.stops if city not in searched)
        if fresh:
            return fresh
    return ()


def _is_searched(city: str, finds: Finds) -> bool:
    return finds.made(SearchRequest("SearchAccommodations", {"city": city}))


def _best_draft(known: Knowledge, finds: Finds, count: int) -> _Candidate | None:
    """The best plan through this number of searched cities; None if no journey is known."""
    cities = [city for city in candidates(known, finds) if city in finds.accommodations]
    total = known.days - 1
    nights = even_nights(total, count)
    best = _best_of(known, finds, cities, nights, _JOURNEYS)
    if best is None or (count > 1 and best.unmet and not _is_out_of_reach(best, known)):
        cuts = ((0, *inner, total) for inner in combinations(range(1, total), count - 1))
        for cut in islice(cuts, _SPLITS):
            split = tuple(b - a for a, b in pairwise(cut))
            if split == nights:
                continue
            other = _best_of(known, finds, cities, split, _SPLIT_JOURNEYS)
            if other is not None and (best is None or _rank(other) < _rank(best)):
                best = other
            if best is not None and not best.unmet:
                break
    return best


def _is_out_of_reach(best: _Candidate, known: Knowledge) -> bool:
    """Whether all that is wrong with the best plan is a budget that is far from enough."""
    short = known.budget is not None and best.cost > _NEAR * known.budget
    return short and best.unmet == {"budget"}


def _rank(draft: _Candidate) -> tuple[int, float]:
    return len(draft.unmet), draft.cost


def _best_of(
    known: Knowledge, finds: Finds, cities: Sequence[str], nights: tuple[int, ...], limit: int
) -> _Candidate | None:
    """The most comfortable plan that meets all wishes, else the one that fails fewest."""
    comfortable = [*islice(journeys(known, finds, cities, nights), limit)]
    if not comfortable:
        return None
    worst = _drafts(known, finds, comfortable, _USUAL_COMFORT, lean=False)
    good = [draft for draft in worst if not draft.unmet]
    if good:
        return min(good, key=lambda draft: draft.burden)
    saving = [*islice(journeys(known, finds, cities, nights, saving=True), limit)]
    cheap = [d for lean in (False, True) for d in _drafts(known, finds, saving, 0.0, lean=lean)]
    # If the cheapest plans fail a wish, so do the more comfortable ones, which cost more.
    for comfort in _COMFORTS if any(not draft.unmet for draft in cheap) else ():
        drafts = _drafts(known, finds, comfortable, comfort, lean=False)
        good = [draft for draft in drafts if not draft.unmet]
        if good:
            return min(good, key=lambda draft: draft.burden)
    return min((*worst, *cheap), key=_rank)


def _drafts(
    known: Knowledge, finds: Finds, ways: Iterable[Journey], comfort: float, *, lean: bool
) -> list[_Candidate]:
    people = known.party
    meals: dict[tuple[tuple[str, int], ...], Table] = {}
    drafts = []
    for way in ways:
        unmet: set[str] = set()
        fare = cost = way.fare
        stay = []
        for city, nights in zip(way.stops, way.nights, strict=True):
            room, failed = finds.rooms.pick(known, city, nights, comfort)
            stay.append(room)
            unmet.update(failed)
            cost += 0.0 if room is None else nights * room_cost(room, people)
        counts = _meal_counts(way, lean=lean)
        # Cities in another order might be given other restaurants: the first order holds for all.
        key = tuple(sorted(counts.items()))
        if key not in meals:
            meals[key] = finds.tables.pick(known.cuisines, counts, comfort)
        table = meals[key]
        unmet.update(f"cuisine {cuisine}" for cuisine in table.missing)
        cost += people * table.dollars
        if table.filled < sum(counts.values()):
            unmet.add("meals")
        if known.budget is not None and cost > known.budget:
            unmet.add("budget")
        burden = way.burden - fare + cost
        drafts.append(_Candidate(way, tuple(stay), table, lean, cost, burden, frozenset(unmet)))
    return drafts


def _sketch(known: Knowledge, finds: Finds) -> _Candidate:
    """A plan without transportation, if none was found: it shows what is still open."""
    count = city_count(known)
    places = candidates(known, finds)[:count] or (known.destination,)
    nights = even_nights(known.days - 1, len(places))
    blank = Leg(BLANK, 0.0, 0.0, 8.0, 8.0)
    journey = Journey(places, nights, (blank,) * (len(places) + 1))
    return _drafts(known, finds, [journey], _USUAL_COMFORT, lean=False)[0]
