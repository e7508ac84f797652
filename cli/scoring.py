"""Scores the sessions of a log afterwards, several at once, and counts what was done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import final

import anyio
import msgspec

from ..engine.errors import Divergence, InvalidInput, SessionInterrupted
from ..engine.events import Forgotten, ProgressRated, ScorerFailed, SessionOpened, UtilityScored
from ..engine.log.contract import EventLog
from ..engine.models.gateway import Models
from ..engine.models.prompting.conversation import ModelUse
from ..engine.rounds import Rounds
from ..engine.scorers.protocol import Scorer, stream_of
from ..scoring.rescore import rescore
from ..scoring.scorers.criterion import Criterion
from ..scoring.scorers.registry import ScorerPlugin, ScoringSetting
from .text.progress import RecordProgress

__all__ = ("Scored", "ScoringRun", "StreamScored", "reach_judge")

_CALL = "ModelCalled"


class StreamScored(msgspec.Struct, frozen=True, kw_only=True):
    """What one scorer, in one version, did.

    Attributes:
        scorer: ``name@version``.
        sessions: how many sessions it was run on.
        added: measurements added.
        known: measurements of it that the log held already.
        missing: of all these, scores and ratings that are missing, with a reason in the log.
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
        plugins: by name, what makes the scorers.
        rounds: how rounds are counted by scorers that score rounds.
        models: access to models, if one judges.
        use: the model that judges.
        criteria: the rubric, if there is one.
    """

    def __init__(
        self,
        log: EventLog,
        plugins: Mapping[str, ScorerPlugin],
        *,
        rounds: Rounds = "handoff",
        models: Models | None = None,
        use: ModelUse | None = None,
        criteria: tuple[Criterion, ...] = (),
    ) -> None:
        self._log = log
        self._plugins = plugins
        self._rounds: Rounds = rounds
        self._models = models
        self._use = use
        self._criteria = criteria
        self._streams: dict[str, StreamScored] = {}
        self._left_out: dict[str, Counter[str]] = {}
        self._forgotten = 0
        self._unfinished = 0
        self._why: str | None = None

    async def score(self, sessions: Sequence[str], *, concurrency: int) -> Scored:
        """Scores sessions, some at a time. Where models cannot go on, no further one is begun.

        Raises:
            LogError: the log failed.
        """
        waiting = iter(sessions)
        done = 0
        with RecordProgress("scoring", len(sessions)) as progress:

            async def work() -> None:
                nonlocal done
                for session in waiting:
                    if self._why is None and self._models is not None:
                        self._why = self._models.stopped
                    if self._why is not None:
                        self._unfinished += 1
                        continue
                    await self._score(session)
                    done += 1
                    progress(done)

            async with anyio.create_task_group() as workers:
                for _ in range(min(concurrency, len(sessions))):
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
        except (SessionInterrupted, Divergence) as error:
            self._unfinished += 1
            self._why = self._why or str(error)
        for scorer in scorers:
            stream = stream_of(scorer.ref)
            await self._count(session, scorer, before[stream])

    async def scorers(self, session: str) -> list[Scorer]:
        """The scorers that can be run on a session; counts what is left out, and why."""
        opened: object = None
        async for record in self._log.read(session):
            opened = record.event
            break
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
                    rounds=self._rounds,
                    models=self._models,
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


async def reach_judge(
    log: EventLog,
    judge: str,
    asking: Sequence[str],
    *,
    api_base: str | None,
    cache: str | None,
    tokens: int | None,
    cost: float | None,
    upto: int | None = None,
) -> tuple[Models | None, ModelUse]:
    """Access to the judge's model; what these scorers used on this log before counts.

    Args:
        log: the log.
        judge: name of the model.
        asking: names of the scorers that ask it.
        api_base: where it is.
        cache: directory of the response cache.
        tokens: that they may use in all.
        cost: US dollars that they may cost in all.
        upto: only what they used up to this position of the log; None for all.
    """
    from ..engine.models.traffic.budget import spending
    from .experiment.spec import BudgetTable, Experiment

    experiment = Experiment(
        task="",
        judge_model=judge,
        api_base=api_base,
        cache=cache,
        budget=BudgetTable(tokens=tokens, cost=cost),
    )
    models = experiment.reach(await spending(log, by=asking, upto=upto))
    return models, experiment.setting(models).uses[judge]
