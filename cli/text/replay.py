"""Prints the steps of a replay one by one: for a person, or as JSON Lines for a program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import final

from rich.text import Text

from ...scoring.display.texts import duration, is_virtual, moment, shorten
from ...scoring.replay import Step
from ...scoring.trajectory.updates import EffortUpdated, Update
from ..output import print_json
from .page import Page
from .records import RecordFormatter, update_text
from .terminal import screen
from .transcript import record_data
from .transcript_view import ROLES

__all__ = ("printer",)

_SESSION = 24
_ACTOR = 10


def printer(session: str | None, *, as_json: bool, flush: bool) -> Callable[[Step], None]:
    """A function that prints a step.

    Args:
        session: the only session; None for all, whose lines then carry the session's id.
        as_json: print an object per line, with the record and its updates.
        flush: flush after each step, since the next may not follow soon.
    """
    show = _print_data if as_json else _ReplayPrinter(alone=session is not None).print

    def show_step(step: Step) -> None:
        show(step)
        if flush:
            sys.stdout.flush()

    return show_step


def _print_data(step: Step) -> None:
    print_json({"record": record_data(step.record), "updates": list(step.updates)})


@final
class _ReplayPrinter:
    """Prints steps for a person; of several sessions without the blocks of lines."""

    def __init__(self, *, alone: bool) -> None:
        self._alone = alone
        self._formatters: dict[str, RecordFormatter] = {}
        names = _ACTOR if alone else _SESSION
        self._page = Page(screen(), numbers=4, times=8, names=names)

    def print(self, step: Step) -> None:
        record = step.record
        formatter = self._formatters.get(record.session)
        if formatter is None:
            formatter = self._formatters[record.session] = RecordFormatter()
            if not self._alone:
                self._line(step, Text("begins", style="bold"))
        shown = formatter.format(record)
        if shown is not None:
            text = shown.text
            if not self._alone and not shown.quiet:
                who = f"{shorten(record.actor, _ACTOR)}: "
                text = Text.assemble((who, ROLES[record.role]), text)
            self._line(step, text, actor=not shown.quiet)
            if self._alone:
                self._page.block(shown.block)
        for update in step.updates:
            text_ = None if self._skips(update) else update_text(update)
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
