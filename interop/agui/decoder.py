"""Decodes assembled AG-UI events into entries to record: runs, states, and all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, final

import msgspec

from ...engine.errors import CodecError, InvalidInput
from ...engine.events import JSON, ActorFailed, ApprovalAsked, ModelCalled, Role, Tokens
from ...telemetry.actor import RecordedActor
from ...telemetry.receipt import Awaited, Receipt
from ..importers.conversation.numbers import count_of
from .assembler import Whole, WholeCall, WholeMessage
from .entries import AguiEntry, Deduplicator, add_entry, parse_timestamp
from .json_patch import apply_patch
from .message_decoder import MessageDecoder
from .names import AguiEvent, id_in, interrupt_id, message_id, run_id
from .parse import Unreadable
from .shared_state import Change, is_blank
from .thread_index import ThreadIndex, agui_digest, wrap_event

__all__ = ("AguiDecoder",)

_REQUESTED: Final = frozenset("type threadId runId parentRunId input timestamp rawEvent".split())
_COUNTS: Final = ("inputTokens", "outputTokens", "cachedInputTokens", "reasoningTokens")


@final
class AguiDecoder:
    """Decodes events in the order in which they were received. Each entry is to be recorded before the
    next is taken, since the next may refer to it.

    Args:
        known: what the log holds of the thread.
        agents: the recipients of instructions.
    """

    def __init__(self, known: ThreadIndex, agents: Sequence[str]) -> None:
        self._entries = Deduplicator(known)
        self._messages_of = MessageDecoder(self._entries, agents)

    def decode_unreadable(self, found: Unreadable) -> Iterator[AguiEntry]:
        """Records the text of input that is not a JSON object."""
        event: AguiEvent = {"type": "unreadable", "why": found.why, "text": found.what}
        yield from self._entries.keep(event, f"something cannot be read: {found.why}")

    def decode_request(self, given: AguiEvent) -> Iterator[AguiEntry]:
        """A request to run the agent."""
        run, thread = given.get("runId"), given.get("threadId")
        started: AguiEvent = {
            "type": "RUN_STARTED",
            "threadId": thread,
            "runId": run,
            "input": given,
        }
        if given.get("parentRunId") is not None:
            started["parentRunId"] = given["parentRunId"]
        yield from self._started(started)

    def decode(self, whole: Whole) -> Iterator[AguiEntry]:
        """Decodes an assembled message or call, or a complete event."""
        if isinstance(whole, WholeMessage):
            yield from self._messages_of.spoken(whole)
        elif isinstance(whole, WholeCall):
            yield from self._messages_of.called(whole)
        elif whole.problem is not None:
            event = whole.event
            yield from self._entries.keep(event, f"{event.get('type')}: {whole.problem}")
        else:
            yield from self._rest(whole.event)

    def _rest(self, event: AguiEvent) -> Iterator[AguiEntry]:
        match event.get("type"):
            case "RUN_STARTED":
                yield from self._started(event)
            case "RUN_FINISHED":
                yield from self._finished(event)
            case "RUN_ERROR":
                yield from self._failed(event)
            case "TOOL_CALL_RESULT":
                yield from self._messages_of.result(event)
            case "STATE_SNAPSHOT" | "STATE_DELTA":
                yield from self._state(event)
            case "MESSAGES_SNAPSHOT":
                yield from self._messages(event)
            case "ACTIVITY_SNAPSHOT":
                yield from self._messages_of.activity(event)
            case "SUBAGENT_STARTED":
                self._entries.known.add_subagent(event)
                yield from self._entries.keep(event)
            case str():
                yield from self._entries.keep(event)
            case other:
                yield from self._entries.keep(event, f"an event of the type {other!r}")

    # --- runs -------------------------------------------------------------------------------------

    def _started(self, event: AguiEvent) -> Iterator[AguiEntry]:
        """A run begins; its request may be part of the event."""
        run, given = event.get("runId"), event.get("input")
        request = given if isinstance(given, dict) else {}
        begun: AguiEvent = {key: value for key, value in event.items() if value is not None}
        if request:
            # Records the new part of the thread, instead of its whole history with each run.
            left = ("messages", "state")
            begun["input"] = {k: v for k, v in request.items() if k not in left and v is not None}
        if not isinstance(run, str) or not run:
            self._entries.open_run("", new=False)
            yield from self._entries.keep(begun, "a run begins without a runId")
        else:
            yield from self._open(run, begun, request.get("state"))
        yield from self._messages_of.messages(request.get("messages"))
        resume = request.get("resume")
        for entry in resume if isinstance(resume, list) else ():
            yield from self._answered(entry)

    def _open(self, run: str, begun: AguiEvent, state: JSON) -> Iterator[AguiEntry]:
        ident, runs = run_id(run), self._entries.known.runs
        new = ident not in runs
        self._entries.open_run(run, new=new)
        if new:
            runs[ident] = agui_digest(begun)
            yield add_entry(wrap_event(begun), ident, at=parse_timestamp(begun.get("timestamp")))
            if not is_blank(state):
                # The front end shares the state: what differs now, a person has changed.
                change = self._entries.known.state.change_to(state)
                yield from self._change(change, f"{ident}/state", "human", None)
        elif begun.keys() - _REQUESTED and runs[ident] != agui_digest(begun):
            yield from self._entries.keep(begun)

    def _finished(self, event: AguiEvent) -> Iterator[AguiEntry]:
        at = parse_timestamp(event.get("timestamp"))
        yield from self._usage(event, at)
        outcome = event.get("outcome")
        waiting = outcome.get("interrupts") if isinstance(outcome, Mapping) else None
        for one in waiting if isinstance(waiting, list) else ():
            yield from self._interrupt(one, at)
        yield from self._entries.keep(event)

    def _failed(self, event: AguiEvent) -> Iterator[AguiEntry]:
        at = parse_timestamp(event.get("timestamp"))
        yield from self._usage(event, at)
        message, code = event.get("message"), event.get("code")
        ident = self._entries.scoped(event)
        if ident is None:
            return
        held = ("type", "message", "code", "usage", "timestamp", "rawEvent")
        yield from self._entries.keep_fields(
            ident, {k: v for k, v in event.items() if k not in held}
        )
        failed = ActorFailed(
            error=message if isinstance(message, str) else "",
            type=code if isinstance(code, str) and code else "RUN_ERROR",
        )
        yield add_entry(failed, ident, role="agent", at=at)

    def _usage(self, event: AguiEvent, at: float | None) -> Iterator[AguiEntry]:
        """The tokens of a run, by model."""
        listed = event.get("usage")
        for number, one in enumerate(listed if isinstance(listed, list) else (), start=1):
            if not isinstance(one, Mapping):
                continue  # the event itself is kept
            prompt, completion, cached, reasoning = (count_of(one.get(key)) for key in _COUNTS)
            model = one.get("model")
            called = ModelCalled(
                model=model if isinstance(model, str) and model else "unknown",
                purpose="act (all calls)",
                request="",
                tokens=Tokens(
                    prompt=prompt, completion=completion, cached=cached, reasoning=reasoning
                ),
            )
            ident = f"{run_id(self._entries.run)}/usage/{number}"
            if ident not in self._entries.known.marks:
                self._entries.known.marks[ident] = ""
                yield add_entry(called, ident, role="agent", at=at)

    def _interrupt(self, one: JSON, at: float | None) -> Iterator[AguiEntry]:
        """A run waits for a person."""
        ident = one.get("id") if isinstance(one, Mapping) else None
        if not isinstance(one, Mapping) or not isinstance(ident, str) or not ident:
            return  # the event itself is kept
        named = interrupt_id(ident)
        if named in self._entries.known.marks:
            return
        self._entries.known.marks[named] = ""
        question = one.get("message") or one.get("reason")
        asked = ApprovalAsked(question=question if isinstance(question, str) else "")
        short = id_in(named, "interrupt") or ident

        def done(receipt: Receipt) -> None:
            self._entries.known.asked[short] = receipt

        yield add_entry(asked, named, role="agent", at=at, done=done)

    def _answered(self, entry: JSON) -> Iterator[AguiEntry]:
        """A person answers what a run waits for."""
        fields: AguiEvent = {"type": "resume", "entry": entry}
        ident = entry.get("interruptId") if isinstance(entry, Mapping) else None
        short = id_in(interrupt_id(ident), "interrupt") if isinstance(ident, str) else None
        asked = self._entries.known.asked.get(short or "")
        if asked is None or not isinstance(entry, Mapping):
            yield from self._entries.keep(fields, f"an answer to no question (id {ident!r})")
            return
        named = f"resume/{short}"
        if named in self._entries.known.marks:
            return
        self._entries.known.marks[named] = ""
        approved, comment = _answer(entry)

        def do(actor: RecordedActor[Awaited], at: float) -> Awaited:
            return actor.approves(asked, approved=approved, comment=comment, id=named, at=at)

        yield AguiEntry(do, "human")

    # --- the state --------------------------------------------------------------------------------

    def _state(self, event: AguiEvent) -> Iterator[AguiEntry]:
        """The state, or a change of it."""
        ident = self._entries.scoped(event)
        if ident is None:
            return
        state = self._entries.known.state
        at = parse_timestamp(event.get("timestamp"))
        kind = str(event["type"])
        try:
            if kind == "STATE_DELTA":
                whole = apply_patch(state.whole, event.get("delta"))
            elif "snapshot" in event:
                whole = event["snapshot"]
            else:
                raise InvalidInput("it lacks a snapshot")
            change = state.change_to(whole)
        except (InvalidInput, CodecError, RecursionError) as error:
            yield add_entry(wrap_event(event), ident, at=at, problem=f"{kind}: {error}")
            return
        if not (change.edited or change.moved):
            # Kept, so that the log knows it if it comes again when the state has moved on.
            yield add_entry(wrap_event({"type": kind, "unchanged": True}), ident, at=at)
            return
        role: Role = "human" if _by_human(event) else "agent"
        yield from self._change(change, ident, role, at)

    def _change(
        self, change: Change, ident: str, role: Role, at: float | None
    ) -> Iterator[AguiEntry]:
        """Records the changes in a state: the output as a snapshot, the rest unchanged."""
        state = self._entries.known.state
        part, rest, edited, moved = change
        self._entries.known.marks[ident] = ""
        if moved:
            event: AguiEvent = {"type": "STATE_SNAPSHOT", "snapshot": rest, "output": state.output}
            state.take_rest(rest)
            yield add_entry(wrap_event(event), f"{ident}/rest" if edited else ident, at=at)
        if edited:
            state.take_part(part)

            def do(actor: RecordedActor[Awaited], at: float) -> Awaited:
                return actor.submits(part, id=ident, at=at)

            yield AguiEntry(do, role, None, at)

    # --- the rest ---------------------------------------------------------------------------------

    def _messages(self, event: AguiEvent) -> Iterator[AguiEntry]:
        """Records the messages that the log lacks, and notes which recorded ones are gone."""
        listed = event.get("messages")
        yield from self._messages_of.messages([] if listed is None else listed)
        if not isinstance(listed, list) or not self._entries.new:
            return  # received again, it lacks what has been said since
        known = self._entries.known
        there = {
            message_id(ident)
            for item in listed
            if isinstance(item, dict) and isinstance(ident := item.get("id"), str)
        }
        had = {ident for ident in known.marks if (id_in(ident, "message") or "/").count("/") == 0}
        gone = sorted(had - there - known.gone)
        if gone:
            known.gone |= set(gone)
            without: list[JSON] = [*gone]
            yield from self._entries.keep({"type": "MESSAGES_SNAPSHOT", "without": without})


def _by_human(event: AguiEvent) -> bool:
    """Whether a state says that a person made it, as ``encoder`` does."""
    metadata = event.get("metadata")
    ours = metadata.get("duolog") if isinstance(metadata, Mapping) else None
    return isinstance(ours, Mapping) and ours.get("role") == "human"


def _answer(entry: Mapping[str, JSON]) -> tuple[bool, str]:
    """Whether an answer approves, and its further text."""
    payload = entry.get("payload")
    approved = entry.get("status") == "resolved" and payload is not False
    if isinstance(payload, Mapping):
        approved = approved and payload.get("approved", True) is not False
        comment = payload.get("comment")
        if payload.keys() <= {"approved", "comment"} and isinstance(comment, str | None):
            return approved, comment or ""
    if payload is None or isinstance(payload, bool):
        return approved, ""
    return approved, payload if isinstance(payload, str) else msgspec.json.encode(payload).decode()
