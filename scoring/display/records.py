"""A record in words: its actor, the act, the record that it is about, and the text. Every screen draws this.

``describe`` makes the description of one record. A ``Narrator`` describes the records of a session in
order, and remembers what later records refer to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Literal, NamedTuple, TypeAlias, final

import msgspec
from msgspec.structs import replace

from ...engine.events import (
    JSON,
    UNKNOWN_MODEL,
    ActionResolved,
    ActionTaken,
    ActorFailed,
    AlertSent,
    AnswersGiven,
    ApprovalAsked,
    ApprovalGiven,
    CommentAdded,
    ConditionAssigned,
    ConditionBegun,
    ConsentGiven,
    DraftDropped,
    EffortObserved,
    FeedbackGiven,
    Forgotten,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Nudged,
    ParticipantWithdrew,
    ProfileChanged,
    ProgressRated,
    RatingGiven,
    RecordsLate,
    RecordsLost,
    Role,
    ScorerFailed,
    SessionClosed,
    SessionOpened,
    SimulatorFlagged,
    SnapshotTaken,
    StopAdvised,
    TagAdded,
    TagRemoved,
    TurnYielded,
    Unknown,
    UtilityScored,
)
from ...engine.files import Contents, is_edit_of_file
from ...engine.records import Record
from ...engine.rounds import is_unproductive
from ...engine.text import lines_of, quantity, text_of
from .diff import ChangedLine, Mark, changes, counts
from .texts import one_line, shorten

__all__ = (
    "Context",
    "Description",
    "Narrator",
    "Passage",
    "TextKind",
    "Tone",
    "call_text",
    "describe",
    "edited_file",
    "is_submission",
)

TextKind: TypeAlias = Literal["plain", "markdown", "json", "diff"]
"""The kinds of text: as it came, Markdown, JSON, or the lines that changed."""

Tone: TypeAlias = Literal["plain", "strong", "quiet", "note", "good", "bad", "low", "warning"]
"""How a record is set off. Acts of weight are strong; measurements and events of the engine are quiet; an
actor's memory is a note; an approval is good or bad; the rating of an unproductive round is low.
"""

_NAMED: Final = 5  # files of an edit that are named
_VALUE: Final = 40  # characters of an argument
_OBSERVATION: Final = 60  # characters of an observation
_MARKS: Final[Mapping[str, Mark]] = {"+": "+", "-": "-", "@": "…"}
_HEADS: Final = ("--- ", "+++ ", "diff ", "index ", "\\ No newline")
_SHARED: Final = frozenset({"MessageSent", "SnapshotTaken", "ApprovalAsked", "ApprovalGiven"})

_CLOSED: Final[Mapping[str, str]] = {
    "finished": "ends the session",
    "abandoned": "gives up and leaves the session",
    "ended": "closes the session: it is over",
    "limit": "closes the session at a limit",
    "tolerance": "closes the session: the human has had enough",
    "stalled": "closes the session: all wait for each other",
    "failed": "closes the session after a failure",
    "cancelled": "cancels the session",
}


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A text that belongs to a record.

    Attributes:
        kind: what it is.
        text: the text; empty for a diff.
        lines: the lines of a diff.
        title: its name; empty if it needs none.
        depth: ``open`` if it is always shown, ``full`` if only those read it who want all of a
            session, ``source`` if it is for looking up what a program got.
        private: only one actor may know it.
    """

    kind: TextKind = "plain"
    text: str = ""
    lines: Sequence[ChangedLine] = ()
    title: str = ""
    depth: Literal["open", "full", "source"] = "open"
    private: bool = False


class Description(msgspec.Struct, frozen=True):
    """A record in words: ``{actor} {does}: {value}: {text}``, and any of these may be empty.

    Attributes:
        does: what the actor does, with the version or round that it is about.
        value: what it amounts to, such as a rating, a score or an outcome.
        text: what was said, or the reason that was given; may have several lines.
        actor: the actor.
        role: the actor's role.
        kind: what the text is.
        call: an action with its arguments, on one line.
        to: the addressees, if not all participants.
        about: version of the trace record that it is about.
        origin: session and version that the session was forked from.
        facts: named parts of the value.
        details: texts that belong to it.
        tone: how it is set off.
        failed: the text or value says what went wrong.
        aside: no person or agent acted: a measurement, an outcome, an event of the engine.
        crossed: versions of acts by others that the actor had not seen.
    """

    does: str = ""
    value: str = ""
    text: str = ""
    actor: str = ""
    role: Role = "environment"
    kind: TextKind = "plain"
    call: str = ""
    to: Sequence[str] = ()
    about: int | None = None
    origin: tuple[str, int] | None = None
    facts: Mapping[str, float | None] = {}
    details: Sequence[Passage] = ()
    tone: Tone = "plain"
    failed: bool = False
    aside: bool = False
    crossed: Sequence[int] = ()


