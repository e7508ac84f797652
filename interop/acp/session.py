"""One session of a connection, recorded while its messages pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, final

from ...engine.events import JSON, ModelCalled, Tokens
from ...telemetry.receipt import Receipt
from ..importers.conversation.numbers import amount_of, count_of
from ..json_parts import items_at, mapping_at, text_at
from .content import prompt_of, text_of_block
from .files import FileTexts, share_kept
from .tool_calls import ToolCalls, arguments_of, name_of
from .voice import Voice

__all__ = ("CHUNKS", "AgentSession", "Chunks", "Message")


CHUNKS: Final = frozenset({"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"})
"""Updates that hold a piece of a message."""


class Message(NamedTuple):
    """A message.

    Attributes:
        kind: the kind of its chunks.
        text: all of it.
        time: the time of its last chunk.
    """

    kind: str
    text: str
    time: float


@final
class Chunks:
    """Puts chunks together: those of one kind and one message that follow each other."""

    def __init__(self) -> None:
        self._kind = ""
        self._id = ""
        self._pieces: list[str] = []
        self._time = 0.0

    def add(self, kind: str, update: JSON, time: float) -> Message | None:
        """Takes a chunk; gives the message before it, if the chunk begins another."""
        id = text_at(update, "messageId")
        done = self.take() if (kind, id) != (self._kind, self._id) else None
        self._kind, self._id, self._time = kind, id, time
        self._pieces.append(text_of_block(mapping_at(update, "content")))
        return done

    def take(self) -> Message | None:
        """The message so far, which is over; None if there is none."""
        text = "".join(self._pieces)
        self._pieces = []
        message = Message(self._kind, text, self._time) if text else None
        self._kind = self._id = ""
        return message


_CALLS: Final = frozenset({"tool_call", "tool_call_update"})
_PASSED_OVER: Final = frozenset({"available_commands_update"})
_INTERRUPTED: Final = "interrupted by the user"
_DONE: Final = "end_turn"
_UNKNOWN: Final = "unknown"


@final
class AgentSession:
    """Records what messages say of one session. Times are UTC epoch seconds.

    Args:
        voice: where it is recorded.
        files: what is known of files.
        model: the model behind the agent; None if unknown.
        mode: the mode that the agent is in.

    Attributes:
        muted: whether messages repeat what is recorded already, as when a session is loaded.
    """

    def __init__(
        self, voice: Voice, files: FileTexts, *, model: str | None = None, mode: str = ""
    ) -> None:
        self._voice = voice
        self._files = files
        self._model = model
        self._mode = mode
        self._calls = ToolCalls(voice, files)
        self._chunks = Chunks()
        self._questions: dict[JSON, Receipt] = {}
        self._prompt = ""
        self._plan: JSON = None
        self._spent = 0.0
        self._cost: float | None = None
        self._cancelled = False
        self._chosen = ""
        self.muted = False

    # --- what the editor sends --------------------------------------------------------------------

    def prompt(self, blocks: JSON, time: float) -> None:
        """A prompt; before it, the files that the agent has edited are looked at."""
        self._flush(time)
        self._measure_kept(time)
        self._cancelled = False
        prompt = prompt_of(items_at(blocks, "prompt"))
        for context in prompt.context:
            self._voice.attached(context, time)
        self._prompt = prompt.text
        self._voice.asked_for(prompt.text, time)

    def cancel(self) -> None:
        """The person stops the agent, whose turn ends when it says so."""
        self._cancelled = True

    def choosing(self, mode: str) -> None:
        """The person chooses a mode, which the agent has not confirmed."""
        self._chosen = mode

    def choose(self, what: str, value: JSON, time: float) -> None:
        """The person chose a mode, or another setting.

        Args:
            what: ``mode``, or the id of the setting.
            value: the chosen value.
            time: when.
        """
        if what == "mode" and isinstance(value, str):
            self._switch(value, time, by_human=True)
        else:
            entry = {"option": what, "value": value}
            self._voice.keep("acp.config_option", entry, time, by_human=True)

    # --- what the agent sends ---------------------------------------------------------------------

    def update(self, update: JSON, time: float) -> None:
        """An update of the session."""
        if self.muted:
            return
        kind = text_at(update, "sessionUpdate")
        if kind in CHUNKS:
            if kind != "agent_thought_chunk":
                self._calls.begin_all(time)
            self._tell(self._chunks.add(kind, update, time))
        elif kind in _CALLS:
            if kind == "tool_call":
                self._tell(self._chunks.take())
            self._calls.update(update, time)
        elif kind in ("plan", "plan_update"):
            self._tell(self._chunks.take())
            self._plan_as(update, time)
        elif kind == "current_mode_update":
            mode = text_at(update, "currentModeId")
            self._switch(mode, time, by_human=mode == self._chosen)
        elif kind == "usage_update":
            self._note_cost(mapping_at(update, "cost"))
        elif kind not in _PASSED_OVER:
            self._voice.keep(f"acp.{kind or _UNKNOWN}", update, time)

    def asked(self, id: JSON, params: JSON, time: float) -> None:
        """The agent asks for leave to run a tool."""
        self._tell(self._chunks.take())
        call = self._calls.begin(mapping_at(params, "toolCall"), time)
        arguments = arguments_of(call)
        arguments["options"] = [text_at(one, "name") for one in items_at(params, "options")]
        question = text_at(call, "title") or name_of(call)
        self._questions[id] = self._voice.asked(question, name_of(call), arguments, time)

    def answered(self, id: JSON, params: JSON, result: JSON, time: float) -> None:
        """The person's answer to that.

        Args:
            id: the id of the request.
            params: the request.
            result: the answer.
            time: when.
        """
        asked = self._questions.pop(id, None)
        outcome = mapping_at(result, "outcome")
        if asked is None or not outcome:
            return
        chosen = text_at(outcome, "optionId")
        options = (one for one in items_at(params, "options") if text_at(one, "optionId") == chosen)
        option = next(options, None) if chosen else None
        approved = text_at(option, "kind").startswith("allow")
        comment = text_at(option, "name") or text_at(outcome, "outcome")
        self._voice.answered(asked, comment, time, approved=approved)

    def elicited(self, id: JSON, params: JSON, time: float) -> None:
        """The agent asks the person for something."""
        self._tell(self._chunks.take())
        schema = mapping_at(params, "requestedSchema")
        arguments: dict[str, JSON] = {"form": schema} if schema else {}
        self._questions[id] = self._voice.asked(text_at(params, "message"), None, arguments, time)

    def replied(self, id: JSON, result: JSON, time: float) -> None:
        """The person's answer to that."""
        asked = self._questions.pop(id, None)
        action = text_at(result, "action")
        if asked is None or not action:
            return
        content = mapping_at(result, "content")
        comment = "\n".join(f"{name}: {value}" for name, value in content.items()) or action
        self._voice.answered(asked, comment, time, approved=action == "accept")

    def ended_turn(self, result: JSON, error: JSON, time: float) -> None:
        """The agent's answer to a prompt: why it stopped, or that it failed."""
        self._flush(time)
        stopped = text_at(result, "stopReason")
        self._use(mapping_at(result, "usage"), time)
        if self._cancelled or stopped == "cancelled":
            self._calls.end(_INTERRUPTED, time)
            self._voice.yielded(_INTERRUPTED, time)
        elif error is not None:
            self._voice.failed(text_at(error, "message"), "the agent's answer", time)
        elif stopped not in ("", _DONE):
            self._voice.yielded(stopped.replace("_", " "), time)
        self._cancelled = False

    def wrote_file(self, path: str, text: str, time: float) -> None:
        """The editor wrote a file for the agent."""
        if path:
            self._calls.wrote(self._files.write(path, text), time)

    def read_file(self, path: str, text: str) -> None:
        """The editor read a whole file for the agent."""
        if path:
            self._files.learn(path, text)

    def printed(self, terminal: str, output: str) -> None:
        """The output of a terminal in the editor."""
        self._calls.printed(terminal, output)

    # --- the end ----------------------------------------------------------------------------------

    def end(self, error: str | None, time: float, *, close: bool) -> None:
        """Nothing more comes.

        Args:
            error: how the agent failed; None if it did not.
            time: when.
            close: whether the session can never continue.
        """
        self._flush(time)
        if not self._voice.opened:
            return
        self._calls.end(error or "the agent ended", time)
        if error is not None:
            self._voice.failed(error, "exit", time)
        if close:
            self._voice.close("ended" if error is None else "failed")

    # --- within -----------------------------------------------------------------------------------

    def _flush(self, time: float) -> None:
        self._calls.begin_all(time)
        self._tell(self._chunks.take())

    def _tell(self, message: Message | None) -> None:
        if message is None:
            return
        if message.kind == "agent_message_chunk":
            self._voice.said(message.text, message.time)
        elif message.kind == "agent_thought_chunk":
            self._voice.thought(message.text, message.time)
        elif message.text != self._prompt:  # some agents repeat the prompt
            self._voice.asked_for(message.text, message.time)

    def _switch(self, mode: str, time: float, *, by_human: bool = False) -> None:
        self._chosen = ""
        if mode and mode != self._mode:
            self._mode = mode
            self._voice.keep("acp.mode", {"mode": mode}, time, by_human=by_human)

    def _plan_as(self, update: JSON, time: float) -> None:
        plan = mapping_at(update, "plan") or {"entries": items_at(update, "entries")}
        if plan != self._plan:
            self._plan = plan
            self._voice.did("update_plan", plan, time)

    def _note_cost(self, cost: Mapping[str, JSON]) -> None:
        amount = amount_of(cost.get("amount"))
        if cost.get("currency") == "USD" and amount is not None:
            self._cost = amount

    def _use(self, usage: Mapping[str, JSON], time: float) -> None:
        cost = None
        if self._cost is not None and self._cost > self._spent:
            cost, self._spent = self._cost - self._spent, self._cost
        tokens = Tokens(
            prompt=count_of(usage.get("inputTokens")),
            completion=count_of(usage.get("outputTokens")),
            cached=count_of(usage.get("cachedReadTokens")),
            reasoning=count_of(usage.get("thoughtTokens")),
            cache_creation=count_of(usage.get("cachedWriteTokens")),
        )
        if cost is not None or tokens != Tokens():
            model = self._model or _UNKNOWN
            called = ModelCalled(model=model, purpose="act", request="", tokens=tokens, cost=cost)
            self._voice.used(called, time)

    def _measure_kept(self, time: float) -> None:
        """How much of the agent's edits is still there; a person's changes are their own edit."""
        edits = self._files.look(time)
        share = share_kept(edits)
        if share is not None and self._calls.snapshot is not None:
            self._voice.kept(share, self._calls.snapshot, time)
        revised: Receipt | None = None
        for change, now in edits:
            if now != change.after:
                revised = self._voice.wrote(change.path, now, "", time, by_human=True)
        if share is not None and revised is not None:
            self._voice.kept(share, revised, time)
