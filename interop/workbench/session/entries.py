"""The records of a session as entries of its transcript: each on its own, with what belongs to it."""

from __future__ import annotations

from functools import singledispatch
from typing import Final, NamedTuple

from ....engine.display import duration, is_virtual, moment, shorten
from ....engine.errors import CodecError
from ....engine.events import (
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
    SessionOpened,
    SimulatorFlagged,
    SnapshotTaken,
    StopAdvised,
    TurnYielded,
    UtilityScored,
)
from ....engine.records import Record
from ....scoring.trajectory.updates import ScorerDown, StopAdvice, StopWithdrawn, Update
from ..links import session_address
from ..markup.html import Html, Node, tag
from ..markup.text import plain, rich_text
from .values import arguments_text, parts_text, value_block

__all__ = ("EntryContext", "entry")

_NAME: Final = 60
_LINE: Final = 300
_PRIVATE: Final = frozenset({"ModelCalled", "NoteTaken", "ProfileChanged"})
_SLIM: Final = frozenset(
    {
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
        change: of a version of the output, what is new in it; None for other records.
        action: of an outcome, the action, and when it began; None where that is not at hand.
    """

    number: int
    opened: float
    advice: list[Update]
    change: Html | None = None
    action: tuple[ActionTaken, float] | None = None


def entry(record: Record, context: EntryContext) -> Html:
    """The entry of a record."""
    try:
        body: Node = _body(record.event, record, context)
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


def _line(*parts: Node) -> Html:
    return tag("p", *parts, class_="line")


def _folded(summary: Node, inside: Node) -> Html:
    if inside is None:
        return _line(summary)
    return tag("details", tag("summary", summary), inside)


@singledispatch
def _body(event: object, record: Record, context: EntryContext) -> Node:
    """What an entry says of an event of a kind that it knows nothing about."""
    return _line(f"a record of kind {shorten(record.kind, _NAME)}")


@_body.register(SessionOpened)
def _(event: SessionOpened, record: Record, context: EntryContext) -> Node:
    names = ", ".join(
        f"{one.name} ({' '.join(part for part in (one.policy, one.model, one.persona) if part) or one.role})"
        for one in event.participants
    )
    about = " ".join(part for part in (event.task, event.instance) if part)
    found: list[Node] = [
        _line(f"opens the session: {shorten(about, _LINE)}; {shorten(names, _LINE)}")
    ]
    if event.request:
        found.append(rich_text(event.request))
    if event.forked_from is not None:
        origin = event.forked_from
        link = tag("a", shorten(origin.session, _NAME), href=session_address(origin.session))
        found.append(_line("a fork of ", link, f" after version {origin.version}"))
    if event.config:
        found.append(_folded("Settings", value_block(event.config)))
    for owner, part in event.private.items():
        hidden = _folded(f"Private: only {shorten(owner, _NAME)} knows", value_block(part))
        found.append(tag("div", hidden, class_="private"))
    return found


@_body.register(MessageSent)
def _(event: MessageSent, record: Record, context: EntryContext) -> Node:
    to = tag("p", f"to {shorten(', '.join(event.to), _LINE)}", class_="to") if event.to else None
    return [to, rich_text(event.text)]


@_body.register(ActionTaken)
def _(event: ActionTaken, record: Record, context: EntryContext) -> Node:
    inside: list[Node] = [value_block(event.arguments)] if event.arguments else []
    if event.raw is not None:
        inside.append(plain(event.raw))
    call: list[Node] = [
        tag("code", shorten(event.name, _NAME)),
        f" {arguments_text(event.arguments)}",
    ]
    return _folded(call, inside or None)


@_body.register(ActionResolved)
def _(event: ActionResolved, record: Record, context: EntryContext) -> Node:
    name, took = "", ""
    if context.action is not None:
        name = f"{shorten(context.action[0].name, _NAME)} "
        took = f" after {record.time - context.action[1]:.1f} s"
    summary: list[Node] = ["→ ", tag("code", name), f"{event.outcome}{took}"]
    if event.error:
        summary.append(f": {shorten(event.error, _LINE)}")
    inside = None if event.observation is None else value_block(event.observation)
    return tag("div", _folded(summary, inside), class_=f"outcome {event.outcome}")


@_body.register(SnapshotTaken)
def _(event: SnapshotTaken, record: Record, context: EntryContext) -> Node:
    button = tag("button", "Show", type="button", data_draft=record.version)
    return [_line(tag("b", f"output, version {record.version}"), " ", button), context.change]


@_body.register(ApprovalAsked)
def _(event: ApprovalAsked, record: Record, context: EntryContext) -> Node:
    action = None
    if event.action:
        action = _folded(
            [tag("code", shorten(event.action, _NAME)), f" {arguments_text(event.arguments)}"],
            value_block(event.arguments) if event.arguments else None,
        )
    return [_line(tag("b", "asks for approval")), rich_text(event.question), action]


@_body.register(ApprovalGiven)
def _(event: ApprovalGiven, record: Record, context: EntryContext) -> Node:
    text = "✓ approves" if event.approved else "✗ refuses"
    said = rich_text(event.comment) if event.comment else None
    return [_line(tag("b", text), f" what was asked in version {event.asked}"), said]


@_body.register(NoteTaken)
def _(event: NoteTaken, record: Record, context: EntryContext) -> Node:
    return _folded("a note of its own", plain(event.text))


@_body.register(ProfileChanged)
def _(event: ProfileChanged, record: Record, context: EntryContext) -> Node:
    why = f": {shorten(event.reason, _LINE)}" if event.reason else ""
    inside = None if event.profile is None else value_block(event.profile)
    return _folded(f"{shorten(event.owner, _NAME)} wants something else from now on{why}", inside)


@_body.register(TurnYielded)
def _(event: TurnYielded, record: Record, context: EntryContext) -> Node:
    return _line("waits", f": {shorten(event.reason, _LINE)}" if event.reason else None)


@_body.register(Nudged)
def _(event: Nudged, record: Record, context: EntryContext) -> Node:
    return _line(f"wakes {shorten(event.to, _NAME)}: {shorten(event.reason, _LINE)}")


@_body.register(FeedbackGiven)
def _(event: FeedbackGiven, record: Record, context: EntryContext) -> Node:
    thumbs = {"up": "👍 thumbs up", "down": "👎 thumbs down"}.get(event.thumbs or "", "feedback")
    kept = "" if event.edits_kept is None else f"; {event.edits_kept:.0%} of the edits kept"
    return [_line(f"{thumbs}{kept}"), rich_text(event.comment) if event.comment else None]


@_body.register(ModelCalled)
def _(event: ModelCalled, record: Record, context: EntryContext) -> Node:
    tokens = [
        f"{getattr(event.tokens, name):,} {name}"
        for name in ("prompt", "completion", "reasoning")
        if getattr(event.tokens, name) is not None
    ]
    cost = [] if event.cost is None else [f"${event.cost:.4f}"]
    facts = ", ".join([*tokens, f"{event.latency:.1f} s", *cost])
    text = f"model {shorten(event.model, _NAME)} for {shorten(event.purpose, _NAME)}: {facts}"
    if event.error:
        return _folded(f"{text}; failed", plain(event.error))
    return _folded(text, None if event.reply is None else value_block(event.reply))


@_body.register(ActorFailed)
def _(event: ActorFailed, record: Record, context: EntryContext) -> Node:
    return tag(
        "p",
        f"✗ failed: {shorten(event.type, _NAME)}: {shorten(event.error, _LINE)}",
        class_="problem",
    )


@_body.register(SessionClosed)
def _(event: SessionClosed, record: Record, context: EntryContext) -> Node:
    detail = f": {shorten(event.detail, _LINE)}" if event.detail else ""
    by = shorten(event.by, _NAME)
    return _line(tag("b", f"the session is closed as {event.reason}"), f" by {by}{detail}")


@_body.register(ProgressRated)
def _(event: ProgressRated, record: Record, context: EntryContext) -> Node:
    if event.rating is None:
        rating: Node = f"missing ({shorten(event.missing or '', _LINE)})"
    else:
        low = " low" if event.rating < 3 else ""
        rating = tag("b", f"{event.rating}/5", class_=f"rating{low}")
    why = plain(event.explanation) if event.explanation else None
    return _folded([f"rates the progress of round {event.round}: ", rating], why)


@_body.register(UtilityScored)
def _(event: UtilityScored, record: Record, context: EntryContext) -> Node:
    of = f"round {event.round}" if event.snapshot is None else f"version {event.snapshot}"
    if event.value is None:
        why = shorten(event.missing or "", _LINE)
        return tag("p", f"scores {of}: missing ({why})", class_="line problem")
    value = tag("b", f"{event.value:.3f}")
    return _folded([f"scores {of}: ", value], parts_text(event.parts))


@_body.register(ScorerFailed)
def _(event: ScorerFailed, record: Record, context: EntryContext) -> Node:
    return tag(
        "p",
        f"✗ measures no more: {shorten(event.type, _NAME)}: {shorten(event.error, _LINE)}",
        class_="problem",
    )


@_body.register(SimulatorFlagged)
def _(event: SimulatorFlagged, record: Record, context: EntryContext) -> Node:
    detail = plain(event.detail) if event.detail else None
    return _folded(
        f"finds a fault of the simulated user in version {event.of}: {shorten(event.fault, _NAME)}",
        detail,
    )


@_body.register(StopAdvised)
def _(event: StopAdvised, record: Record, context: EntryContext) -> Node:
    verb = "stops the session" if event.enforced else "advises to stop"
    rule = f" ({shorten(event.rule, _LINE)})" if event.rule else ""
    return tag("p", f"■ {verb} after round {event.round}, τ = {event.tau}{rule}", class_="advice")


@_body.register(Forgotten)
def _(event: Forgotten, record: Record, context: EntryContext) -> Node:
    return _line("erased")
