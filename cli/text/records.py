"""Draws the descriptions of records and updates on the terminal: a text each, and perhaps a block of lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, final

from rich.text import Text

from ...engine.events import ActionResolved, ActionTaken
from ...engine.records import TRACE, Record
from ...scoring.display.diff import Mark
from ...scoring.display.records import (
    Context,
    Description,
    Narrator,
    Passage,
    Tone,
    describe,
    is_submission,
)
from ...scoring.display.texts import clean, one_line
from ...scoring.display.updates import describe_update
from ...scoring.trajectory.updates import Update

__all__ = ("RecordFormatter", "RecordText", "update_text")

_BLOCK = 30  # lines of an output that are shown without ``full``
_SLACK = 4  # more lines than _BLOCK that are still shown whole
_LINE = 200  # characters of a line that are shown without ``full``

_MARKS: Final[Mapping[Mark, str]] = {"+": "green", "-": "red", "…": "dim", " ": ""}
_TONES: Final[Mapping[Tone, str]] = {
    "plain": "",
    "strong": "bold",
    "quiet": "dim",
    "note": "dim italic",
    "good": "bold green",
    "bad": "bold red",
    "low": "dim",
    "warning": "yellow",
}
_WHOLE: Final = frozenset({"quiet", "note", "low", "warning"})
"""Tones that colour the whole sentence. The others colour the verb only."""

_HIDDEN: Final = frozenset({"SessionOpened", "EffortObserved", "AlertSent"})
"""Kinds that headings show already, or that say nothing about the course of a session."""

_BETWEEN: Final = frozenset({"ActionTaken", "ActionResolved", "ModelCalled"})


class RecordText(NamedTuple):
    """A record in words.

    Attributes:
        text: the text.
        block: lines that belong to it.
        quiet: no person or agent acted: a measurement, an outcome, an event of the engine. The
            text names its source.
    """

    text: Text
    block: Sequence[Text] = ()
    quiet: bool = False


@final
class RecordFormatter:
    """Formats the records of one session, in order.

    Args:
        full: leave nothing out.
        ahead: the records that will follow, if they are known. Then an outcome that comes before
            anything else happens is formatted with its action, and waiting with the message
            before it.
    """

    def __init__(self, *, full: bool = False, ahead: Iterable[Record] = ()) -> None:
        self._full = full
        self._narrator = Narrator()
        self._outcomes: dict[int, Record] = {}
        self._waits: set[int] = set()
        self._look_ahead(ahead)

    def format(self, record: Record) -> RecordText | None:
        """The next record in words; None if it is not shown, or an earlier text contains it.

        Raises:
            CodecError: its body is damaged.
        """
        told = self._narrator.describe(record)
        if record.kind in _HIDDEN or record.version in self._waits and record.stream == TRACE:
            return None
        text, event = _sentence(told), record.event
        details = told.details
        if isinstance(event, ActionTaken):
            if is_submission(event):
                return None  # shown with its refusal
            resolved = self._outcomes.get(record.version)
            if resolved is not None:
                outcome = describe(resolved, Context(action=record))
                text = Text.assemble(text, (" → ", "dim"), _result(outcome))
                details = outcome.details
        elif isinstance(event, ActionResolved) and event.action in self._outcomes:
            if told.tone == "quiet":
                return None  # shown with its action
        elif record.version + 1 in self._waits and record.kind == "MessageSent":
            text.append("  (waits)", "dim")
        if told.crossed:
            seen = ", ".join(map(str, told.crossed))
            text.append(f"  (before seeing {seen})", "dim italic")
        return RecordText(text, self._block(details), quiet=told.aside)

    def _look_ahead(self, ahead: Iterable[Record]) -> None:
        """Finds outcomes and waits that are formatted with the record before them."""
        in_flight: set[int] = set()
        before: Record | None = None
        for record in ahead:
            if record.stream != TRACE:
                continue
            kind = record.kind
            if kind == "ActionTaken":
                in_flight.add(record.version)
            elif kind == "ActionResolved":
                event = record.event
                if isinstance(event, ActionResolved) and event.action in in_flight:
                    self._outcomes[event.action] = record
            elif kind not in _BETWEEN:
                in_flight.clear()
            said = before is not None and before.kind == "MessageSent"
            if kind == "TurnYielded" and said and before is not None:
                event = record.event
                if before.actor == record.actor and not getattr(event, "reason", ""):
                    self._waits.add(record.version)
            before = record

    def _block(self, details: Sequence[Passage]) -> Sequence[Text]:
        """The lines of what belongs to a record."""
        lines: list[Text] = []
        for passage in details:
            if passage.kind == "diff":
                for mark, line in passage.lines:
                    lines.append(Text(f"{mark} {self._cut(line)}".rstrip(), _MARKS[mark]))
            elif passage.depth == "open":
                lines += [Text(self._cut(line)) for line in passage.text.splitlines()]
            elif passage.depth == "full" and self._full:
                lines += [Text(clean(line), "dim") for line in passage.text.splitlines()]
        if self._full or len(lines) <= _BLOCK + _SLACK:
            return lines
        rest = f"… {len(lines) - _BLOCK} more lines (--full shows all)"
        return [*lines[:_BLOCK], Text(rest, style="dim")]

    def _cut(self, line: str) -> str:
        """A line of an output, cut if it is very long."""
        return clean(line) if self._full or len(line) <= _LINE else clean(line[: _LINE - 1]) + "…"


def update_text(update: Update) -> Text | None:
    """An update of scoring in words; None for kinds that are not shown."""
    told = describe_update(update)
    return None if told is None else _sentence(told)


def _sentence(told: Description) -> Text:
    """A description as a sentence."""
    style = _TONES[told.tone]
    text = Text()
    if told.to:
        text.append(f"(to {one_line(', '.join(told.to))}) ", "dim")
    named = told.aside and not told.does.startswith(("→", "✗"))
    does = f"{one_line(told.actor)} {told.does}" if named else told.does
    text.append(does, style)
    result = _result(told)
    text.append(": " if does and result else "", style)
    text.append_text(result)
    if told.call:
        text.append("\n" if "\n" in told.text else " " if text else "").append(told.call, "dim")
    return text


def _result(told: Description) -> Text:
    """The end of the sentence: its value and its text."""
    style = _TONES[told.tone] if told.tone in _WHOLE else ""
    text = Text.assemble((clean(told.value), "red" if told.failed else style))
    if told.facts:
        named = (
            f"{one_line(name)} {'missing' if value is None else f'{value:.3g}'}"
            for name, value in told.facts.items()
        )
        text.append(f" ({', '.join(named)})", style)
    if told.text:
        said = "red" if told.failed else style
        text.append(": " if text else "", said).append(clean(told.text), said)
    return text
