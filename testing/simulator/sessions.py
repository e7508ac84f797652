"""Runs sessions on virtual time, with policies, scorers and processes that fail, and checks the log's promises.

Live updates equal the replay and a later fold; an interrupted session ends as it would have;
a scorer that fails leaves the trace as it is; a policy that fails does not end others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar, final

import anyio

from ...engine.errors import Divergence
from ...engine.events import ScorerRef, SessionClosed
from ...engine.log.memory import MemoryLog
from ...engine.records import TRACE, Record
from ...engine.scorers.protocol import Measurement, Scorer, SessionScorer
from ...engine.session.actors import playing
from ...engine.session.decisions import Decision
from ...engine.session.limits import Limits
from ...engine.session.runner import Session, run_session
from ...engine.session.view import View
from ...scoring.check import check_session
from ...scoring.live import watch
from ...scoring.replay import replay
from ...scoring.scorers.progress import rule_judge
from ...scoring.scorers.retention import RetentionUtility
from ...scoring.trajectory.updates import AnyUpdate
from ..actors import Improviser, agent, human
from ..sessions import Workshop, a_session, streams
from ..tools import collect, require
from .faults import Ended, WildError, failure_text
from .loop import SimulatedLoop, bury
from .model import check_import, check_trace
from .scenario import Fault, Outcome, Scenario

__all__ = ("run_session_scenario",)

T = TypeVar("T")

_SESSION = "session"


def run_session_scenario(scenario: Scenario) -> Outcome:
    """Runs the session of a seed without faults, and again with each of the scenario's."""
    run = _Run(scenario.seed)
    happened: list[str] = []
    try:
        run.undisturbed()
        happened.extend(fault.kind for fault in scenario.faults if run.disturbed(fault))
    except Exception as error:  # noqa: BLE001 (whatever it is, it is what was looked for)
        return Outcome(failure_text(error), tuple(happened), run.steps)
    return Outcome("", tuple(happened), run.steps)


@final
class _Run:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.steps = 0
        self._wanted: dict[str, list[Record]] = {}

    def undisturbed(self) -> None:
        """The session as it is when nothing fails: watched, replayed, checked, imported."""

        async def whole() -> None:
            async with MemoryLog() as log:
                live: list[AnyUpdate] = []
                async with watch(log) as updates, anyio.create_task_group() as tasks:
                    tasks.start_soon(_follow, updates, live)
                    await run_session(log, self._session())
                    await updates.settle()
                    for _ in range(3):
                        await anyio.lowlevel.checkpoint()
                    tasks.cancel_scope.cancel()
                replayed = await collect(replay(log))
                require(live == replayed, "live updates must equal replayed ones")
                self._wanted = await streams(log, _SESSION)
                checked = await check_session(log, _SESSION, _scorers())
                require(not checked.differences, f"check: {checked.differences[:1]}")
                await _check(log)

        self._go(whole, None, 0)

    def disturbed(self, fault: Fault) -> bool:
        """The session with a fault; whether that took place."""
        log = MemoryLog()
        happened: list[bool] = []
        policy = _Fuse(fault if fault.kind == "policy" else None, happened)
        scorer = _Fuse(fault if fault.kind == "scorer" else None, happened)

        async def begun() -> None:
            await run_session(log, self._session(policy, scorer))

        self._go(log.__aenter__, None, 0)
        # The first step begins the task: nothing was done before it.
        at = max(2, fault.at) if fault.kind in ("kill", "cancel") else 0
        ended = self._go(begun, fault.kind, at)
        if ended:
            bury()
        self._go(lambda: self._after(log, fault.kind, scorer, bool(happened), ended), None, 0)
        return bool(happened) or ended

    async def _after(
        self, log: MemoryLog, kind: str, scorer: _Fuse, happened: bool, ended: bool
    ) -> None:
        """Checks a session that was disturbed, and continues it."""
        if kind in ("kill", "cancel"):
            if not ended:
                require(await streams(log, _SESSION) == self._wanted, "one seed is one session")
                return
            async with MemoryLog() as copy:
                await copy.restore(await collect(log.read_all()))
                await self._resume(copy, cancelled=kind == "cancel")
                await _check(copy)
            return
        await _check(log)
        found = await streams(log, _SESSION)
        if kind == "scorer":
            require(found[TRACE] == self._wanted[TRACE], "a scorer that fails changes no trace")
            own = found.get("fuse@1", [])
            require(len(own) == int(happened), "a scorer that fails is noted, once")
            require(
                not happened or scorer.calls == scorer.at, "a scorer that failed is asked no more"
            )
        elif happened:
            closed = found[TRACE][-1].event
            failed = isinstance(closed, SessionClosed) and closed.reason == "failed"
            require(failed, "a policy that fails closes its session as failed")

    async def _resume(self, log: MemoryLog, *, cancelled: bool) -> None:
        found = await streams(log, _SESSION)
        last = found[TRACE][-1].event if TRACE in found else None
        if cancelled and isinstance(last, SessionClosed) and last.reason == "cancelled":
            return  # it was told to end, and has
        try:
            await run_session(log, self._session())
        except Divergence as error:
            raise AssertionError(f"a session that was cut off continues: {error}") from error
        resumed = await streams(log, _SESSION)
        require(resumed == self._wanted, "a session that was cut off must end as it would have")

    def _session(self, policy: _Fuse | None = None, scorer: _Fuse | None = None) -> Session:
        random = Random(f"session {self._seed}")
        actions = ("look", "search", "fumble")
        count = random.choice((3, 6, 10))
        user = _Policy(Improviser(count, actions), policy or _Fuse(None, []))
        helper = Improviser(None, actions)
        return a_session(
            human(playing(user)),
            agent(playing(helper)),
            id=_SESSION,
            seed=self._seed,
            environment=Workshop(),
            request="Do something." if random.random() < 0.7 else None,
            limits=Limits(actions=20),
            scorers=(*_scorers(), _FailingScorer(scorer or _Fuse(None, []))),
        )

    def _go(self, main: Callable[[], Any], kind: str | None, at: int) -> bool:
        """Runs a coroutine function on a new loop; returns whether it was ended or cancelled."""
        tasks: list[asyncio.Task[object]] = []

        def before(step: int) -> None:
            if step == at and kind == "kill":
                raise Ended
            if step == at and kind == "cancel" and tasks:
                tasks[0].cancel()

        loop = SimulatedLoop(before)  # type: ignore[abstract]
        ended = False
        tasks.append(loop.create_task(main()))
        try:
            loop.run_until_complete(tasks[0])
        except Ended:
            ended = True
        except asyncio.CancelledError:
            require(kind == "cancel", "a cancellation that nobody asked for")
            ended = True
        finally:
            self.steps += loop.steps
            loop.abandon()
        require(ended or not loop.errors, f"nobody caught this: {loop.errors}")
        return ended


