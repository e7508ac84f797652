"""Instances: a survey, its analyst's knowledge and wishes, and their later wishes."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import msgspec

from ...engine.errors import InvalidInput
from ...tasks.kit import index_of
from .facts import (
    ADVISED,
    CHANNELS,
    DEFAULTS,
    RULINGS,
    TABLES,
    Claim,
    Names,
    Ruling,
    Rulings,
    Topic,
)
from .truth import YOUNGER, Answers, Person, Price, Rating, Sums, Tables

__all__ = ("Instance", "Wants", "invent_survey", "make_instance", "opened_by")

_SUBJECTS = {
    "coffee": "Espresso Latte Mocha Cortado Americano Macchiato Ristretto",
    "tea": "Assam Sencha Chai Oolong Rooibos Darjeeling Matcha",
    "ice cream": "Vanilla Pistachio Stracciatella Hazelnut Mango Caramel Lemon",
    "bread": "Rye Sourdough Ciabatta Baguette Focaccia Spelt Brioche",
    "soup": "Minestrone Gazpacho Ramen Borscht Chowder Goulash Laksa",
    "juice": "Orange Apple Carrot Grapefruit Pomegranate Ginger Beetroot",
}
_REGIONS = "Northmoor Eastvale Southport Westbrook Midlands Highfield Riverside Lakeland".split()
_SMALL = "Skerry Holm Farley Inchkeith".split()

_PEOPLE, _FEW_PEOPLE = 90, 6  # in a region, and in the small one
_STORES, _AIRPORTS, _FEW_STORES = 8, 2, 2
_ASKED = 0.8  # share of the products that a person rates
_NOISE = 1.0  # points
_RARE, _COMMON = 0.08, 0.35  # share of a sort of people, if it decides nothing and if it does
_ZEROS = 0.35  # share of ratings of zero, if they decide
_BEST, _SECOND = 2.0, 1.1  # points by which products lead in a region
_TURN = 3.4  # points by which a sort of people turns a favourite round
_BY_AGE = {
    True: (0.65, 0.2, 0.15),
    False: (0.15, 0.65, 0.2),
}  # channels of younger and older people


class Survey(msgspec.Struct, frozen=True):
    """Invented tables, and the patterns planted in them.

    Attributes:
        names: the names of the survey.
        tables: as they are stored.
        planted: the topic that each ruling decides.
        patterns: topics of planted patterns that depend on no ruling.
        decoys: topics of false patterns, which only a missing control or too few data suggest.
    """

    names: Names
    tables: Tables
    planted: dict[Ruling, Topic]
    patterns: tuple[Topic, ...]
    decoys: tuple[Topic, ...]


class _Plan(msgspec.Struct, frozen=True):
    """The plan for planting patterns: products by role, regions by role."""

    names: Names
    best: dict[str, str]
    second: dict[str, str]
    pilot: str
    staff: str
    zeros: str
    plain: str
    small: str
    by_age: str
    sign: int
    by_channel: str
    channel: str
    mixed: str
    dear: str
    dear_in: str
    airport: str
    airport_in: str


def invent_survey(random: Random) -> Survey:
    """The survey of a stream of random numbers."""
    plan = _plan(random)
    people = _people(plan, random)
    ratings = _ratings(plan, people, random)
    prices = _prices(plan, random)
    tables = Tables(_misspelt(people, random), _dirty(ratings, random), _in_cents(prices, random))
    planted: dict[Ruling, Topic] = {
        "pilot": Topic("favourite", plan.pilot),
        "staff": Topic("favourite", plan.staff),
        "zeros": Topic("favourite", plan.zeros),
        "airport": Topic("price", plan.airport),
        "within": Topic("age", plan.mixed),
    }
    patterns = (
        Topic("favourite", plan.plain),
        Topic("price", plan.dear),
        Topic("age", plan.by_age),
        Topic("channel", plan.by_channel),
    )
    decoys = (Topic("favourite", plan.small), Topic("price", plan.by_age))
    return Survey(plan.names, tables, planted, patterns, decoys)


def _plan(random: Random) -> _Plan:
    subject = random.choice(sorted(_SUBJECTS))
    products = random.sample(_SUBJECTS[subject].split(), 5)
    regions = random.sample(_REGIONS, 4)
    small = random.choice(_SMALL)
    names = Names(subject, tuple(sorted([*regions, small])), tuple(sorted(products)))
    tops = {region: random.sample(products, 2) for region in regions}
    by_age, by_channel, mixed, dear, airport = products
    return _Plan(
        names=names,
        best={region: pair[0] for region, pair in tops.items()},
        second={region: pair[1] for region, pair in tops.items()},
        pilot=regions[0],
        staff=regions[1],
        zeros=regions[2],
        plain=regions[3],
        small=small,
        by_age=by_age,
        sign=random.choice((1, -1)),
        by_channel=by_channel,
        channel=random.choice(CHANNELS),
        mixed=mixed,
        dear=dear,
        dear_in=random.choice(regions),
        airport=airport,
        airport_in=random.choice(regions),
    )


def _people(plan: _Plan, random: Random) -> list[Person]:
    people: list[Person] = []
    for region in plan.names.regions:
        count = _FEW_PEOPLE if region == plan.small else _PEOPLE
        pilots = round(count * (_COMMON if region == plan.pilot else _RARE))
        staff = round(count * (_COMMON if region == plan.staff else _RARE))
        for index in range(count):
            age = random.randint(18, YOUNGER - 1) if index % 2 else random.randint(YOUNGER, 79)
            channel = random.choices(CHANNELS, _BY_AGE[age < YOUNGER])[0]
            wave = "pilot" if index < pilots else "main"
            role = "staff" if index >= count - staff else "customer"
            people.append(Person(len(people) + 1, region, age, channel, wave, role))
    return people


def _ratings(plan: _Plan, people: list[Person], random: Random) -> list[Rating]:
    base = {product: 5.8 + random.uniform(-0.2, 0.2) for product in plan.names.products}
    ratings: list[Rating] = []
    for person in people:
        for product in plan.names.products:
            if random.random() < _ASKED:
                mean = base[product] + _effect(plan, person, product)
                rating = min(10, max(1, round(random.gauss(mean, _NOISE))))
                ratings.append(Rating(person.id, product, rating))
    zeros = {p.id for p in people if p.region == plan.zeros and random.random() < _ZEROS}
    return [
        one._replace(rating=0)
        if one.product == plan.best[plan.zeros] and one.person in zeros
        else one
        for one in ratings
    ]


def _effect(plan: _Plan, person: Person, product: str) -> float:
    """Points that a person gives a product above or below its mean."""
    if person.region == plan.small:
        return 3.0 if product == plan.names.products[0] else -1.0
    effect = _BEST if product == plan.best[person.region] else 0.0
    if product == plan.second[person.region] and person.region != plan.plain:
        effect += _SECOND
    young = 1 if person.age < YOUNGER else -1
    if product == plan.by_age:
        effect += 0.9 * plan.sign * young
    elif product == plan.by_channel and person.channel == plan.channel:
        effect += 1.7 * young
    elif product == plan.mixed:
        effect += 1.9 if person.channel == "app" else -0.9
    odd = (person.region == plan.pilot and person.wave == "pilot") or (
        person.region == plan.staff and person.role == "staff"
    )
    if odd and product == plan.best[person.region]:
        effect -= _TURN
    elif odd and product == plan.second[person.region]:
        effect += _TURN
    return effect


def _prices(plan: _Plan, random: Random) -> list[Price]:
    base = {product: random.uniform(2.5, 6.0) for product in plan.names.products}
    prices: list[Price] = []
    store = 0
    for region in plan.names.regions:
        small = region == plan.small
        for index in range(_FEW_STORES if small else _STORES):
            store += 1
            site = random.choice(("street", "mall"))
            if not small and index < _AIRPORTS:
                site = "airport"
            for product in plan.names.products:
                price = base[product] * random.uniform(0.97, 1.03)
                if product == plan.dear and region == plan.dear_in:
                    price *= 1.26
                elif product == plan.airport and (region, site) == (plan.airport_in, "airport"):
                    price *= 2.0
                elif product == plan.by_age and small:
                    price *= 1.6
                prices.append(Price(store, site, region, product, round(price, 2)))
    return prices


def _misspelt(people: list[Person], random: Random) -> tuple[Person, ...]:
    return tuple(person._replace(region=_spelled(person.region, random)) for person in people)


def _spelled(region: str, random: Random) -> str:
    """A region's name, in some rows in another case or with a space after it."""
    drawn = random.random()
    if drawn < 0.03:
        return region.lower()
    if drawn < 0.05:
        return region.upper()
    return f"{region} " if drawn < 0.07 else region


