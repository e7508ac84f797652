"""Sets recorded sessions up again: as they were run, or with others who take over from some point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import final

import msgspec

from ..agents.external.address import USUAL_TERMS, ExternalTerms
from ..engine.errors import InvalidInput, SessionNotFound
from ..engine.events import JSON, SessionOpened
from ..engine.loading import LoadedFrom, names_code
from ..engine.log.contract import EventLog
from ..engine.models.clients import RecordedModel
from ..engine.models.gateway import Models
from ..engine.models.prompting.conversation import ModelUse
from ..engine.models.traffic.budget import spending
from ..engine.records import TRACE, Record
from ..engine.session.fork import end_before_round, fork
from ..engine.session.limits import Limits
from ..engine.session.runner import Session, SessionResult, run_session
from ..engine.session.time.timing import Timing
from ..engine.task import Cell, FoundTask, OwnPart, Setting, Task
from ..engine.text import suggestion
from ..scoring.live import score_log
from ..scoring.metrics.forks import Fork, compare_forks
from ..scoring.stopping import ToleranceStop
from ..users.personas import plays
from .parts import (
    OwnParts,
    kind_of,
    names_variant,
    origins_of,
    own_parts,
    recorded_part,
    recorded_task,
    recorded_variants,
    session_of,
    user_kind,
    variants_of,
)
from .spec import RULES, Experiment

__all__ = (
    "Changes",
    "Continuations",
    "Forked",
    "is_simulated",
    "load_records",
    "opening_of",
    "play_fork",
)

_OWN = frozenset(
    {
        "group",
        "cell",
        "baseline",
        "judge",
        "utility",
        "timing",
        "limits",
        "models",
        "source",
        "loaded_from",
        "variant",
        "manifest",
    }
)
"""What tasks write into the configuration of an opening; the rest is the setting's."""


@final
class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """The changes in a continuation; None keeps what the origin has.

    Attributes:
        agent: kind of agent.
        user: kind of user.
        model: behind the agent; ``rules`` for none.
        user_model: behind the user, likewise.
        seed: the seed of the randomness after the cut.
        unstopped: no stop is enforced, whatever the origin's setting was.
    """

    agent: str | None = None
    user: str | None = None
    model: str | None = None
    user_model: str | None = None
    seed: int | None = None
    unstopped: bool = False


AS_IT_WAS = Changes()


async def load_records(log: EventLog, session: str) -> list[Record]:
    """All records of a session, in order."""
    return [record async for record in log.read_all(session=session)]


async def is_simulated(log: EventLog, session: str) -> bool:
    """Whether a session was simulated, and records how it was set up."""
    async for record in log.read(session):
        opened = record.event
        return (
            isinstance(opened, SessionOpened)
            and opened.clock == "virtual"
            and "cell" in opened.config
        )
    return False


def opening_of(records: Sequence[Record]) -> SessionOpened:
    """The opening of a recorded session.

    Raises:
        InvalidInput: there is none that can be read.
    """
    opened = records[0].event if records else None
    if not isinstance(opened, SessionOpened):
        raise InvalidInput("the session cannot be forked: its opening record cannot be read")
    return opened


