"""Queries over sessions, as people write them: ``agent=two-stage state=failed utility=0.5.. tau``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Final, Literal, TypeAlias, get_args

import msgspec
from msgspec.structs import replace

from ...engine.errors import InvalidInput
from ...engine.events import CloseReason
from ...engine.log.contract import SessionSummary
from ...engine.log.ranked import LABEL, ROW, TEXTS, Condition
from ...engine.log.summary import FORGOTTEN
from ...engine.text import suggestion
from ..columns.kept import COST, LATENCY, REVIEWED, ROUNDS, TOLERANCE, UTILITY
from ..columns.rows import SessionRow
from ..trajectory.options import Options
from .lines import Measured, SessionLine

__all__ = ("KEYS", "STATES", "SessionQuery", "join_query", "parse_query", "split_query")

STATES: Final = ("open", *get_args(CloseReason), FORGOTTEN)
"""The states that a session can have: open, the reason why it was closed, or forgotten."""

KEYS: Final = (
    "session",
    "task",
    "instance",
    "state",
    "rounds",
    "events",
    "lasted",
    "utility",
    "cost",
    "latency",
    "tau",
    "tag",
    "reviewer",
    "rated",
)
"""The keys that a condition may be about, apart from the labels of sessions."""

_NONE: Final = "none"  # the word for a missing value
_NUMBERS: Final = ("rounds", "events", "lasted", "utility", "cost", "latency", "tau", "rated")
_HIGHEST: Final = 1000  # the largest tolerance that a query may ask for
_DOTS: Final = ".."
_CONDITION = re.compile(r"([^\s=<>!]+)(!=|<=|>=|=|<|>)(.*)", re.DOTALL)
_TERM = re.compile(r'(?:[^\s"]|"[^"]*(?:"|$))+')

_Envelope: TypeAlias = Literal["events", "lasted"]


class Matching(msgspec.Struct, frozen=True):
    """A condition on a text: it has to match one of the patterns, in which ``*`` matches anything."""

    key: str
    patterns: tuple[str, ...]
    negated: bool = False

    def holds(self, values: Collection[str]) -> bool:
        """Whether one of the values matches; if the condition is negated, whether none does."""
        matches = _matcher(self.patterns)
        return any(matches(value) for value in values or ("",)) != self.negated

    def holds_for(self, summary: SessionSummary) -> bool:
        """Whether a session meets the condition."""
        label = summary.group.get(self.key)
        values = () if label is None else (label,)
        match self.key:
            case "session":
                values = (summary.session,)
            case "task":
                values = (summary.task, *values)
            case "instance":
                values = (summary.instance, *values)
            case "state":
                values = (summary.state,)
        return self.holds(values)

    @property
    def condition(self) -> Condition | None:
        """The part of it that a store can decide; None for nothing."""
        if self.negated or any("*" in pattern for pattern in self.patterns):
            return None
        own = (self.key,) if self.key in TEXTS else ()
        labelled = () if self.key in ("session", "state") else (f"{LABEL}{self.key}",)
        texts = (*self.patterns, *("" for pattern in self.patterns if pattern == _NONE))
        return Condition(by=(*own, *labelled), texts=texts)


class Range(msgspec.Struct, frozen=True):
    """The numbers between two bounds; ``inside`` leaves out the bounds."""

    low: float = -math.inf
    high: float = math.inf
    inside: bool = False

    def holds(self, value: float) -> bool:
        """Whether a number lies in it."""
        if self.inside:
            return self.low < value < self.high
        return self.low <= value <= self.high


class Ranges(msgspec.Struct, frozen=True, kw_only=True):
    """A condition on a number that may be missing.

    Attributes:
        ranges: the number lies in one of these,
        missing: or it is missing, if this is set;
        negated: or neither is true, if this is set.
        digits: the number is rounded to so many digits first, as lists show it; None for no rounding.
    """

    ranges: tuple[Range, ...] = ()
    missing: bool = False
    negated: bool = False
    digits: int | None = None

    def hold(self, value: float | None) -> bool:
        """Whether the condition holds for a number; None for a missing one."""
        return self.hold_any(() if value is None else (value,))

    def hold_any(self, values: Iterable[float]) -> bool:
        """Whether the condition holds for one of several numbers; no number at all is a missing one."""
        rounded = [v if self.digits is None else round(v, self.digits) for v in values]
        found = any(one.holds(value) for one in self.ranges for value in rounded)
        return (found or (self.missing and not rounded)) != self.negated

    def condition(self, by: str, margin: float = 0.0) -> Condition | None:
        """The part that a store can decide, or None.

        Args:
            by: what the number is to the store.
            margin: by how much it may differ from the number that is compared.
        """
        if self.negated:
            known = Condition(by=(by,), ranges=((-math.inf, math.inf),))
            return known if self.missing and not self.ranges else None
        margin += 0.0 if self.digits is None else 10.0**-self.digits
        ranges = tuple((one.low - margin, one.high + margin) for one in self.ranges)
        return Condition(by=(by,), ranges=ranges, missing=self.missing)

    def whole_numbers(self, highest: int) -> Iterator[int]:
        """The whole numbers that the ranges name as bounds, and all numbers between two bounds."""
        for one in self.ranges:
            named = [int(end) for end in (one.low, one.high) if math.isfinite(end)]
            for number in range(min(named, default=1), min(max(named, default=0), highest) + 1):
                if number > 0:
                    yield number


class SessionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions that a listed session has to meet, all of them.

    A session's summary decides ``words``, ``texts`` and ``numbers``. The other conditions need
    measurements of its rounds, so they are decided last, and only for sessions that meet all others.

    Attributes:
        words: texts that occur in the session's id, task, instance, state or labels, in any case.
        texts: conditions on the id, the task, the instance, the state and labels.
        numbers: conditions on the number of events and on seconds.
        rounds: conditions on the number of rounds.
        utility: conditions on the utility after the last round.
        costs: conditions on the cost of the agent, in US dollars.
        latencies: conditions on the median seconds until the agent answers.
        tolerances: conditions on the tolerances τ that are used up.
        tags: conditions on the tags by reviewers, or on a label of the name ``tag``.
        reviewers: conditions on who has reviewed the session.
        rated: conditions on the mean rating by reviewers.
        contents: sessions in whose contents ``words`` occur, which count too; None if contents were not
            searched. See ``contents.ContentSearch``.
    """

    words: tuple[str, ...] = ()
    texts: tuple[Matching, ...] = ()
    numbers: tuple[tuple[_Envelope, Ranges], ...] = ()
    rounds: tuple[Ranges, ...] = ()
    utility: tuple[Ranges, ...] = ()
    costs: tuple[Ranges, ...] = ()
    latencies: tuple[Ranges, ...] = ()
    tolerances: tuple[Ranges, ...] = ()
    tags: tuple[Matching, ...] = ()
    reviewers: tuple[Matching, ...] = ()
    rated: tuple[Ranges, ...] = ()
    contents: frozenset[str] | None = None

    def __bool__(self) -> bool:
        return self != SessionQuery()

    @property
    def labels(self) -> frozenset[str]:
        """The keys that have to be labels."""
        return frozenset(text.key for text in self.texts if text.key not in KEYS)

    @property
    def needs_lines(self) -> bool:
        """Whether a condition is about measurements of rounds."""
        measured = self.rounds or self.utility or self.tolerances
        return bool(measured or self.asks_costs or self.asks_reviews)

    @property
    def asks_costs(self) -> bool:
        """Whether a condition is about what the agent cost, or how long its answers took."""
        return bool(self.costs or self.latencies)

    @property
    def asks_reviews(self) -> bool:
        """Whether a condition is about what reviewers have added."""
        return bool(self.tags or self.reviewers or self.rated)

    @property
    def taus(self) -> tuple[int, ...]:
        """The tolerances to look at; empty if no condition is about them."""
        if not self.tolerances:
            return ()
        asked = [tau for ranges in self.tolerances for tau in ranges.whole_numbers(_HIGHEST)]
        return tuple(sorted({*Options().taus, *asked}))

    @property
    def conditions(self) -> Sequence[Condition]:
        """The part of all this that a store can decide; see ``Arrangement``. The rest is decided by ``admits`` and
        ``admits_line``.
        """
        found = [one.condition for one in self.texts]
        found += [_with_word(word) for word in self.words if self.contents is None]
        found += [
            ranges.condition(key, 1.0 if key == "lasted" else 0.0) for key, ranges in self.numbers
        ]
        measured = {
            ROUNDS: self.rounds,
            UTILITY: self.utility,
            COST: self.costs,
            LATENCY: self.latencies,
        }
        for number, conditions in measured.items():
            found += [ranges.condition(f"{ROW}{number}") for ranges in conditions]
        found += [_used_up(ranges, self.taus) for ranges in self.tolerances]
        reviewed = Condition(by=(f"{ROW}{REVIEWED}",), ranges=((1, math.inf),))
        asked = [
            *(not one.holds(()) for one in self.reviewers),
            *(not one.hold(None) for one in self.rated),
        ]
        found += [reviewed] if any(asked) else []
        for text in self.tags:
            labelled = text.condition
            if labelled is not None and not text.holds(()):  # the tags of others are not known
                found.append(
                    replace(reviewed, by=(*reviewed.by, *labelled.by), texts=labelled.texts)
                )
        return [one for one in found if one is not None]

    def check_labels(self, known: Collection[str]) -> None:
        """Checks that the labels occur in a log.

        Args:
            known: the labels of the log's sessions.

        Raises:
            InvalidInput: one does not.
        """
        for key in sorted(self.labels.difference(known)):
            near = suggestion(key, [*KEYS, *known])
            raise InvalidInput(f"unknown label or property {key!r}{near}")

    def admits(self, summary: SessionSummary) -> bool:
        """Whether a session meets the conditions that its summary decides."""
        for text in self.texts:
            if not text.holds_for(summary):
                return False
        for key, ranges in self.numbers:
            # Seconds are compared as lists show them.
            value = summary.events if key == "events" else int(summary.last - summary.opened)
            if not ranges.hold(value):
                return False
        return (
            not self.words
            or (self.contents is not None and summary.session in self.contents)
            or _has_words(self.words, summary)
        )

    def admits_line(self, line: SessionLine) -> bool:
        """Whether a session meets the other conditions, by its line."""
        stops = line.stops(self.taus) if self.tolerances else {}
        return (
            self.admits_measures(line.rounds, line.utility, stops)
            and (not self.asks_costs or self.admits_costs(line.cost, line.latency))
            and (not self.asks_reviews or self._admits_reviews(line.row))
        )

    def _admits_reviews(self, row: SessionRow) -> bool:
        label = row.labels.get("tag")
        tags = row.tags if label is None else (*row.tags, label)
        return (
            all(text.holds(tags) for text in self.tags)
            and all(text.holds(row.reviewers) for text in self.reviewers)
            and all(ranges.hold(row.review_rating) for ranges in self.rated)
        )

    def admits_measures(self, rounds: int, utility: float | None, stops: Iterable[int]) -> bool:
        """As ``admits_line``, without the conditions on costs and reviews.

        Args:
            rounds: how many rounds have begun.
            utility: the utility after the last one; None if it is missing.
            stops: the tolerances τ that are used up.
        """
        return (
            all(ranges.hold(rounds) for ranges in self.rounds)
            and all(ranges.hold(utility) for ranges in self.utility)
            and all(ranges.hold_any(stops) for ranges in self.tolerances)
        )

    def admits_numbers(self, measured: Measured) -> bool:
        """As ``admits_line``, without the conditions on reviews."""
        stops = [tau for tau in self.taus if tau <= measured.tolerance]
        return self.admits_measures(measured.rounds, measured.utility, stops) and (
            not self.asks_costs or self.admits_costs(measured.cost, measured.latency)
        )

    def admits_costs(self, cost: float | None, latency: float | None) -> bool:
        """Whether the conditions on costs hold.

        Args:
            cost: US dollars for the agent's model calls; None if no price is known.
            latency: median seconds until the agent answers; None if unknown.
        """
        return all(ranges.hold(cost) for ranges in self.costs) and all(
            ranges.hold(latency) for ranges in self.latencies
        )