_aside = partial(Description, tone="quiet", aside=True)


class Context(NamedTuple):
    """The records around a record that its description needs.

    Attributes:
        action: for an outcome, the record of its action, if that is known.
        before: for a snapshot, the record of the version before (for a file, of that file).
        files: for a snapshot of files, the texts of the files before it, by path.
        draft: for a score, which draft of the output it is about, from 1; for a snapshot, which one it was made
            from. None if that is not known.
        most: the most lines of two versions that are compared; None for any number.
    """

    action: Record | None = None
    before: Record | None = None
    files: Mapping[str, JSON] = {}
    draft: int | None = None
    most: int | None = None


def describe(record: Record, context: Context | None = None) -> Description:
    """A record in words.

    Raises:
        CodecError: its body is damaged.
    """
    context = context or Context()
    found = (
        _act(record, context) or _call(record) or _review(record) or _measurement(record, context)
    )
    return replace(found, actor=record.actor, role=record.role)


@final
class Narrator:
    """Describes the records of one session in order, and remembers what later ones refer to."""

    def __init__(self) -> None:
        self._actions: dict[int, Record] = {}
        self._snapshots: dict[str | None, Record] = {}  # by path; None for what is not a file
        self._drafts: dict[int, int] = {}  # which draft it is, by its version
        self._shared: list[Record] = []
        self._contents = Contents()
        self._files: Mapping[str, JSON] = {}

    def describe(self, record: Record) -> Description:
        """The next record in words.

        Raises:
            CodecError: its body is damaged.
        """
        event = record.event
        context = Context()
        if isinstance(event, ActionTaken):
            self._actions[record.version] = record
        elif isinstance(event, ActionResolved):
            context = Context(action=self._actions.pop(event.action, None))
        elif isinstance(event, SnapshotTaken):
            path = edited_file(event.content)
            context = Context(
                before=self._snapshots.get(path),
                files=self._files,
                draft=self._drafts.get(event.base or 0),
            )
            self._snapshots[path] = record
            self._drafts[record.version] = len(self._drafts) + 1
            whole = self._contents.whole(event)
            if whole.files is not None and isinstance(whole.content, Mapping):
                self._files = whole.content
        elif isinstance(event, UtilityScored):
            context = Context(draft=self._drafts.get(event.snapshot or 0))
        found = describe(record, context)
        if record.kind in _SHARED:
            found = replace(found, crossed=self._crossed(record))
            self._shared.append(record)
        return found

    def _crossed(self, record: Record) -> Sequence[int]:
        """Acts of others that the actor had not seen when it decided on this one."""
        found: list[int] = []
        for other in reversed(self._shared):
            if record.seen is None or other.version <= record.seen:
                break
            if other.actor != record.actor:
                found.append(other.version)
        return found[::-1]


def call_text(name: str, arguments: Mapping[str, JSON]) -> str:
    """An action with its arguments in the form of a call, on one line; long arguments are cut."""
    values = (f"{one_line(key)}={_value(value)}" for key, value in arguments.items())
    return f"{one_line(name)}({', '.join(values)})"


def _asks(asked: ApprovalAsked) -> Description:
    call = "" if asked.action is None else call_text(asked.action, asked.arguments)
    risk = "" if asked.risk is None else f"risk: {asked.risk}"
    asks = Description("asks for approval", risk, asked.question, kind="markdown", tone="strong")
    return replace(asks, call=call, details=_json(asked.arguments))


def _decides(given: ApprovalGiven) -> Description:
    verb = f"approves {given.asked}" if given.approved else f"denies {given.asked}"
    how = _by(given.source)
    if given.expired:
        verb, how = f"{given.asked} expires", "nobody answered"
    tone: Tone = "good" if given.approved else "bad"
    return Description(verb, how, given.comment, kind="markdown", about=given.asked, tone=tone)


def _by(source: str | None) -> str:
    """The source of a decision, unless it is a person or unknown."""
    return f"by a {source}" if source in ("rule", "setting") else ""


