"""Steps, out of events of the first generation: actions, and observations that name their cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, final

from ....engine.events import JSON, Tokens
from ..conversation.numbers import count_of
from ..conversation.steps import (
    AGENT,
    HUMAN,
    ForeignEntry,
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

__all__ = ("ActionReader", "tokens_of")

_FORMAT: Final = "openhands"
_ASIDE: Final = frozenset(
    {"recall", "null", "agent_state_changed", "change_agent_state", "condensation"}
)
_SIDES: Final = {"user": HUMAN, "agent": AGENT}
_INNER: Final = frozenset(
    "thought is_input blocking hidden confirmation_state security_risk keep_prompt".split()
)
"""Arguments of an action that the model did not give."""


@final
class ActionReader:
    """Reads events in order."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._total = RunningTotal()

    def steps(self, event: Mapping[str, JSON], data: bytes) -> Iterator[Step]:
        """The steps of an event.

        Args:
            event: the event.
            data: the same as it stands in the file.
        """
        action, observation = event.get("action"), event.get("observation")
        if isinstance(action, str):
            yield from self._used(event)
            yield from self._action(action, event, data)
        elif isinstance(observation, str):
            yield from self._observation(observation, event, data)
        else:
            yield ForeignEntry(f"{_FORMAT}.event", data)

    def _action(self, action: str, event: Mapping[str, JSON], data: bytes) -> Iterator[Step]:
        args = event.get("args")
        given: Mapping[str, JSON] = args if isinstance(args, Mapping) else {}
        side = _SIDES.get(str(event.get("source")), "system")
        thought = _text(given, "thought")
        if action in ("message", "finish"):
            text = _text(given, "content") or _text(event, "message")
            text = text or _text(given, "final_thought") or thought
            if text.strip():
                yield Utterance(side, None, text)
        elif action == "system":
            yield Utterance("system", None, _text(given, "content"))
        elif action == "think":
            yield Reasoning(thought)
        elif action in _ASIDE:
            yield Omission(f"{action} events")
        elif side == "system":
            yield ForeignEntry(f"{_FORMAT}.{action}", data)
        else:
            if thought.strip() and side == AGENT:
                yield Utterance(AGENT, None, thought)
            call = str(event.get("id"))
            self._open.add(call)
            arguments = {key: value for key, value in given.items() if key not in _INNER}
            yield ToolCall(side, None, call, _tool(event) or action, arguments)

    def _observation(self, kind: str, event: Mapping[str, JSON], data: bytes) -> Iterator[Step]:
        call = str(event.get("cause"))
        if event.get("cause") is None and len(self._open) == 1:
            (call,) = self._open  # of old it is the answer to the action before it
        if call not in self._open:
            if kind in _ASIDE:
                yield Omission(f"{kind} observations")
            else:
                yield ForeignEntry(f"{_FORMAT}.{kind}", data)
            return
        self._open.discard(call)
        extras = event.get("extras")
        extra: Mapping[str, JSON] = extras if isinstance(extras, Mapping) else {}
        content = _text(event, "content")
        metadata = extra.get("metadata")
        code = metadata.get("exit_code") if isinstance(metadata, Mapping) else None
        failed = kind in ("error", "user_rejected") or (isinstance(code, int) and code != 0)
        why = content.strip() or (f"exit code {code}" if code else "it failed")
        yield ToolResult(call, content, why if failed else None)
        path, now = extra.get("path"), extra.get("new_content")
        changed = now != extra.get("old_content") and not failed
        if kind == "edit" and isinstance(path, str) and isinstance(now, str) and changed:
            file = {"path": path, "text": now, "diff": content}
            yield Output(AGENT, None, file, "application/json")

    def _used(self, event: Mapping[str, JSON]) -> Iterator[Step]:
        metrics = event.get("llm_metrics")
        if not isinstance(metrics, Mapping):
            return
        used = self._total.since(tokens_of(metrics.get("accumulated_token_usage")))
        if used is not None:
            yield ModelUse(tokens=used)


def tokens_of(usage: JSON) -> Tokens | None:
    """Tokens, as OpenHands counts them."""
    if not isinstance(usage, Mapping):
        return None
    counts = {
        field: count_of(usage.get(key))
        for field, key in (
            ("prompt", "prompt_tokens"),
            ("completion", "completion_tokens"),
            ("cached", "cache_read_tokens"),
            ("cache_creation", "cache_write_tokens"),
            ("reasoning", "reasoning_tokens"),
        )
    }
    return Tokens(**counts)


def _tool(event: Mapping[str, JSON]) -> str | None:
    metadata = event.get("tool_call_metadata")
    name = metadata.get("function_name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) and name else None


def _text(held: Mapping[str, JSON], key: str) -> str:
    value = held.get(key)
    return value if isinstance(value, str) else ""