def split_query(line: str) -> list[str]:
    """The terms of a query in one line; double quotes hold a term together."""
    return [term.replace('"', "") for term in _TERM.findall(line)]


def join_query(terms: Iterable[str]) -> str:
    """The line that ``split_query`` splits into these terms, none of which holds a quote."""
    return " ".join(f'"{term}"' if term.split() != [term] else term for term in terms if term)


def parse_query(terms: Iterable[str]) -> SessionQuery:
    """A query from its terms.

    A term is a condition, ``KEY=VALUE``, or a text to search for. Commas separate several values; ``!=``
    means none of them; ``*`` matches anything; ``none`` is a missing value. Numbers take ``<``, ``<=``,
    ``>=`` and ``>`` too, and ranges: ``0.5..0.8``, ``..3``, ``0.5..``. ``tau`` alone means that any
    tolerance is used up, ``tau=2`` that this one is.

    Raises:
        InvalidInput: a condition makes no sense; the message names its value.
    """
    words: list[str] = []
    texts: list[Matching] = []
    numbers: list[tuple[_Envelope, Ranges]] = []
    keys = ("rounds", "utility", "cost", "latency", "tau", "rated")
    measured: dict[str, list[Ranges]] = {key: [] for key in keys}
    reviewed: dict[str, list[Matching]] = {"tag": [], "reviewer": []}
    for term in terms:
        if term in ("tau", "τ"):
            measured["tau"].append(Ranges(missing=True, negated=True))
            continue
        found = _CONDITION.fullmatch(term)
        if found is None:
            words += [term.casefold()] if term else []
            continue
        key, operator, value = found.groups()
        match "tau" if key == "τ" else key:
            case "tau":
                measured["tau"].append(_ranges("tau", operator, value, whole=1))
            case "utility":
                measured["utility"].append(_ranges(key, operator, value, digits=3))
            case "cost" | "latency" as amount:
                measured[amount].append(_ranges(amount, operator, value))
            case "rated":
                measured["rated"].append(_ranges(key, operator, value, digits=2))
            case "tag" | "reviewer" as review:
                reviewed[review].append(_matching(key, operator, value))
            case "rounds":
                measured["rounds"].append(_ranges(key, operator, value, whole=0))
            case "events" | "lasted" as number:
                numbers.append((number, _ranges(key, operator, value, whole=0)))
            case _:
                texts.append(_matching(key, operator, value))
    return SessionQuery(
        words=tuple(words),
        texts=tuple(texts),
        numbers=tuple(numbers),
        rounds=tuple(measured["rounds"]),
        utility=tuple(measured["utility"]),
        costs=tuple(measured["cost"]),
        latencies=tuple(measured["latency"]),
        tolerances=tuple(measured["tau"]),
        tags=tuple(reviewed["tag"]),
        reviewers=tuple(reviewed["reviewer"]),
        rated=tuple(measured["rated"]),
    )


