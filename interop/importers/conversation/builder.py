"""One conversation: its steps, turned into events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, final

import msgspec

from ....engine import codec
from ....engine.errors import InvalidInput
from ....engine.events import (
    UNKNOWN_MODEL,
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    FeedbackGiven,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Participant,
    ProgressRated,
    Role,
    SessionClosed,
    SnapshotTaken,
    TurnYielded,
    Unknown,
)
from ....engine.records import ENVIRONMENT, Record
from ....engine.session.commands import UNNAMED
from ..protocol import Diagnostic, Foreign, Found
from ..trace_builder import TraceBuilder
from .numbers import amount_of, counted
from .steps import (
    AGENT,
    HUMAN,
    ApprovalRequest,
    ApprovalResponse,
    Ending,
    Feedback,
    FileEdit,
    ForeignEntry,
    Interruption,
    ModelUse,
    Omission,
    Output,
    Rating,
    Reasoning,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)

__all__ = ("ConversationBuilder", "Participants")

_ROLES: Final[Mapping[str, Role]] = {HUMAN: "human", AGENT: "agent"}


@final
class Participants:
    """The participants, by role and name; each has one name in the session.

    Args:
        steps: the steps of the whole conversation. The first agent that acts is the main one.
        sides: ``user`` or ``assistant``; these take part even if silent.
    """

    def __init__(self, steps: Iterable[Step], sides: Iterable[str] = ()) -> None:
        self._names: dict[tuple[str, str | None], str] = {}
        self._settled = 0
        for step in steps:
            self._add(step)
        for side in sides:
            if all(role != side for role, _ in self._names):
                self._names[side, None] = side
        self._settle()

    def extend(self, steps: Iterable[Step]) -> None:
        """Adds the actors of further steps; known actors keep their names."""
        for step in steps:
            self._add(step)
        self._settle()

    def join(self, actor: str, role: Role) -> None:
        """Adds an actor who is known from a recorded session."""
        side = next((side for side, whose in _ROLES.items() if whose == role), None)
        if side is None or actor in self._names.values():
            return
        name = actor.removesuffix(f" ({side})")
        self._names.setdefault((side, None if name == side else name), actor)
        self._settled = len(self._names)

    def _settle(self) -> None:
        """Makes new names unique."""
        items = list(self._names.items())
        seen = {name for _, name in items[: self._settled]}
        for key, name in items[self._settled :]:
            unique = name if name not in seen else f"{name} ({key[0]})"
            while unique in seen:
                unique += "'"
            seen.add(unique)
            self._names[key] = unique
        self._settled = len(items)

    def listed(
        self, *, models: Mapping[str, str | None], policies: Mapping[str, str | None]
    ) -> tuple[Participant, ...]:
        """The participants; models and policies by ``user`` and ``assistant``, or by an actor's
        name, which takes precedence.
        """
        return tuple(
            Participant(
                name=name,
                role=_ROLES[role],
                model=models.get(name, models.get(role)),
                policy=policies.get(name, policies.get(role)),
            )
            for (role, _), name in self._names.items()
        )

    def of(self, role: str, name: str | None = None) -> tuple[str, Role]:
        """Name and role of an actor; ``system`` and the like belong to the environment."""
        if role not in _ROLES:
            return name or role, "environment"
        return self._names.get((role, name), name or role), _ROLES[role]

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents."""
        return tuple(name for (role, _), name in self._names.items() if role == AGENT)

    def _add(self, step: Step) -> None:
        match step:
            case (
                Utterance(role=role, name=name)
                | ToolCall(role=role, name=name)
                | Output(role=role, name=name)
                | FileEdit(role=role, name=name)
                | ModelUse(role=role, name=name)
            ):
                if role in _ROLES:
                    self._names.setdefault((role, name), name or role)
            case Reasoning(name=name) | ApprovalRequest(name=name) | Interruption(name=name):
                self._names.setdefault((AGENT, name), name or AGENT)
            case ApprovalResponse(source="rule" | "setting"):
                pass
            case ApprovalResponse() | Rating():
                self._names.setdefault((HUMAN, None), HUMAN)
            case Feedback(name=name):
                self._names.setdefault((HUMAN, name), name or HUMAN)
            case _:
                pass


# --- one conversation -----------------------------------------------------------------------------


_NAMELESS: Final = frozenset({Reasoning, Omission, ModelUse, ForeignEntry, Ending})
"""Steps that do not take the id of their message or item."""
_JUDGED: Final = frozenset({Utterance, ToolCall, Output})
"""Steps that feedback may be about; of several in one entry it is about the last."""


def item_id(index: int | str) -> str:
    """The id of the event of a message or item without calls."""
    return f"item/{index}"


