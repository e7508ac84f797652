"""Steps, out of the lines of a rollout.

What was said stands in it twice: as an item of the model's conversation, and as an event for the
display. The items count. Token counts are running totals, which begin again where a session is
resumed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, final

import msgspec

from ....engine.events import JSON, Tokens
from ..chat.files import usage_of
from ..chat.steps import steps_of
from ..conversation.steps import (
    HUMAN,
    ForeignEntry,
    Interruption,
    ModelUse,
    Omission,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)
from ..conversation.totals import RunningTotal
from .patches import added_files

__all__ = ("RolloutReader", "is_typed")

_SHOWN_TWICE: Final = frozenset(
    {"user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content"}
)
_ASIDE: Final = frozenset(
    "task_started task_complete turn_started turn_complete context_compacted thread_name_updated"
    " thread_rolled_back thread_settings_applied session_configured item_started item_completed"
    " exec_command_begin exec_command_end patch_apply_begin patch_apply_end mcp_tool_call_begin"
    " mcp_tool_call_end web_search_begin web_search_end view_image_tool_call image_generation_end"
    " turn_diff plan_update".split()
)
"""Events for the display that say again what items say, or nothing of the conversation."""
_COMPACTED: Final = "compacted"
"""A line that repeats what the model still reads, after a summary took the place of the rest."""
_INJECTED: Final = re.compile(
    r"\s*(<(environment_context|user_instructions|INSTRUCTIONS|turn_aborted|user_shell_command"
    r"|user_action|skill|subagent_notification|permissions instructions|collaboration_mode"
    r"|goal_context|recommended_plugins)\b|# AGENTS\.md instructions"
    r"|Another language model started to solve this problem and produced a summary"
    r"|Warning: (apply_patch|The maximum number of|Your account|Heads up))"
)
_HEADINGS: Final = ("# Context from my IDE setup:", "# Files mentioned by the user:")
_REQUEST: Final = "## My request for Codex:"
_IMAGE: Final = re.compile(r"^</?image\b[^>\n]*>\n?", re.MULTILINE)
_EXIT: Final = re.compile(
    r"(?:Chunk ID: [^\n]*\n)?(?:Wall time: [^\n]*\n)?"
    r"(?:Exit code: |Process exited with code )([0-9]{1,9})\n"
)
"""How a result begins that is text, and not JSON."""
_PROGRAM: Final = "codex"


@final
class RolloutReader:
    """Reads the lines of a rollout in order.

    Args:
        helper: it is a subagent's, whose "user" is the agent that called it.
    """

    def __init__(self, *, helper: bool = False) -> None:
        self._helper = helper
        self._model: str | None = None
        self._total = RunningTotal()
        self._calls: dict[str, ToolCall] = {}

    def steps(self, kind: str, payload: Mapping[str, JSON], data: bytes) -> Iterator[Step]:
        """The steps of a line.

        Args:
            kind: of the line.
            payload: what it holds.
            data: the line itself.

        Raises:
            InvalidInput: it is not as the format has it.
        """
        if kind == "response_item":
            yield from self._item(payload)
        elif kind == "turn_context":
            model = payload.get("model")
            self._model = model if isinstance(model, str) else self._model
        elif kind == "event_msg":
            yield from self._event(payload, data)
        elif kind == _COMPACTED:
            yield Omission(f"{kind} lines")
        elif kind != "session_meta":
            yield ForeignEntry(f"{_PROGRAM}.{kind}", data)

    def _item(self, item: Mapping[str, JSON]) -> Iterator[Step]:
        for step in steps_of(item):
            if isinstance(step, Utterance) and step.role == HUMAN:
                yield _by_program(step) if self._helper else _typed(step)
            elif isinstance(step, ToolCall):
                self._calls[step.call] = step
                yield step
            elif isinstance(step, ToolResult):
                call = self._calls.pop(step.call, None)
                if call is None:
                    yield Omission("a result of a call that is not in the file")
                    continue
                result = _outcome(step)
                yield result
                if result.error is None:
                    yield from added_files(call)
            else:
                yield step

    def _event(self, event: Mapping[str, JSON], data: bytes) -> Iterator[Step]:
        kind = str(event.get("type"))
        if kind == "token_count":
            info = event.get("info")
            if isinstance(info, Mapping):
                yield from self._used(usage_of(_flat(info.get("total_token_usage"))))
        elif kind == "turn_aborted":
            yield Interruption(f"interrupted: {event.get('reason') or 'by the user'}")
        elif kind in _ASIDE:
            yield Omission(f"{kind} events")
        elif kind not in _SHOWN_TWICE:
            yield ForeignEntry(f"{_PROGRAM}.{kind}", data)

    def _used(self, total: Tokens | None) -> Iterator[Step]:
        """The calls since the last count."""
        used = self._total.since(total)
        if used is not None:
            yield ModelUse(model=self._model, tokens=used)


def _flat(usage: JSON) -> JSON:
    """Token counts with the details where OpenAI's interface has them."""
    if not isinstance(usage, Mapping):
        return None
    return {
        **usage,
        "input_tokens_details": {"cached_tokens": usage.get("cached_input_tokens")},
        "output_tokens_details": {"reasoning_tokens": usage.get("reasoning_output_tokens")},
    }


def is_typed(text: str) -> bool:
    """Whether a person typed a text that stands in the person's place."""
    return _INJECTED.match(text) is None


def _typed(said: Utterance) -> Step:
    """What a person typed; else what the program put in the person's place."""
    if not is_typed(said.text):
        return _by_program(said)
    text = _IMAGE.sub("", said.text)
    if text.lstrip().startswith(_HEADINGS) and _REQUEST in text:
        text = text.partition(_REQUEST)[2].strip()
    return said if text == said.text else Utterance(said.role, said.name, text)


def _by_program(said: Utterance) -> Step:
    return Utterance("system", _PROGRAM, said.text)


def _outcome(result: ToolResult) -> ToolResult:
    """A result, failed where the exit code says so."""
    if not isinstance(result.output, str):
        return result
    written = _EXIT.match(result.output)
    if written is not None:
        return _failed(result, result.output, int(written[1]))
    if not result.output.startswith("{"):
        return result
    try:
        held = msgspec.json.decode(result.output, type=dict[str, JSON])
    except (msgspec.DecodeError, RecursionError):
        return result
    metadata = held.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, Mapping) else None
    output = held.get("output", result.output) if metadata is not None else result.output
    return _failed(result, output, code if isinstance(code, int) else 0)


def _failed(result: ToolResult, output: JSON, code: int) -> ToolResult:
    if not code:
        return ToolResult(result.call, output)
    text = output if isinstance(output, str) else ""
    return ToolResult(result.call, output, text.strip() or f"exit code {code}")
