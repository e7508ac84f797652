"""Scores the recorded sessions of a log, several at once, and counts the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, final

import anyio
import msgspec

from .._version import __version__
from ..engine import codec
from ..engine.errors import Divergence, InvalidInput, SessionInterrupted
from ..engine.events import (
    Forgotten,
    ProgressRated,
    ScorerFailed,
    ScorerRef,
    SessionOpened,
    UtilityScored,
)
from ..engine.loading import LoadedFrom, load, names_code
from ..engine.log.contract import EventLog
from ..engine.log.follower import CheckpointKey
from ..engine.models.gateway import Models
from ..engine.models.prompting.conversation import ModelUse
from ..engine.rounds import Rounds
from ..engine.scorers.protocol import Scorer, stream_of
from ..engine.settings import settings_text
from ..engine.task import Task
from ..experiments.parts import RescorableTask, named_task, origins_of, recorded_task
from ..scoring.rescore import rescore
from ..scoring.scorers.criterion import read_rubric
from ..scoring.scorers.registry import ScorerPlugin, ScoringSetting, find_scorer, scorer_names
from .text.progress import RecordProgress

__all__ = ("ScoreOptions", "Scored", "ScorerFinder", "ScoringRun", "StreamScored")

_CALL: Final = "ModelCalled"
_UNSAID: Final = SessionOpened(task="", instance="", participants=(), clock="utc")
_CONVENTIONS: Final[tuple[Rounds, ...]] = ("handoff", "human-turn")


class ScoreOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a log is scored; see ``duolog score``. One process passes it to another as JSON.

    Attributes:
        log: path or URL of the log.
        scorers: their names.
        judge: the model that judges.
        rubric: path of the rubric.
        rounds: how judges count rounds.
        api_base: where the judge's model is.
        cache: directory of the response cache.
        concurrency: sessions at the same time, in each process.
        tokens: that the judges may use in all, on this log.
        cost: US dollars that they may cost in all, on this log.
    """

    log: str
    scorers: tuple[str, ...]
    judge: str | None = None
    rubric: str | None = None
    rounds: Rounds = "handoff"
    api_base: str | None = None
    cache: str | None = None
    concurrency: int = 32
    tokens: int | None = None
    cost: float | None = None

    def key(self) -> CheckpointKey:
        """Under what checkpoints are kept: the same for processes that score by the same.

        If the version of Duolog, a file or the rubric differs, sessions are looked at again.
        """
        files = {name: load(name).origin.digest for name in self.scorers if names_code(name)}
        rubric = None if self.rubric is None else settings_text(self.rubric)
        names = sorted(self.scorers)
        version = codec.digest([__version__, files, rubric, self.judge, self.rounds, names])
        return CheckpointKey("+".join(names), version[:16])


class StreamScored(msgspec.Struct, frozen=True, kw_only=True):
    """What one scorer, in one version, did.

    Attributes:
        scorer: ``name@version``.
        sessions: how many sessions it was run on.
        added: measurements added.
        known: measurements of it that the log held already.
        missing: how many of all these are scores and ratings that are missing, with a reason in
            the log.
        failed: sessions in which it raised, now or earlier.
        error: what it raised, in one of them.
    """

    scorer: str
    sessions: int = 0
    added: int = 0
    known: int = 0
    missing: int = 0
    failed: int = 0
    error: str | None = None


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """What scoring a log afterwards did.

    Attributes:
        sessions: sessions that were looked at.
        added: measurements added by all scorers.
        scorers: what each did, by stream.
        left_out: sessions that a scorer could not be run on: how many, by scorer and reason.
        forgotten: sessions whose contents were erased.
        unfinished: sessions that are not scored to their end.
        why: what ended the run early; None if nothing did.
    """

    sessions: int
    added: int
    scorers: tuple[StreamScored, ...]
    left_out: Mapping[str, Mapping[str, int]]
    forgotten: int
    unfinished: int
    why: str | None


