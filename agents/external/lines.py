"""The protocol of ``exec:`` agents: one line of JSON for each turn, one line of JSON in reply.

A turn shows what the agent can see, and no more. ``docs/your-agent.md`` describes the fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

import msgspec

from ...engine.budget import MESSAGE
from ...engine.errors import InvalidInput, malformed
from ...engine.events import JSON, Tokens
from ...engine.models.protocol import ModelReply, ModelRequest, ToolCall
from ...engine.records import Record
from ...engine.session.view import View
from .address import Address
from .process import LineProcess

__all__ = ("PROTOCOL", "LineAgent", "news_of", "read_reply")

PROTOCOL: Final = 1
"""The number of the protocol of lines; it is part of every turn."""

_HIDDEN = frozenset({"SessionOpened", "ModelCalled", "Forgotten"})
_SHOWN = 200  # characters of a reply that an error quotes


class _Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] = {}


class _Tokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    prompt: int | None = None
    completion: int | None = None


class _Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line that a program answers with."""

    actions: list[_Action]
    turn: int | None = None
    tokens: _Tokens = _Tokens()
    cost: float | None = None


def news_of(view: View, since: int, until: int) -> list[JSON]:
    """Everything an actor saw between two trace versions, as JSON, including its own acts and outcomes.

    Args:
        view: the actor's.
        since: the version before the first.
        until: the last version.
    """
    return [
        _described(record)
        for record in view.records
        if since < record.version <= until and record.kind not in _HIDDEN
    ]


def _described(record: Record) -> JSON:
    event = {
        name: value for name, value in msgspec.to_builtins(record.event).items() if name != "kind"
    }
    return {
        "version": record.version,
        "time": record.time,
        "actor": record.actor,
        "role": record.role,
        "kind": record.kind,
        **event,
    }


def read_reply(line: str) -> ModelReply:
    """Reads the line that a program answers with.

    Raises:
        InvalidInput: it is no such line, or too large.
    """
    MESSAGE.check_json(line)
    try:
        reply = msgspec.json.decode(line, type=_Reply)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InvalidInput(
            f'a reply is one line such as {{"actions": [{{"name": "message", "arguments": {{"text": '
            f'"Hello"}}}}]}}, not {_cut(line)!r}: {malformed(error)}'
        ) from None
    return ModelReply(
        tool_calls=tuple(
            ToolCall(
                id=str(number),
                name=action.name,
                arguments=msgspec.json.encode(action.arguments).decode(),
            )
            for number, action in enumerate(reply.actions, start=1)
        ),
        tokens=Tokens(prompt=reply.tokens.prompt, completion=reply.tokens.completion),
        cost=reply.cost,
        finish="actions",
    )


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@final
class LineAgent:
    """The program behind one actor in one session; see ``ModelClient``.

    It starts at its first turn, and again if it has ended since. A program that starts later than the
    session finds the earlier events in ``history``.

    Args:
        address: the address of the agent.
        view: the actor's.
        passed: names of environment variables that it gets.
    """

    def __init__(self, address: Address, view: View, passed: Sequence[str] = ()) -> None:
        self._address = address
        self._passed = passed
        self._view = view
        self._process: LineProcess | None = None

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Sends a turn, or repeats it with the error in the last reply; returns the reply."""
        turn: dict[str, JSON] = msgspec.json.decode(request.messages[0].content)
        number = turn["turn"]
        if len(request.messages) > 1:
            turn["error"] = request.messages[-1].content
        if self._process is None or not self._process.alive:
            await self.close()
            self._process = process = LineProcess(
                self._address.command, self._address.text, self._passed
            )
            await process.start()
            turn["history"] = news_of(self._view, 0, int(str(turn["since"])))
        found: list[ModelReply] = []

        async def take(line: bytes) -> bool:
            text = line.decode("utf-8", "replace")
            if _is_late(text, number):
                return False
            try:
                found.append(read_reply(text))
            except InvalidInput:
                found.append(ModelReply(text=text))  # the policy says what is wrong with it
            return True

        await self._process.exchange(msgspec.json.encode(turn), take)
        return found[0]

    async def close(self) -> None:
        """Ends the program."""
        process, self._process = self._process, None
        if process is not None:
            await process.stop()


def _is_late(line: str, turn: JSON) -> bool:
    """Whether a line answers an earlier turn."""
    if not MESSAGE.holds(line):
        return False
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False
    answered = value.get("turn") if isinstance(value, Mapping) else None
    return isinstance(answered, int) and isinstance(turn, int) and answered < turn
