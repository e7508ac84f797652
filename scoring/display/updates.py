"""The updates of scoring in words, and the human's effort."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..trajectory.updates import (
    ChatAdvised,
    EffortUpdated,
    OversightUpdated,
    RatingUpdated,
    RoundClosed,
    RoundOpened,
    ScorerDown,
    SessionEnded,
    StageChanged,
    StopAdvice,
    StopWithdrawn,
    Update,
    UtilityUpdated,
)
from .records import Description, Tone
from .texts import duration, number, one_line

__all__ = ("describe_update", "effort_words")

_EFFORT: Final = (
    ("rounds", "round led", "rounds led"),
    ("acts", "act", "acts"),
    ("tokens_written", "token written", "tokens written"),
    ("tokens_read", "token read", "tokens read"),
)


def effort_words(effort: Mapping[str, float | None]) -> str:
    """The human's effort up to the end of a round; empty if there is none."""
    parts = []
    for name, one, more in _EFFORT:
        value = effort.get(name)
        if value:
            parts.append(f"{value:g} {one if value == 1 else more}")
    seconds = effort.get("seconds")
    if seconds is not None and seconds >= 1:
        parts.append(f"{duration(seconds)} of the human's time")
    return ", ".join(parts)


def _oversight_words(update: OversightUpdated) -> str:
    asked = update.approvals
    decided = asked.approved_by_person + asked.rejected_by_person
    words = f"{update.interruptions} of {update.agent_turns} agent turns interrupted"
    return f"{words}, {asked.approved_by_person} of {decided} approved" if decided else words


def describe_update(update: Update) -> Description | None:
    """An update in words; None for kinds that are not shown."""
    match update:
        case RoundOpened(round=current, stage=stage):
            return Description(f"round {current} begins ({stage})", tone="strong")
        case RoundClosed(round=closed, point=point, missing=missing):
            value = f"utility {'missing' if point.utility is None else number(point.utility)}"
            return Description(f"round {closed} ends", value, missing or "", tone="strong")
        case UtilityUpdated(round=first, through=last, stale=stale):
            does = f"utility of round {first}{f' to {last}' if last > first else ''}"
            value = f"{number(update.utility)}{', stale' if stale else ''}"
            tone: Tone = "warning" if stale else "plain"
            return Description(does, value, update.missing or "", tone=tone)
        case RatingUpdated(round=rated, rating=rating, pending=pending, missing=missing):
            value = "pending" if pending else "missing" if rating is None else f"{rating}/5"
            return Description(f"progress of round {rated}", value, missing or "")
        case StopAdvice(tau=tau, round=last, ratings=ratings):
            listed = ", ".join(str(rating) for rating in ratings)
            does = f"tolerance τ = {tau} is used up in round {last} (rated {listed})"
            return Description(does, tone="warning")
        case StopWithdrawn(tau=tau):
            return Description(f"tolerance τ = {tau} is not used up after all", tone="warning")
        case ScorerDown(scorer=scorer, error=error):
            does = f"{one_line(scorer)} measures no more"
            return Description(does, "", error, tone="bad", failed=True)
        case SessionEnded(state=state):
            return Description("the session is closed", state, tone="strong")
        case _:
            return _aside(update)


def _aside(update: Update) -> Description | None:
    """An update that is shown quietly, in words."""
    match update:
        case EffortUpdated(effort=effort):
            return Description("effort", effort_words(effort) or "none", tone="quiet")
        case OversightUpdated():
            return Description("oversight", _oversight_words(update), tone="quiet")
        case ChatAdvised(move=str(move), why=why):
            return Description(f"the agent should {move}", "", why, tone="quiet")
        case StageChanged(stage=stage):
            return Description(f"the stage of {stage} begins", tone="quiet")
        case _:
            return None
