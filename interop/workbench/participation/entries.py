"""The entries that a participant is shown, record by record, as data for their page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from ....engine.events import (
    JSON,
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    FeedbackGiven,
    MessageSent,
    ProfileChanged,
    ProgressRated,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
)
from ....engine.records import TRACE, Record
from ....scoring.display.cards import KNOWN, card_of
from ....scoring.display.records import describe
from ....scoring.display.texts import shorten
from ..markup.html import Html, Node, join, tag
from ..markup.records import described, facts, unshown
from ..markup.text import rich_text

__all__ = ("ShownEntry", "shown_entry")

_NAME: Final = 60
_KNOWN: Final = {KNOWN: "known"}

ShownEntry: TypeAlias = dict[str, JSON]
"""An entry: ``version`` and ``kind`` of the record, ``actor``, ``role``, whether it is ``mine``,
its ``html``, and state for the page: an approval that is ``asked`` or answered, how it ``closed``, the
``brief`` that is always in sight, an action that ``failed``.
"""


def shown_entry(record: Record, me: str) -> ShownEntry | None:
    """The entry of a record that a participant may see; None if there is nothing to show.

    Args:
        record: as they may see it.
        me: their name in the session.
    """
    if record.stream != TRACE:
        return None
    event: object = None
    try:
        event = record.event
        body = _body(event, record, me)
        html = None if body is None else join(body)
    except Exception as error:  # noqa: BLE001  (one record never ends the stream)
        html = unshown(record, error)
    if html is None:
        return None
    entry: ShownEntry = {
        "version": record.version,
        "kind": record.kind,
        "actor": shorten(record.actor, _NAME),
        "role": record.role,
        "mine": record.actor == me,
        "time": record.time,
        "html": str(html),
    }
    if record.caller_id is not None and record.actor == me:
        entry["id"] = record.caller_id
    if isinstance(event, ApprovalGiven):
        entry["asked"] = event.asked
    elif isinstance(event, SessionOpened):
        entry["brief"] = str(join(_brief(event, me)))
    elif isinstance(event, ProfileChanged):
        entry["brief"] = str(_card("What you know now", event.profile))
    elif isinstance(event, ActionResolved):
        entry["failed"] = event.outcome == "failed"
    elif isinstance(event, SessionClosed):
        entry["closed"] = event.reason
    elif isinstance(event, ProgressRated):
        entry["rating"] = event.rating
    return entry


def _body(event: object, record: Record, me: str) -> Node:
    """The entry's contents: as in the transcript, plus their private texts; None if empty."""
    match event:
        case SessionOpened():
            names = [shorten(one.name, _NAME) for one in event.participants if one.name != me]
            return [
                rich_text(event.request) if event.request else None,
                _line("With ", ", ".join(names)) if len(names) > 1 else None,
            ]
        case ProfileChanged():
            return _card("What you know has changed", event.profile)
        case SnapshotTaken():
            return _line(tag("b", "changed the output"))
        case FeedbackGiven(edits_kept=kept) if kept is not None:
            return _line(tag("b", _judged(kept)))
        case ProgressRated(rating=None):
            return None
        case (
            ActionResolved()
            | ActionTaken()
            | ApprovalAsked()
            | ApprovalGiven()
            | MessageSent()
            | ProgressRated()
            | SessionClosed()
        ):
            return described(describe(record))
        case _:
            return None


def _judged(kept: float) -> str:
    if kept in (0.0, 1.0):
        return "accepted the changes" if kept else "undid a change"
    return f"kept {kept:.0%} of the changes"


def _brief(event: SessionOpened, me: str) -> list[Node]:
    """The brief of a participant: role, goal and knowledge."""
    own = event.private.get(me)
    sections = () if own is None else card_of(own)
    names = {title for title, _ in sections}
    return [
        None
        if "Your goal" in names or not event.request
        else [tag("h3", "Your goal"), rich_text(event.request)],
        [
            tag("section", tag("h3", title), *_said(lines), class_=_KNOWN.get(title))
            for title, lines in sections
        ],
    ]


def _said(lines: Sequence[str]) -> list[Html]:
    if len(lines) == 1:
        return [tag("p", lines[0], dir="auto")]
    return [tag("ul", *(tag("li", line, dir="auto") for line in lines))]


def _line(*parts: Node) -> Html:
    return tag("p", *parts, class_="line")


def _card(what: str, private: JSON) -> Html:
    sections = [
        (tag("dt", title), tag("dd", facts(lines[0] if len(lines) == 1 else list(lines))))
        for title, lines in card_of(private)
    ]
    return tag("details", tag("summary", what), tag("dl", sections))