def edited_file(content: JSON) -> str | None:
    """The path of the file that a snapshot of one file holds; None if it does not hold one."""
    return (
        str(content["path"]) if isinstance(content, Mapping) and is_edit_of_file(content) else None
    )


def _act(record: Record, context: Context) -> Description | None:
    """An act of a person or agent; None for events of other kinds."""
    match record.event:
        case SessionOpened() as opened:
            return _opening(opened)
        case MessageSent(text=text, to=to, cut=cut):
            does = "" if cut is None else f"was cut off ({cut})"
            return Description(does, text=text, kind="markdown", to=to)
        case ActionTaken() as taken:
            return _action(taken)
        case ActionResolved() as resolved:
            return _outcome(resolved, record, context.action)
        case SnapshotTaken() as snapshot:
            return _snapshot(snapshot, context)
        case ApprovalAsked() as asked:
            return _asks(asked)
        case ApprovalGiven() as given:
            return _decides(given)
        case DraftDropped() as draft:
            what = " and ".join((*(["a message"] if draft.text else []), *draft.actions))
            spent = f"after {draft.seconds:.0f} of {draft.of:.0f} s"
            return Description(f"drops {one_line(what)}", spent, draft.text, tone="note")
        case NoteTaken(text=text):
            return Description("notes", "", text, tone="note")
        case ProfileChanged(owner=owner, profile=profile, reason=reason):
            own = owner == record.actor
            does = "changes their goals" if own else f"has other goals of {one_line(owner)}"
            return Description(does, "", reason, details=_json(profile), tone="note")
        case _:
            return None


def _call(record: Record) -> Description | None:
    """A record of the engine: turns, calls of models, failures; None for events of other kinds."""
    match record.event:
        case TurnYielded(reason=reason):
            return Description("waits", "", reason, tone="quiet")
        case Nudged(to=to, reason=reason):
            return _aside(f"nudges {one_line(to)}", "", reason)
        case ModelCalled(reply=reply, error=error) as called:
            model = "a model" if called.model == UNKNOWN_MODEL else one_line(called.model)
            does = f"calls {model} to {one_line(called.purpose)}"
            details = () if reply is None else [_passage(reply, "source")]
            failed = error is not None
            return _aside(does, _cost(called), error or "", details=details, failed=failed)
        case ActorFailed(type=kind, error=error):
            return Description("✗ fails", one_line(kind), error, tone="bad", failed=True)
        case ScorerFailed(type=kind, error=error):
            return _aside(f"✗ {one_line(record.stream)} fails", one_line(kind), error, failed=True)
        case SessionClosed(reason=reason, detail=detail):
            tone: Tone = "strong" if reason == "finished" else "warning"
            return Description(f"■ {_CLOSED[reason]}", "", detail, tone=tone)
        case Forgotten(kind=kind):
            return Description(f"({one_line(kind)}, erased)", tone="quiet")
        case Unknown(kind=kind, schema=schema):
            why = f"schema {schema}: not known to this version of Duolog"
            if "." in kind:  # named by an adapter, see ``docs/agui.md``
                why = "kept as it came"
            return Description(f"({one_line(kind)}, {why})", tone="quiet")
        case _:
            return None