@final
class ScoringRun:
    """One run over sessions of a log.

    Args:
        log: the log, which has to be open.
        options: what it is scored by.

    Attributes:
        models: access to models, if one judges.
        asking: names of the scorers that ask one.

    Raises:
        InvalidInput: a scorer is not there, or the rubric cannot be read.
    """

    def __init__(self, log: EventLog, options: ScoreOptions) -> None:
        self._log = log
        self._options = options
        self._plugins = {name: find_scorer(name) for name in options.scorers}
        self._criteria = () if options.rubric is None else read_rubric(Path(options.rubric))
        self._use: ModelUse | None = None
        self.models: Models | None = None
        self.asking = [name for name, plugin in self._plugins.items() if plugin.asks_model]
        self._streams: dict[str, StreamScored] = {}
        self._left_out: dict[str, Counter[str]] = {}
        self._forgotten = 0
        self._unfinished = 0
        self._why: str | None = None

    async def reach_judge(self, *, upto: int | None = None) -> None:
        """Makes access to the judge's model, if there is one.

        Args:
            upto: what these scorers used up to this position of the log counts; None for all.
        """
        from ..engine.models.traffic.budget import spending
        from ..experiments.spec import BudgetTable, Experiment

        options = self._options
        if options.judge is None:
            return
        experiment = Experiment(
            task="",
            judge_model=options.judge,
            api_base=options.api_base,
            cache=options.cache,
            budget=BudgetTable(tokens=options.tokens, cost=options.cost),
        )
        used = await spending(self._log, by=self.asking, upto=upto)
        self.models = experiment.reach(used)
        self._use = experiment.setting(self.models).uses[options.judge]

    @property
    def stopped(self) -> str | None:
        """Why models are asked no more; None while they are, or if there are none."""
        return None if self.models is None else self.models.stopped

    async def score(self, sessions: Sequence[str]) -> Scored:
        """Scores sessions, several at a time. If models fail for good, it starts no more sessions.

        Raises:
            LogError: the log failed.
        """
        waiting = iter(sessions)
        done = 0
        with RecordProgress("scoring", len(sessions)) as progress:

            async def work() -> None:
                nonlocal done
                for session in waiting:
                    self._why = self._why or self.stopped
                    if self._why is not None:
                        self._unfinished += 1
                        continue
                    await self._score(session)
                    done += 1
                    progress(done)

            async with anyio.create_task_group() as workers:
                for _ in range(min(self._options.concurrency, len(sessions))):
                    workers.start_soon(work)
        return Scored(
            sessions=len(sessions),
            added=sum(one.added for one in self._streams.values()),
            scorers=tuple(self._streams[name] for name in sorted(self._streams)),
            left_out=self._left_out,
            forgotten=self._forgotten,
            unfinished=self._unfinished,
            why=self._why,
        )

    async def _score(self, session: str) -> None:
        scorers = await self.scorers(session)
        before = {
            stream_of(scorer.ref): await self._measured(session, scorer) for scorer in scorers
        }
        try:
            await rescore(self._log, session, scorers)
        except SessionInterrupted as error:
            self._unfinished += 1
            self._why = self._why or error.why
        except Divergence as error:
            self._unfinished += 1
            self._why = self._why or str(error)
        for scorer in scorers:
            stream = stream_of(scorer.ref)
            await self._count(session, scorer, before[stream])

    async def scorers(self, session: str) -> list[Scorer]:
        """The scorers that can be run on a session; counts what is left out, and why."""
        opened = await _opening(self._log, session)
        if isinstance(opened, Forgotten):
            self._forgotten += 1
            return []
        scorers: list[Scorer] = []
        for name, plugin in self._plugins.items():
            try:
                if not isinstance(opened, SessionOpened):
                    raise InvalidInput("a session without an opening")
                setting = ScoringSetting(
                    opened=opened,
                    rounds=self._options.rounds,
                    models=self.models,
                    use=self._use,
                    criteria=self._criteria,
                )
                scorers.append(plugin.make(setting))
            except InvalidInput as error:
                self._left_out.setdefault(name, Counter())[str(error)] += 1
        return scorers

    async def _measured(self, session: str, scorer: Scorer) -> int:
        stream = stream_of(scorer.ref)
        return sum(
            [record.kind != _CALL async for record in self._log.read(session, stream=stream)]
        )

    async def _count(self, session: str, scorer: Scorer, before: int) -> None:
        """Counts what a scorer's stream holds of a session now."""
        stream = stream_of(scorer.ref)
        measured = missing = failed = 0
        error: str | None = None
        async for record in self._log.read(session, stream=stream):
            event = record.event
            measured += record.kind != _CALL
            if isinstance(event, ScorerFailed):
                failed, error = 1, f"{event.type}: {event.error}"
            elif isinstance(event, UtilityScored):
                missing += event.value is None
            elif isinstance(event, ProgressRated):
                missing += event.rating is None
        # Only now, since other sessions were counted meanwhile.
        held = self._streams.get(stream, StreamScored(scorer=stream))
        self._streams[stream] = msgspec.structs.replace(
            held,
            sessions=held.sessions + 1,
            added=held.added + measured - before,
            known=held.known + before,
            missing=held.missing + missing,
            failed=held.failed + failed,
            error=held.error or error,
        )


