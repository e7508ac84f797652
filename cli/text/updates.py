"""Formats the updates of scoring for a person."""

from __future__ import annotations

from functools import singledispatch

from rich.text import Text

from ...engine.display import clean, number
from ...scoring.trajectory.updates import (
    EffortUpdated,
    RatingUpdated,
    RoundClosed,
    RoundOpened,
    ScorerDown,
    SessionEnded,
    StageChanged,
    StopAdvice,
    StopWithdrawn,
    UtilityUpdated,
)
from .transcript_view import effort_text
from .wording import with_reason

__all__ = ("update_text",)


@singledispatch
def update_text(update: object) -> Text | None:
    """An update in words; None for kinds that are not shown."""
    return None


@update_text.register
def _(update: RoundOpened) -> Text:
    return Text(f"round {update.round} begins ({update.stage})", style="bold")


@update_text.register
def _(update: RoundClosed) -> Text:
    point = update.point
    utility = number(point.utility) if point.utility is not None else "missing"
    ends = with_reason(f"round {update.round} ends: utility {utility}", update.missing)
    return Text(ends, style="bold")


@update_text.register
def _(update: UtilityUpdated) -> Text:
    through = f" to {update.through}" if update.through > update.round else ""
    text = f"utility of round {update.round}{through}: {number(update.utility)}"
    if update.stale:
        text = f"{text}, stale"
    text = with_reason(text, update.missing)
    return Text(text, style="yellow" if update.stale else "")


@update_text.register
def _(update: EffortUpdated) -> Text:
    return Text(f"effort: {effort_text(update.effort) or 'none'}", style="dim")


@update_text.register
def _(update: RatingUpdated) -> Text:
    rating = "pending" if update.pending else "missing" if update.rating is None else None
    return Text(
        with_reason(
            f"progress of round {update.round}: {rating or f'{update.rating}/5'}", update.missing
        )
    )


@update_text.register
def _(update: StageChanged) -> Text:
    return Text(f"the stage of {update.stage} begins", style="dim")


@update_text.register
def _(update: StopAdvice) -> Text:
    ratings = ", ".join(str(rating) for rating in update.ratings)
    return Text(
        f"tolerance τ = {update.tau} is used up in round {update.round} (rated {ratings})",
        style="yellow",
    )


@update_text.register
def _(update: StopWithdrawn) -> Text:
    return Text(f"tolerance τ = {update.tau} is not used up after all", style="yellow")


@update_text.register
def _(update: ScorerDown) -> Text:
    return Text(f"{clean(update.scorer)} measures no more", style="red")


@update_text.register
def _(update: SessionEnded) -> Text:
    return Text(f"the session is closed: {update.state}", style="bold")
