"""Steps, out of events of the second generation, each of which names its kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, final

from ....engine.events import JSON, Tokens
from ..anthropic.blocks import plain_text
from ..conversation.differences import unified
from ..conversation.steps import (
    AGENT,
    HUMAN,
    ForeignEntry,
    Interruption,
    ModelUse,
    Omission,
    Output,
    Reasoning,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)
from ..conversation.totals import RunningTotal
from .actions import tokens_of

__all__ = ("EventReader",)

_FORMAT: Final = "openhands"
_UNSEEN: Final = "the file begins after this call"
_INNER: Final = "kind"
_THINKING: Final = re.compile(r"\s*<think>(.*?)</think>\s*", re.DOTALL)


@final
class EventReader:
    """Reads events in order."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._totals: dict[str, RunningTotal] = {}

    def steps(self, event: Mapping[str, JSON], data: bytes) -> Iterator[Step]:
        """The steps of an event.

        Args:
            event: the event.
            data: the same as it stands in the file.
        """
        kind = str(event.get("kind"))
        if kind == "MessageEvent":
            yield from _message(event)
        elif kind == "ActionEvent":
            yield from self._action(event)
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            yield from self._observation(kind, event)
        elif kind == "SystemPromptEvent":
            prompt = event.get("system_prompt")
            text = prompt.get("text") if isinstance(prompt, Mapping) else None
            yield Utterance("system", None, text if isinstance(text, str) else "")
        elif kind == "PauseEvent":
            yield Interruption("paused by the user")
        elif kind == "ConversationStateUpdateEvent":
            yield from self._state(event)
        else:
            yield ForeignEntry(f"{_FORMAT}.{kind}", data)

    def _action(self, event: Mapping[str, JSON]) -> Iterator[Step]:
        thought = plain_text(event.get("thought"))
        inside = _THINKING.match(thought)
        reasoning = event.get("reasoning_content") or (inside and inside[1])
        if isinstance(reasoning, str) and reasoning.strip():
            yield Reasoning(reasoning)
        thought = thought if inside is None else thought[inside.end() :]
        if thought.strip():
            yield Utterance(AGENT, None, thought)
        name, call = str(event.get("tool_name")), str(event.get("tool_call_id"))
        action = event.get("action")
        given: Mapping[str, JSON] = action if isinstance(action, Mapping) else {}
        if name == "think":
            yield Reasoning(str(given.get("thought", "")))
        elif name == "finish":
            yield Utterance(AGENT, None, str(given.get("message", "")))
        else:
            self._open.add(call)
            arguments = {key: value for key, value in given.items() if key != _INNER}
            yield ToolCall(AGENT, None, call, name, arguments)

    def _observation(self, kind: str, event: Mapping[str, JSON]) -> Iterator[Step]:
        call, name = str(event.get("tool_call_id")), str(event.get("tool_name"))
        if name in ("think", "finish"):
            yield Omission(f"what the tool {name} answers")
            return
        if call not in self._open:  # whose call it was is not known
            yield ToolCall("environment", None, call, name, {}, _UNSEEN)
        self._open.discard(call)
        observation = event.get("observation")
        held: Mapping[str, JSON] = observation if isinstance(observation, Mapping) else {}
        text = plain_text(held.get("content"))
        error: str | None = None
        if kind != "ObservationEvent":
            reason = event.get("error") or event.get("rejection_reason")
            error = reason if isinstance(reason, str) and reason else "it failed"
        elif held.get("is_error") is True or held.get("exit_code") not in (None, 0, -1):
            error = text.strip() or "it failed"
        yield ToolResult(call, text or error, error)
        if error is None:
            yield from _edited(held)

    def _state(self, event: Mapping[str, JSON]) -> Iterator[Step]:
        value = event.get("value")
        if event.get("key") != "stats" or not isinstance(value, Mapping):
            yield Omission("changes of state")
            return
        by_usage = value.get("usage_to_metrics")
        for usage, metrics in (by_usage if isinstance(by_usage, Mapping) else {}).items():
            if not isinstance(metrics, Mapping):
                continue
            total = tokens_of(metrics.get("accumulated_token_usage"))
            if total is None or not (total.prompt or total.completion):
                continue
            used = self._totals.setdefault(usage, RunningTotal()).since(total)
            if used is not None:
                yield _use(usage, metrics.get("model_name"), used)


def _edited(held: Mapping[str, JSON]) -> Iterator[Output]:
    """The file that a tool edited, where what the tool gave holds all of its text."""
    path, now, before = held.get("path"), held.get("new_content"), held.get("old_content")
    if isinstance(path, str) and isinstance(now, str) and now != before:
        diff = unified(before if isinstance(before, str) else "", now)
        file = {"path": path, "text": now, "diff": diff}
        yield Output(AGENT, None, file, "application/json")


def _use(usage: str, model: JSON, tokens: Tokens) -> ModelUse:
    name = model if isinstance(model, str) else None
    return ModelUse(model=name, tokens=tokens, purpose="act" if usage == "default" else usage)


def _message(event: Mapping[str, JSON]) -> Iterator[Step]:
    message = event.get("llm_message")
    held: Mapping[str, JSON] = message if isinstance(message, Mapping) else {}
    reasoning = held.get("reasoning_content")
    if isinstance(reasoning, str) and reasoning.strip():
        yield Reasoning(reasoning)
    text = plain_text(held.get("content"))
    side = {"user": HUMAN, "agent": AGENT}.get(str(event.get("source")), "system")
    if text.strip():
        yield Utterance(side, None, text)