@final
class ScorerFinder:
    """Finds scorers session by session; caches tasks and plug-ins, which may be large.

    Args:
        task: names the task of its sessions; None to go by the log for all of them.

    Attributes:
        missing: why tasks could not be found, each reason once.

    Raises:
        InvalidInput: several packages offer a scorer of one name, or the task cannot be used.
    """

    def __init__(self, task: str | None = None) -> None:
        self.missing: list[str] = []
        self._given = None if task is None else named_task(task).task
        self._tasks: dict[tuple[str, LoadedFrom | None], RescorableTask | None] = {}
        found = map(find_scorer, scorer_names())
        self._plugins = [plugin for plugin in found if not plugin.asks_model]

    async def of(self, log: EventLog, session: str) -> list[Scorer]:
        """The scorers that are installed, and those of the session's task if that is; each once."""
        opened = await _opening(log, session)
        found: dict[ScorerRef, Scorer] = {}
        if isinstance(opened, SessionOpened):
            scorers = (*self._installed(opened), *self._of_task(opened))
        else:
            scorers = (*self._installed(_UNSAID),)
        for scorer in scorers:
            found.setdefault(scorer.ref, scorer)
        return list(found.values())

    def _installed(self, opened: SessionOpened) -> Iterator[Scorer]:
        for plugin in self._plugins:
            for rounds in _CONVENTIONS:
                scorer = _made(plugin, ScoringSetting(opened=opened, rounds=rounds))
                if scorer is not None:
                    yield scorer

    def _of_task(self, opened: SessionOpened) -> Sequence[Scorer]:
        key = opened.task, origins_of(opened).get("task")
        if key not in self._tasks:
            self._tasks[key] = self._find(opened)
        task = self._tasks[key]
        try:
            return () if task is None else task.scorers(opened)
        except InvalidInput:  # the data of the session are not available
            return ()

    def _find(self, opened: SessionOpened) -> RescorableTask | None:
        """The session's task, if it is here and can score recorded sessions; None if not."""
        task: Task
        if self._given is not None and self._given.name == opened.task:
            task = self._given
        else:
            try:
                task = recorded_task(opened).task
            except InvalidInput as error:
                if origins_of(opened):  # else it may be a product's, without a task
                    self.missing.append(str(error))
                return None
        return task if isinstance(task, RescorableTask) else None


def _made(plugin: ScorerPlugin, setting: ScoringSetting) -> Scorer | None:
    try:
        return plugin.make(setting)
    except InvalidInput:  # not for this session
        return None


async def _opening(log: EventLog, session: str) -> object:
    """The event that a session begins with; None if it has none."""
    async for record in log.read(session):
        return record.event
    return None