def _used_up(ranges: Ranges, taus: Sequence[int]) -> Condition:
    """The condition on the greatest tolerance that is used up: with it, all smaller ones are."""
    held = [
        (float(most), most if most < taus[-1] else math.inf)
        for most in range(taus[-1] + 1)
        if ranges.hold_any(tau for tau in taus if tau <= most)
    ]
    return Condition(by=(f"{ROW}{TOLERANCE}",), ranges=tuple(held))


def _with_word(word: str) -> Condition | None:
    if '"' in word or "\\" in word:  # the stored labels are JSON, which escapes these
        return None
    return Condition(by=(*TEXTS, "labels"), part=word)


# --- texts ----------------------------------------------------------------------------------------


def _matching(key: str, operator: str, value: str) -> Matching:
    patterns = tuple(part.strip().casefold() for part in value.split(",") if part.strip())
    if operator not in ("=", "!="):
        near = suggestion(key, _NUMBERS)
        raise InvalidInput(f"{key!r} is not a number: use = or !=, not {operator}{near}")
    if not patterns:
        raise InvalidInput(f"{key}{operator} lacks a value")
    if key == "state":
        for pattern in patterns:
            if not any(map(_matcher((pattern,)), STATES)):
                raise InvalidInput(f"unknown state {pattern!r}{suggestion(pattern, STATES)}")
    return Matching(key, patterns, operator == "!=")