async def _follow(updates: Any, live: list[AnyUpdate]) -> None:  # noqa: ANN401 (an iterator of updates)
    async for update in updates:
        live.append(update)  # noqa: PERF401 (one by one: it is cancelled in between)


async def _check(log: MemoryLog) -> None:
    """Checks a log that holds one session."""
    records = await collect(log.read_all())
    found = await streams(log, _SESSION)
    if TRACE in found:
        check_trace(found[TRACE])
    verification = await log.verify()
    require(not verification.problems, f"verify: {verification.problems[:1]}")
    await check_import(records)


def _scorers() -> tuple[Scorer, ...]:
    return (RetentionUtility(), rule_judge())


@final
class _Fuse:
    """Raises at a number of calls."""

    def __init__(self, fault: Fault | None, happened: list[bool]) -> None:
        self._fault = fault
        self._happened = happened
        self.calls = 0
        self.at = fault.at if fault is not None else 0

    def call(self) -> None:
        self.calls += 1
        fault = self._fault
        if fault is None or self.calls != self.at:
            return
        self._happened.append(True)
        raise (ValueError("fuse"), asyncio.CancelledError("fuse"), WildError("fuse"))[
            fault.draw % 3
        ]


@final
class _Policy:
    def __init__(self, policy: Improviser, fuse: _Fuse) -> None:
        self._policy = policy
        self._fuse = fuse

    async def decide(self, view: View) -> Decision:
        self._fuse.call()
        return await self._policy.decide(view)


@final
class _FailingScorer:
    """Measures nothing, and may fail."""

    ref = ScorerRef(name="fuse", version="1", config="")

    def __init__(self, fuse: _Fuse) -> None:
        self._fuse = fuse

    def begin(self, session: str) -> SessionScorer:
        return _FailingSession(self._fuse)


@final
class _FailingSession:
    def __init__(self, fuse: _Fuse) -> None:
        self._fuse = fuse

    async def observe(self, record: Record) -> Sequence[Measurement]:
        self._fuse.call()
        return ()
