"""Measures of a chat while it runs: utility, ratings, effort, and stop advice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from ...engine.rounds import PRODUCTIVE
from ...engine.text import quantity
from ...scoring.display.texts import number, shorten
from ...scoring.display.updates import effort_words
from ...scoring.trajectory.updates import (
    EffortUpdated,
    RatingUpdated,
    RoundClosed,
    RoundOpened,
    StopAdvice,
    StopWithdrawn,
    Update,
    UtilityUpdated,
)

__all__ = ("Measures", "advice_text")

_LATEST = 4
"""Rounds whose numbers are shown."""

_REASON = 60
"""Characters of a reason."""


def advice_text(update: Update) -> str | None:
    """A line on an advice to stop, with the rule that it rests on; None for any other update."""
    if isinstance(update, StopAdvice):
        row = " in a row" if update.tau > 1 else ""
        rule = f"{quantity(update.tau, 'round')}{row} rated below {PRODUCTIVE}"
        return f"■ Advice to stop after round {update.round}: {rule} (τ = {update.tau})"
    if isinstance(update, StopWithdrawn):
        return f"□ The advice to stop (τ = {update.tau}) is withdrawn: a rating was changed"
    return None


@final
class Measures:
    """The latest numbers of one session, from the updates of its scoring.

    Attributes:
        round: number of the round that is open.
        effort: the human's effort so far, by measure.
        stops: the round after which each tolerance τ advises to stop.
    """

    def __init__(self) -> None:
        self.round = 1
        self.effort: Mapping[str, float | None] = {}
        self.stops: dict[int, int] = {}
        self._utilities: dict[int, float | None] = {}
        self._ratings: dict[int, int | None] = {}
        self._missing: str | None = None  # why the latest score is
        self._none: str | None = None  # why the session's utility is missing

    def take(self, update: Update) -> None:
        """Takes the next update."""
        match update:
            case RoundOpened():
                self.round = update.round
                self._none = update.missing
            case RoundClosed():
                self.effort = update.point.effort
                self._none = update.missing
            case EffortUpdated():
                self.effort = update.effort
            case UtilityUpdated():
                for numbered in range(update.round, update.through + 1):
                    self._utilities[numbered] = update.utility
                self._missing = update.missing if update.stale else None
                self._none = update.missing if update.utility is None else None
            case RatingUpdated(pending=True):
                self._ratings.pop(update.round, None)
            case RatingUpdated():
                self._ratings[update.round] = update.rating
            case StopAdvice():
                self.stops[update.tau] = update.round
            case StopWithdrawn():
                self.stops.pop(update.tau, None)
            case _:
                pass  # not shown next to the chat

    @property
    def utility(self) -> str:
        """The utility after the latest rounds, the newest last."""
        values = [self._utilities[key] for key in sorted(self._utilities)][-_LATEST:]
        while values[:1] == [None]:
            values.pop(0)
        text = " → ".join(number(value) for value in values) or number(None)
        why = shorten(self._missing or "", _REASON)
        if why:
            return f"{text} (the latest score is missing: {why})"
        return text if values or not self._none else f"{text} ({shorten(self._none, _REASON)})"

    @property
    def ratings(self) -> str:
        """The ratings of the latest rounds, with their numbers; a dash for a missing one."""
        keys = sorted(key for key, rating in self._ratings.items() if rating is not None)[-_LATEST:]
        return ", ".join(f"round {key}: {self._ratings[key]}/5" for key in keys)

    def lines(self, *, brief: bool = False) -> list[str]:
        """All of it in a few lines.

        Args:
            brief: put what belongs together in one line.
        """
        lines = [f"Round {self.round} · utility {self.utility}"]
        if self.ratings and brief:
            lines[0] += f" · rated {self.ratings}"
        elif self.ratings:
            lines.append(f"Rated {self.ratings}")
        effort = effort_words(self.effort)
        if effort:
            lines.append(f"Effort: {effort}")
        if self.stops:
            taus = ", ".join(f"τ = {tau} (round {self.stops[tau]})" for tau in sorted(self.stops))
            lines.append(f"■ Advice to stop: {taus}")
        return lines
