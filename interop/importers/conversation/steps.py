"""Steps of a conversation, whatever format it came in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from ....engine.events import JSON, CloseReason, DecisionSource, Tokens

__all__ = (
    "AGENT",
    "HUMAN",
    "ApprovalRequest",
    "ApprovalResponse",
    "Ending",
    "Feedback",
    "FileEdit",
    "ForeignEntry",
    "Interruption",
    "ModelUse",
    "Omission",
    "Output",
    "Rating",
    "Reasoning",
    "Step",
    "ToolCall",
    "ToolResult",
    "Utterance",
)

HUMAN: Final = "user"
"""The side of people."""
AGENT: Final = "assistant"
"""The side of agents."""


class Utterance(msgspec.Struct, frozen=True):
    """An utterance of any speaker.

    Attributes:
        role: ``user``, ``assistant``, ``system`` or ``developer``.
        name: of who said it; None if the role is all that is known.
        text: what.
    """

    role: str
    name: str | None
    text: str


class ToolCall(msgspec.Struct, frozen=True):
    """A tool was called.

    Attributes:
        role: whose call it is.
        name: the name of the caller.
        call: id of the call, not always unique; empty if it has none.
        tool: name of the tool.
        arguments: as the model gave them.
        raw: as it wrote them, if that would be lost else.
    """

    role: str
    name: str | None
    call: str
    tool: str
    arguments: Mapping[str, JSON]
    raw: str | None = None


class ToolResult(msgspec.Struct, frozen=True):
    """The outcome of a call; ``error`` if it is known to have failed."""

    call: str
    output: JSON
    error: str | None = None


class Reasoning(msgspec.Struct, frozen=True):
    """A model's reasoning, for itself alone; ``name`` of the agent, None for the last speaker."""

    text: str
    name: str | None = None


class ApprovalRequest(msgspec.Struct, frozen=True):
    """A model asks for leave to call a tool; ``name`` of the agent, None for the last speaker."""

    id: str
    tool: str
    arguments: Mapping[str, JSON]
    text: str
    name: str | None = None


class ApprovalResponse(msgspec.Struct, frozen=True):
    """The answer to an ``ApprovalRequest``; the source says who decided, None if that is unknown."""

    id: str
    approved: bool
    comment: str = ""
    source: DecisionSource | None = None


class Output(msgspec.Struct, frozen=True):
    """The full shared output after an edit.

    Attributes:
        role: whose edit it is: ``user`` or ``assistant``.
        name: the name of the author; None if the role is all that is known.
        content: text, or structure.
        media_type: the media type of the content.
    """

    role: str
    name: str | None
    content: JSON
    media_type: str = "text/plain"


class FileEdit(msgspec.Struct, frozen=True):
    """A file after an edit, if the shared output is several files.

    Attributes:
        role: whose edit it is: ``user`` or ``assistant``.
        name: the name of the author; None if the role is all that is known.
        path: the path of the file.
        text: the text of the whole file; None for a file that is gone.
        diff: the unified diff that the person was shown; empty for none.
    """

    role: str
    name: str | None
    path: str
    text: str | None
    diff: str = ""


class ModelUse(msgspec.Struct, frozen=True, kw_only=True):
    """A model was called; each call once, however often the source repeats it.

    Attributes:
        model: as the source names it; None for the model of the session.
        tokens: as the provider counts them.
        role: the side that it was called for.
        name: the name of the actor that it was called for; None if the role is all that is known.
        purpose: what for.
        latency: seconds; 0 if unknown.
        cost: US dollars; None if unknown.
        error: what went wrong, if the call failed.
        id: its own, unique in the session, if the source has one.
    """

    model: str | None = None
    tokens: Tokens = Tokens()
    role: str = AGENT
    name: str | None = None
    purpose: str = "act"
    latency: float = 0.0
    cost: float | None = None
    error: str | None = None
    id: str | None = None


class Interruption(msgspec.Struct, frozen=True):
    """A person stopped the agent: its turn ends, and nothing was said.

    It is recorded as the end of the agent's turn, so it is not a separate act: the person's next
    act opens the round.
    """

    reason: str
    name: str | None = None


class Feedback(msgspec.Struct, frozen=True, kw_only=True):
    """A person judged the session or a part of it: thumbs, or a comment.

    Attributes:
        thumbs: True for up, False for down, None for neither.
        comment: free text.
        name: the name of the person; None if the role is all that is known.
        of: number of the entry that it is about; None for the session as a whole.
    """

    thumbs: bool | None = None
    comment: str = ""
    name: str | None = None
    of: int | str | None = None


class Rating(msgspec.Struct, frozen=True, kw_only=True):
    """A person rated the progress of a round.

    Attributes:
        value: 1 to 5.
        explanation: in the person's words.
        of: number of the entry in the round that is rated; None for the latest round in which an
            agent acted.
    """

    value: int
    explanation: str = ""
    of: int | str | None = None


class Ending(msgspec.Struct, frozen=True):
    """The source says that it is over.

    Attributes:
        reason: why, as far as the source says.
        by: ``user``, ``assistant``, or whoever it was.
        detail: in words.
    """

    reason: CloseReason = "ended"
    by: str = "environment"
    detail: str = ""


class ForeignEntry(msgspec.Struct, frozen=True):
    """An entry that Duolog's events cannot express: kept unchanged, skipped by every projection.

    Attributes:
        kind: what it is called, with the format in front, such as ``claude-code.progress``.
        body: its JSON.
    """

    kind: str
    body: bytes


class Omission(msgspec.Struct, frozen=True):
    """Something that no event can hold, and that is left out."""

    what: str


Step: TypeAlias = (
    Utterance
    | ToolCall
    | ToolResult
    | Reasoning
    | ApprovalRequest
    | ApprovalResponse
    | Output
    | FileEdit
    | ModelUse
    | Interruption
    | Feedback
    | Rating
    | Ending
    | ForeignEntry
    | Omission
)
