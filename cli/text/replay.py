"""Prints the steps of a replay one by one: for a person, or as JSON Lines for a program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import singledispatch
from typing import final

from rich.text import Text

from ...scoring.replay import Step
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
    Update,
    UtilityUpdated,
)
from ..common import print_json
from .columns import Page
from .records import Telling
from .terminal import clean, duration, is_virtual, moment, number, screen, shorten
from .transcript import record_data
from .transcript_view import ROLES, effort_text
from .wording import because

__all__ = ("printer", "said")

_SESSION = 24
_ACTOR = 10


def printer(session: str | None, *, as_json: bool, flush: bool) -> Callable[[Step], None]:
    """What prints a step.

    Args:
        session: the only session that there is; None for all, which are then told apart.
        as_json: as an object a line: the record and its updates.
        flush: after each step, since the next may be a while.
    """
    show = _print_data if as_json else _Printing(alone=session is not None).print

    def show_step(step: Step) -> None:
        show(step)
        if flush:
            sys.stdout.flush()

    return show_step


def _print_data(step: Step) -> None:
    print_json({"record": record_data(step.record), "updates": list(step.updates)})


@final
class _Printing:
    """Tells the steps of a replay to a person; outputs are told in full only if it is of one."""

    def __init__(self, *, alone: bool) -> None:
        self._alone = alone
        self._tellings: dict[str, Telling] = {}
        names = _ACTOR if alone else _SESSION
        self._page = Page(screen(), numbers=4, times=8, names=names)

    def print(self, step: Step) -> None:
        record = step.record
        telling = self._tellings.get(record.session)
        if telling is None:
            telling = self._tellings[record.session] = Telling()
            if not self._alone:
                self._line(step, Text("begins", style="bold"))
        told = telling.tell(record)
        if told is not None:
            text = told.text
            if not self._alone and not told.quiet:
                who = f"{shorten(record.actor, _ACTOR)}: "
                text = Text.assemble((who, ROLES[record.role]), text)
            self._line(step, text, actor=not told.quiet)
            if self._alone:
                self._page.block(told.block)
        for update in step.updates:
            text_ = None if self._skips(update) else said(update)
            if text_ is not None:
                self._page.line(Text.assemble(("▸ ", "dim"), text_))

    def _skips(self, update: Update) -> bool:
        return not self._alone and isinstance(update, EffortUpdated)

    def _line(self, step: Step, text: Text, *, actor: bool = True) -> None:
        record = step.record
        virtual = is_virtual(record.time)
        name = record.session if not self._alone else record.actor if actor else ""
        self._page.line(
            text,
            number=str(record.version) if record.stream == "trace" else "",
            time=duration(record.time) if virtual else moment(record.time)[-8:],
            name=shorten(name, _ACTOR if self._alone else _SESSION),
            style=ROLES[record.role] if self._alone else "dim",
        )


@singledispatch
def said(update: object) -> Text | None:
    """An update in words; none where the record has said it."""
    return None


@said.register
def _(update: RoundOpened) -> Text:
    return Text(f"round {update.round} begins ({update.stage})", style="bold")


@said.register
def _(update: RoundClosed) -> Text:
    point = update.point
    return Text(f"round {update.round} ends: utility {point.utility:.3f}", style="bold")


@said.register
def _(update: UtilityUpdated) -> Text:
    through = f" to {update.through}" if update.through > update.round else ""
    text = f"utility of round {update.round}{through}: {number(update.utility)}"
    if update.stale:
        text = because(f"{text}, stale", update.missing)
    return Text(text, style="yellow" if update.stale else "")


@said.register
def _(update: EffortUpdated) -> Text:
    return Text(f"effort: {effort_text(update.effort) or 'none'}", style="dim")


@said.register
def _(update: RatingUpdated) -> Text:
    rating = "pending" if update.pending else "missing" if update.rating is None else None
    return Text(
        because(
            f"progress of round {update.round}: {rating or f'{update.rating}/5'}", update.missing
        )
    )


@said.register
def _(update: StageChanged) -> Text:
    return Text(f"the stage of {update.stage} begins", style="dim")


@said.register
def _(update: StopAdvice) -> Text:
    ratings = ", ".join(str(rating) for rating in update.ratings)
    return Text(
        f"tolerance τ = {update.tau} is used up in round {update.round} (rated {ratings})",
        style="yellow",
    )


@said.register
def _(update: StopWithdrawn) -> Text:
    return Text(f"tolerance τ = {update.tau} is not used up after all", style="yellow")


@said.register
def _(update: ScorerDown) -> Text:
    return Text(f"{clean(update.scorer)} measures no more", style="red")


@said.register
def _(update: SessionEnded) -> Text:
    return Text(f"the session is closed: {update.state}", style="bold")
