"""The shapes that version 1.0 of the protocol gives to fields that an event need not have.

An app may have recorded other shapes. A front end that validates events would reject such an event
and the whole stream. So fields that do not fit are left out of the stream. They stay in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from ...engine.events import JSON
from .names import AguiEvent

__all__ = ("drop_misfits",)

_SAFE: Final = 2**53 - 1
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=_SAFE)]
_Stamp: TypeAlias = Annotated[int, msgspec.Meta(ge=-_SAFE, le=_SAFE)]
_Object: TypeAlias = dict[str, JSON]


class _AguiShape(msgspec.Struct, rename="camel"):
    """Any of the shapes below."""


class _Interrupt(_AguiShape):
    id: str
    reason: str
    message: str | None = None
    tool_call_id: str | None = None
    subagent_run_id: str | None = None
    response_schema: _Object | None = None
    expires_at: str | None = None
    metadata: _Object | None = None


class _Success(_AguiShape, tag_field="type", tag="success"):
    pending_tool_call_ids: list[str] | None = None


class _Waiting(_AguiShape, tag_field="type", tag="interrupt"):
    interrupts: Annotated[list[_Interrupt], msgspec.Meta(min_length=1)]


class _Cancelled(_AguiShape, tag_field="type", tag="cancelled"):
    pass


class _Suspended(_AguiShape, tag_field="type", tag="suspended"):
    interrupt_ids: list[str] | None = None


class _UsageShape(_AguiShape):
    provider: str | None = None
    model: str | None = None
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    total_tokens: _Count | None = None
    reasoning_tokens: _Count | None = None
    cached_input_tokens: _Count | None = None
    cache_write_input_tokens: _Count | None = None


class _ToolShape(_AguiShape):
    name: str
    description: str
    metadata: _Object | None = None


class _Context(_AguiShape):
    description: str
    value: str


class _Resume(_AguiShape):
    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    metadata: _Object | None = None


class _Input(_AguiShape):
    thread_id: str
    run_id: str
    messages: list[JSON]
    protocol_version: str | None = None
    parent_run_id: str | None = None
    tools: list[_ToolShape] | None = None
    context: list[_Context] | None = None
    resume: list[_Resume] | None = None


class _Operation(_AguiShape):
    op: Literal["add", "remove", "replace", "move", "copy", "test"]
    path: str


_Role: TypeAlias = Literal["developer", "system", "assistant", "user", "reasoning", "tool"]
_ANYWHERE: Final[Mapping[str, object]] = {
    "code": str,
    "description": str,
    "input": _Input,
    "metadata": _Object,
    "name": str,
    "parentMessageId": str,
    "parentRunId": str,
    "parentSubagentRunId": str,
    "parentToolCallId": str,
    "protocolVersion": str,
    "replace": bool,
    "role": _Role,
    "source": str,
    "subagentRunId": str,
    "timestamp": _Stamp,
    "usage": list[_UsageShape],
}
_OUTCOMES: Final[Mapping[str, object]] = {
    "RUN_FINISHED": _Success | _Waiting | _Cancelled,
    "SUBAGENT_FINISHED": _Success | _Suspended,
}


def drop_misfits(event: AguiEvent) -> AguiEvent:
    """An event without the fields that have another shape than the protocol gives them."""
    shapes = {**_ANYWHERE, "outcome": _OUTCOMES.get(str(event.get("type")), object)}
    fitted = {
        key: value for key, value in event.items() if key not in shapes or _fits(value, shapes[key])
    }
    return event if len(fitted) == len(event) else fitted


def _fits(value: JSON, shape: object) -> bool:
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError:
        return False
    return True