def _measurement(record: Record, context: Context) -> Description:
    """A measurement, rating or observation; the name of the kind for events of no known kind."""
    match record.event:
        case FeedbackGiven(thumbs=thumbs, edits_kept=kept, comment=comment, of=of):
            parts = [] if thumbs is None else [f"thumbs {thumbs}"]
            parts += [] if kept is None else [f"{kept:.0%} of the edits kept"]
            value = ", ".join(parts) or ("" if comment else "none")
            does = "feedback" if of is None else f"feedback on {of}"
            return Description(does, value, comment, kind="markdown", about=of, tone="strong")
        case ProgressRated(round=number, rating=None, missing=missing, explanation=text):
            value = f"missing: {missing}" if missing else "missing"
            return _aside(f"rates round {number}", value, text)
        case ProgressRated(round=number, rating=rating, explanation=text):
            tone: Tone = "low" if is_unproductive(rating) else "quiet"
            return _aside(f"rates round {number}", f"{rating}/5", text, tone=tone)
        case UtilityScored(value=None) as scored:
            return _aside(
                _scores(scored, context.draft), "missing", scored.missing or "", tone="warning"
            )
        case UtilityScored(value=score, parts=named, snapshot=version) as scored:
            return _aside(
                _scores(scored, context.draft), f"{score:.3f}", facts=named, about=version
            )
        case StopAdvised(round=number, tau=tau, rule=rule, enforced=enforced):
            verb = "stops the session" if enforced else "advises to stop"
            return _aside(f"{verb} after round {number} (τ = {tau})", "", rule, tone="warning")
        case SimulatorFlagged(of=version, fault=fault, detail=text):
            does = f"finds a fault of the simulated user in {version}"
            return _aside(does, one_line(fault), text, about=version, tone="warning")
        case EffortObserved(actor=actor) as seen:
            spent = (
                f"{seen.reading:.0f} s reading, {seen.typing:.0f} s typing, {seen.idle:.0f} s away"
            )
            edits = f"{seen.inserted:,} characters put in, {seen.deleted:,} taken out"
            return _aside(f"observes {one_line(actor)}", f"{spent}, {edits}")
        case RecordsLost(count=count, begin=begin, end=end, why=why):
            seconds = f" within {end - begin:.0f} s" if end - begin >= 1 else ""
            does = f"could not record {quantity(count, 'event')}{seconds}"
            return _aside(does, "", why, tone="bad", failed=True)
        case RecordsLate(first=first, last=last):
            which = f"event {first}" if first == last else f"events {first} to {last}"
            return _aside(f"wrote {which} late", "", "the log was away", tone="warning")
        case AlertSent(rule=rule, outcome=outcome, attempt=attempt, error=error):
            value = f"webhook {outcome}, attempt {attempt}"
            return _aside(f"alert {one_line(rule)}", value, error, failed=outcome == "failed")
        case _:
            return _of_study(record)


def _of_study(record: Record) -> Description:
    """An event of a study in words; the name of the kind for other events."""
    match record.event:
        case ConsentGiven(study=study, agreed=agreed):
            return _aside(f"{'takes' if agreed else 'does not take'} part in {one_line(study)}")
        case ConditionAssigned(conditions=conditions):
            return _aside("is assigned to", one_line(", ".join(conditions)))
        case ConditionBegun(place=place, condition=condition, session=session):
            return _aside(f"begins condition {place}", one_line(condition), session)
        case AnswersGiven(questionnaire=name, answers=answers):
            return _aside(f"answers {one_line(name)}", quantity(len(answers), "item"))
        case ParticipantWithdrew(study=study):
            return _aside(f"withdraws from {one_line(study)}")
        case _:
            return Description(f"({one_line(record.kind)})", tone="quiet")


def _review(record: Record) -> Description | None:
    """A review; None for other events."""
    event = record.event
    if not isinstance(event, TagAdded | TagRemoved | CommentAdded | RatingGiven):
        return None
    about = _subject(event)
    match event:
        case TagAdded(tag=tag):
            return _aside(f"tags {about}", one_line(tag))
        case TagRemoved(tag=tag):
            return _aside(f"removes a tag from {about}", one_line(tag))
        case CommentAdded(text=text):
            return _aside(f"comments on {about}", "", text)
        case RatingGiven(rating=rating):
            return _aside(f"rates {about}", f"{rating}/5")


def _subject(event: TagAdded | TagRemoved | CommentAdded | RatingGiven) -> str:
    if event.round is not None:
        return f"round {event.round}"
    return "the session" if event.of is None else f"record {event.of}"


def _opening(event: SessionOpened) -> Description:
    about = " ".join(part for part in (event.task, event.instance) if part)
    by = (
        (one, " ".join(part for part in (one.policy, one.model, one.persona) if part))
        for one in event.participants
    )
    names = ", ".join(f"{one.name} ({means or one.role})" for one, means in by)
    value = one_line("; ".join(part for part in (about, names) if part))
    details = list(_json(event.config, "Settings"))
    for owner, part in event.private.items():
        details += _json(part, f"Private: only {one_line(owner)} knows", private=True)
    origin = event.forked_from
    opens = Description("opens the session", value, event.request or "", kind="markdown")
    forked = None if origin is None else (origin.session, origin.version)
    return replace(opens, details=details, origin=forked)


def _action(event: ActionTaken) -> Description:
    """An action as a call; as the agent wrote it if its arguments could not be read."""
    if event.raw is None or event.arguments:
        return Description(
            call=call_text(event.name, event.arguments), details=_json(event.arguments)
        )
    whole = event.raw.lstrip().startswith(event.name)
    call = one_line(event.raw if whole else f"{event.name}({event.raw})")
    return Description(call=call, details=[Passage(text=event.raw, depth="source")])