@final
class Continuations:
    """Makes continuations of the sessions of a log.

    Args:
        log: holds the origins.
        dataset: the data that they were run on, if any.
        api_base: base URL of your model server, if you run one.
        cache: directory of the response cache.
        text_actions: models that cannot call tools.
        task: the task that they were run on, if named; None to use the one in the log.
        terms: how external agents are run.

    Attributes:
        log: holds the origins.
    """

    def __init__(
        self,
        log: EventLog,
        *,
        dataset: str | None = None,
        api_base: str | None = None,
        cache: str | None = None,
        text_actions: Sequence[str] = (),
        task: str | None = None,
        terms: ExternalTerms = USUAL_TERMS,
    ) -> None:
        self.log = log
        self._terms = terms
        self._dataset = dataset
        self._task = task
        self._api_base = api_base
        self._cache = cache
        self._text_actions = frozenset(text_actions)
        self._models: dict[tuple[str, ...], Models] = {}
        self._tasks: dict[tuple[str, LoadedFrom | None], FoundTask] = {}

    async def make(
        self,
        records: Sequence[Record],
        version: int,
        changes: Changes = AS_IT_WAS,
        *,
        from_view: bool = False,
    ) -> Session:
        """The fork of a session at a version of its trace.

        Raises:
            InvalidInput: the session cannot be set up again, or was closed by then.
            Divergence: its opening says something else than it would say now.
        """
        opened = opening_of(records)
        models = await self._reach(opened.task, _changed(_cell(opened), changes))
        past = None if from_view else await self._past(records, models)
        return self._fork(records, version, changes, models, past, from_view=from_view)

    async def makers(
        self, records: Sequence[Record], version: int, changes: Sequence[Changes]
    ) -> list[Callable[[], Session]]:
        """Functions that each make a fork of a session that is none itself; see ``make``."""
        opened = opening_of(records)
        made: list[Callable[[], Session]] = []
        for one in changes:
            models = await self._reach(opened.task, _changed(_cell(opened), one))
            made.append(partial(self._fork_anew, records, version, one, models))
        return made

    def _fork_anew(
        self, records: Sequence[Record], version: int, changes: Changes, models: Models
    ) -> Session:
        opened = opening_of(records)
        past = self._session(opened, _cell(opened), models, None)
        return self._fork(records, version, changes, models, past)

    def _fork(
        self,
        records: Sequence[Record],
        version: int,
        changes: Changes,
        models: Models,
        past: Session | None,
        *,
        from_view: bool = False,
    ) -> Session:
        opened = opening_of(records)
        session = self._session(opened, _changed(_cell(opened), changes), models, changes)
        return fork(session, records, version, past=past, from_view=from_view)

    def while_reachable(
        self, makers: Iterable[Callable[[], Session]]
    ) -> Iterator[Callable[[], Session]]:
        """Makers of sessions for as long as the models can be asked; see ``Models``."""
        for make in makers:
            if self.stopped is not None:
                return
            yield make

    @property
    def stopped(self) -> str | None:
        """Why no further session should be begun; None if there is none."""
        return next((m.stopped for m in self._models.values() if m.stopped is not None), None)

    async def _past(self, records: Sequence[Record], models: Models) -> Session | None:
        """A session as it was run; None if it is a fork of a session that is not in the log."""
        opened = opening_of(records)
        session = self._session(opened, _cell(opened), models, None)
        origin = opened.forked_from
        if origin is None:
            return session
        try:
            await self.log.summary(origin.session)
        except SessionNotFound:
            return None
        before = await load_records(self.log, origin.session)
        return fork(session, before, origin.version, past=await self._past(before, models))

    def _session(
        self, opened: SessionOpened, cell: Cell, models: Models, changes: Changes | None
    ) -> Session:
        """The session of a cell; as it was recorded, if the changes are None."""
        past, changes = changes is None, changes or AS_IT_WAS
        found = self._found(opened)
        task = found.task
        parts = OwnParts(
            task_origin=origins_of(opened).get("task") if past else found.origin,
            agents=self._own(opened, "agent", cell.agent, changes.agent, task),
            users=self._own(opened, "user", cell.user, changes.user, task),
            variants=variants_of([changes.agent], task)
            if changes.agent is not None
            else recorded_variants(opened),
        )
        for kind, changed, name, known in (
            ("agent", changes.agent, cell.agent, [*task.agents, *parts.own_agents]),
            ("user", changes.user, cell.user, [*task.users, *parts.users]),
        ):
            if changed is not None and not (
                name in known or (kind == "user" and plays(name, known))
            ):
                raise InvalidInput(f"unknown {kind} {name!r}{suggestion(name, known)}")
        setting = parts.put_into(self._setting(opened, models, unstopped=changes.unstopped))
        session = session_of(task, cell, setting)
        if session.opened.config.get("source") != opened.config.get("source"):
            raise InvalidInput("the session was run on other data: name them with --dataset")
        seed = opened.seed
        if changes.seed is not None and (changes.seed != cell.seed or opened.forked_from):
            seed = changes.seed  # else it is the seed that the origin was run with
        return msgspec.structs.replace(
            session, opened=msgspec.structs.replace(session.opened, seed=seed)
        )

    def _found(self, opened: SessionOpened) -> FoundTask:
        """The task of a session, found once: it keeps the instances that it has made."""
        key = opened.task, origins_of(opened).get("task")
        if key not in self._tasks:
            self._tasks[key] = recorded_task(opened, self._task, self._dataset)
        return self._tasks[key]

    def _own(
        self, opened: SessionOpened, role: str, kind: str, changed: str | None, task: Task
    ) -> Mapping[str, OwnPart]:
        """The agent or user who is not the task's: the one that takes over, or the recorded one."""
        if changed is not None:
            return own_parts(role, [changed], task, terms=self._terms)[1]
        part = recorded_part(opened, role, task, terms=self._terms)
        return {} if part is None else {kind: part}

    def _setting(self, opened: SessionOpened, models: Models, *, unstopped: bool) -> Setting:
        """The setting that a session was run in, as its opening has it."""
        config = opened.config
        try:
            timing = msgspec.convert(config.get("timing", {}), Timing)
            limits = msgspec.convert(config.get("limits", {}), Limits)
            uses = msgspec.convert(config.get("models", {}), dict[str, ModelUse])
            tau = msgspec.convert(config.get("stop_at"), int | None)
        except msgspec.ValidationError as error:
            raise _unknown(error) from error
        other: dict[str, JSON] = {name: v for name, v in config.items() if name not in _OWN}
        if unstopped:
            other.pop("stop_at", None)
            limits = msgspec.structs.replace(limits, patience=None)
            tau = None
        named = {use.model: use for use in uses.values()}
        for model in self._text_actions:
            named.setdefault(model, ModelUse(model=model, text_actions=True))
        return Setting(
            timing=timing,
            limits=limits,
            stop=None if tau is None else lambda session: ToleranceStop(session, tau),
            config=other,
            models=models,
            uses=named,
        )

    async def _reach(self, task: str, cell: Cell) -> Models:
        """Access to the models of those who play on; the replies before the cut are in the log."""
        named = tuple(dict.fromkeys(cell.models.values()))
        if not named:
            return Models(RecordedModel(self.log))
        if named not in self._models:
            experiment = Experiment(
                task=task,
                models=(cell.model or RULES,),
                user_model=cell.user_model,
                judge_model=cell.judge_model,
                api_base=self._api_base,
                cache=self._cache,
            )
            reached = experiment.reach(await spending(self.log))
            self._models[named] = reached or Models(RecordedModel(self.log))
        return self._models[named]


