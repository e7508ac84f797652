"""Assembles messages, reasoning and tool calls from the events that stream them in pieces.

It does no input or output. Nothing is lost: what never ends is given as far as it was received, with
a problem that says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias, final

import msgspec

from ...engine.events import JSON
from .names import AguiEvent

__all__ = ("Assembler", "PieceKind", "Whole", "WholeCall", "WholeEvent", "WholeMessage")

PieceKind: TypeAlias = Literal["message", "reasoning", "call"]

_STEMS: Final[dict[str, tuple[PieceKind, str]]] = {
    "TEXT_MESSAGE": ("message", "messageId"),
    "REASONING_MESSAGE": ("reasoning", "messageId"),
    "THINKING_TEXT_MESSAGE": ("reasoning", "messageId"),  # an older type, without an id
    "TOOL_CALL": ("call", "toolCallId"),
}
_PARTS: Final = frozenset({"START", "CONTENT", "ARGS", "END", "CHUNK"})
_ASIDE: Final = frozenset({"RAW", "CUSTOM", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA"})
_BOUNDS: Final = frozenset({"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"})
_SAID: Final = frozenset(
    """
    type timestamp rawEvent messageId toolCallId toolCallName role name delta subagentRunId
    """.split()
)
_THINKING: Final = "thinking"


class WholeMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message or a piece of reasoning, assembled.

    Attributes:
        id: its own; empty if it has none.
        reasoning: whether it is the model's reasoning.
        role: of who said it.
        name: of who said it; None if the role is all that is known.
        text: all of it.
        subagent: the invocation of a subagent that it belongs to.
        fields: all other fields of its events.
        time: the last time stamp in it.
        problem: what is wrong with it; None for nothing.
    """

    id: str
    reasoning: bool
    role: str
    name: str | None
    text: str
    subagent: str | None
    fields: AguiEvent
    time: JSON
    problem: str | None


class WholeCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call, assembled, its arguments as written; other attributes as in ``WholeMessage``."""

    id: str
    tool: str
    arguments: str
    subagent: str | None
    fields: AguiEvent
    time: JSON
    problem: str | None


class WholeEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A complete event, or one that cannot be assembled: ``problem`` says why."""

    event: AguiEvent
    problem: str | None = None


Whole: TypeAlias = WholeMessage | WholeCall | WholeEvent


class _Partial(msgspec.Struct, kw_only=True):
    """A message or call that has begun."""

    kind: PieceKind
    id: str
    subagent: str
    chunked: bool
    role: str
    name: str | None
    time: JSON = None
    pieces: list[str] = []
    fields: AguiEvent = {}
    problem: str | None = None

    def whole(self) -> WholeMessage | WholeCall:
        text, subagent = "".join(self.pieces), self.subagent or None
        if self.kind == "call":
            return WholeCall(
                id=self.id,
                tool=self.name or "",
                arguments=text,
                subagent=subagent,
                fields=self.fields,
                time=self.time,
                problem=self.problem,
            )
        return WholeMessage(
            id=self.id,
            reasoning=self.kind == "reasoning",
            role=self.role,
            name=self.name,
            text=text,
            subagent=subagent,
            fields=self.fields,
            time=self.time,
            problem=self.problem,
        )


@final
class Assembler:
    """Assembles events in the order in which they were received."""

    def __init__(self) -> None:
        self._open: dict[tuple[PieceKind, str], _Partial] = {}
        self._chunks: dict[str, list[_Partial]] = {}  # of those, in chunks, by subagent

    def take(self, event: AguiEvent) -> Iterator[Whole]:
        """Takes an event; gives what it completes, in order."""
        kind = str(event.get("type"))
        stem, _, part = kind.rpartition("_")
        if stem in _STEMS and part in _PARTS and not (stem == "TOOL_CALL" and part == "CONTENT"):
            yield from self._take(event, *_STEMS[stem], part)
            return
        if kind in _BOUNDS:
            yield from self.finish()
        elif kind not in _ASIDE:
            yield from self._end_chunks(_subagent(event))
        if kind == "TOOL_CALL_RESULT":
            call = self._open.get(("call", str(event.get("toolCallId"))))
            if call is not None:
                yield self._end(call, "its result came before its end")
        yield WholeEvent(event=event)

    def finish(self) -> Iterator[Whole]:
        """Yields the incomplete pieces when the stream, or a run in it, is over."""
        for one in list(self._open.values()):
            yield self._end(one, None if one.chunked else "it never ended")

    def _take(self, event: AguiEvent, kind: PieceKind, id_field: str, part: str) -> Iterator[Whole]:
        subagent = _subagent(event)
        ident = self._id(event, kind, id_field, part)
        if isinstance(ident, WholeEvent):
            yield ident
            return
        now = self._open.get((kind, ident))
        yield from self._end_chunks(subagent, but=now)
        if now is None:
            if part == "END":
                yield WholeEvent(event=event, problem=f"the end of a {kind} that never began")
                return
            now = self._begin(event, kind, ident, subagent, part)
        elif part == "START":
            now.problem = "it began twice"
        delta = event.get("delta")
        if isinstance(delta, str):
            now.pieces.append(delta)
        elif delta is not None:
            yield WholeEvent(event=event, problem="its delta is no text")
            return
        now.time = event.get("timestamp") or now.time
        for key, value in event.items():
            if key not in _SAID and value is not None:
                now.fields.setdefault(key, value)
        if part == "END":
            yield self._end(now, None)

    def _id(self, event: AguiEvent, kind: PieceKind, field: str, part: str) -> str | WholeEvent:
        """Which message or call an event belongs to; the event itself if that is unclear."""
        given = event.get(field)
        if isinstance(given, str) and given:
            return given
        if given is not None:
            return WholeEvent(event=event, problem=f"its {field} is no text")
        if str(event.get("type")).startswith("THINKING"):
            return _THINKING
        if part == "CHUNK":
            for one in self._chunks.get(_subagent(event), ()):
                if one.kind == kind:
                    return one.id
        return WholeEvent(event=event, problem=f"it lacks a {field}")

    def _begin(
        self, event: AguiEvent, kind: PieceKind, ident: str, subagent: str, part: str
    ) -> _Partial:
        name = event.get("toolCallName" if kind == "call" else "name")
        role = event.get("role")
        begun = self._open[kind, ident] = _Partial(
            kind=kind,
            id=ident,
            subagent=subagent,
            chunked=part == "CHUNK",
            role=role if isinstance(role, str) and role else "assistant",
            name=name if isinstance(name, str) and name else None,
        )
        if begun.chunked:
            self._chunks.setdefault(subagent, []).append(begun)
        if part not in ("START", "CHUNK"):
            begun.problem = "it never began"
        elif kind == "call" and not begun.name:
            begun.problem = "it does not name a tool"
        return begun

    def _end(self, one: _Partial, problem: str | None) -> WholeMessage | WholeCall:
        del self._open[one.kind, one.id]
        if one.chunked:
            among = self._chunks[one.subagent]
            among.remove(one)
            if not among:
                del self._chunks[one.subagent]
        one.problem = one.problem or problem
        if one.id == _THINKING:
            one.id = ""
        return one.whole()

    def _end_chunks(self, subagent: str, but: _Partial | None = None) -> Iterator[Whole]:
        """Ends a chunked message when another event follows, since chunks carry no end."""
        for one in tuple(self._chunks.get(subagent, ())):
            if one is not but:
                yield self._end(one, None)


def _subagent(event: AguiEvent) -> str:
    """Chunks of one subagent and those of another do not end each other."""
    subagent = event.get("subagentRunId")
    return subagent if isinstance(subagent, str) else ""
