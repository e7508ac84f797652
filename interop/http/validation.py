"""Which values of an event make sense, beyond what its type says: ranges and names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import singledispatch
from typing import Final, NamedTuple

from ...engine.events import (
    EVENTS,
    ActionResolved,
    ApprovalGiven,
    Event,
    FeedbackGiven,
    ModelCalled,
    ProgressRated,
    SessionOpened,
    SimulatorFlagged,
    SnapshotTaken,
    StopAdvised,
    UtilityScored,
)

__all__ = (
    "MEASUREMENTS",
    "TRACED",
    "Complaint",
    "complaint",
    "name_complaint",
)

MEASUREMENTS: Final = frozenset(
    "UtilityScored ProgressRated ScorerFailed SimulatorFlagged ModelCalled StopAdvised".split()
)
"""Kinds that are valid in a scorer's stream."""

TRACED: Final = frozenset(EVENTS) - {"UtilityScored", "ScorerFailed", "SimulatorFlagged"}
"""Kinds that are valid in the trace."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LARGEST: Final = 2**53  # as far as whole numbers are the same in every language
_LIKERT: Final = 5


class Complaint(NamedTuple):
    """A field of an event, and why its value is invalid."""

    field: str
    why: str


def complaint(event: Event) -> Complaint | None:
    """The problem with an event's values; None if they are valid."""
    return next(_complaints(event), None)


def name_complaint(name: str) -> str | None:
    """Why a text is not a valid name of a session, stream, actor or event; None if it is."""
    if not name or len(name) > 200:
        return f"has {len(name)} characters, and may have 1 to 200"
    if _CONTROL.search(name):
        return "holds control characters"
    return None


def _whole(field: str, value: int | None, least: int = 1) -> Iterator[Complaint]:
    if value is not None and not least <= value <= _LARGEST:
        yield Complaint(field, f"must be a whole number from {least}, not {value}")


def _share(field: str, value: float | None) -> Iterator[Complaint]:
    if value is not None and not 0 <= value <= 1:
        yield Complaint(field, f"must lie between 0 and 1, not be {value}")


@singledispatch
def _complaints(event: Event) -> Iterator[Complaint]:
    yield from ()


@_complaints.register
def _(event: SessionOpened) -> Iterator[Complaint]:
    names: set[str] = set()
    for number, participant in enumerate(event.participants):
        name = participant.name
        if why := name_complaint(name):
            yield Complaint(f"participants[{number}].name", why)
        if name in names:
            yield Complaint(f"participants[{number}].name", f"{name!r} is there twice")
        names.add(name)
    if event.forked_from is not None:
        yield Complaint("forked_from", "duolog fork makes forks, in the log of their origins")


@_complaints.register
def _(event: ActionResolved) -> Iterator[Complaint]:
    yield from _whole("action", event.action)


@_complaints.register
def _(event: SnapshotTaken) -> Iterator[Complaint]:
    yield from _whole("base", event.base)


@_complaints.register
def _(event: ApprovalGiven) -> Iterator[Complaint]:
    yield from _whole("asked", event.asked)


@_complaints.register
def _(event: FeedbackGiven) -> Iterator[Complaint]:
    yield from _share("edits_kept", event.edits_kept)
    yield from _whole("of", event.of)


@_complaints.register
def _(event: ModelCalled) -> Iterator[Complaint]:
    tokens = event.tokens
    for name in tokens.__struct_fields__:
        yield from _whole(f"tokens.{name}", getattr(tokens, name), 0)
    yield from _whole("attempt", event.attempt)
    if event.latency < 0:
        yield Complaint("latency", f"must not be negative, not {event.latency}")
    if event.cost is not None and event.cost < 0:
        yield Complaint("cost", f"must not be negative, not {event.cost}")


@_complaints.register
def _(event: ProgressRated) -> Iterator[Complaint]:
    yield from _whole("round", event.round)
    yield from _whole("until", event.until)
    if event.rating is None and not event.missing:
        yield Complaint("missing", "must say why there is no rating")
    elif event.rating is not None and not 1 <= event.rating <= _LIKERT:
        yield Complaint("rating", f"must be 1 to {_LIKERT}, not {event.rating}")


@_complaints.register
def _(event: UtilityScored) -> Iterator[Complaint]:
    yield from _whole("snapshot", event.snapshot)
    yield from _whole("round", event.round)
    yield from _whole("until", event.until)
    yield from _share("value", event.value)
    if event.value is None and not event.missing:
        yield Complaint("missing", "must say why there is no value")
    if (event.snapshot is None) == (event.round is None):
        yield Complaint("snapshot", "must be given, or else a round, and not both")


@_complaints.register
def _(event: SimulatorFlagged) -> Iterator[Complaint]:
    yield from _whole("of", event.of)


@_complaints.register
def _(event: StopAdvised) -> Iterator[Complaint]:
    yield from _whole("round", event.round)
    yield from _whole("tau", event.tau)
