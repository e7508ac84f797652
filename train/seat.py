"""The seat of the trained agent: its view becomes chat messages, its tool calls become decisions.

The session waits while whoever trains decides: under a virtual clock no session time passes meanwhile. While
what was decided takes its time, the human may act, and does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, Literal, TypeAlias, final

import anyio
import msgspec

from ..agents.external.line_policy import offered, offering
from ..agents.habits import USUAL
from ..agents.model_mind import agent_messages, habit_lines
from ..engine.errors import ContextError, InvalidInput
from ..engine.events import (
    JSON,
    ActionResolved,
    ApprovalAsked,
    ApprovalGiven,
    CloseReason,
    FeedbackGiven,
    MessageSent,
    SnapshotTaken,
)
from ..engine.models.prompting.actions import ActionSpace
from ..engine.models.protocol import Speaker, Tool, ToolCall
from ..engine.records import Record
from ..engine.session.actors import play
from ..engine.session.context import ActorContext
from ..engine.session.decisions import (
    Ask,
    Decision,
    Say,
    Verb,
    Wait,
)
from ..engine.session.view import View
from ..engine.task import Brief, output_action
from ..engine.text import text_of

__all__ = ("Action", "Author", "ChatMessage", "Observation", "Seat", "trainee")

Author: TypeAlias = Literal["agent", "human", "environment"]
"""Whose words a message holds. A loss is taken over the ``agent``'s only."""

Action: TypeAlias = ToolCall | Sequence[ToolCall] | Verb | Decision
"""What whoever trains may decide: tool calls, as a model writes them, or the engine's own verbs."""

_CONCERNING: Final = frozenset(
    {"MessageSent", "SnapshotTaken", "ApprovalAsked", "ApprovalGiven", "FeedbackGiven", "Nudged"}
)
_SYSTEM_TOKENS: Final = 2_000


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of an episode's chat, in the form of chat completions, with its author.

    Attributes:
        role: system, user, assistant or tool.
        content: the text.
        author: whose words these are. What a person says is ``human``, in whatever role it comes: as the
            reply to a call of ``message``, too.
        tool_calls: what the agent called.
        tool_call_id: which call a ``tool`` message answers.
        name: the name of the person, or of the tool.
        time: session time, seconds.
    """

    role: Speaker
    content: str = ""
    author: Author = "environment"
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    time: float = 0.0

    @property
    def trained(self) -> bool:
        """Whether a loss may be taken over it: it is the agent's own."""
        return self.author == "agent"


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's observation, given each time that it may act.

    Attributes:
        messages: what is new in the chat since the observation before; the whole is ``Episode.messages``.
        tools: what it may call.
        done: the episode is over.
        reward: what was added since the observation before; 0 where utility is missing.
        parts: the same by named part, see ``Reward``.
        ended: why the session was closed; None while it is open.
        detail: the detail of the close, or of the error of an actor that failed.
        invalid: why the action could not be taken; empty if it was. Nothing of it was carried out.
        time: session time, seconds.
    """

    messages: tuple[ChatMessage, ...]
    tools: tuple[Tool, ...] = ()
    done: bool = False
    reward: float = 0.0
    parts: Mapping[str, float] = {}
    ended: CloseReason | None = None
    detail: str = ""
    invalid: str = ""
    time: float = 0.0

    @property
    def text(self) -> str:
        """The new messages as one text, for interfaces that know nothing else; without the agent's own."""
        return "\n".join(
            f"{one.name}: {one.content}" if one.author == "human" and one.name else one.content
            for one in self.messages
            if one.author != "agent" and one.content
        )


class _Left(Exception):
    """The trainer has left the episode."""


@final
class _Decided(msgspec.Struct, frozen=True):
    """A decision, and the calls that it was read from: one for each verb; none for the engine's verbs."""

    decision: Decision
    calls: tuple[ToolCall, ...] = ()