def _dirty(ratings: list[Rating], random: Random) -> tuple[Rating, ...]:
    off = set(random.sample(range(len(ratings)), random.randint(8, 20)))
    rows = [one._replace(rating=99) if i in off else one for i, one in enumerate(ratings)]
    rows += random.sample(rows, random.randint(15, 40))
    random.shuffle(rows)
    return tuple(rows)


def _in_cents(prices: list[Price], random: Random) -> tuple[Price, ...]:
    wrong = set(random.sample(range(len(prices)), random.randint(6, 14)))
    return tuple(
        one._replace(price=round(100 * one.price, 2)) if i in wrong else one
        for i, one in enumerate(one._replace(region=_spelled(one.region, random)) for one in prices)
    )


# --- instances ------------------------------------------------------------------------------------


_AS_IT_LOOKS = 0.55  # share of the rulings that equal the default assumption
_INTERESTS = 6
_DECIDED = 3  # of the interests, those that a ruling decides
_TREES = ((0, 0, 1, 2, 3), (0, 0, 1, 2, 2), (0, 0, 0, 1, 2))
"""For each interest after the first, which one opens it."""

_ATTENTION = (40, 60)  # words that a person takes in at a time
_STAMINA = (150, 330)  # and in all
_TRIES = 50


class Wants(msgspec.Struct, frozen=True):
    """An analyst's wishes: to understand some topics, and to decide by one of them.

    Attributes:
        topics: in the order in which they came to want them.
        goal: the topic that their decision is about.
    """

    topics: tuple[Topic, ...]
    goal: Topic


