"""What somebody who takes part is shown of a session, record by record, as data for their page."""

from __future__ import annotations

from functools import singledispatch
from typing import Final, TypeAlias

from ....engine.display import shorten
from ....engine.events import (
    JSON,
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    MessageSent,
    ProfileChanged,
    ProgressRated,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
)
from ....engine.records import TRACE, Record
from ..markup.html import Html, Node, join, tag
from ..markup.text import plain, rich_text
from ..session.values import arguments_text, value_block

__all__ = ("ShownEntry", "shown_entry")

_NAME: Final = 60
_LINE: Final = 300

ShownEntry: TypeAlias = dict[str, JSON]
"""An entry: ``version`` and ``kind`` of the record, ``actor``, ``role``, whether it is ``mine``, its
``html``, and what the page goes by: an approval that is ``asked`` or answered, how it ``closed``.
"""


def shown_entry(record: Record, me: str) -> ShownEntry | None:
    """The entry of a record that somebody may see; None where there is nothing to show.

    Args:
        record: as they may see it.
        me: their name in the session.
    """
    if record.stream != TRACE:
        return None
    event = record.event
    body = _body(event, record, me)
    if body is None:
        return None
    entry: ShownEntry = {
        "version": record.version,
        "kind": record.kind,
        "actor": shorten(record.actor, _NAME),
        "role": record.role,
        "mine": record.actor == me,
        "time": record.time,
        "html": str(join(body)),
    }
    if record.caller_id is not None and record.actor == me:
        entry["id"] = record.caller_id
    if isinstance(event, ApprovalGiven):
        entry["asked"] = event.asked
    elif isinstance(event, SessionClosed):
        entry["closed"] = event.reason
    elif isinstance(event, ProgressRated):
        entry["rating"] = event.rating
    return entry


def _line(*parts: Node) -> Html:
    return tag("p", *parts, class_="line")


def _call(name: str, arguments: Node, inside: Node) -> Node:
    summary: list[Node] = [tag("code", shorten(name, _NAME)), " ", arguments]
    if inside is None:
        return _line(*summary)
    return tag("details", tag("summary", *summary), inside)


@singledispatch
def _body(event: object, record: Record, me: str) -> Node:
    return None


@_body.register(SessionOpened)
def _(event: SessionOpened, record: Record, me: str) -> Node:
    own = event.private.get(me)
    return [
        rich_text(event.request) if event.request else None,
        None
        if own is None
        else tag("details", tag("summary", "What only you know"), value_block(own), open=True),
        _line("With: ", ", ".join(shorten(one.name, _NAME) for one in event.participants)),
    ]


@_body.register(MessageSent)
def _(event: MessageSent, record: Record, me: str) -> Node:
    to = tag("p", f"to {shorten(', '.join(event.to), _LINE)}", class_="to") if event.to else None
    return [to, rich_text(event.text)]


@_body.register(ActionTaken)
def _(event: ActionTaken, record: Record, me: str) -> Node:
    inside = value_block(event.arguments) if event.arguments else None
    return _call(event.name, arguments_text(event.arguments), inside)


@_body.register(ActionResolved)
def _(event: ActionResolved, record: Record, me: str) -> Node:
    why = f": {shorten(event.error, _LINE)}" if event.error else ""
    inside = None if event.observation is None else value_block(event.observation)
    summary = f"→ {event.outcome}{why}"
    return _line(summary) if inside is None else tag("details", tag("summary", summary), inside)


@_body.register(SnapshotTaken)
def _(event: SnapshotTaken, record: Record, me: str) -> Node:
    return _line(tag("b", f"output, version {record.version}"))


@_body.register(ApprovalAsked)
def _(event: ApprovalAsked, record: Record, me: str) -> Node:
    action = None
    if event.action:
        inside = value_block(event.arguments) if event.arguments else None
        action = _call(event.action, arguments_text(event.arguments), inside)
    return [_line(tag("b", "asks for your approval")), rich_text(event.question), action]


@_body.register(ApprovalGiven)
def _(event: ApprovalGiven, record: Record, me: str) -> Node:
    said = rich_text(event.comment) if event.comment else None
    return [_line(tag("b", "✓ approved" if event.approved else "✗ refused")), said]


@_body.register(ProgressRated)
def _(event: ProgressRated, record: Record, me: str) -> Node:
    if event.rating is None:
        return None
    why = plain(event.explanation) if event.explanation else None
    return [_line(f"rated the progress of round {event.round}: {event.rating} of 5"), why]


@_body.register(ProfileChanged)
def _(event: ProfileChanged, record: Record, me: str) -> Node:
    return tag(
        "details", tag("summary", "What only you know has changed"), value_block(event.profile)
    )


@_body.register(SessionClosed)
def _(event: SessionClosed, record: Record, me: str) -> Node:
    detail = f": {shorten(event.detail, _LINE)}" if event.detail else ""
    return _line(tag("b", f"the session is over: {event.reason}"), detail)
