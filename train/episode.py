"""Episodes: one session at a time with a simulated user, whose agent is played from outside, step by step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Annotated, Final, TypeAlias, TypeVar, final

import anyio
import msgspec
from anyio.abc import TaskGroup

from ..engine.errors import (
    CheckpointConflict,
    InvalidInput,
    SessionClosedError,
    SessionNotFound,
)
from ..engine.events import JSON, SessionClosed, StopAdvised
from ..engine.loading import LoadedFrom
from ..engine.log.contract import Advance, EventLog
from ..engine.models.protocol import Tool
from ..engine.plugins import PluginCall
from ..engine.records import Record
from ..engine.session.limits import Limits
from ..engine.session.runner import Session, SessionResult, run_session
from ..engine.session.time.clock import VirtualClock
from ..engine.session.time.timing import Timing
from ..engine.session.view import View
from ..engine.task import Brief, Cell, OwnPart, Setting, Task, find_task
from ..scoring.stopping import stop_advised
from ..scoring.trajectory.options import Options
from ..scoring.trajectory.points import Trajectory
from ..scoring.trajectory.updates import StopAdvice
from .rewards import CONFIG, Reward, RewardFold, RewardTerms
from .seat import Action, ChatMessage, Observation, Seat, trainee

__all__ = ("TRAINEE", "Episode", "EpisodeSetting")

TRAINEE: Final = "trainee"
"""The kind of the agent that is trained, as reports have it."""

_ORIGIN: Final = LoadedFrom(name=f"{trainee.__module__}:{trainee.__name__}", digest="")
_NOTHING: Final[Mapping[str, float]] = {}


class EpisodeSetting(msgspec.Struct, frozen=True, kw_only=True):
    """The setting of a training run, the same for all its episodes.

    Attributes:
        reward: how rewards are made; recorded in each opening.
        tau: the tolerance τ that ends an episode once it is used up; None for none.
        limits: when to close a session.
        timing: how long things take.
        interrupts: news that concerns the agent stops it while it types or works: it observes the news,
            and may continue by making the same decision again.
        mistakes: how many actions in a row may be invalid before the session closes as ``failed``.
        agent: what reports call the agent, e.g. which run it is of.
        user_model: a model behind the simulated user; None for the rules that the task ships.
        config: also recorded in each opening, e.g. the step of the optimizer.
        base: further setup of the sessions, e.g. how models are reached.
        hold: seconds of wall time that a policy has to decide, at most.

    Raises:
        InvalidInput: a value is of the wrong type or out of range: ``tau`` and ``mistakes`` are whole
            numbers from 1, and ``hold`` is above 0.
    """

    reward: RewardTerms = RewardTerms()
    tau: int | None = None
    limits: Limits = Limits()
    timing: Timing = Timing()
    interrupts: bool = False
    mistakes: int = 5
    agent: str = TRAINEE
    user_model: str | None = None
    config: Mapping[str, JSON] = {}
    base: Setting = Setting()
    hold: float = 86_400.0

    def __post_init__(self) -> None:
        given = msgspec.structs.asdict(self)
        for name, kind in _PARTS.items():
            if not isinstance(given[name], kind):
                raise InvalidInput(f"{name} expects {kind.__name__}, got {given[name]!r:.80}")
        _checked(_Given, **{name: given[name] for name in _Given.__struct_fields__})


_PARTS: Final = {"reward": RewardTerms, "limits": Limits, "timing": Timing, "base": Setting}
_FromOne: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]


class _Given(msgspec.Struct, frozen=True):
    """The plain values of a setting."""

    tau: _FromOne | None
    interrupts: bool
    mistakes: _FromOne
    agent: Annotated[str, msgspec.Meta(min_length=1)]
    user_model: str | None
    config: Mapping[str, JSON]
    hold: Annotated[float, msgspec.Meta(gt=0)]


class _Beginning(msgspec.Struct, frozen=True):
    """The arguments of ``reset``, except for the task."""

    problem: str
    persona: str
    seed: int
    repeat: _FromOne
    config: Mapping[str, JSON]


@final
class Episode:
    """Plays episodes, one after the other; as many of these as you like run at once in one process.

    For example::

        from duolog.engine.models import ToolCall
        from duolog.train import Episode

        async with Episode(log) as episode:
            seen = await episode.reset("travel", "0", persona="proactive", seed=7)
            while not seen.done:
                call = ToolCall(id="1", name="message", arguments='{"text": "What matters to you?"}')
                seen = await episode.step(call)
            print(seen.ended, episode.reward.total)

    The same seeds and actions give the same log, byte for byte. Sessions are like any others: reports,
    replays and the workbench show them.

    Args:
        log: where the sessions are recorded; it has to be open.
        setting: what is the same in all episodes.

    Attributes:
        session: id of the session; empty before the first.
        messages: the chat of the episode so far.
        result: how the session ended; None while it runs.
    """

    def __init__(self, log: EventLog, setting: EpisodeSetting | None = None) -> None:
        self.setting = setting or EpisodeSetting()
        self.session = ""
        self.messages: list[ChatMessage] = []
        self.result: SessionResult | None = None
        self._log = log
        self._tasks: TaskGroup | None = None
        self._seat: Seat | None = None
        self._meter: _Meter | None = None
        self._observation: Observation | None = None
        self._error: Exception | None = None
        self._news = anyio.Event()
        self._over = anyio.Event()
        self._played: dict[str, int] = {}
        self._found: dict[str, Task] = {}
        self._stepping = self._resetting = False
        self._given = _NOTHING
        self._final: Reward | None = None
        self._scored: Trajectory | None = None
        self._detail = ""

    async def __aenter__(self) -> Episode:
        """Opens what runs the sessions."""
        if self._tasks is not None:
            raise InvalidInput("this episode is entered already")
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        """Closes a session that is open as ``cancelled``."""
        assert self._tasks is not None
        tasks, self._tasks = self._tasks, None
        if kind is None or issubclass(kind, Exception):
            try:
                await self.leave()
            finally:
                await tasks.__aexit__(None, None, None)
            return None
        tasks.cancel_scope.cancel()
        return await tasks.__aexit__(kind, error, trace)

    async def reset(
        self,
        task: str | Task,
        problem: str,
        *,
        persona: str = "proactive",
        seed: int = 0,
        repeat: int = 1,
        config: Mapping[str, JSON] = {},
    ) -> Observation:
        """Begins an episode; one that is under way is closed as ``cancelled`` first.

        Args:
            task: the task, or its name as ``duolog run`` takes it.
            problem: which instance of the task.
            persona: the persona of the simulated user, or another user that the task knows.
            seed: the seed of the world and of all randomness.
            repeat: other draws of the session's randomness on the same problem.
            config: also recorded in the opening.

        Returns:
            The first observation. Its reward is 0, and the effort of the request counts with the first
            step. The rewards of all steps add up to the total. The episode may already be over if
            the human ended it.

        Raises:
            InvalidInput: there is no such task, problem or persona; an argument is of the wrong type; the
                episode is not entered; or the reset before has not returned yet.
        """
        if self._tasks is None:
            raise InvalidInput("an episode is used as: async with Episode(log) as episode")
        _checked(
            _Beginning, problem=problem, persona=persona, seed=seed, repeat=repeat, config=config
        )
        if self._resetting:
            raise InvalidInput("the reset before has not returned yet: wait for it")
        self._resetting = True
        try:
            return await self._begin(
                self._tasks, task, problem, persona=persona, seed=seed, repeat=repeat, config=config
            )
        finally:
            self._resetting = False

    async def _begin(
        self,
        tasks: TaskGroup,
        task: str | Task,
        problem: str,
        *,
        persona: str,
        seed: int,
        repeat: int,
        config: Mapping[str, JSON],
    ) -> Observation:
        found = await self._task(task) if isinstance(task, str) else task
        if not callable(getattr(found, "session", None)):
            raise InvalidInput(f"{found!r:.200} is not a task: give a task, or the name of one")
        await self.leave()
        cell = Cell(
            agent=self.setting.agent,
            user=persona,
            instance=problem,
            seed=seed,
            repeat=repeat,
            user_model=self.setting.user_model,
        )
        brief = getattr(found, "brief", None)
        seat = Seat(
            brief if isinstance(brief, Brief) else None,
            self._take,
            interrupts=self.setting.interrupts,
            mistakes=self.setting.mistakes,
        )
        made, meter = self._make(found, cell, config, seat)
        session = await self._fresh(made)
        self._seat, self._meter = seat, meter
        self.session, self.result = session.id, None
        self._final = self._scored = None
        self.messages, self._given = [], _NOTHING
        self._observation, self._error = None, None
        self._news, self._over = anyio.Event(), anyio.Event()
        tasks.start_soon(self._run, session, meter)
        return await self._next(opening=True)

    async def step(self, action: Action) -> Observation:
        """Carries out an action, and gives what the agent sees once it may act again.

        Args:
            action: one tool call or several, which are carried out together; or the engine's verbs. Talking
                is a tool, ``message``, and so is waiting. ``message``, ``ask`` and ``wait`` end when somebody
                else has said or done something, a task's actions once their outcome is known.

        Returns:
            What the agent sees. If the action was invalid, ``invalid`` says why, and none of it was
            carried out. If the call before was cancelled, what it would have returned comes first; if
            that was the end of the episode, the action is not carried out.

        Raises:
            InvalidInput: no episode was begun, or the step before has not returned yet.
            SessionClosedError: the episode is over.
        """
        seat = self._seat
        if seat is None:
            raise InvalidInput("no episode was begun: call reset first")
        if self.result is not None or self._error is not None:
            raise SessionClosedError(self.session)
        if self._stepping:
            raise InvalidInput("the step before has not returned yet: wait for it")
        missed: Observation | None = None
        if not seat.waiting or self._news.is_set():  # the call before was cancelled
            missed = await self._next()
            if missed.done:
                return missed
        return _after(missed, await self._carry_out(seat, action))

    async def _carry_out(self, seat: Seat, action: Action) -> Observation:
        try:
            said = seat.act(action)
        except InvalidInput as error:
            messages = seat.refuse(action, str(error))
            self.messages += messages
            if seat.failing:
                seen = await self._next()
                return msgspec.structs.replace(
                    seen, messages=(*messages, *seen.messages), invalid=str(error)
                )
            return Observation(
                messages=messages, tools=seat.tools, invalid=str(error), time=messages[-1].time
            )
        if said is not None:
            self.messages.append(said)
        return await self._next()

    async def leave(self) -> None:
        """Closes an open session as ``cancelled``. It stays in the log."""
        if self._seat is None or self.result is not None or self._error is not None:
            return
        self._seat.leave("whoever trains left the episode")
        await self._over.wait()

    @property
    def reward(self) -> Reward:
        """The reward so far; once the episode is over, what ``reward_of`` computes from the log."""
        if self._final is not None:
            return self._final
        if self._meter is None:
            raise InvalidInput("no episode was begun: call reset first")
        return self._meter.reward()

    @property
    def effort(self) -> Mapping[str, float | None]:
        """The human's effort so far, by measure, as ``score`` has it; see ``MEASURES``."""
        if self._meter is None:
            raise InvalidInput("no episode was begun: call reset first")
        points = (self._scored or self._meter.trajectory()).points
        return points[-1].effort if points else {}

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the agent may call now; none once the episode is over."""
        if self._seat is None or self.result is not None:
            return ()
        return self._seat.tools

    @property
    def view(self) -> View:
        """The agent's view, for policies that read the engine's own view."""
        if self._seat is None or self._seat.view is None:
            raise InvalidInput("no episode was begun: call reset first")
        return self._seat.view

    # --- making and running ----------------------------------------------------------------------

    def _make(
        self, task: Task, cell: Cell, config: Mapping[str, JSON], seat: Seat
    ) -> tuple[Session, _Meter]:
        setting = self.setting
        meters: list[_Meter] = []

        def meter(session: str) -> _Meter:
            meters.append(_Meter(session, setting.reward, setting.tau))
            return meters[-1]

        recorded = {
            **setting.base.config,
            **setting.config,
            **config,
            CONFIG: msgspec.to_builtins(setting.reward),
            **({} if setting.tau is None else {"stop_at": setting.tau}),
        }
        agents = {**setting.base.agents, cell.agent: OwnPart(seat.live, _ORIGIN)}
        base = msgspec.structs.replace(
            setting.base,
            timing=setting.timing,
            limits=setting.limits,
            stop=meter,
            config=recorded,
            agents=agents,
        )
        with PluginCall(f"task {task.name!r}"):
            session = task.session(cell, base)
        if not isinstance(session.clock, VirtualClock):
            raise InvalidInput(
                f"an episode needs simulated people: task {task.name!r} has a real one"
            )
        follows = meters[-1] if meters else meter(session.id)
        clock = VirtualClock(hold=setting.hold)
        return msgspec.structs.replace(session, clock=clock, stop=follows), follows

    async def _task(self, name: str) -> Task:
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = await anyio.to_thread.run_sync(find_task, name)
        return found

    async def _fresh(self, session: Session) -> Session:
        """The session under a new id: a problem may be played many times, also at the same time."""
        number = self._played.get(session.id, 0)
        while True:
            number += 1
            name = session.id if number == 1 else f"{session.id}-{number}"
            if await self._reserve(name):
                self._played[session.id] = number
                return msgspec.structs.replace(session, id=name)

    async def _reserve(self, name: str) -> bool:
        """Takes the name of a session, by compare-and-set; False if it is taken."""
        try:
            await self._log.summary(name)
        except SessionNotFound:
            pass
        else:
            return False
        first = Advance(consumer=f"episode/{name}", version="1", expected=0, position=1)
        try:
            await self._log.append(name, [], checkpoint=first)
        except CheckpointConflict:
            return False
        return True

    async def _run(self, session: Session, meter: _Meter) -> None:
        try:
            result = await run_session(self._log, session, fresh=True)
            records = [r async for r in self._log.read_all(session=session.id)]
            meter.finish(records)
            self._final, self._scored = meter.reward(), meter.trajectory()
            self._detail = _detail(records)
            self.result = result
        except Exception as error:  # noqa: BLE001  (raised by the step that waits)
            self._error = error
        finally:
            self._over.set()
            self._news.set()

    # --- what comes of it ------------------------------------------------------------------------

    def _take(self, observation: Observation) -> None:
        """Takes what the seat observes."""
        self._observation = observation
        self._news.set()

    async def _next(self, *, opening: bool = False) -> Observation:
        """The next observation, with the reward since the one before."""
        self._stepping = True
        try:
            await self._news.wait()
        finally:
            self._stepping = False
        self._news = anyio.Event()
        if self._error is not None:
            raise self._error
        seen, self._observation = self._observation, None
        if self.result is not None:
            seen = self._last()
        assert seen is not None
        self.messages += seen.messages
        if opening and not seen.done:  # the request's effort counts with the first step
            return seen
        reward = self.reward
        if reward.total is None:  # counts once utility is known
            return seen
        gained = {name: value - self._given.get(name, 0.0) for name, value in reward.parts.items()}
        self._given = reward.parts
        return msgspec.structs.replace(seen, reward=math.fsum(gained.values()), parts=gained)

    def _last(self) -> Observation:
        assert self.result is not None
        assert self._seat is not None
        return Observation(
            messages=self._seat.last_words(),
            done=True,
            ended=self.result.reason,
            detail=self.result.error or self._detail,
            time=self.result.seconds,
        )


_S = TypeVar("_S", bound=msgspec.Struct)


def _checked(form: type[_S], **given: object) -> _S:
    """Checks the types of arguments.

    Raises:
        InvalidInput: a type differs from that in the form.
    """
    try:
        return msgspec.convert(given, form)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        wanted = what.removeprefix("Expected ").partition(", got ")[0].replace("`", "")
        name = where.rstrip("`")
        value = given.get(name.partition(".")[0].partition("[")[0])
        raise InvalidInput(f"{name} expects {wanted}, got {value!r:.80}") from None


def _after(missed: Observation | None, seen: Observation) -> Observation:
    """An observation, preceded by one that was never returned."""
    if missed is None:
        return seen
    parts = {
        name: missed.parts.get(name, 0.0) + seen.parts.get(name, 0.0)
        for name in {**missed.parts, **seen.parts}
    }
    return msgspec.structs.replace(
        seen,
        messages=(*missed.messages, *seen.messages),
        reward=missed.reward + seen.reward,
        parts=parts,
    )


def _detail(records: Sequence[Record]) -> str:
    """The detail of the close."""
    for record in reversed(records):
        if isinstance(record.event, SessionClosed):
            return record.event.detail
    return ""


@final
class _Meter:
    """Follows one session from within: its reward so far, and whether its tolerance is used up.

    It is the session's rule for stops, which takes each record as it is measured.

    Args:
        session: session id.
        terms: how the reward is made.
        tau: the tolerance at which the session is stopped; None for none.
    """

    def __init__(self, session: str, terms: RewardTerms, tau: int | None) -> None:
        self._terms = terms
        self._tau = tau
        self._options = None if tau is None else Options(taus=(tau,))
        self._fold = self._anew(session)
        self._fed = 0  # records so far, and the last of them
        self._latest = ("", 0)

    def _anew(self, session: str) -> RewardFold:
        return RewardFold(session, self._terms, self._options, emit=self._tau is not None)

    def feed(self, record: Record) -> StopAdvised | None:
        """Takes the next record; advises the stop the moment it is due."""
        if record.kind == "SessionOpened":
            self._fold, self._fed = self._anew(record.session), 0
        self._fed += 1
        self._latest = (record.stream, record.version)
        for update in self._fold.feed(record):
            if isinstance(update, StopAdvice):
                return stop_advised(update, enforced=True)
        return None

    def finish(self, records: Sequence[Record]) -> None:
        """Takes what followed the last record that was measured; all of them, if their order differs.

        Args:
            records: the records of the whole session, as the log has them.
        """
        known = self._fed
        latest = records[known - 1] if 0 < known <= len(records) else None
        if latest is None or (latest.stream, latest.version) != self._latest:
            self._fold, known = self._anew(records[0].session), 0
        for record in records[known:]:
            self._fold.feed(record)

    def reward(self) -> Reward:
        """The reward so far."""
        return self._fold.reward()

    def trajectory(self) -> Trajectory:
        """The trajectory so far."""
        return self._fold.trajectory()
