"""Runs what is begun in the workbench: sessions in which people take part, and forks.

A session lives in the log. The state here can be gone at any moment: an open session resumes from the
log when a person returns to it. If several programs share a log, the one that has the lease on a session
runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, final

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec.structs import replace

from ..engine.errors import (
    DuologError,
    InvalidInput,
    LogClosed,
    LogUnavailable,
    SessionClosedError,
    SessionInterrupted,
)
from ..engine.events import JSON, Participant
from ..engine.log.contract import EventLog, SessionSummary
from ..engine.log.leases import LeaseHolder, LeaseTerms, Leasing
from ..engine.logger import get_logger
from ..engine.session.actors import Player
from ..engine.session.context import ActorContext
from ..engine.session.runner import Session, run_session
from ..engine.session.sharing import lease_name
from ..interop.workbench.participation.host import NewSession, Offer
from ..interop.workbench.session.forking import ForkRequest
from ..tasks.kit import HUMAN_ALONE
from ..users.remote_person import RemotePerson
from .chat import ChatSession
from .continuations import Changes, Continuations, load_records
from .parts import default_agents, installed_tasks, named_task

__all__ = (
    "Beginning",
    "LogForks",
    "SessionHost",
)

_PEOPLE: Final = 8
_AGENTS: Final = 4
_SESSIONS: Final = 200
"""Sessions that run at once at most."""

_PATIENCE: Final = 5.0  # seconds in which sessions come to a rest before the program ends
_KEPT: Final = ("people", "agents", "study", "seconds")
"""Settings of a session that it resumes with."""

_LEFT: Final = "the workbench was stopped"
_TERMS: Final = LeaseTerms()


class Beginning(NamedTuple):
    """How a session is begun.

    Attributes:
        wanted: its settings.
        config: recorded in its opening: ``study`` says who takes part in what, ``seconds`` is its time limit.
        started: its start in seconds since 1970, part of its id; None for now.
    """

    wanted: NewSession
    config: Mapping[str, JSON] = {}
    started: int | None = None


@final
class SessionHost:
    """Begins and resumes sessions.

    Args:
        log: where they are recorded.
        tasks: where they run.
        task: a task in addition to those installed: ``file.py:Name``.
        agent: an additional agent for that task: ``file.py:Name``, ``exec:COMMAND`` and so on.
        dataset: data of the task's own kind; None for what it ships.
        api_base: where models are reached; None for where they usually are.
        terms: how long another program may be silent before its sessions can go on here.
    """

    def __init__(
        self,
        log: EventLog,
        tasks: TaskGroup,
        *,
        task: str | None = None,
        agent: str | None = None,
        dataset: str | None = None,
        api_base: str | None = None,
        terms: LeaseTerms = _TERMS,
    ) -> None:
        self._log = log
        self._tasks = tasks
        self._leases = LeaseHolder(log.leases(), terms) if isinstance(log, Leasing) else None
        if self._leases is not None:
            tasks.start_soon(self._leases.keep)
        self._task = task
        self._agent = agent
        self._dataset = dataset
        self._api_base = api_base
        self._seats: dict[str, dict[str, RemotePerson]] = {}
        self._begun: dict[str, Beginning] = {}
        self._closing = False
        self._named = ""
        self._offers: Sequence[Offer] | None = None
        self._failed: dict[str, DuologError] = {}
        self._changed = anyio.Event()
        self._opening = anyio.Lock()

    async def offers(self) -> Sequence[Offer]:
        """The tasks that there are."""
        if self._offers is None:  # a task is code, and may read files
            self._offers = await anyio.to_thread.run_sync(self._load_offers)
        return self._offers

    def _load_offers(self) -> Sequence[Offer]:
        offers = []
        for name in dict.fromkeys([*([self._task] if self._task else ()), *installed_tasks()]):
            mine = name == self._task
            try:
                task = named_task(name, self._dataset if mine else None).task
            except InvalidInput as error:
                if mine:
                    raise
                get_logger("workbench").warning("no session can be begun on it", why=str(error))
                continue
            if mine:
                self._named = task.name
            agents = {
                kind: line
                for kind, line in task.agents.items()
                if not task.automated(kind) and kind != HUMAN_ALONE
            }
            first = next((kind for kind in default_agents(task) if kind in agents), None)
            if mine and self._agent is not None:
                first = self._agent
                agents = {first: agents.get(first, "as it was started with"), **agents}
            if first is not None:
                offers.append(
                    Offer(task=name, description=task.description, agents=agents, agent=first)
                )
        return offers

    async def begin(self, wanted: NewSession) -> str:
        """Begins a session; see ``Host.begin``."""
        if not 1 <= wanted.people <= _PEOPLE:
            raise InvalidInput(f"1 to {_PEOPLE} people take part, not {wanted.people}")
        if not 1 <= len(wanted.agents) <= _AGENTS:
            raise InvalidInput(f"1 to {_AGENTS} agents take part, not {len(wanted.agents)}")
        offer = next((offer for offer in await self.offers() if offer.task == wanted.task), None)
        if offer is None:
            raise InvalidInput(f"unknown task {wanted.task!r}")
        for agent in wanted.agents:  # a name can be a program: only those that are offered are run
            if agent not in offer.agents:
                known = ", ".join(offer.agents)
                raise InvalidInput(f"unknown agent {agent!r}; choose from {known}")
        return await self.begin_as(Beginning(wanted))

    async def begin_as(self, beginning: Beginning) -> str:
        """Begins a session that this program's own user describes, with any agent; gives its id.

        A session that was begun like this, with the same start, resumes.

        Raises:
            DuologError: it cannot be begun as it is wanted.
        """
        async with self._opening:
            self._check_open()
            return await self._begin(beginning)

    def remember(self, session: str, beginning: Beginning) -> None:
        """Says how a session was begun, so that it resumes like that, whatever files its parts are in."""
        self._begun[session] = beginning

    async def _begin(self, beginning: Beginning) -> str:
        wanted = beginning.wanted
        chat = self._chat(
            wanted.task,
            agent=wanted.agents[0],
            instance=wanted.instance or None,
            seed=wanted.seed,
            model=wanted.model or None,
            started=beginning.started,
        )
        more: dict[str, JSON] = dict(beginning.config)
        if wanted.people > 1:
            more["people"] = wanted.people
        if len(wanted.agents) > 1:
            more["agents"] = list(wanted.agents)
        return await self._start(chat, more)

    def trouble(self, session: str) -> str:
        """Why a model cannot be asked in a session that runs; empty if it can."""
        people = self._seats.get(session, {}).values()
        return next((person.trouble for person in people if person.trouble), "")

    async def seat(self, session: str, actor: str) -> RemotePerson:
        """Where somebody sits; see ``Host.seat``."""
        async with self._opening:
            self._check_open()
            if session not in self._seats:
                await self._go_on(session)
            seats = self._seats.get(session, {})
        if actor not in seats:
            raise InvalidInput(f"there is no seat for {actor!r} in session {session!r}")
        return seats[actor]

    def actors(self, session: str) -> Sequence[str]:
        """The people in a session that runs here."""
        return list(self._seats.get(session, ()))

    async def usual_agent(self, task: str) -> str:
        """The default agent of a task.

        Raises:
            InvalidInput: there is no such task, or it has no other participant to work with.
        """
        found = next((offer.agent for offer in await self.offers() if offer.task == task), None)
        if found is None:
            raise InvalidInput(f"unknown task {task!r} in which a human can take part")
        return found

    async def leave_all(self) -> None:
        """Makes all people leave: their sessions stay open, and resume when a person returns."""
        self._closing = True
        for seats in tuple(self._seats.values()):
            for person in seats.values():
                person.leave(_LEFT)
        with anyio.move_on_after(_PATIENCE):
            while self._seats:
                self._changed = anyio.Event()
                await self._changed.wait()

    def _check_open(self) -> None:
        if self._closing:
            raise LogClosed("the workbench is stopping; the session continues when it is back")

    def _chat(
        self,
        task: str,
        *,
        agent: str | None = None,
        instance: str | None = None,
        seed: int = 0,
        model: str | None = None,
        started: int | None = None,
    ) -> ChatSession:
        return ChatSession(
            task,
            agent=agent,
            instance=instance,
            seed=seed,
            model=model,
            dataset=self._dataset if task == self._task else None,
            api_base=self._api_base,
            text_actions=False,
            taus=(),
            started=started,
        )

    async def _go_on(self, session: str) -> None:
        """Resumes an open session that does not run here.

        Raises:
            DuologError: it cannot.
        """
        summary = await self._log.summary(session)
        if summary.state != "open":
            raise InvalidInput(f"session {session!r} is {summary.state}")
        if (beginning := self._begun.get(session)) is not None:
            found = await self._begin(beginning)
        else:
            found = await self._resume(session, summary)
        if found != session:
            raise InvalidInput(
                f"session {session!r} cannot continue: this version, with these options, "
                f"makes a different session of it"
            )

    async def _resume(self, session: str, summary: SessionSummary) -> str:
        await self.offers()
        chat = self._chat(self._task if self._task and summary.task == self._named else "")
        await chat.take_over(self._log, session)
        config = {} if chat.opened is None else chat.opened.config
        more = {name: config[name] for name in _KEPT if name in config}
        return await self._start(chat, more)

    async def _start(self, chat: ChatSession, more: Mapping[str, JSON]) -> str:
        if len(self._seats) >= _SESSIONS:
            raise InvalidInput(f"{_SESSIONS} sessions run here already; end one of them first")
        first = RemotePerson()
        people, session = await anyio.to_thread.run_sync(_made, chat, first, more)
        if session.id in self._seats:
            return session.id
        scope = anyio.CancelScope()
        if self._leases is not None and not await self._leases.claim(
            lease_name(session.id), scope.cancel
        ):
            raise LogUnavailable(
                f"session {session.id!r} is running in another copy of the workbench: try again there, or "
                "here once that one has ended"
            )
        self._seats[session.id] = people
        self._failed.pop(session.id, None)  # of an earlier start, whose request was gone by then
        began = anyio.Event()
        self._tasks.start_soon(self._run, session, people, began, scope)
        self._tasks.start_soon(_wait_until_seated, first, began)
        await began.wait()
        if (error := self._failed.pop(session.id, None)) is not None:
            raise error
        return session.id

    async def _run(
        self,
        session: Session,
        people: Mapping[str, RemotePerson],
        began: anyio.Event,
        scope: anyio.CancelScope,
    ) -> None:
        log = get_logger("workbench")
        try:
            with scope:  # cancelled where another program has the session
                result = await run_session(self._log, session)
                log.info("session is over", session=session.id, reason=result.reason)
        except SessionInterrupted as error:
            log.info("session stays open", session=session.id, why=str(error))
        except DuologError as error:
            log.warning("session cannot go on", session=session.id, error=str(error))
            if not began.is_set():
                self._failed[session.id] = error
        finally:
            self._seats.pop(session.id, None)
            self._changed.set()
            for person in people.values():
                person.end()
            began.set()
            if self._leases is not None:
                await self._leases.release(lease_name(session.id))


async def _wait_until_seated(person: RemotePerson, began: anyio.Event) -> None:
    async def sit_down(context: ActorContext) -> None:
        began.set()

    try:
        await person.call(sit_down)
    except SessionClosedError:  # it could not be begun, or was over at once: its task says so
        began.set()


def _made(
    chat: ChatSession, first: RemotePerson, more: Mapping[str, JSON]
) -> tuple[dict[str, RemotePerson], Session]:
    """The session with all its people and agents, and their seats; in a thread, since a task is
    code that may read files.
    """
    session = chat.session_with(first.live, first.outage, more)
    own = next(player for player in session.players if player.actor == first.live)
    people = {own.participant.name: first}
    players = list(session.players)
    private = dict(session.opened.private)
    count = more.get("people", 1)
    for number in range(2, (count if isinstance(count, int) else 1) + 1):
        person = RemotePerson()
        name = f"{own.participant.name}-{number}"
        people[name] = person
        players.append(Player(Participant(name=name, role="human"), person.live))
        if own.participant.name in private:
            private[name] = private[own.participant.name]
    kinds = more.get("agents", ())
    for number, kind in enumerate(kinds[1:] if isinstance(kinds, list | tuple) else (), start=2):
        players.append(_another(chat, str(kind), number))
    opened = replace(
        session.opened,
        participants=tuple(player.participant for player in players),
        private=private,
    )
    return people, replace(session, opened=opened, players=tuple(players))


def _another(chat: ChatSession, kind: str, number: int) -> Player:
    """Another agent of a session."""
    unused = RemotePerson()
    session = chat.session_with(unused.live, unused.outage, agent=kind)
    player = next(one for one in session.players if one.participant.role == "agent")
    name = f"{player.participant.name}-{number}"
    return Player(replace(player.participant, name=name), player.actor)


_AT_ONCE: Final = 2


@final
class LogForks:
    """Begins forks of the sessions of a log.

    Args:
        log: holds the origins, and takes the forks.
        tasks: the forks run in it.
    """

    def __init__(self, log: EventLog, tasks: TaskGroup) -> None:
        self._log = log
        self._tasks = tasks
        self._running = anyio.CapacityLimiter(_AT_ONCE)

    async def __call__(self, request: ForkRequest, version: int) -> str:
        """Begins a fork; see ``Forker``."""
        records = await load_records(self._log, request.session)
        changes = Changes(agent=request.agent, user=request.user, seed=request.seed)
        forked = await Continuations(self._log).make(records, version, changes)
        failures: list[DuologError] = []
        with anyio.CancelScope() as waiting:
            self._tasks.start_soon(self._run, forked, failures, waiting)
            async with self._log.subscribe(session=forked.id) as begun:
                await begun.__anext__()  # it can be looked at now
        if failures:
            raise failures[0]
        return forked.id

    async def _run(
        self, forked: Session, failures: list[DuologError], waiting: anyio.CancelScope
    ) -> None:
        """Runs a fork; its beginning ends the wait for it."""
        async with self._running:
            try:
                await run_session(self._log, forked)
            except DuologError as error:
                failures.append(error)
                get_logger("workbench").error(
                    "a fork failed", session=forked.id, error=f"{type(error).__name__}: {error}"
                )
            waiting.cancel()
