"""Queries over sessions, as people write them: ``agent=two-stage state=failed utility=0.5.. tau``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import CloseReason
from ...engine.log.contract import SessionSummary
from ...engine.log.summary import FORGOTTEN
from ...engine.text import suggestion
from ..trajectory.options import Options
from .ranges import Ranges, parse_ranges

__all__ = ("KEYS", "STATES", "SessionQuery", "join_query", "parse_query", "split_query")

STATES: Final = ("open", *get_args(CloseReason), FORGOTTEN)
"""The states that a session can be in: open, why it was closed, or that it was erased."""

KEYS: Final = (
    "session",
    "task",
    "instance",
    "state",
    "rounds",
    "events",
    "lasted",
    "utility",
    "tau",
)
"""What a condition may be about, besides the labels that sessions have."""

NONE: Final = "none"
"""Stands for no value."""

_NUMBERS = ("rounds", "events", "lasted", "utility", "tau")
_KEPT = 10_000  # values of which it is kept whether they meet a condition
_HIGHEST = 1000  # tolerance that can be asked for
_CONDITION = re.compile(r"([^\s=<>!]+)(!=|<=|>=|=|<|>)(.*)", re.DOTALL)
_TERM = re.compile(r'(?:[^\s"]|"[^"]*(?:"|$))+')

_Number: TypeAlias = Literal["rounds", "events", "lasted"]


class Matching(msgspec.Struct, frozen=True):
    """A condition on a text: it is one of these, in which ``*`` stands for anything."""

    key: str
    patterns: tuple[str, ...]
    negated: bool = False

    def holds(self, values: Collection[str]) -> bool:
        """Whether one of the values is one of the patterns; none of them, where it is negated."""
        found = any(_fits(value, one) for value in values or ("",) for one in self.patterns)
        return found != self.negated


class SessionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What sessions have to meet to be listed: all of it.

    What a summary says is looked at first. ``utility`` and ``tau`` may need the session's records:
    they come last, so that only sessions that meet everything else are read.

    Attributes:
        words: texts that occur in a session's id, task, instance, state or labels, in any case.
        texts: conditions on the id, the task, the instance, the state and labels.
        numbers: conditions on rounds, events and seconds.
        utility: conditions on the utility that stands.
        tolerances: conditions on the tolerances τ that are used up.
    """

    words: tuple[str, ...] = ()
    texts: tuple[Matching, ...] = ()
    numbers: tuple[tuple[_Number, Ranges], ...] = ()
    utility: tuple[Ranges, ...] = ()
    tolerances: tuple[Ranges, ...] = ()

    def __bool__(self) -> bool:
        return self != SessionQuery()

    @property
    def labels(self) -> frozenset[str]:
        """The keys that have to be labels."""
        return frozenset(text.key for text in self.texts if text.key not in KEYS)

    @property
    def taus(self) -> tuple[int, ...]:
        """The tolerances to follow, for ``Options.taus``; empty where no condition needs them."""
        if not self.tolerances:
            return ()
        asked = [tau for ranges in self.tolerances for tau in ranges.whole_numbers(_HIGHEST)]
        return tuple(sorted({*Options().taus, *asked}))

    def check_labels(self, known: Collection[str]) -> None:
        """Checks that the labels occur in a log.

        Args:
            known: the labels of the log's sessions.

        Raises:
            InvalidInput: one does not.
        """
        for key in sorted(self.labels.difference(known)):
            near = suggestion(key, [*KEYS, *known])
            raise InvalidInput(f"sessions have no label or property {key!r}{near}")

    def admits(self, summary: SessionSummary) -> bool:
        """Whether a session meets all that its summary can say, utility aside."""
        return (
            all(_holds(text, summary) for text in self.texts)
            and all(ranges.hold(_value(summary, key)) for key, ranges in self.numbers)
            and (not self.words or _has_words(self.words, summary))
        )

    def admission(self) -> Callable[[SessionSummary], bool]:
        """``admits`` for many sessions: what was found of a state or of a label's value is kept."""
        known: list[tuple[Matching, dict[tuple[str, str | None], bool]]]
        known = [(text, {}) for text in self.texts]

        def admit(summary: SessionSummary) -> bool:
            for text, found in known:
                value = _own(text.key, summary), summary.group.get(text.key)
                holds = found.get(value)
                if holds is None:
                    holds = _holds(text, summary)
                    if len(found) < _KEPT:
                        found[value] = holds
                if not holds:
                    return False
            if self.numbers and not all(r.hold(_value(summary, key)) for key, r in self.numbers):
                return False
            return not self.words or _has_words(self.words, summary)

        return admit

    def admits_measures(self, utility: float | None, stops: Mapping[int, int]) -> bool:
        """Whether a session meets the conditions on what was measured.

        Args:
            utility: what stands; None where it is missing.
            stops: by tolerance τ that is used up, the round after which it is.
        """
        return all(ranges.hold(utility) for ranges in self.utility) and all(
            ranges.hold_any(stops) for ranges in self.tolerances
        )


