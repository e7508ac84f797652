"""The events that operations append: of many kinds, and told apart by their actors."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ...engine.codec import digest
from ...engine.events import (
    ActionTaken,
    Event,
    FeedbackGiven,
    MessageSent,
    Role,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    Unknown,
    UtilityScored,
)
from ...engine.records import Draft
from .scenario import Operation

__all__ = ("SECRET", "cleaned", "drafts_of")

_LONG = "x" * 5000  # longer than a page

SECRET: Final = "open sesame"
"""The words that the redaction hook of a run removes."""


def cleaned(draft: Draft) -> Draft:
    """The redaction hook of a run."""
    event = draft.event
    if isinstance(event, MessageSent) and SECRET in event.text:
        return replace(draft, event=MessageSent(text=event.text.replace(SECRET, "-")))
    if isinstance(event, SnapshotTaken) and isinstance(event.content, dict):
        content = event.content
        if content.get("word") == SECRET:
            content = {**content, "word": "-"}
            return replace(draft, event=SnapshotTaken(content=content, digest=digest(content)))
    return draft


def drafts_of(operation: Operation) -> list[Draft]:
    """The drafts that an operation appends; each has a unique actor, to find it again."""
    with_ids = operation.draw % 3 == 0
    return [
        _draft(operation, at, f"id {operation.number}.{at}" if with_ids else None)
        for at in range(operation.size)
    ]


def _draft(operation: Operation, at: int, caller_id: str | None) -> Draft:
    tag = f"op{operation.number}.{at}"
    event, role = _event(operation, at, tag)
    return Draft(event, tag, role, float(operation.draw % 1000), caller_id)


def _event(operation: Operation, at: int, tag: str) -> tuple[Event | Unknown, Role]:
    draw = operation.draw >> at % 16
    match operation.kind:
        case "close" if at == operation.size - 1:
            return SessionClosed(reason="finished", by=tag), "human"
        case "feedback":
            return FeedbackGiven(comment=tag), "human"
        case "measure":
            scorer = ScorerRef(name="judge", version="1", config="-")
            return UtilityScored(scorer=scorer, value=draw % 7 / 7), "scorer"
    match draw % 6:
        case 0:
            content = {"by": tag, "word": SECRET} if operation.draw & 64 else {"by": tag}
            return SnapshotTaken(content=content, digest=digest(content)), "agent"
        case 1:
            return ActionTaken(name=tag, arguments={"n": draw}), "agent"
        case 2:
            return MessageSent(text=_LONG + tag), "agent"
        case 3 if operation.draw & 32:
            return SessionOpened(
                task=tag, instance="1", participants=(), clock="utc"
            ), "environment"
        case 4 if operation.draw & 16:
            return Unknown("Other", 7, f'{{"kind":"Other","by":"{tag}"}}'.encode()), "agent"
    return MessageSent(text=f"{SECRET} {tag}" if operation.draw & 128 else tag), "human"
