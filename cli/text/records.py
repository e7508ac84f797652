"""Formats the records of a session for a person: a text each, and perhaps a block of lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatchmethod
from typing import NamedTuple, final

from rich.text import Text

from ...engine.diff import ChangedLine, changes, counts
from ...engine.display import clean
from ...engine.events import (
    ActionResolved,
    ActionTaken,
    ActorFailed,
    ApprovalAsked,
    ApprovalGiven,
    FeedbackGiven,
    Forgotten,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Nudged,
    ProfileChanged,
    ProgressRated,
    ScorerFailed,
    SessionClosed,
    SimulatorFlagged,
    SnapshotTaken,
    StopAdvised,
    TurnYielded,
    Unknown,
    UtilityScored,
)
from ...engine.records import TRACE, Record
from ...engine.text import lines_of, quantity
from ...interop.importers.conversation.steps import UNKNOWN_MODEL
from .files import FileEdits
from .wording import call_text, one_line, outcome_text, pairs_text, truncated, with_reason

__all__ = ("RecordFormatter", "RecordText")

_BLOCK = 30  # lines of an output that are shown without ``full``
_SLACK = 4  # more lines than _BLOCK that are still shown whole

_MARKS: Mapping[str, str] = {"+": "green", "-": "red", "…": "dim", " ": ""}

_SHARED = frozenset({"MessageSent", "SnapshotTaken", "ApprovalAsked", "ApprovalGiven"})
_BETWEEN = frozenset({"ActionTaken", "ActionResolved", "ModelCalled"})

_CLOSED: Mapping[str, str] = {
    "finished": "ends the session",
    "abandoned": "gives up and leaves the session",
    "ended": "closes the session: it is over",
    "limit": "closes the session at a limit",
    "tolerance": "closes the session: the human has had enough",
    "stalled": "closes the session: all wait for each other",
    "failed": "closes the session after a failure",
    "cancelled": "cancels the session",
}


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
    """Formats the records of one session, in order; keeps what the following ones refer to.

    Args:
        full: leave nothing out.
        ahead: the records that will follow, if they are known. Then an outcome that comes before
            anything else happens is formatted with its action, and waiting with the message
            before it.
    """

    def __init__(self, *, full: bool = False, ahead: Iterable[Record] = ()) -> None:
        self._full = full
        self._files = FileEdits()
        self._lines: list[str] = []
        self._digest: str | None = None
        self._snapshot: int | None = None
        self._actions: dict[int, tuple[ActionTaken, Record]] = {}
        self._shared: list[Record] = []
        self._outcomes: dict[int, Record] = {}
        self._waits: set[int] = set()
        self._look_ahead(ahead)

    def format(self, record: Record) -> RecordText | None:
        """The next record in words; None if an earlier text contains it already.

        Raises:
            CodecError: its body is damaged.
        """
        formatted = self._format(record.event, record)
        if record.kind in _SHARED:
            if formatted is not None:
                text = Text.assemble(formatted.text, self._unseen(record))
                formatted = formatted._replace(text=text)
            self._shared.append(record)
        return formatted

    def _look_ahead(self, ahead: Iterable[Record]) -> None:
        """Finds outcomes and waits that are formatted with what comes before them."""
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

    def _unseen(self, record: Record) -> Text:
        """Names acts of others that the actor had not seen when it decided on this one."""
        crossed: list[str] = []
        if record.seen is None:
            return Text()
        for other in reversed(self._shared):
            if other.version <= record.seen:
                break
            if other.actor != record.actor:
                crossed.append(str(other.version))
        before = f"  (before seeing {', '.join(reversed(crossed))})" if crossed else ""
        return Text(before, style="dim italic")

    @singledispatchmethod
    def _format(self, event: object, record: Record) -> RecordText | None:
        """The text of an event, by its kind; None for kinds that the heading shows already."""
        return None

    # --- what people and agents do ---------------------------------------------------------------

    @_format.register
    def _(self, event: MessageSent, record: Record) -> RecordText:
        to = f"(to {one_line(', '.join(event.to))}) " if event.to else ""
        waits = "  (waits)" if record.version + 1 in self._waits else ""
        return RecordText(Text.assemble((to, "dim"), clean(event.text), (waits, "dim")))

    @_format.register
    def _(self, event: ActionTaken, record: Record) -> RecordText | None:
        self._actions[record.version] = event, record
        if _is_submission(event):
            return None  # shown with its refusal
        text = _action(event)
        resolved = self._outcomes.get(record.version)
        if resolved is None or not isinstance(resolved.event, ActionResolved):
            return RecordText(text)
        came = outcome_text(resolved.event, resolved.time - record.time)
        text = Text.assemble(text, (" → ", "dim"), came)
        return RecordText(text, self._observation(resolved.event))

    @_format.register
    def _(self, event: ActionResolved, record: Record) -> RecordText | None:
        action, taken = self._actions.pop(event.action, (None, record))
        if action is not None and _is_submission(action):
            return self._refusal(action, taken, event)
        if event.action in self._outcomes:
            return None  # shown with its action
        name = "action" if action is None else one_line(action.name)
        came = outcome_text(event, record.time - taken.time)
        text = Text.assemble((f"→ {name} {event.action}: ", "dim"), came)
        return RecordText(text, self._observation(event), quiet=True)

    def _observation(self, event: ActionResolved) -> Sequence[Text]:
        if not self._full or event.observation is None:
            return ()
        return [Text(clean(line), style="dim") for line in lines_of(event.observation)]

    def _refusal(self, action: ActionTaken, taken: Record, event: ActionResolved) -> RecordText:
        text = f"✗ {one_line(taken.actor)}'s submission {taken.version} was refused"
        content = lines_of(action.arguments.get("content")) if self._full else []
        return RecordText(
            Text(with_reason(text, event.error), style="yellow"),
            [Text(clean(line), style="dim") for line in content],
            quiet=True,
        )

    @_format.register
    def _(self, event: SnapshotTaken, record: Record) -> RecordText:
        edited = self._files.of(event.content)
        if edited is not None:
            lines = [self._changed(line) for line in edited.changed]
            return RecordText(edited.text, self._block(lines))
        before, self._lines = self._lines, lines_of(event.content)
        same, self._digest = event.digest == self._digest, event.digest
        latest, self._snapshot = self._snapshot, record.version
        if same:
            return RecordText(Text("submits the output again, unchanged", style="bold"))
        if not before:
            text = f"submits the first version of the output ({quantity(len(self._lines), 'line')})"
            return RecordText(
                Text(text, style="bold"),
                self._block([Text(truncated(line, full=self._full)) for line in self._lines]),
            )
        changed = changes(before, self._lines)
        added, gone = counts(changed)
        other = event.base is not None and event.base != latest
        revision = Text.assemble(
            (f"revises the output (+{added} −{gone} lines)", "bold"),
            (f" from version {event.base}" if other else "", "dim"),
        )
        return RecordText(revision, self._block([self._changed(line) for line in changed]))

    def _changed(self, line: ChangedLine) -> Text:
        text = f"{line.mark} {truncated(line.text, full=self._full)}".rstrip()
        return Text(text, style=_MARKS[line.mark])

    def _block(self, lines: Sequence[Text]) -> Sequence[Text]:
        if self._full or len(lines) <= _BLOCK + _SLACK:
            return lines
        rest = f"… {len(lines) - _BLOCK} more lines (--full shows all)"
        return [*lines[:_BLOCK], Text(rest, style="dim")]

    @_format.register
    def _(self, event: ApprovalAsked, record: Record) -> RecordText:
        text = Text.assemble(("asks for approval: ", "bold"), clean(event.question))
        if event.action is not None:
            between = "\n" if "\n" in event.question else " "
            text = Text.assemble(text, between, call_text(event.action, event.arguments))
        return RecordText(text)

    @_format.register
    def _(self, event: ApprovalGiven, record: Record) -> RecordText:
        verb, style = ("approves", "green") if event.approved else ("denies", "red")
        comment = f": {clean(event.comment)}" if event.comment else ""
        return RecordText(Text.assemble((f"{verb} {event.asked}", f"bold {style}"), comment))

    @_format.register
    def _(self, event: NoteTaken, record: Record) -> RecordText:
        return RecordText(Text(f"notes: {clean(event.text)}", style="dim italic"))

    @_format.register
    def _(self, event: ProfileChanged, record: Record) -> RecordText:
        whose = "" if event.owner == record.actor else f" of {clean(event.owner)}"
        words = with_reason(
            f"has other goals{whose}" if whose else "changes their goals", event.reason
        )
        return RecordText(Text(words, style="magenta italic"))

    @_format.register
    def _(self, event: TurnYielded, record: Record) -> RecordText | None:
        if record.version in self._waits:
            return None  # shown with the message before
        return RecordText(Text(with_reason("waits", event.reason), style="dim"))

    @_format.register
    def _(self, event: FeedbackGiven, record: Record) -> RecordText:
        parts = [] if event.thumbs is None else [f"thumbs {event.thumbs}"]
        if event.edits_kept is not None:
            parts.append(f"{event.edits_kept:.0%} of the edits kept")
        if event.comment:
            parts.append(clean(event.comment))
        about = "" if event.of is None else f" on {event.of}"
        return RecordText(Text(f"feedback{about}: {', '.join(parts) or 'none'}", style="bold"))

    # --- the engine, models, scorers -------------------------------------------------------------

    @_format.register
    def _(self, event: Forgotten, record: Record) -> RecordText:
        return RecordText(Text(f"({one_line(event.kind)}, erased)", style="dim"))

    @_format.register
    def _(self, event: Unknown, record: Record) -> RecordText:
        text = (
            f"({one_line(event.kind)}, schema {event.schema}: not known to this version of Duolog)"
        )
        if "." in event.kind:  # named by an adapter, see ``docs/telemetry.md``
            text = f"({one_line(event.kind)}, kept as it came)"
        return RecordText(Text(text, style="dim"))

    @_format.register
    def _(self, event: Nudged, record: Record) -> RecordText:
        text = with_reason(f"{one_line(record.actor)} nudges {one_line(event.to)}", event.reason)
        return RecordText(Text(text, style="dim"), quiet=True)

    @_format.register
    def _(self, event: ModelCalled, record: Record) -> RecordText:
        prompt, completion = event.tokens.prompt, event.tokens.completion
        model = "a model" if event.model == UNKNOWN_MODEL else one_line(event.model)
        text = f"{one_line(record.actor)} calls {model} to {one_line(event.purpose)}"
        if prompt is not None or completion is not None:
            text += f": {'?' if prompt is None else prompt} + "
            text += f"{'?' if completion is None else completion} tokens"
        if event.latency:
            text += f", {event.latency:.1f} s"
        if event.cost is not None:
            text += f", ${event.cost:.4f}"
        error = "" if event.error is None else f": {clean(event.error)}"
        return RecordText(Text.assemble((text, "dim"), (error, "red")), quiet=True)

    @_format.register
    def _(self, event: ActorFailed, record: Record) -> RecordText:
        return RecordText(
            Text(f"✗ fails: {one_line(event.type)}: {clean(event.error)}", style="bold red")
        )

    @_format.register
    def _(self, event: ScorerFailed, record: Record) -> RecordText:
        text = f"✗ {one_line(record.stream)} fails: {one_line(event.type)}: {clean(event.error)}"
        return RecordText(Text(text, style="red"), quiet=True)

    @_format.register
    def _(self, event: SessionClosed, record: Record) -> RecordText:
        text = with_reason(f"■ {_CLOSED[event.reason]}", event.detail)
        return RecordText(Text(text, style="bold" if event.reason == "finished" else "bold yellow"))

    @_format.register
    def _(self, event: ProgressRated, record: Record) -> RecordText:
        rating = "missing" if event.rating is None else f"{event.rating}/5"
        text = f"{one_line(record.actor)} rates round {event.round}: {rating}"
        text = with_reason(with_reason(text, event.missing), event.explanation)
        return RecordText(Text(text, style="dim"), quiet=True)

    @_format.register
    def _(self, event: UtilityScored, record: Record) -> RecordText:
        of = f"round {event.round}" if event.snapshot is None else f"version {event.snapshot}"
        text = f"{one_line(record.actor)} scores {of}: "
        if event.value is None:
            text = with_reason(f"{text}missing", event.missing)
            return RecordText(Text(text, style="yellow"), quiet=True)
        parts = f" ({pairs_text(event.parts)})" if event.parts else ""
        return RecordText(Text(f"{text}{event.value:.3f}{parts}", style="dim"), quiet=True)

    @_format.register
    def _(self, event: StopAdvised, record: Record) -> RecordText:
        verb = "stops the session" if event.enforced else "advises to stop"
        text = f"{one_line(record.actor)} {verb} after round {event.round} (τ = {event.tau})"
        return RecordText(Text(with_reason(text, event.rule), style="yellow"), quiet=True)

    @_format.register
    def _(self, event: SimulatorFlagged, record: Record) -> RecordText:
        text = f"{one_line(record.actor)}: a fault of the simulated user in {event.of}"
        text = with_reason(with_reason(text, event.fault), event.detail)
        return RecordText(Text(text, style="yellow"), quiet=True)


def _action(action: ActionTaken) -> Text:
    """An action; as the agent wrote it if its arguments could not be read."""
    if action.raw is None or action.arguments:
        return call_text(action.name, action.arguments)
    whole = action.raw.lstrip().startswith(action.name)
    return Text(one_line(action.raw if whole else f"{action.name}({action.raw})"), style="dim")


def _is_submission(action: ActionTaken) -> bool:
    """Whether an action stands for a snapshot that was refused."""
    return action.name == "submit" and "base" in action.arguments
