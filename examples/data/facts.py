"""Claims about a survey: topics, claims, the rulings that they rest on, and when a claim holds.

The thresholds are defined only here, for the truth, for agents and for users. They are part of the
task's description.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec

__all__ = (
    "ADVISED",
    "CHANNELS",
    "DEFAULTS",
    "KINDS",
    "RULINGS",
    "RULINGS_OF",
    "TABLES",
    "Advice",
    "Claim",
    "Group",
    "Groups",
    "Kind",
    "Names",
    "Ruling",
    "Rulings",
    "Topic",
    "advice_on",
    "agrees",
    "decide_age",
    "decide_channel",
    "decide_favourite",
    "decide_price",
)

Kind = Literal["favourite", "price", "age", "channel", "quality"]
"""A topic's question: a region's favourite; a product's more expensive region, the age group that
likes it more, or the channel in which age groups differ; or a table's number of wrong rows."""

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

Ruling = Literal["pilot", "staff", "zeros", "airport", "within"]
"""What only the analyst knows of how the data came about: whether the pilot wave counts, answers of
staff, a rating of zero (as a rating), prices at airports; and whether age groups have to be compared
within each channel."""

RULINGS: Final[tuple[Ruling, ...]] = get_args(Ruling)

CHANNELS: Final = ("app", "counter", "delivery")

TABLES: Final = ("prices", "ratings")
"""The tables that have wrong rows."""

ADVISED: Final[tuple[Kind, ...]] = ("favourite", "price", "age")
"""The kinds of topics that a recommendation can follow from."""

_ANSWERS: Final[tuple[Ruling, ...]] = ("pilot", "staff", "zeros")

RULINGS_OF: Final[Mapping[Kind, tuple[Ruling, ...]]] = {
    "favourite": _ANSWERS,
    "price": ("airport",),
    "age": (*_ANSWERS, "within"),
    "channel": _ANSWERS,
    "quality": (),
}
"""The rulings that a kind of topic may depend on."""

_FEWEST_ANSWERS: Final = 15
_FEWEST_PRICES: Final = 5
_LEAD: Final = 0.4  # points by which a favourite leads, at least
_DEARER, _SAME = 1.12, 1.06  # of the price elsewhere
_APART, _ALIKE = 0.8, 0.4  # points between age groups
_ONE_APART, _OTHERS_ALIKE = 1.1, 0.7  # points between age groups in a channel
_POINTS, _PERCENT = 0.3, 5.0  # tolerated error of a claimed number


class Topic(NamedTuple):
    """A question about the data: a kind, and the region, product or table that it is about."""

    kind: Kind
    about: str


class Claim(msgspec.Struct, frozen=True):
    """An answer to a topic, which the data bear out or not.

    Attributes:
        topic: the topic that it answers.
        answer: a product or ``too few``; a region or ``nowhere``; ``younger``, ``older`` or
            ``alike``; a channel or ``none``; a number of rows.
        value: a mean rating, a difference in points or percent; None if there is none.
        base: number of answers, prices or rows that it rests on.
    """

    topic: Topic
    answer: str
    value: float | None
    base: int


class Advice(NamedTuple):
    """A recommendation: the topic that it follows from, and the answer that it acts upon."""

    topic: Topic
    answer: str


class Names(msgspec.Struct, frozen=True):
    """The names of a survey: its subject (e.g. ``coffee``), its regions and its products."""

    subject: str
    regions: tuple[str, ...]
    products: tuple[str, ...]


Rulings: TypeAlias = Mapping[Ruling, bool]
"""Whether each of them holds: rows of that sort count, or comparisons are made within channels."""

DEFAULTS: Final[Rulings] = {
    "pilot": True,
    "staff": True,
    "zeros": True,
    "airport": True,
    "within": False,
}
"""The rulings assumed by a reader who knows only the tables: all rows count unchanged."""


class Group(NamedTuple):
    """The size and the mean of a group of rows."""

    size: int
    mean: float


Groups: TypeAlias = Mapping[str, Group]


