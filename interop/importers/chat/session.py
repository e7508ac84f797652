"""One conversation: its steps, turned into events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, final

from ....engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    MessageSent,
    NoteTaken,
    Participant,
    Role,
)
from ....engine.records import ENVIRONMENT
from ..protocol import Foreign, Remark
from ..trace_builder import TraceBuilder
from .steps import (
    ApprovalRequest,
    ApprovalResponse,
    Omission,
    Reasoning,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)

__all__ = ("AGENT", "HUMAN", "Cast", "ConversationBuilder", "call_id", "item_id")

HUMAN: Final = "user"
AGENT: Final = "assistant"
_ROLES: Final[Mapping[str, Role]] = {HUMAN: "human", AGENT: "agent"}


def item_id(index: int) -> str:
    """The id of the event of the event of a message or item without calls."""
    return f"item/{index}"


def call_id(index: int, number: int, call: str) -> str:
    """The id of a call: which item it is in, which call of it, and its own id, which models do not
    always keep unique.
    """
    return f"item/{index}/{number}/{call}"


@final
class Cast:
    """Who takes part, by role and name; each has one name in the session.

    Args:
        steps: of the whole conversation.
        sides: ``user`` or ``assistant``, who takes part even without a word.
    """

    def __init__(self, steps: Sequence[Step], sides: Sequence[str] = ()) -> None:
        self._names: dict[tuple[str, str | None], str] = {}
        for step in steps:
            if isinstance(step, (Utterance, ToolCall)) and step.role in _ROLES:
                self._names.setdefault((step.role, step.name), step.name or step.role)
            elif isinstance(step, (Reasoning, ApprovalRequest)):
                self._names.setdefault((AGENT, None), AGENT)
            elif isinstance(step, ApprovalResponse):
                self._names.setdefault((HUMAN, None), HUMAN)
        for side in sides:
            if all(role != side for role, _ in self._names):
                self._names[side, None] = side
        seen: set[str] = set()
        for key, name in self._names.items():
            unique = name if name not in seen else f"{name} ({key[0]})"
            while unique in seen:
                unique += "'"
            seen.add(unique)
            self._names[key] = unique

    def participants(
        self, *, models: Mapping[str, str | None], policies: Mapping[str, str | None]
    ) -> tuple[Participant, ...]:
        """The participants; models and policies by ``user`` and ``assistant``."""
        return tuple(
            Participant(
                name=name,
                role=_ROLES[role],
                model=models.get(role),
                policy=policies.get(role),
            )
            for (role, _), name in self._names.items()
        )

    def of(self, role: str, name: str | None = None) -> tuple[str, Role]:
        """Name and role of somebody; ``system`` and the like belong to the environment."""
        if role not in _ROLES:
            return name or role, "environment"
        return self._names.get((role, name), name or role), _ROLES[role]

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents."""
        return tuple(name for (role, _), name in self._names.items() if role == AGENT)


class _Open(NamedTuple):
    call: str
    version: int


@final
class ConversationBuilder:
    """Turns steps into events.

    Args:
        builder: builds the trace.
        cast: who takes part.
    """

    def __init__(self, builder: TraceBuilder, cast: Cast) -> None:
        self._builder = builder
        self._cast = cast
        self._open: list[_Open] = []
        self._asked: dict[str, int] = {}
        self._speaker = cast.of(AGENT)

    def add(
        self, index: int, steps: Sequence[Step], time: float, where: str
    ) -> Iterator[Foreign | Remark]:
        """The events of one message or item.

        Args:
            index: its place in the conversation, from 1.
            steps: its steps.
            time: seconds.
            where: the place in the source.
        """
        named = False
        calls = 0
        for step in steps:
            id = None
            if isinstance(step, ToolCall):
                calls += 1
                id = call_id(index, calls, step.call)
            elif not named and not isinstance(step, (Reasoning, Omission)):
                named, id = True, item_id(index)
            found = self._step(step, time, id, where)
            if found is not None:
                yield found

    def _step(self, step: Step, time: float, id: str | None, where: str) -> Foreign | Remark | None:
        put = self._builder.put
        match step:
            case Utterance(role=role, name=name, text=text):
                actor, whose = self._cast.of(role, name)
                to = self._cast.agents if whose == "environment" else ()
                if whose == "agent":
                    self._speaker = actor, whose
                return put(MessageSent(text=text, to=to), actor, whose, time, id=id)
            case ToolCall():
                return self._did(step, time, id)
            case ToolResult():
                return self._resolve(step, time, id, where)
            case Reasoning(text=text):
                return put(NoteTaken(text=text), *self._speaker, time, id=id)
            case ApprovalRequest(id=asked, tool=tool, arguments=arguments, text=text):
                question = ApprovalAsked(question=text, action=tool, arguments=arguments)
                found = put(question, *self._speaker, time, id=id)
                self._asked[asked] = self._builder.version
                return found
            case ApprovalResponse():
                return self._answer(step, time, id, where)
            case Omission(what=what):
                return Remark("difference", f"left out: {what}", where, self._builder.session)

    def _did(self, step: ToolCall, time: float, id: str | None) -> Foreign:
        actor, role = self._cast.of(step.role, step.name)
        taken = ActionTaken(name=step.tool, arguments=step.arguments, raw=step.raw)
        found = self._builder.put(taken, actor, role, time, id=id)
        self._open.append(_Open(step.call, self._builder.version))
        return found

    def _resolve(
        self, step: ToolResult, time: float, id: str | None, where: str
    ) -> Foreign | Remark:
        """The outcome of the first call of that id that has none yet, since ids come again."""
        found = next((one for one in self._open if one.call == step.call), None)
        if found is None and len(self._open) == 1 and not (step.call and self._open[0].call):
            found = self._open[0]  # one of both has no id, and there is no other
        if found is None:
            what = f"a result of no call (id {step.call!r})"
            return Remark("problem", what, where, self._builder.session)
        self._open.remove(found)
        resolved = ActionResolved(
            action=found.version,
            outcome="ok" if step.error is None else "failed",
            observation=step.output,
            error=step.error,
        )
        return self._builder.put(resolved, ENVIRONMENT, "environment", time, id=id)

    def _answer(
        self, step: ApprovalResponse, time: float, id: str | None, where: str
    ) -> Foreign | Remark:
        asked = self._asked.pop(step.id, None)
        if asked is None:
            what = f"an answer to no question (id {step.id!r})"
            return Remark("problem", what, where, self._builder.session)
        given = ApprovalGiven(asked=asked, approved=step.approved, comment=step.comment)
        return self._builder.put(given, *self._cast.of(HUMAN), time, id=id)