@final
class Seat:
    """The agent of one session, whose decisions come from outside.

    Args:
        brief: what the agent is told of the task.
        observed: is given each observation, without its reward.
        interrupts: whether news that concerns the agent stops it while it types or works.
        mistakes: how many actions in a row may be invalid before the agent fails.

    Attributes:
        view: what the agent sees; None before it has begun.
        waiting: whether it waits for an action.
    """

    def __init__(
        self,
        brief: Brief | None,
        observed: Callable[[Observation], None],
        *,
        interrupts: bool,
        mistakes: int,
    ) -> None:
        self.view: View | None = None
        self._brief = brief or Brief(description="", output="")
        self._observed = observed
        self._interrupts = interrupts
        self._mistakes = mistakes
        self._invalid = 0
        self._space: tuple[object, ActionSpace] | None = None
        self._decided: _Decided | None = None
        self._told: anyio.Event | None = None
        self._left: str | None = None
        self._context: ActorContext | None = None
        self._seen = 0
        self._owed: tuple[ToolCall, ...] = ()
        self._since = 0  # trace version at which the last decision was made
        self._replies = False  # whether the last decision waits for an answer

    async def live(self, context: ActorContext) -> None:
        """The actor."""
        self._context, self.view = context, context.view
        try:
            await play(context, self)
        except _Left:
            await context.cancel(self._left or "")

    # --- from outside ----------------------------------------------------------------------------

    @property
    def waiting(self) -> bool:
        """Whether it waits for an action."""
        return self._told is not None and not self._told.is_set()

    def act(self, action: Action) -> ChatMessage | None:
        """Takes an action, which the agent carries out; gives the agent's message with the calls.

        Raises:
            InvalidInput: the action is none, or cannot be taken. Nothing was carried out.
        """
        assert self._told is not None
        decided = self._read(action)
        self._decided = decided
        self._invalid = 0
        self._told.set()
        if not decided.calls:
            return None
        return ChatMessage(
            role="assistant", author="agent", tool_calls=decided.calls, time=self._now
        )

    def refuse(self, action: Action, why: str) -> tuple[ChatMessage, ...]:
        """The messages about an invalid action; fails the agent after too many of them."""
        self._invalid += 1
        assert self._told is not None
        if self._invalid >= self._mistakes:
            self._left = None
            self._decided = None
            self._told.set()
        calls = _calls(action)
        if not calls:
            return (ChatMessage(role="user", content=f"Error: {why}", time=self._now),)
        return (
            ChatMessage(role="assistant", author="agent", tool_calls=calls, time=self._now),
            *(
                ChatMessage(
                    role="tool",
                    content=f"Error: {why}",
                    tool_call_id=call.id,
                    name=call.name,
                    time=self._now,
                )
                for call in calls
            ),
        )

    @property
    def failing(self) -> bool:
        """Whether it fails, since too many of its actions in a row were invalid."""
        return self._invalid >= self._mistakes

    def leave(self, why: str) -> None:
        """Has the session closed as cancelled."""
        self._left = why
        if self._told is not None:
            self._told.set()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the agent may call now."""
        return () if self.view is None else self._actions(self.view).tools

    @property
    def _now(self) -> float:
        return 0.0 if self._context is None else self._context.now

    # --- as a policy -----------------------------------------------------------------------------

    async def decide(self, view: View) -> Decision:
        """The next decision from outside, once there is something to decide."""
        if self._left is not None:
            raise _Left
        pending = view.pending
        concerned = any(r.kind in _CONCERNING and r.actor != view.me for r in view.news)
        if pending is not None and not (self._interrupts and concerned):
            return pending
        if view.in_flight or (self._replies and not self._heard(view)):
            return Decision((Wait(),))
        self._observed(self._observe(view))
        self._told = anyio.Event()
        await self._told.wait()
        if self._left is not None:
            raise _Left
        decided, self._decided = self._decided, None
        if decided is None:
            raise ContextError(f"none of {self._invalid} actions in a row could be taken")
        verbs = decided.decision.verbs
        self._since = view.version
        self._owed = decided.calls
        self._replies = not verbs or any(isinstance(verb, Say | Ask | Wait) for verb in verbs)
        return decided.decision

    def _heard(self, view: View) -> bool:
        """Whether anything that concerns the agent came since it decided."""
        for record in reversed(view.records):
            if record.version <= self._since:
                return False
            if record.kind in _CONCERNING and record.actor != view.me:
                return True
        return False

    def _actions(self, view: View) -> ActionSpace:
        key = offering(view)
        if self._space is None or self._space[0] != key:
            given = offered(view, self._brief)
            output = output_action(self._brief)
            chosen = [output if one.spec.name == output.spec.name else one for one in given]
            self._space = (key, ActionSpace(chosen))
        return self._space[1]

    def _read(self, action: Action) -> _Decided:
        if isinstance(action, Decision | Verb):
            return _Decided(_checked(action))
        calls = _calls(action)
        if not calls:
            raise InvalidInput(
                f"an action is a tool call, not {action!r:.200}: call one of the tools, such as "
                "message or wait"
            )
        assert self.view is not None
        return _Decided(Decision(self._actions(self.view).read_calls(calls)), calls)

    # --- what it sees ----------------------------------------------------------------------------

    def _observe(self, view: View) -> Observation:
        first = self._seen == 0
        messages = [*(self._opening(view) if first else ()), *self._news(view)]
        self._seen = view.version
        return Observation(messages=tuple(messages), tools=self._actions(view).tools, time=view.now)

    def last_words(self) -> tuple[ChatMessage, ...]:
        """The answers to the agent's last calls after the session's end."""
        owed, self._owed = self._owed, ()
        time = self._now
        return tuple(
            ChatMessage(
                role="tool",
                content="The session is over.",
                tool_call_id=call.id,
                name=call.name,
                time=time,
            )
            for call in owed
        )

    def _opening(self, view: View) -> Iterator[ChatMessage]:
        system = agent_messages(self._brief, _HABITS, view, "", _SYSTEM_TOKENS)[0]
        yield ChatMessage(role="system", content=system.content, time=view.now)
        if view.opened is not None and view.opened.request:
            yield ChatMessage(role="user", author="human", content=view.request, time=view.now)

    def _fresh(self, view: View) -> list[Record]:
        """The records since the last observation, in order."""
        found = list(takewhile(lambda one: one.version > self._seen, reversed(view.records)))
        return found[::-1]

    def _news(self, view: View) -> Iterator[ChatMessage]:
        """The outcomes of the agent's calls, then other news."""
        records = self._fresh(view)
        others = [said for r in records if r.actor != view.me and (said := _said(view, r))]
        own = _own(view, records)
        owed, self._owed = self._owed, ()
        for call in owed:
            if call.name in ("message", "ask", "wait"):
                reply = next((one for one in others if one.author == "human"), None)
                if reply is not None:
                    others.remove(reply)
                yield ChatMessage(
                    role="tool",
                    content="(nobody has said anything)" if reply is None else reply.content,
                    author="environment" if reply is None else "human",
                    tool_call_id=call.id,
                    name=call.name if reply is None else reply.name,
                    time=view.now if reply is None else reply.time,
                )
            else:
                yield ChatMessage(
                    role="tool",
                    content=own.pop(0) if own and call.name not in ("note", "approve") else "done",
                    tool_call_id=call.id,
                    name=call.name,
                    time=view.now,
                )
        yield from others
        if any(record.kind == "Nudged" for record in records):
            yield ChatMessage(
                role="user",
                content="(Everybody is waiting for somebody else to go on.)",
                time=view.now,
            )