def _cell(opened: SessionOpened) -> Cell:
    cell = opened.config.get("cell")
    if cell is None:
        raise InvalidInput(
            "the session cannot be forked: it was not simulated by duolog run, so no "
            "players can continue it"
        )
    try:
        return msgspec.convert(cell, Cell)
    except msgspec.ValidationError as error:
        raise _unknown(error) from error


def _changed(cell: Cell, changes: Changes) -> Cell:
    agent, user = changes.agent, changes.user
    return msgspec.structs.replace(
        cell,
        agent=cell.agent if agent is None else kind_of(agent),
        user=cell.user if user is None else user_kind(user),
        model=_model(changes.model, None if agent and _is_code(agent) else cell.model),
        user_model=_model(
            changes.user_model, None if user and names_code(user) else cell.user_model
        ),
    )


def _is_code(agent: str) -> bool:
    return names_code(agent) and not names_variant(agent)


def _model(changed: str | None, before: str | None) -> str | None:
    if changed is None:
        return before
    return None if changed == RULES else changed


def _unknown(error: msgspec.ValidationError) -> InvalidInput:
    return InvalidInput(
        f"the session does not record how it was set up, so it cannot be forked: {error}"
    )


class Forked(msgspec.Struct, frozen=True, kw_only=True):
    """A fork that was played.

    Attributes:
        result: how it ended.
        comparison: the fork with its origin.
    """

    result: SessionResult
    comparison: Fork


async def play_fork(
    making: Continuations,
    session: str,
    changes: Changes,
    *,
    at_round: int | None = None,
    at_version: int | None = None,
    from_view: bool = False,
    into: EventLog | None = None,
) -> Forked:
    """Continues a session from a point, and compares the fork with its origin.

    Args:
        making: makes the fork.
        session: id of the origin.
        changes: what is different from that point on.
        at_round: the round that is played again; or else
        at_version: the version up to which the trace is kept.
        from_view: everyone begins from what can be seen at that point, and nothing is executed again.
        into: log for the fork; None for the log of the origin.

    Raises:
        InvalidInput: the session cannot be forked there.
        Divergence: executed again, it does something else than the log says.
    """
    source = making.log
    records = await load_records(source, session)
    version = at_version or end_before_round(
        [record for record in records if record.stream == TRACE], at_round or 0
    )
    forked = await making.make(records, version, changes, from_view=from_view)
    target = source if into is None else into
    result = await run_session(target, forked)
    trajectories = [await score_log(source, session), await score_log(target, forked.id)]
    forks = compare_forks(trajectories, bootstrap=0).forks
    comparison = next(found for found in forks if found.session == forked.id)
    return Forked(result=result, comparison=comparison)
