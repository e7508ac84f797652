"""One session of a person with an agent: set up or taken over, played, and scored as it grows."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol, final

import anyio
import msgspec

from ..agents.external.address import USUAL_TERMS, ExternalTerms
from ..engine.errors import InvalidInput, SessionInterrupted, first_error
from ..engine.events import JSON, SessionOpened
from ..engine.redacting import DEFAULT, said_of
from ..engine.session.limits import Limits
from ..engine.session.runner import Session, SessionResult, run_session
from ..engine.task import Cell, Task
from ..engine.text import quantity
from ..scoring.live import watch
from ..scoring.replay import Step
from ..scoring.trajectory.options import Options
from ..users.person import Person, Seat
from .parts import (
    OwnParts,
    default_agents,
    named_task,
    origins_of,
    own_parts,
    recorded_part,
    recorded_task,
    recorded_variants,
    session_of,
    variants_of,
)
from .spec import RULES, Experiment, ModelTable

if TYPE_CHECKING:
    from ..engine.log.contract import EventLog
    from ..engine.models.gateway import Outage
    from ..engine.session.actors import Actor
    from ..engine.session.context import ActorContext

__all__ = (
    "ChatSeat",
    "ChatSession",
    "play_followed",
    "result_text",
)

PERSON: Final = "person"
"""The kind of user that a person is."""

_ATTEMPTS = 3  # at a call, after which the person is asked, rather than kept waiting


def result_text(result: SessionResult) -> str:
    """How a session ended, in a line."""
    utility = "" if result.utility is None else f", utility {result.utility:.3f}"
    return f"The session is {result.reason} after {quantity(result.rounds, 'round')}{utility}."


class ChatSeat(Seat, Protocol):
    """A seat that also follows the session's log and its scoring."""

    def follow(self, step: Step) -> None:
        """Takes the next record of the session's log, with the updates that it brought about."""
        ...

    async def host(self, play: Callable[[], Awaitable[str | None]]) -> int | None:
        """Runs a chat here, until it ends or the person leaves.

        Args:
            play: runs the session; gives what the person should read before the seat is given up,
                None for nothing.

        Returns:
            The signal that ended it (Ctrl-C counts as SIGINT); None for none.
        """
        ...