_HABITS: Final = habit_lines(USUAL)


async def trainee(context: ActorContext) -> None:
    """The agent of a recorded episode. Its policy is not in the log, so another agent has to succeed it."""
    raise ContextError(
        f"{context.name!r} was trained in this session, and its policy is not in the log: name another agent "
        "to continue it from its view"
    )


def _checked(action: Verb | Decision) -> Decision:
    """The decision, if each verb holds what it is declared to hold.

    Raises:
        InvalidInput: one does not.
    """
    decision = action if isinstance(action, Decision) else Decision((action,))
    for verb in decision.verbs:
        try:
            if not isinstance(verb, Verb):
                raise InvalidInput(f"a decision holds verbs, not {verb!r:.200}")
            msgspec.convert(msgspec.structs.asdict(verb), type(verb))
        except msgspec.ValidationError as error:
            raise InvalidInput(f"{verb!r:.200} cannot be carried out: {error}") from None
    return decision


def _calls(action: object) -> tuple[ToolCall, ...]:
    """The calls of an action; none if it is not a call, nor a list of them."""
    if isinstance(action, ToolCall):
        found: tuple[object, ...] = (action,)
    elif isinstance(action, Sequence) and not isinstance(action, str | bytes):
        found = tuple(action)
    else:
        return ()
    calls = tuple(one for one in found if isinstance(one, ToolCall) and _typed(one))
    return calls if len(calls) == len(found) else ()


def _typed(call: ToolCall) -> bool:
    """Whether a call holds texts, as a model writes them."""
    return all(isinstance(one, str) for one in (call.id, call.name, call.arguments))


def _own(view: View, records: Sequence[Record]) -> list[str]:
    """The outcomes of the agent's own acts, in order of the acts."""
    outcomes: dict[int, str] = {}
    for record in records:
        event = record.event
        if isinstance(event, SnapshotTaken) and record.actor == view.me:
            outcomes[record.version] = f"version [{record.version}] of the output stands"
        elif isinstance(event, ActionResolved):
            failed = event.outcome != "ok"
            said = event.error if failed else event.observation
            outcomes[event.action] = f"{event.outcome}: {_text(said)}" if failed else _text(said)
    return [outcomes[version] for version in sorted(outcomes)]


def _said(view: View, record: Record) -> ChatMessage | None:
    """What another actor did, as a message; None if there is nothing to read."""
    event = record.event
    match event:
        case MessageSent():
            text = event.text
        case SnapshotTaken():
            text = f"(puts up version [{record.version}] of the output)\n{_text(event.content)}"
        case ApprovalAsked():
            text = f"(asks for approval in [{record.version}]) {event.question}"
        case ApprovalGiven():
            answer = "allows" if event.approved else "forbids"
            text = f"({answer} what was asked in [{event.asked}]) {event.comment}".rstrip()
        case FeedbackGiven():
            text = f"(gives feedback) {text_of(msgspec.to_builtins(event))}"
        case _:
            return None
    author: Author = "human" if record.role == "human" else "environment"
    return ChatMessage(
        role="user", content=text, author=author, name=record.actor, time=record.time
    )


def _text(value: JSON) -> str:
    if value is None:
        return "done"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
