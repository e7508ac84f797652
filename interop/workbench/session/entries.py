"""The records of a session as entries of its transcript: each on its own, with what belongs to it."""

from __future__ import annotations

from typing import Final, NamedTuple

from ....engine.display import duration, is_virtual, moment, shorten
from ....engine.errors import CodecError
from ....engine.records import Record
from ....scoring.trajectory.updates import ScorerDown, StopAdvice, StopWithdrawn, Update
from ..links import session_address
from ..markup.html import Html, Node, tag
from .contents import Beside, contents

__all__ = ("EntryContext", "entry")

_NAME: Final = 60
_LINE: Final = 300
_PRIVATE: Final = frozenset({"ModelCalled", "NoteTaken", "ProfileChanged"})
_SLIM: Final = frozenset(
    {
        "AlertSent",
        "EffortObserved",
        "ActionResolved",
        "ActionTaken",
        "ModelCalled",
        "NoteTaken",
        "Nudged",
        "ProfileChanged",
        "ProgressRated",
        "SimulatorFlagged",
        "TurnYielded",
        "UtilityScored",
    }
)


class EntryContext(NamedTuple):
    """What an entry needs to know besides its record.

    Attributes:
        number: of the record in its session.
        opened: when the session began.
        advice: what scoring advised at this record.
        beside: what else is known.
    """

    number: int
    opened: float
    advice: list[Update]
    beside: Beside


def entry(record: Record, context: EntryContext) -> Html:
    """The entry of a record."""
    try:
        body: Node = contents(record.event, record, context.beside)
    except CodecError as error:
        body = tag("p", f"a damaged record: {error}", class_="problem")
    slim = record.kind in _SLIM
    private = " private" if record.kind in _PRIVATE else ""
    time = _time(record.time, context.opened)
    who = tag("span", shorten(record.actor, _NAME), class_=f"who {record.role}", dir="auto")
    number = tag(
        "a",
        f"#{context.number}",
        href=session_address(record.session, context.number),
        class_="number",
        title=f"{record.kind}, {record.stream} {record.version}, position {record.position}: "
        "go back to here",
    )
    return tag(
        "article",
        tag("header", who, tag("time", time), number),
        tag("div", body, class_="body"),
        [tag("p", _advice(update), class_="advice") for update in context.advice],
        class_=f"entry {'slim' if slim else 'full'} {record.role}{private}",
        data_i=context.number,
        data_kind=record.kind,
    )


def _time(time: float, opened: float) -> str:
    return duration(time) if is_virtual(opened) else moment(time)


def _advice(update: Update) -> str:
    match update:
        case StopAdvice():
            ratings = ", ".join(str(rating) for rating in update.ratings)
            return f"■ Stop advised: tolerance τ = {update.tau} is used up after round {update.round} (rated {ratings})"
        case StopWithdrawn():
            return f"□ Advice withdrawn: tolerance τ = {update.tau} is not used up after all"
        case ScorerDown():
            return f"✗ {shorten(update.scorer, _NAME)} measures no more: {shorten(update.error, _LINE)}"
        case _:
            return ""