@final
class ChatSession:
    """One session of a person with an agent, new or resumed.

    Args:
        task: its name, or ``file.py:Name``; empty for the one that a session which is taken over
            records.
        agent: kind of agent, or ``file.py:Name``; None for one that the task has by default.
        instance: which instance; None for the first one.
        seed: decides the world.
        model: behind the agent; None for rules.
        dataset: data of the task's own kind; None for what it ships.
        api_base: where the model is reached; None for where it usually is.
        text_actions: the model cannot call tools.
        taus: the tolerances τ to advise for.
        terms: how external agents are run.
        redact: the secrets that are not recorded: ``default``, ``off``, or a file of patterns.
        started: its start in seconds since 1970, part of its id; None for now.

    Attributes:
        began: the session is in the log.
        ended_by: the signal that ended the chat; None for none.
        interrupted: why the session could not go on; empty if it could, or the person left.
    """

    def __init__(
        self,
        task: str,
        *,
        agent: str | None,
        instance: str | None,
        seed: int,
        model: str | None,
        dataset: str | None,
        api_base: str | None,
        text_actions: bool,
        taus: tuple[int, ...],
        terms: ExternalTerms = USUAL_TERMS,
        redact: str | None = None,
        started: int | None = None,
    ) -> None:
        self._task = task
        self._agent = agent
        self._instance = instance
        self._seed = seed
        self._model = model
        self._opened: SessionOpened | None = None  # of the session that is resumed
        self._dataset = dataset
        self._api_base = api_base
        self._text_actions = text_actions
        self._taus = taus
        self._terms = terms
        self._redaction = said_of(redact or DEFAULT)
        self._started = int(time.time()) if started is None else started
        self._session: Session | None = None
        self._person: Person | None = None
        self._result: SessionResult | None = None
        self.began = False
        self.ended_by: int | None = None
        self.interrupted = ""

    @property
    def name(self) -> str:
        """The id of the session, once it is set up."""
        return "" if self._session is None else self._session.id

    async def take_over(self, log: EventLog, name: str) -> None:
        """Resumes a session as it was set up.

        Raises:
            InvalidInput: it was no chat.
        """
        async for record in log.read(name):
            opened = record.event
            self._redaction = (
                opened.config.get("redact") if isinstance(opened, SessionOpened) else None
            )
            started = opened.config.get("started") if isinstance(opened, SessionOpened) else None
            if not isinstance(opened, SessionOpened) or not isinstance(started, int):
                raise InvalidInput(f"session {name} is not a chat session and cannot be resumed")
            self._opened, self._started = opened, started
            models = opened.config.get("models")
            agent = models.get("agent") if isinstance(models, Mapping) else None
            if isinstance(agent, Mapping):
                self._text_actions = bool(agent.get("text_actions"))
            break

    def set_up(self) -> None:
        """Makes the session, with the person in it.

        Raises:
            InvalidInput: an agent that works alone, or anything that the task does not have.
        """
        self._session = self.session_with(self._live, self._outage)

    @property
    def opened(self) -> SessionOpened | None:
        """The opening of the session that is taken over; None of a new one."""
        return self._opened

    def session_with(
        self,
        person: Actor,
        outage: Outage,
        config: Mapping[str, JSON] = {},
        *,
        agent: str | None = None,
    ) -> Session:
        """The session, with a person in the human's seat.

        Args:
            person: the player of the human's part.
            outage: decides whether a model that has failed is asked again.
            config: further settings that are recorded, and that the session's id depends on; ``seconds``
                is the session's time limit.
            agent: another kind of agent than the session's own.

        Raises:
            InvalidInput: as ``set_up``.
        """
        task, cell, parts = self._new() if self._opened is None else self._held(self._opened)
        if agent is not None:
            cell = msgspec.structs.replace(cell, agent=agent)
        if cell.agent in task.agents and task.automated(cell.agent):
            raise InvalidInput(f"agent {cell.agent!r} works alone, so you cannot chat with it")
        table = ModelTable(text_actions=self._text_actions, attempts=_ATTEMPTS)
        tables = {cell.model: table} if cell.model else {}
        experiment = Experiment(
            task=task.name, models=(cell.model or RULES,), api_base=self._api_base, model=tables
        )
        setting = msgspec.structs.replace(
            parts.put_into(experiment.setting(experiment.reach(None, outage))),
            limits=Limits(rounds=None, actions=None, seconds=_seconds(config)),
            config={"started": self._started, **config, **self._said()},
            person=person,
        )
        return session_of(task, cell, setting)

    def _said(self) -> Mapping[str, JSON]:
        """How the session says that it is redacted; nothing for the default."""
        return {} if self._redaction is None else {"redact": self._redaction}

    def _new(self) -> tuple[Task, Cell, OwnParts]:
        """The parts of a new session."""
        found = named_task(self._task, self._dataset)
        task = found.task
        named, own = own_parts("agent", self._agent and [self._agent], task, terms=self._terms)
        agent = named[0] if named else _usual(task)
        cell = Cell(
            agent=agent,
            user=PERSON,
            instance=self._instance or task.instances(1, self._seed)[0],
            seed=self._seed,
            model=self._model,
        )
        variants = variants_of(self._agent and [self._agent], task)
        return task, cell, OwnParts(task_origin=found.origin, agents=own, variants=variants)

    def _held(self, opened: SessionOpened) -> tuple[Task, Cell, OwnParts]:
        """The parts of the session that is resumed."""
        found = recorded_task(opened, self._task or None, self._dataset)
        try:
            cell = msgspec.convert(opened.config.get("cell"), Cell)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"the session does not say how it was set up: {error}") from None
        part = recorded_part(opened, "agent", found.task, terms=self._terms)
        own = {} if part is None else {cell.agent: part}
        origin = origins_of(opened).get("task")
        variants = recorded_variants(opened)
        return found.task, cell, OwnParts(task_origin=origin, agents=own, variants=variants)

    async def play(self, log: EventLog, seat: ChatSeat) -> SessionResult | None:
        """Plays the session that was set up.

        Returns:
            How it ended; None if it stays open.
        """
        session = self._session
        if session is None:
            raise RuntimeError("a chat is set up before it is played")
        person = self._person = Person(seat)

        async def run() -> str | None:
            return await self._run(log, session, seat, person)

        self.ended_by = await seat.host(run)
        return self._result

    async def _run(
        self, log: EventLog, session: Session, seat: ChatSeat, person: Person
    ) -> str | None:
        """Runs the session; returns how it ended, unless the person ended it."""
        self.began = True
        try:
            self._result = await play_followed(log, session, seat, self._taus)
        except SessionInterrupted as error:
            self.interrupted = "" if person.left else str(error)
            return None
        return None if person.finished else result_text(self._result)

    async def _outage(self, why: str) -> bool:
        """Leaves it to the person whether a model that has failed is asked again."""
        return self._person is not None and await self._person.outage(why)

    async def _live(self, context: ActorContext) -> None:
        if self._person is None:
            raise RuntimeError("the human's seat is empty")
        await self._person.live(context)


async def play_followed(
    log: EventLog, session: Session, seat: ChatSeat, taus: tuple[int, ...]
) -> SessionResult:
    """Runs a session, and hands its records and their scoring to a seat, up to its end.

    Raises:
        SessionInterrupted: the session stays open.
    """
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_follow, log, session.id, seat, taus)
            result = await run_session(log, session)
    except BaseExceptionGroup as group:
        raise first_error(group) from group
    return result


async def _follow(log: EventLog, session: str, seat: ChatSeat, taus: tuple[int, ...]) -> None:
    async with watch(log, session=session, options=Options(taus=taus)) as steps:
        closed = False
        while not closed:
            step = await steps.step()
            seat.follow(step)
            closed = step.record.kind == "SessionClosed"


def _seconds(config: Mapping[str, JSON]) -> float | None:
    seconds = config.get("seconds")
    return float(seconds) if isinstance(seconds, int | float) else None


def _usual(task: Task) -> str:
    """The default agent: the first that works with a human.

    Raises:
        InvalidInput: all of them work alone.
    """
    for agent in default_agents(task):
        if not task.automated(agent):
            return agent
    raise InvalidInput(
        f"all agents of task {task.name!r} work alone: they have no human to chat with"
    )