def decide_favourite(region: str, products: Groups) -> tuple[Claim, bool]:
    """The product with the highest mean rating, and whether that is clear."""
    topic = Topic("favourite", region)
    ranked = sorted(products.items(), key=lambda item: (-item[1].mean, item[0]))
    if not ranked or ranked[0][1].size < _FEWEST_ANSWERS:
        most = max((group.size for group in products.values()), default=0)
        return Claim(topic, "too few", None, most), most < _FEWEST_ANSWERS
    name, best = ranked[0]
    lead = best.mean - ranked[1][1].mean if len(ranked) > 1 else _LEAD
    return Claim(topic, name, best.mean, best.size), lead >= _LEAD


def decide_price(product: str, regions: Groups) -> tuple[Claim, bool]:
    """The region in which a product costs more, by how many percent, and whether that is clear."""
    topic = Topic("price", product)
    enough = {name: group for name, group in regions.items() if group.size >= _FEWEST_PRICES}
    total = sum(group.size for group in enough.values())
    ratios = {name: group.mean / _elsewhere(name, enough) for name, group in enough.items()}
    if len(ratios) < 2:
        return Claim(topic, "nowhere", None, total), False
    name, ratio = max(ratios.items(), key=lambda item: (item[1], item[0]))
    if ratio < (_DEARER + _SAME) / 2:
        return Claim(topic, "nowhere", None, total), ratio <= _SAME
    return Claim(topic, name, 100 * (ratio - 1), enough[name].size), ratio >= _DEARER


def decide_age(
    product: str, cells: Mapping[tuple[str, bool], Group], *, within: bool
) -> tuple[Claim, bool]:
    """Which age group rates a product higher, by how much, and whether that is clear.

    Args:
        product: its name.
        cells: groups by channel and whether they are younger.
        within: compare within each channel, and take the mean by their sizes.
    """
    total = sum(group.size for group in cells.values())
    if within:
        gap, weight = 0.0, 0
        for channel in sorted({channel for channel, _ in cells}):
            young, old = cells.get((channel, True)), cells.get((channel, False))
            if young and old:
                gap += (young.mean - old.mean) * (young.size + old.size)
                weight += young.size + old.size
        gap = gap / weight if weight else 0.0
    else:
        gap = _mean(g for (_, young), g in cells.items() if young) - _mean(
            g for (_, young), g in cells.items() if not young
        )
    topic = Topic("age", product)
    if abs(gap) < (_APART + _ALIKE) / 2:
        return Claim(topic, "alike", None, total), abs(gap) <= _ALIKE
    answer = "younger" if gap > 0 else "older"
    return Claim(topic, answer, abs(gap), total), abs(gap) >= _APART


def decide_channel(product: str, cells: Mapping[tuple[str, bool], Group]) -> tuple[Claim, bool]:
    """The one channel in which age groups differ over a product, and whether that is clear."""
    topic = Topic("channel", product)
    total = sum(group.size for group in cells.values())
    gaps = {
        channel: abs(cells[channel, True].mean - cells[channel, False].mean)
        for channel in CHANNELS
        if (channel, True) in cells and (channel, False) in cells
    }
    ranked = sorted(gaps.items(), key=lambda item: (-item[1], item[0]))
    if not ranked or ranked[0][1] < (_ONE_APART + _OTHERS_ALIKE) / 2:
        return Claim(topic, "none", None, total), not ranked or ranked[0][1] <= _OTHERS_ALIKE
    name, gap = ranked[0]
    base = cells[name, True].size + cells[name, False].size
    alone = all(other <= _OTHERS_ALIKE for _, other in ranked[1:])
    return Claim(topic, name, gap, base), gap >= _ONE_APART and alone


def agrees(claim: Claim, truth: Claim) -> bool:
    """Whether the data bear a claim out: its answer, and its number within a tolerance."""
    if claim.answer != truth.answer:
        return False
    if claim.value is None or truth.value is None:
        return True
    allowed = _PERCENT if claim.topic.kind == "price" else _POINTS
    return abs(claim.value - truth.value) <= allowed


def advice_on(claim: Claim) -> Advice:
    """The recommendation that follows from a claim."""
    return Advice(claim.topic, claim.answer)


def _elsewhere(name: str, regions: Groups) -> float:
    return _mean(group for other, group in regions.items() if other != name) or 1.0


def _mean(groups: Iterable[Group]) -> float:
    """The mean over groups by their sizes; 0 of nothing."""
    sizes = total = 0.0
    for group in groups:
        sizes += group.size
        total += group.size * group.mean
    return total / sizes if sizes else 0.0