def call_id(index: int | str, number: int, call: str) -> str:
    """The id of a call: which item it is in, which call of it, and its own id, which models do not
    always keep unique.
    """
    return f"item/{index}/{number}/{call}"


class _Open(NamedTuple):
    call: str
    version: int


@final
class ConversationBuilder:
    """Turns steps into events.

    Args:
        builder: builds the trace.
        participants: the participants.
        model: of calls that name none.
    """

    def __init__(
        self, builder: TraceBuilder, participants: Participants, model: str | None = None
    ) -> None:
        self._builder = builder
        self._participants = participants
        self._model = model or UNKNOWN_MODEL
        self._open: list[_Open] = []
        self._asked: dict[str, int] = {}
        self._acts: dict[int | str, int] = {}
        self._speaker = participants.of(AGENT)
        self._has_main = False  # an agent that no step names: those that have names help it
        self._events: Mapping[type[Step], Callable[..., Found]] = {
            Utterance: self._say,
            ToolCall: self._call,
            ToolResult: self._resolve,
            Reasoning: self._note,
            ApprovalRequest: self._ask,
            ApprovalResponse: self._answer,
            Output: self._submit,
            FileEdit: self._edit,
            Interruption: self._interrupt,
            Feedback: self._give_feedback,
            Rating: self._rate,
            ModelUse: self._ask_model,
            ForeignEntry: self._keep,
            Omission: self._omit,
        }
        """By step: what makes an event of it, out of the step, its time, its id, and its place."""

    def add(
        self, index: int | str, steps: Sequence[Step], time: float, where: str
    ) -> Iterator[Found]:
        """The events of one message or item.

        Args:
            index: its place in the conversation, from 1, or its own id.
            steps: its steps.
            time: seconds.
            where: the place in the source.
        """
        named = False
        calls = 0
        for step in steps:
            kind = type(step)
            id = None
            if isinstance(step, ToolCall):
                calls += 1
                id = call_id(index, calls, step.call)
            elif not named and kind not in _NAMELESS:
                named, id = True, item_id(index)
            if isinstance(step, Ending):
                yield from self._close(step, time)
                continue
            yield self._events[kind](step, time, id, where)
            if kind in _JUDGED:
                self._acts[index] = self._builder.version

    def resume(self, records: Iterable[Record]) -> None:
        """Takes up a trace that was recorded before.

        Args:
            records: the records of the trace, in order, from the first.

        Raises:
            CodecError: a body is damaged.
        """
        for record in records:
            event = record.event
            match event:
                case ActionTaken():
                    own = (record.caller_id or "").split("/", 3)
                    self._open.append(_Open(own[3] if len(own) == 4 else "", record.version))
                case ActionResolved(action=action):
                    self._open = [one for one in self._open if one.version != action]
                case MessageSent() if record.role == "agent":
                    self._speaker = record.actor, record.role
                case _:
                    pass

    def _agent(self, name: str | None) -> tuple[str, Role]:
        return self._speaker if name is None else self._participants.of(AGENT, name)

    def _say(self, step: Utterance, time: float, id: str | None, where: str) -> Foreign:
        actor, whose = self._participants.of(step.role, step.name)
        to = self._participants.agents if whose == "environment" else ()
        if whose == "agent":
            self._take_turn(step.name, actor)
        return self._builder.put(MessageSent(text=step.text, to=to), actor, whose, time, id=id)

    def _take_turn(self, name: str | None, actor: str) -> None:
        """Notes the agent whose thoughts come without a name: the main agent, else the last one."""
        self._has_main = self._has_main or name is None
        if name is None or not self._has_main:
            self._speaker = actor, "agent"

    def _call(self, step: ToolCall, time: float, id: str | None, where: str) -> Foreign:
        actor, role = self._participants.of(step.role, step.name)
        if role == "agent" and step.name is None:
            self._take_turn(None, actor)
        taken = ActionTaken(name=step.tool, arguments=step.arguments, raw=step.raw)
        found = self._builder.put(taken, actor, role, time, id=id)
        self._open.append(_Open(step.call, self._builder.version))
        return found

    def _resolve(
        self, step: ToolResult, time: float, id: str | None, where: str
    ) -> Foreign | Diagnostic:
        """The outcome of the first call of that id that has none yet, since ids come again."""
        found = next((one for one in self._open if one.call == step.call), None)
        if found is None and len(self._open) == 1 and not (step.call and self._open[0].call):
            found = self._open[0]  # one of both lacks an id, and it is the only open call
        if found is None:
            what = f"a result of no call (id {step.call!r})"
            return Diagnostic("problem", what, where, self._builder.session)
        self._open.remove(found)
        resolved = ActionResolved(
            action=found.version,
            outcome="ok" if step.error is None else "failed",
            observation=step.output,
            error=step.error,
        )
        return self._builder.put(resolved, ENVIRONMENT, "environment", time, id=id)

    def _ask(self, step: ApprovalRequest, time: float, id: str | None, where: str) -> Foreign:
        question = ApprovalAsked(question=step.text, action=step.tool, arguments=step.arguments)
        found = self._builder.put(question, *self._agent(step.name), time, id=id)
        self._asked[step.id] = self._builder.version
        return found

    def _answer(
        self, step: ApprovalResponse, time: float, id: str | None, where: str
    ) -> Foreign | Diagnostic:
        asked = self._asked.pop(step.id, None)
        if asked is None:
            what = f"an answer to no question (id {step.id!r})"
            return Diagnostic("problem", what, where, self._builder.session)
        given = ApprovalGiven(
            asked=asked, approved=step.approved, comment=step.comment, source=step.source
        )
        if step.source in ("rule", "setting"):  # no act of the human
            return self._builder.put(given, ENVIRONMENT, "environment", time, id=id)
        return self._builder.put(given, *self._participants.of(HUMAN), time, id=id)

    def _submit(self, step: Output, time: float, id: str | None, where: str) -> Foreign:
        snapshot = SnapshotTaken(
            content=step.content, digest=codec.digest(step.content), media_type=step.media_type
        )
        return self._builder.put(
            snapshot, *self._participants.of(step.role, step.name), time, id=id
        )

    def _edit(self, step: FileEdit, time: float, id: str | None, where: str) -> Foreign:
        actor, role = self._participants.of(step.role, step.name)
        shown = {step.path: step.diff} if step.diff else {}
        return self._builder.edit(actor, role, time, {step.path: step.text}, shown=shown, id=id)

    def _give_feedback(self, step: Feedback, time: float, id: str | None, where: str) -> Foreign:
        thumbs: Literal["up", "down"] | None = None
        if step.thumbs is not None:
            thumbs = "up" if step.thumbs else "down"
        of = None if step.of is None else self._acts.get(step.of)
        given = FeedbackGiven(thumbs=thumbs, comment=step.comment, of=of)
        return self._builder.put(given, *self._participants.of(HUMAN, step.name), time, id=id)

    def _rate(self, step: Rating, time: float, id: str | None, where: str) -> Foreign | Diagnostic:
        until = None if step.of is None else self._acts.get(step.of)
        rated = ProgressRated(
            round=UNNAMED, rating=step.value, until=until, explanation=step.explanation
        )
        try:
            return self._builder.put(rated, *self._participants.of(HUMAN), time, id=id)
        except InvalidInput as error:
            return Diagnostic("problem", str(error), where, self._builder.session)

    def _interrupt(self, step: Interruption, time: float, id: str | None, where: str) -> Foreign:
        yielded = TurnYielded(reason=step.reason)
        return self._builder.put(yielded, *self._agent(step.name), time, id=id)

    def _note(self, step: Reasoning, time: float, id: str | None, where: str) -> Foreign:
        return self._builder.put(NoteTaken(text=step.text), *self._agent(step.name), time, id=id)

    def _keep(self, step: ForeignEntry, time: float, id: str | None, where: str) -> Foreign:
        event = _foreign(step.kind, step.body)
        return self._builder.put(event, ENVIRONMENT, "environment", time)

    def _omit(self, step: Omission, time: float, id: str | None, where: str) -> Diagnostic:
        return Diagnostic("difference", f"left out: {step.what}", where, self._builder.session)

    def _ask_model(self, step: ModelUse, time: float, id: str | None, where: str) -> Foreign:
        called = ModelCalled(
            model=step.model or self._model,
            purpose=step.purpose,
            request="",
            tokens=counted(step.tokens),
            latency=amount_of(step.latency) or 0.0,
            cost=amount_of(step.cost),
            error=step.error,
        )
        return self._builder.put(
            called, *self._participants.of(step.role, step.name), time, id=step.id
        )

    def _close(self, step: Ending, time: float) -> Sequence[Foreign]:
        by: tuple[str, Role] = (
            self._participants.of(step.by)
            if step.by in (HUMAN, AGENT)
            else (step.by, "environment")
        )
        closed = SessionClosed(reason=step.reason, by=by[0], detail=step.detail)
        return self._builder.close(closed, by[1], time)


def _foreign(kind: str, body: bytes) -> Unknown:
    """An entry as an event of a foreign kind; as a text, if it is not strictly valid JSON."""
    try:
        msgspec.json.decode(body)
        entry: msgspec.Raw | str = msgspec.Raw(body)
    except (msgspec.DecodeError, RecursionError):
        entry = body.decode("utf-8", "replace")
    return Unknown(kind, 1, msgspec.json.encode({"kind": kind, "entry": entry}))