def split_query(line: str) -> list[str]:
    """The terms of a query in one line; what stands in double quotes is one term."""
    return [term.replace('"', "") for term in _TERM.findall(line)]


def join_query(terms: Iterable[str]) -> str:
    """The line that ``split_query`` splits into these terms, none of which holds a quote."""
    return " ".join(f'"{term}"' if term.split() != [term] else term for term in terms if term)


def parse_query(terms: Iterable[str]) -> SessionQuery:
    """A query from its terms.

    A term is a condition, ``KEY=VALUE``, or a text to search for. Several values are separated by
    commas; ``!=`` means none of them; ``*`` stands for anything; ``none`` for no value. Numbers take
    ``<``, ``<=``, ``>=`` and ``>`` too, and ranges: ``0.5..0.8``, ``..3``, ``0.5..``. ``tau`` alone
    means that any tolerance is used up, ``tau=2`` that this one is.

    Raises:
        InvalidInput: a condition makes no sense; the message names its value.
    """
    words: list[str] = []
    texts: list[Matching] = []
    numbers: list[tuple[_Number, Ranges]] = []
    utility: list[Ranges] = []
    tolerances: list[Ranges] = []
    for term in terms:
        if term in ("tau", "τ"):
            tolerances.append(Ranges(missing=True, negated=True))
            continue
        found = _CONDITION.fullmatch(term)
        if found is None:
            words += [term.casefold()] if term else []
            continue
        key, operator, value = found.groups()
        match "tau" if key == "τ" else key:
            case "tau":
                tolerances.append(parse_ranges("tau", operator, value, whole=1))
            case "utility":
                utility.append(parse_ranges(key, operator, value, digits=3))
            case "rounds" | "events" | "lasted" as number:
                numbers.append((number, parse_ranges(key, operator, value, whole=0)))
            case _:
                texts.append(_matching(key, operator, value))
    return SessionQuery(
        words=tuple(words),
        texts=tuple(texts),
        numbers=tuple(numbers),
        utility=tuple(utility),
        tolerances=tuple(tolerances),
    )


def _matching(key: str, operator: str, value: str) -> Matching:
    patterns = tuple(part.strip().casefold() for part in value.split(",") if part.strip())
    if operator not in ("=", "!="):
        near = suggestion(key, _NUMBERS)
        raise InvalidInput(f"{key!r} is no number: it takes = or !=, not {operator}{near}")
    if not patterns:
        raise InvalidInput(f"{key}{operator} names no value")
    if key == "state":
        for pattern in patterns:
            if not any(_fits(state, pattern) for state in STATES):
                raise InvalidInput(f"there is no state {pattern!r}{suggestion(pattern, STATES)}")
    return Matching(key, patterns, operator == "!=")


def _fits(value: str, pattern: str) -> bool:
    folded = value.casefold()
    if folded == pattern or (pattern == NONE and not folded):
        return True
    return "*" in pattern and fnmatchcase(folded, pattern.replace("[", "[[]").replace("?", "[?]"))


def _holds(text: Matching, summary: SessionSummary) -> bool:
    label = summary.group.get(text.key)
    values = () if label is None else (label,)
    match text.key:
        case "session":
            values = (summary.session,)
        case "task":
            values = (summary.task, *values)
        case "instance":
            values = (summary.instance, *values)
        case "state":
            values = (summary.state,)
    return text.holds(values)


def _own(key: str, summary: SessionSummary) -> str:
    """The property that a condition is about; empty for a label."""
    match key:
        case "state":
            return summary.state
        case "session" | "task" | "instance":
            value: str = getattr(summary, key)
            return value
    return ""


def _value(summary: SessionSummary, key: _Number) -> float:
    match key:
        case "rounds":
            return summary.rounds
        case "events":
            return summary.events
        case "lasted":
            return int(summary.last - summary.opened)  # as it is shown


def _has_words(words: Iterable[str], summary: SessionSummary) -> bool:
    texts = (summary.session, summary.task, summary.instance, summary.state)
    text = "\n".join((*texts, *summary.group.values())).casefold()
    return all(word in text for word in words)