def _outcome(event: ActionResolved, record: Record, taken: Record | None) -> Description:
    """The outcome of an action; a refusal for a version of the output that was not taken."""
    action = None if taken is None else taken.event
    if isinstance(action, ActionTaken) and taken is not None and is_submission(action):
        content = action.arguments.get("content")
        does = f"✗ {one_line(taken.actor)}'s submission {taken.version} was refused"
        refused = [_passage(content, "full")] if lines_of(content) else ()
        text = event.error or ""
        return _aside(does, "", text, about=event.action, details=refused, tone="warning")
    name = one_line(action.name) if isinstance(action, ActionTaken) else "action"
    seconds = record.time - taken.time if taken is not None else 0.0
    took = f" ({seconds:.1f} s)" if seconds >= 0.05 else ""
    value, text = f"{_observation(event.observation)}{took}", ""
    if event.outcome == "failed":
        value, text = "failed", event.error or "no reason given"
    elif event.outcome == "cancelled":
        value = "cancelled, since the session was closed"
    return _aside(
        f"→ {name} {event.action}",
        value,
        text,
        about=event.action,
        details=() if event.observation is None else [_passage(event.observation, "full")],
        failed=event.outcome == "failed",
    )


def is_submission(action: ActionTaken) -> bool:
    """Whether an action is a version of the output that was refused."""
    return action.name == "submit" and "base" in action.arguments


# --- versions of the output --------------------------------------------------------------------------


def _snapshot(event: SnapshotTaken, context: Context) -> Description:
    """A version of the output, or an edit of a file."""
    if event.files is not None:
        return _files(event, context)
    path = edited_file(event.content)
    before = None if context.before is None else context.before.event
    if not isinstance(before, SnapshotTaken) or edited_file(before.content) != path:
        before = None
    return _output(event, before, context) if path is None else _file(event, before, path)


def _output(event: SnapshotTaken, before: SnapshotTaken | None, context: Context) -> Description:
    """A version of the output."""
    if before is not None and before.digest == event.digest:
        return Description("submits the output again, unchanged", tone="strong")
    old, new = lines_of(before.content) if before is not None else [], lines_of(event.content)
    if not old:
        first = f"submits the first version of the output ({quantity(len(new), 'line')})"
        kind: TextKind = "markdown" if event.media_type == "text/markdown" else "plain"
        whole = Passage(kind=kind, text=text_of(event.content))
        return Description(first, tone="strong", details=[whole] if new else ())
    if context.most is not None and len(old) + len(new) > context.most:
        return Description("revises the output", "too long to be compared here", tone="strong")
    latest = context.before.version if context.before is not None else None
    other = event.base is not None and event.base != latest
    changed = changes(old, new)
    added, gone = counts(changed)
    made = f"version {event.base}" if context.draft is None else f"draft {context.draft}"
    origin = f" from {made}" if other else ""
    return _edit(f"revises the output (+{added} −{gone} lines){origin}", changed)


def _file(event: SnapshotTaken, before: SnapshotTaken | None, path: str) -> Description:
    """An edit of a file: a snapshot with a path, the text after it, and perhaps a diff."""
    old, new = (_part(one, "text") for one in (before, event))
    if before is not None and old == new:
        return Description(f"leaves {one_line(path)} as it is", tone="strong")
    diff = _part(event, "diff")
    changed = _unified(diff) if diff.strip() else changes(old.splitlines(), new.splitlines())
    added, gone = counts(changed)
    if before is not None or gone:
        return _edit(f"edits {one_line(path)} (+{added} −{gone} lines)", changed)
    return _edit(f"writes {one_line(path)} ({quantity(added, 'line')})", changed)


