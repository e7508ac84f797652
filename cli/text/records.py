"""What each record of a session says to a person who reads along: a text, and perhaps a block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatchmethod
from typing import NamedTuple, final

from rich.text import Text

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
from ...engine.text import lines_of
from .diff import Changed, changes, counts
from .terminal import clean
from .wording import because, call, count, cut, listed, outcome, plain

__all__ = ("Telling", "Told")

_BLOCK = 30  # lines of an output that are shown unless all are asked for
_SLACK = 4  # so many more are no reason to leave any out

_MARKS: Mapping[str, str] = {"+": "green", "-": "red", "…": "dim", " ": ""}

_HEARD = frozenset({"MessageSent", "SnapshotTaken", "ApprovalAsked", "ApprovalGiven"})
_BETWEEN = frozenset({"ActionTaken", "ActionResolved", "ModelCalled"})

_CLOSED: Mapping[str, str] = {
    "finished": "ends the session",
    "limit": "closes the session at a limit",
    "tolerance": "closes the session: the human has had enough",
    "stalled": "closes the session: all wait for each other",
    "failed": "closes the session after a failure",
    "cancelled": "cancels the session",
}


class Told(NamedTuple):
    """What is to be printed of a record.

    Attributes:
        text: in words.
        block: lines that belong to it.
        quiet: nobody acted: a measurement, an outcome, the engine's doing; the text says whose.
    """

    text: Text
    block: Sequence[Text] = ()
    quiet: bool = False


@final
class Telling:
    """Tells the records of one session, in order; remembers what it needs to tell the next.

    Args:
        full: leave nothing out.
        ahead: the records that will be told, where they are known: an outcome that comes before
            anything else happens is told with its action, and waiting with what was said before.
    """

    def __init__(self, *, full: bool = False, ahead: Iterable[Record] = ()) -> None:
        self._full = full
        self._lines: list[str] = []
        self._digest: str | None = None
        self._snapshot: int | None = None
        self._actions: dict[int, tuple[ActionTaken, Record]] = {}
        self._heard: list[Record] = []
        self._outcomes: dict[int, Record] = {}
        self._waits: set[int] = set()
        self._look(ahead)

    def tell(self, record: Record) -> Told | None:
        """What to print of the next record; None where it adds nothing to what was told.

        Raises:
            CodecError: its body is damaged.
        """
        told = self._tell(record.event, record)
        if record.kind in _HEARD:
            if told is not None:
                told = told._replace(text=Text.assemble(told.text, self._unseen(record)))
            self._heard.append(record)
        return told

    def _look(self, ahead: Iterable[Record]) -> None:
        """Finds outcomes and waits to be told with what comes before them."""
        flying: set[int] = set()
        before: Record | None = None
        for record in ahead:
            if record.stream != TRACE:
                continue
            kind = record.kind
            if kind == "ActionTaken":
                flying.add(record.version)
            elif kind == "ActionResolved":
                event = record.event
                if isinstance(event, ActionResolved) and event.action in flying:
                    self._outcomes[event.action] = record
            elif kind not in _BETWEEN:
                flying.clear()
            said = before is not None and before.kind == "MessageSent"
            if kind == "TurnYielded" and said and before is not None:
                event = record.event
                if before.actor == record.actor and not getattr(event, "reason", ""):
                    self._waits.add(record.version)
            before = record

    def _unseen(self, record: Record) -> Text:
        """Says which acts of others had crossed this one: it was decided without them."""
        crossed: list[str] = []
        if record.seen is None:
            return Text()
        for other in reversed(self._heard):
            if other.version <= record.seen:
                break
            if other.actor != record.actor:
                crossed.append(str(other.version))
        before = f"  (before seeing {', '.join(reversed(crossed))})" if crossed else ""
        return Text(before, style="dim italic")

    @singledispatchmethod
    def _tell(self, event: object, record: Record) -> Told | None:
        """What each kind of event says; nothing, where the heading has it already."""
        return None

    # --- what people and agents do ---------------------------------------------------------------

    @_tell.register
    def _(self, event: MessageSent, record: Record) -> Told:
        to = f"(to {plain(', '.join(event.to))}) " if event.to else ""
        waits = "  (waits)" if record.version + 1 in self._waits else ""
        return Told(Text.assemble((to, "dim"), clean(event.text), (waits, "dim")))

    @_tell.register
    def _(self, event: ActionTaken, record: Record) -> Told | None:
        self._actions[record.version] = event, record
        if _is_submission(event):
            return None  # told with its refusal
        text = _action(event)
        resolved = self._outcomes.get(record.version)
        if resolved is None or not isinstance(resolved.event, ActionResolved):
            return Told(text)
        came = outcome(resolved.event, resolved.time - record.time)
        text = Text.assemble(text, (" → ", "dim"), came)
        return Told(text, self._observation(resolved.event))

    @_tell.register
    def _(self, event: ActionResolved, record: Record) -> Told | None:
        action, taken = self._actions.pop(event.action, (None, record))
        if action is not None and _is_submission(action):
            return self._refusal(action, taken, event)
        if event.action in self._outcomes:
            return None  # told with its action
        name = "action" if action is None else plain(action.name)
        came = outcome(event, record.time - taken.time)
        text = Text.assemble((f"→ {name} {event.action}: ", "dim"), came)
        return Told(text, self._observation(event), quiet=True)

    def _observation(self, event: ActionResolved) -> Sequence[Text]:
        if not self._full or event.observation is None:
            return ()
        return [Text(clean(line), style="dim") for line in lines_of(event.observation)]

    def _refusal(self, action: ActionTaken, taken: Record, event: ActionResolved) -> Told:
        text = f"✗ {plain(taken.actor)}'s submission {taken.version} was refused"
        content = lines_of(action.arguments.get("content")) if self._full else []
        return Told(
            Text(because(text, event.error), style="yellow"),
            [Text(clean(line), style="dim") for line in content],
            quiet=True,
        )

    @_tell.register
    def _(self, event: SnapshotTaken, record: Record) -> Told:
        before, self._lines = self._lines, lines_of(event.content)
        same, self._digest = event.digest == self._digest, event.digest
        latest, self._snapshot = self._snapshot, record.version
        if same:
            return Told(Text("submits the output again, unchanged", style="bold"))
        if not before:
            text = f"submits the first version of the output ({count(len(self._lines), 'line')})"
            return Told(
                Text(text, style="bold"),
                self._block([Text(cut(line, full=self._full)) for line in self._lines]),
            )
        changed = changes(before, self._lines)
        added, gone = counts(changed)
        other = event.base is not None and event.base != latest
        told = Text.assemble(
            (f"revises the output (+{added} −{gone} lines)", "bold"),
            (f" from version {event.base}" if other else "", "dim"),
        )
        return Told(told, self._block([self._changed(line) for line in changed]))

    def _changed(self, line: Changed) -> Text:
        text = f"{line.mark} {cut(line.text, full=self._full)}".rstrip()
        return Text(text, style=_MARKS[line.mark])

    def _block(self, lines: Sequence[Text]) -> Sequence[Text]:
        if self._full or len(lines) <= _BLOCK + _SLACK:
            return lines
        rest = f"… {len(lines) - _BLOCK} more lines (--full shows all)"
        return [*lines[:_BLOCK], Text(rest, style="dim")]

    @_tell.register
    def _(self, event: ApprovalAsked, record: Record) -> Told:
        text = Text.assemble(("asks for approval: ", "bold"), clean(event.question))
        if event.action is not None:
            text = Text.assemble(text, " ", call(event.action, event.arguments))
        return Told(text)

    @_tell.register
    def _(self, event: ApprovalGiven, record: Record) -> Told:
        verb, style = ("approves", "green") if event.approved else ("denies", "red")
        comment = f": {clean(event.comment)}" if event.comment else ""
        return Told(Text.assemble((f"{verb} {event.asked}", f"bold {style}"), comment))

    @_tell.register
    def _(self, event: NoteTaken, record: Record) -> Told:
        return Told(Text(f"notes: {clean(event.text)}", style="dim italic"))

    @_tell.register
    def _(self, event: TurnYielded, record: Record) -> Told | None:
        if record.version in self._waits:
            return None  # told with the message before
        return Told(Text(because("waits", event.reason), style="dim"))

    @_tell.register
    def _(self, event: FeedbackGiven, record: Record) -> Told:
        parts = [] if event.thumbs is None else [f"thumbs {event.thumbs}"]
        if event.edits_kept is not None:
            parts.append(f"{event.edits_kept:.0%} of the edits kept")
        if event.comment:
            parts.append(clean(event.comment))
        about = "" if event.of is None else f" on {event.of}"
        return Told(Text(f"feedback{about}: {', '.join(parts) or 'none'}", style="bold"))

    # --- the engine, models, scorers -------------------------------------------------------------

    @_tell.register
    def _(self, event: Forgotten, record: Record) -> Told:
        return Told(Text(f"({plain(event.kind)}, erased)", style="dim"))

    @_tell.register
    def _(self, event: Unknown, record: Record) -> Told:
        text = f"({plain(event.kind)}, schema {event.schema}: not known to this version of Duolog)"
        if "." in event.kind:  # named by an adapter, see ``docs/telemetry.md``
            text = f"({plain(event.kind)}, kept as it came)"
        return Told(Text(text, style="dim"))

    @_tell.register
    def _(self, event: Nudged, record: Record) -> Told:
        text = because(f"{plain(record.actor)} nudges {plain(event.to)}", event.reason)
        return Told(Text(text, style="dim"), quiet=True)

    @_tell.register
    def _(self, event: ModelCalled, record: Record) -> Told:
        prompt, completion = event.tokens.prompt, event.tokens.completion
        text = (
            f"{plain(record.actor)} calls {plain(event.model)} to {plain(event.purpose)}: "
            f"{'?' if prompt is None else prompt} + {'?' if completion is None else completion} "
            f"tokens, {event.latency:.1f} s"
        )
        if event.cost is not None:
            text += f", ${event.cost:.4f}"
        error = "" if event.error is None else f": {clean(event.error)}"
        return Told(Text.assemble((text, "dim"), (error, "red")), quiet=True)

    @_tell.register
    def _(self, event: ActorFailed, record: Record) -> Told:
        return Told(Text(f"✗ fails: {plain(event.type)}: {clean(event.error)}", style="bold red"))

    @_tell.register
    def _(self, event: ScorerFailed, record: Record) -> Told:
        text = f"✗ {plain(record.stream)} fails: {plain(event.type)}: {clean(event.error)}"
        return Told(Text(text, style="red"), quiet=True)

    @_tell.register
    def _(self, event: SessionClosed, record: Record) -> Told:
        text = because(f"■ {_CLOSED[event.reason]}", event.detail)
        return Told(Text(text, style="bold" if event.reason == "finished" else "bold yellow"))

    @_tell.register
    def _(self, event: ProgressRated, record: Record) -> Told:
        rating = "missing" if event.rating is None else f"{event.rating}/5"
        text = f"{plain(record.actor)} rates round {event.round}: {rating}"
        text = because(because(text, event.missing), event.explanation)
        return Told(Text(text, style="dim"), quiet=True)

    @_tell.register
    def _(self, event: UtilityScored, record: Record) -> Told:
        of = f"round {event.round}" if event.snapshot is None else f"version {event.snapshot}"
        text = f"{plain(record.actor)} scores {of}: "
        if event.value is None:
            text = because(f"{text}missing", event.missing)
            return Told(Text(text, style="yellow"), quiet=True)
        parts = f" ({listed(event.parts)})" if event.parts else ""
        return Told(Text(f"{text}{event.value:.3f}{parts}", style="dim"), quiet=True)

    @_tell.register
    def _(self, event: StopAdvised, record: Record) -> Told:
        verb = "stops the session" if event.enforced else "advises to stop"
        text = f"{plain(record.actor)} {verb} after round {event.round} (τ = {event.tau})"
        return Told(Text(because(text, event.rule), style="yellow"), quiet=True)

    @_tell.register
    def _(self, event: SimulatorFlagged, record: Record) -> Told:
        text = f"{plain(record.actor)}: a fault of the simulated user in {event.of}"
        text = because(because(text, event.fault), event.detail)
        return Told(Text(text, style="yellow"), quiet=True)


def _action(action: ActionTaken) -> Text:
    """An action; as it was written where its arguments could not be read."""
    if action.raw is None or action.arguments:
        return call(action.name, action.arguments)
    whole = action.raw.lstrip().startswith(action.name)
    return Text(plain(action.raw if whole else f"{action.name}({action.raw})"), style="dim")


def _is_submission(action: ActionTaken) -> bool:
    """Whether an action is the record of a snapshot that was refused."""
    return action.name == "submit" and "base" in action.arguments
