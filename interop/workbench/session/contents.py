"""What a record says, as HTML: for the transcript of a session, and for those who take part in it."""

from __future__ import annotations

from functools import singledispatch
from typing import Final, NamedTuple

from ....engine.display import shorten
from ....engine.events import (
    ActionResolved,
    ActionTaken,
    ActorFailed,
    AlertSent,
    ApprovalAsked,
    ApprovalGiven,
    EffortObserved,
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
from ..links import session_address
from ..markup.html import Html, Node, tag
from ..markup.text import plain, rich_text
from .values import arguments_text, parts_text, value_block

__all__ = ("Beside", "contents")

_NAME: Final = 60
_LINE: Final = 300


class Beside(NamedTuple):
    """What is known beside a record.

    Attributes:
        change: of a version of the output, what is new in it; None for other records.
        action: of an outcome, the action, and when it began; None where that is not at hand.
    """

    change: Html | None = None
    action: tuple[ActionTaken, float] | None = None


def _line(*parts: Node) -> Html:
    return tag("p", *parts, class_="line")


def _folded(summary: Node, inside: Node) -> Html:
    if inside is None:
        return _line(summary)
    return tag("details", tag("summary", summary), inside)


@singledispatch
def contents(event: object, record: Record, beside: Beside) -> Node:
    """What a record says, as somebody may see it. Of a kind that this knows nothing about, its name.

    Raises:
        CodecError: what it says is damaged.
    """
    return _line(f"a record of kind {shorten(record.kind, _NAME)}")


@contents.register(SessionOpened)
def _(event: SessionOpened, record: Record, beside: Beside) -> Node:
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


@contents.register(MessageSent)
def _(event: MessageSent, record: Record, beside: Beside) -> Node:
    to = tag("p", f"to {shorten(', '.join(event.to), _LINE)}", class_="to") if event.to else None
    return [to, rich_text(event.text)]


@contents.register(ActionTaken)
def _(event: ActionTaken, record: Record, beside: Beside) -> Node:
    inside: list[Node] = [value_block(event.arguments)] if event.arguments else []
    if event.raw is not None:
        inside.append(plain(event.raw))
    call: list[Node] = [
        tag("code", shorten(event.name, _NAME)),
        f" {arguments_text(event.arguments)}",
    ]
    return _folded(call, inside or None)


@contents.register(ActionResolved)
def _(event: ActionResolved, record: Record, beside: Beside) -> Node:
    name, took = "", ""
    if beside.action is not None:
        name = f"{shorten(beside.action[0].name, _NAME)} "
        took = f" after {record.time - beside.action[1]:.1f} s"
    summary: list[Node] = ["→ ", tag("code", name), f"{event.outcome}{took}"]
    if event.error:
        summary.append(f": {shorten(event.error, _LINE)}")
    inside = None if event.observation is None else value_block(event.observation)
    return tag("div", _folded(summary, inside), class_=f"outcome {event.outcome}")


@contents.register(SnapshotTaken)
def _(event: SnapshotTaken, record: Record, beside: Beside) -> Node:
    button = tag("button", "Show", type="button", data_draft=record.version)
    return [_line(tag("b", f"output, version {record.version}"), " ", button), beside.change]


@contents.register(ApprovalAsked)
def _(event: ApprovalAsked, record: Record, beside: Beside) -> Node:
    action = None
    if event.action:
        action = _folded(
            [tag("code", shorten(event.action, _NAME)), f" {arguments_text(event.arguments)}"],
            value_block(event.arguments) if event.arguments else None,
        )
    return [_line(tag("b", "asks for approval")), rich_text(event.question), action]


@contents.register(ApprovalGiven)
def _(event: ApprovalGiven, record: Record, beside: Beside) -> Node:
    text = "✓ approves" if event.approved else "✗ refuses"
    said = rich_text(event.comment) if event.comment else None
    return [_line(tag("b", text), f" what was asked in version {event.asked}"), said]


@contents.register(NoteTaken)
def _(event: NoteTaken, record: Record, beside: Beside) -> Node:
    return _folded("a note of its own", plain(event.text))


@contents.register(ProfileChanged)
def _(event: ProfileChanged, record: Record, beside: Beside) -> Node:
    why = f": {shorten(event.reason, _LINE)}" if event.reason else ""
    inside = None if event.profile is None else value_block(event.profile)
    return _folded(f"{shorten(event.owner, _NAME)} wants something else from now on{why}", inside)


@contents.register(TurnYielded)
def _(event: TurnYielded, record: Record, beside: Beside) -> Node:
    return _line("waits", f": {shorten(event.reason, _LINE)}" if event.reason else None)


@contents.register(Nudged)
def _(event: Nudged, record: Record, beside: Beside) -> Node:
    return _line(f"wakes {shorten(event.to, _NAME)}: {shorten(event.reason, _LINE)}")


@contents.register(FeedbackGiven)
def _(event: FeedbackGiven, record: Record, beside: Beside) -> Node:
    thumbs = {"up": "👍 thumbs up", "down": "👎 thumbs down"}.get(event.thumbs or "", "feedback")
    kept = "" if event.edits_kept is None else f"; {event.edits_kept:.0%} of the edits kept"
    return [_line(f"{thumbs}{kept}"), rich_text(event.comment) if event.comment else None]


@contents.register(ModelCalled)
def _(event: ModelCalled, record: Record, beside: Beside) -> Node:
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


@contents.register(ActorFailed)
def _(event: ActorFailed, record: Record, beside: Beside) -> Node:
    return tag(
        "p",
        f"✗ failed: {shorten(event.type, _NAME)}: {shorten(event.error, _LINE)}",
        class_="problem",
    )


@contents.register(SessionClosed)
def _(event: SessionClosed, record: Record, beside: Beside) -> Node:
    detail = f": {shorten(event.detail, _LINE)}" if event.detail else ""
    by = shorten(event.by, _NAME)
    return _line(tag("b", f"the session is over: {event.reason}"), f", by {by}{detail}")


@contents.register(ProgressRated)
def _(event: ProgressRated, record: Record, beside: Beside) -> Node:
    if event.rating is None:
        rating: Node = f"missing ({shorten(event.missing or '', _LINE)})"
    else:
        low = " low" if event.rating < 3 else ""
        rating = tag("b", f"{event.rating}/5", class_=f"rating{low}")
    why = plain(event.explanation) if event.explanation else None
    return _folded([f"rates the progress of round {event.round}: ", rating], why)


@contents.register(UtilityScored)
def _(event: UtilityScored, record: Record, beside: Beside) -> Node:
    of = f"round {event.round}" if event.snapshot is None else f"version {event.snapshot}"
    if event.value is None:
        why = shorten(event.missing or "", _LINE)
        return tag("p", f"scores {of}: missing ({why})", class_="line problem")
    value = tag("b", f"{event.value:.3f}")
    return _folded([f"scores {of}: ", value], parts_text(event.parts))


@contents.register(EffortObserved)
def _(event: EffortObserved, record: Record, beside: Beside) -> Node:
    counts = (
        f"{event.reading:.0f} s reading, {event.typing:.0f} s typing, {event.idle:.0f} s away, "
        f"{event.inserted:,} characters put in, {event.deleted:,} taken out"
    )
    return _line(f"observes {shorten(event.actor, _NAME)}: {counts}")


@contents.register(AlertSent)
def _(event: AlertSent, record: Record, beside: Beside) -> Node:
    error = f": {shorten(event.error, _LINE)}" if event.error else ""
    rule = tag("code", shorten(event.rule, _NAME))
    return _line("alert ", rule, f", webhook {event.outcome}, attempt {event.attempt}{error}")


@contents.register(ScorerFailed)
def _(event: ScorerFailed, record: Record, beside: Beside) -> Node:
    return tag(
        "p",
        f"✗ measures no more: {shorten(event.type, _NAME)}: {shorten(event.error, _LINE)}",
        class_="problem",
    )


@contents.register(SimulatorFlagged)
def _(event: SimulatorFlagged, record: Record, beside: Beside) -> Node:
    detail = plain(event.detail) if event.detail else None
    return _folded(
        f"finds a fault of the simulated user in version {event.of}: {shorten(event.fault, _NAME)}",
        detail,
    )


@contents.register(StopAdvised)
def _(event: StopAdvised, record: Record, beside: Beside) -> Node:
    verb = "stops the session" if event.enforced else "advises to stop"
    rule = f" ({shorten(event.rule, _LINE)})" if event.rule else ""
    return tag("p", f"■ {verb} after round {event.round}, τ = {event.tau}{rule}", class_="advice")


@contents.register(Forgotten)
def _(event: Forgotten, record: Record, beside: Beside) -> Node:
    return _line("erased")