def _files(event: SnapshotTaken, context: Context) -> Description:
    """A version of several files: the diff of each that changed."""
    content = event.content if isinstance(event.content, Mapping) else {}
    earlier = None if context.before is None else context.before.event
    known = earlier.files if isinstance(earlier, SnapshotTaken) and earlier.files else {}
    changed: dict[str, Sequence[ChangedLine]] = {}
    fresh = True
    for path, text in content.items():
        diff, before = event.shown.get(path, ""), context.files.get(path)
        if diff.strip():
            changed[path] = _unified(diff)
        else:
            old = before.splitlines() if isinstance(before, str) else []
            changed[path] = changes(old, str(text).splitlines())
        fresh = fresh and path not in known and not counts(changed[path])[1]
    gone = [path for path in known if path not in (event.files or {})]
    for path in gone:
        text = context.files.get(path)
        changed[path] = changes(text.splitlines() if isinstance(text, str) else [], [])
    if not changed:
        return Description("leaves the files as they are", tone="strong")
    names = ", ".join(map(one_line, list(changed)[:_NAMED])) + (
        ", …" if len(changed) > _NAMED else ""
    )
    several = f"{quantity(len(changed), 'file')}: {names}" if len(changed) > 1 else names
    lines = [
        line
        for path, part in changed.items()
        for line in ([ChangedLine("…", one_line(path))] if len(changed) > 1 else []) + list(part)
    ]
    added, removed = counts(lines)
    if len(gone) == len(changed):
        return _edit(f"removes {several} (−{quantity(removed, 'line')})", lines)
    if fresh and not gone:
        return _edit(f"writes {several} ({quantity(added, 'line')})", lines)
    return _edit(f"edits {several} (+{added} −{removed} lines)", lines)


def _edit(does: str, changed: Sequence[ChangedLine]) -> Description:
    return Description(does, tone="strong", details=[Passage(kind="diff", lines=changed)])


def _part(event: SnapshotTaken | None, name: str) -> str:
    """A text that a snapshot of a file holds; empty if it does not."""
    content = None if event is None else event.content
    value = content.get(name) if isinstance(content, Mapping) else None
    return value if isinstance(value, str) else ""


def _unified(diff: str) -> list[ChangedLine]:
    """The lines of a unified diff, with ``…`` for what lies between its hunks."""
    found: list[ChangedLine] = []
    for line in diff.splitlines():
        if line.startswith(_HEADS):
            continue
        mark = _MARKS.get(line[:1], " ")
        if mark != "…":
            found.append(ChangedLine(mark, line[1:]))
        elif found or not line.startswith(("@@ -0,", "@@ -1,", "@@ -1 ")):
            found.append(ChangedLine(mark, ""))
    return found


# --- values ------------------------------------------------------------------------------------------


def _scores(event: UtilityScored, draft: int | None) -> str:
    if event.snapshot is None:
        return f"scores round {event.round}"
    return f"scores version {event.snapshot}" if draft is None else f"scores draft {draft}"


def _cost(event: ModelCalled) -> str:
    """The cost of a call of a model: tokens, time and money, as far as they are known."""
    tokens, facts = event.tokens, []
    if tokens.prompt is not None or tokens.completion is not None:
        prompt, completion = ("?" if n is None else n for n in (tokens.prompt, tokens.completion))
        thought = f" ({tokens.reasoning} of them reasoning)" if tokens.reasoning else ""
        facts.append(f"{prompt} + {completion} tokens{thought}")
    if event.latency:
        facts.append(f"{event.latency:.1f} s")
    if event.cost is not None:
        facts.append(f"${event.cost:.4f}")
    return ", ".join(facts)


def _json(value: JSON, title: str = "", *, private: bool = False) -> Sequence[Passage]:
    """A value for readers who look it up; nothing if there is none."""
    if value is None or value == {}:
        return ()
    text = text_of(value)
    return [Passage(kind="json", text=text, title=title, depth="source", private=private)]


def _passage(value: JSON, depth: Literal["full", "source"]) -> Passage:
    """A text as it is, anything else as JSON."""
    kind: TextKind = "plain" if isinstance(value, str) else "json"
    return Passage(kind=kind, text=text_of(value), depth=depth)


def _value(value: JSON) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return shorten(text, _VALUE)


def _observation(observation: JSON) -> str:
    """The result of an action: how many rows or items, or the beginning of a text."""
    if observation is None:
        return "done"
    if isinstance(observation, str):
        return shorten(observation, _OBSERVATION) or "done"
    if isinstance(observation, Mapping):
        rows = observation.get("rows")
        if isinstance(rows, Sequence) and not isinstance(rows, str):
            return quantity(len(rows), "row")
        named = (f"{one_line(name)} {_value(value)}" for name, value in observation.items())
        return shorten(", ".join(named), _OBSERVATION) or "done"
    if isinstance(observation, Sequence):
        return quantity(len(observation), "item")
    return _value(observation)