class Instance(msgspec.Struct, frozen=True):
    """A survey with an analyst.

    Attributes:
        survey: the tables, and what was planted.
        rulings: the analyst's knowledge of how the data came about.
        truth: the true claims under these rulings.
        interests: all topics that the analyst may come to want; the first is the narrow question.
        opens: the further topics that understanding a topic opens.
        pivot: the interest whose understanding makes it what the decision is about; None for none.
        attention: words that the analyst takes in at a time.
        stamina: words that they take in altogether.
        seed: of wordings.
    """

    survey: Survey
    rulings: Rulings
    truth: Answers
    interests: tuple[Topic, ...]
    opens: Mapping[Topic, tuple[Topic, ...]]
    pivot: Topic | None
    attention: int
    stamina: int
    seed: int

    @property
    def first(self) -> Wants:
        """The analyst's first wishes."""
        return Wants(self.interests[:1], self.interests[0])


def opened_by(
    interests: tuple[Topic, ...],
    opens: Mapping[Topic, tuple[Topic, ...]],
    pivot: Topic | None,
    believed: Mapping[Topic, Claim],
) -> Wants:
    """The wishes of an analyst with the given beliefs.

    The beliefs need not be true: a mistaken answer raises further questions as well.
    """
    topics = [interests[0]]
    for topic in topics:  # grows as it goes
        if topic in believed:
            topics += [one for one in opens.get(topic, ()) if one not in topics]
    goal = pivot if pivot is not None and pivot in topics and pivot in believed else interests[0]
    return Wants(tuple(topics), goal)


def make_instance(seed: int, name: str) -> Instance:
    """The instance of a name under a seed.

    Raises:
        InvalidInput: names are numbers from 0.
    """
    index = index_of(name)
    for attempt in range(_TRIES):
        found = _attempt(Random(f"data/{seed}/{index}/{attempt}"))
        if found is not None:
            return found
    raise InvalidInput(f"no survey could be made for instance {name} of seed {seed}")


def _attempt(random: Random) -> Instance | None:
    """An instance, unless its patterns came out unclear."""
    survey = invent_survey(random)
    rulings: dict[Ruling, bool] = {
        ruling: DEFAULTS[ruling] == (random.random() < _AS_IT_LOOKS) for ruling in RULINGS
    }
    sums = Sums(survey.tables, survey.names)
    truth = sums.answers(rulings)
    decided = [
        topic
        for ruling, topic in survey.planted.items()
        if _differ(topic, truth, sums.answers({**rulings, ruling: not rulings[ruling]}))
    ]
    clear = [topic for topic in (*survey.patterns, *survey.decoys) if topic in truth]
    if len(decided) < len(RULINGS) or len(clear) < len(survey.patterns):
        return None
    interests = _interests(decided, clear, random)
    tree = random.choice(_TREES)
    opens = {
        topic: tuple(interests[i + 1] for i, parent in enumerate(tree) if parent == number)
        for number, topic in enumerate(interests)
    }
    later = [topic for topic in interests[2:] if topic.kind in ADVISED]
    return Instance(
        survey=survey,
        rulings=rulings,
        truth=truth,
        interests=interests,
        opens={topic: children for topic, children in opens.items() if children},
        pivot=random.choice(later) if later else None,
        attention=random.randint(*_ATTENTION),
        stamina=random.randint(*_STAMINA),
        seed=random.randrange(2**31),
    )


def _differ(topic: Topic, truth: Answers, other: Answers) -> bool:
    """Whether a topic has a clear answer, and a clear different one if a ruling is reversed."""
    if topic not in truth or topic not in other:
        return False
    return truth[topic].answer != other[topic].answer


def _interests(decided: list[Topic], clear: list[Topic], random: Random) -> tuple[Topic, ...]:
    """Topics that an analyst comes to want, one after the other."""
    chosen = random.sample(decided, _DECIDED)
    rest = [topic for topic in clear if topic not in chosen]
    channels = [topic for topic in rest if topic.kind == "channel"]
    chosen += channels[:1]
    rest = [topic for topic in rest if topic not in chosen] + [
        Topic("quality", table) for table in TABLES
    ]
    chosen += random.sample(rest, _INTERESTS - len(chosen))
    random.shuffle(chosen)
    first = next(i for i, topic in enumerate(chosen) if topic.kind in ADVISED)
    chosen.insert(0, chosen.pop(first))
    return tuple(chosen)