@lru_cache(maxsize=256)
def _matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """What says of a text whether it matches one of the patterns, in any case."""
    exact = {pattern for pattern in patterns if pattern != _NONE} | {
        text for text in (_NONE, "") if _NONE in patterns
    }
    plain = [p.replace("[", "[[]").replace("?", "[?]") for p in patterns if "*" in p]
    starred = re.compile("|".join(map(translate, plain))) if plain else None

    def matches(text: str) -> bool:
        folded = text.casefold()
        return folded in exact or (starred is not None and starred.match(folded) is not None)

    return matches


def _has_words(words: Iterable[str], summary: SessionSummary) -> bool:
    texts = (summary.session, summary.task, summary.instance, summary.state)
    text = "\n".join((*texts, *summary.group.values())).casefold()
    return all(word in text for word in words)


# --- numbers --------------------------------------------------------------------------------------


def _ranges(
    key: str, operator: str, value: str, *, whole: int | None = None, digits: int | None = None
) -> Ranges:
    """A condition on a number: ``3``, ``0.5..0.8``, ``..3``, ``none``, separated by commas.

    Args:
        key: what it is about, for messages.
        operator: ``=``, ``!=``, ``<``, ``<=``, ``>=`` or ``>``.
        value: numbers and ranges, or ``none``.
        whole: only whole numbers from this one are taken; None for any number.
        digits: to how many digits numbers are rounded before they are compared.

    Raises:
        InvalidInput: the value is of another kind.
    """
    parts = [part.strip() for part in value.split(",")]
    if operator in ("=", "!="):
        known = [part for part in parts if part.casefold() != _NONE]
        ranges = tuple(_range(key, part, whole) for part in known)
        missing, negated = len(known) < len(parts), operator == "!="
        return Ranges(ranges=ranges, missing=missing, negated=negated, digits=digits)
    bound = _number(key, value.strip(), whole)
    inside = len(operator) == 1
    one = Range(high=bound, inside=inside) if "<" in operator else Range(bound, inside=inside)
    return Ranges(ranges=(one,), digits=digits)


def _range(key: str, part: str, whole: int | None) -> Range:
    low, dots, high = part.partition(_DOTS)
    if not dots:
        number = _number(key, part, whole)
        return Range(number, number)
    if not (low or high):
        raise _not_taken(key, part, whole)
    found = Range(
        _number(key, low, whole) if low else -math.inf,
        _number(key, high, whole) if high else math.inf,
    )
    if found.low > found.high:
        raise InvalidInput(f"{key}: {part} is empty: the lower number comes first")
    return found


def _number(key: str, text: str, whole: int | None) -> float:
    try:
        number = float(text)
    except ValueError:
        raise _not_taken(key, text, whole) from None
    if not math.isfinite(number) or (
        whole is not None and (not number.is_integer() or number < whole)
    ):
        raise _not_taken(key, text, whole)
    return number


def _not_taken(key: str, text: str, whole: int | None) -> InvalidInput:
    kind = "a number" if whole is None else f"a whole number from {whole}"
    example = "0.5..0.8" if whole is None else "2..4"
    return InvalidInput(f"{key} expects {kind}, a range such as {example}, or none, got {text!r}")
