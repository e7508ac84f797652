"""Runs a product that records sessions, with everything plugged in that a product may plug in, each of
which may raise anything at any of its calls; and checks that nothing else is harmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import final

import anyio
import anyio.lowlevel
import msgspec

from ...engine.errors import PluginFailed
from ...engine.events import NoteTaken, ScorerFailed, ScorerRef, SessionOpened
from ...engine.log.consumer import run_consumer
from ...engine.log.exchange.jsonl_export import export_jsonl
from ...engine.log.follower import Output
from ...engine.log.memory import MemoryLog
from ...engine.records import TRACE, Draft, Record
from ...engine.scorers.protocol import Measurement, SessionScorer, stream_of
from ...scoring.check import check_session
from ...scoring.replay import replay
from ...scoring.scorers.progress import rule_judge
from ...scoring.scorers.retention import RetentionUtility
from ...scoring.trajectory.updates import Update
from ...telemetry.log import Log
from ..tools import collect, require
from .faults import WildError, failure_text
from .loop import SimulatedLoop
from .model import check_import, check_trace
from .scenario import PLUG_INS, Outcome, Scenario

__all__ = ("run_product_scenario",)

_SUMS = "sums"  # the session that the consumer writes to


def run_product_scenario(scenario: Scenario) -> Outcome:
    """Runs the product of a seed."""
    run = _Run(scenario)
    loop = SimulatedLoop(run.before_step)  # type: ignore[abstract]
    failure = ""
    try:
        loop.run_until_complete(run.main())
        require(not loop.errors, f"nobody caught this: {loop.errors}")
        require(not loop.tasks(), f"tasks are left: {loop.tasks()}")
    except (Exception, WildError, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 (the find)
        failure = failure_text(error)
    finally:
        loop.abandon()
        loop.close()
    return Outcome(failure, tuple(run.happened), loop.steps)


@final
class _Fuses:
    """Has each kind of plug-in raise at numbers of its calls."""

    def __init__(self, scenario: Scenario) -> None:
        self._at = {(each.kind, each.at): each.draw for each in scenario.faults}
        self._calls = dict.fromkeys(PLUG_INS, 0)
        self.raised = dict.fromkeys(PLUG_INS, 0)

    def call(self, kind: str) -> None:
        """Counts a call."""
        self._calls[kind] += 1
        draw = self._at.get((kind, self._calls[kind]))
        if draw is None:
            return
        self.raised[kind] += 1
        raise (
            ValueError("fuse"),
            asyncio.CancelledError("fuse"),
            WildError("fuse"),
            SystemExit(1),
        )[draw % 4]


@final
class _Run:
    def __init__(self, scenario: Scenario) -> None:
        self._random = Random(f"product {scenario.seed}")
        self._fuses = _Fuses(scenario)
        self._cancels = {each.at: each.draw for each in scenario.faults if each.kind == "cancel"}
        self._products: list[asyncio.Task[None]] = []
        self._cancelled = 0
        self._said: dict[str, list[str]] = {}
        self._refused: set[str] = set()
        self._unbearable: dict[bytes, BaseException] = {}
        self._unmeasured: set[str] = set()  # streams of scorers of which the hook refused something
        self._unsaid: set[str] = set()  # and of which it also refused to say so
        self._unopened = False  # what opens a session was refused: nothing of it can be written
        self._updates: list[Update] = []

    @property
    def happened(self) -> list[str]:
        """The kinds of plug-in that raised, one item for each time."""
        raised = self._fuses.raised
        return [kind for kind, count in raised.items() for _ in range(count)] + [
            "cancel"
        ] * self._cancelled

    def before_step(self, step: int) -> None:
        """Cancels tasks of the product when their time has come."""
        draw = self._cancels.get(step)
        open_tasks = [task for task in self._products if not task.done()]
        if draw is not None and open_tasks:
            self._cancelled += open_tasks[draw % len(open_tasks)].cancel()

    async def main(self) -> None:
        """The whole run."""
        store = MemoryLog(redact=self._redact)
        async with Log(store, retry=0.05) as log:
            scorers = (RetentionUtility(), rule_judge(), _Scorer(self._fuses, "observe"))
            watching = log.watch(
                scorers=(*scorers, _Scorer(self._fuses, "attend")),
                on_update=self._on_update,
                on_stop=self._on_stop,
            ).start()
            loop = asyncio.get_running_loop()
            consumer = loop.create_task(self._consume(log))
            names = [f"p{number}" for number in range(self._random.randint(1, 3))]
            self._products = [loop.create_task(self._product(log, name)) for name in names]
            for task in self._products:
                await asyncio.wait([task])
            for task in self._products:
                if not task.cancelled() and (error := task.exception()) is not None:
                    raise error
            await log.settle()
            await log.settle()  # records stop advice that was given meanwhile
            consumer.cancel()
            await asyncio.wait([consumer])
            require(consumer.cancelled(), f"the consumer ended: {consumer}")
            statistics = watching.statistics()
            callbacks = self._fuses.raised["on_update"] + self._fuses.raised["on_stop"]
            require(statistics.failed == callbacks, "callbacks that fail are counted")
            await self._check(log, names)

    # --- the product ------------------------------------------------------------------------------

    async def _product(self, log: Log, name: str) -> None:
        """Records a session; nothing that is plugged in may be seen here."""
        said = self._said[name] = []
        session = await log.session(name, task="writing")
        await session.human.says(self._text(said, name))
        for number in range(self._random.randint(1, 4)):
            await session.agent.says(self._text(said, name))
            await session.agent.submits(f"Draft {number} of {name}, which says this and that.")
            durable = self._random.random() < 0.4
            text = self._text(said, name)
            try:
                await session.human.says(text, durable=durable)
            except PluginFailed:  # of the redaction hook: the caller asked what became of it
                known = text in self._refused or self._unopened
                require(durable and known, "only who waits learns of a refusal")
            if self._random.random() < 0.5:
                await session.human.rates(self._random.randint(1, 5))
            for _ in range(self._random.randrange(4)):
                await anyio.lowlevel.checkpoint()

    def _text(self, said: list[str], name: str) -> str:
        text = f"message {len(said)} of {name}"
        said.append(text)
        return text

    async def _consume(self, log: Log) -> None:
        """Runs a consumer, and again whenever it has failed, as whoever looks after one does."""
        while True:
            try:
                await run_consumer(log, _Counter(self._fuses), batch=3)
            except (PluginFailed, ValueError):
                await anyio.sleep(0.01)

    # --- what is plugged in -----------------------------------------------------------------------

    def _redact(self, draft: Draft) -> Draft:
        """A hook that cannot bear some events, however often it is asked."""
        key = msgspec.json.encode(draft.event)
        if (raised := self._unbearable.get(key)) is not None:
            raise raised.with_traceback(None)
        try:
            self._fuses.call("hook")
        except BaseException as error:
            self._unbearable[key] = error
            self._refused.add(getattr(draft.event, "text", ""))
            self._unopened = self._unopened or isinstance(draft.event, SessionOpened)
            scorer = getattr(draft.event, "scorer", None)
            if isinstance(scorer, ScorerRef):
                self._unmeasured.add(stream_of(scorer))
                if isinstance(draft.event, ScorerFailed):
                    self._unsaid.add(stream_of(scorer))
            raise
        return draft

    async def _on_update(self, update: Update) -> None:
        self._updates.append(update)
        await anyio.lowlevel.checkpoint()
        self._fuses.call("on_update")

    def _on_stop(self, _advice: object) -> None:
        self._fuses.call("on_stop")

    def _progress(self, _done: int) -> None:
        self._fuses.call("progress")

    # --- what must hold ---------------------------------------------------------------------------

    async def _check(self, log: Log, names: Sequence[str]) -> None:
        records = await collect(log.read_all())
        positions = [record.position for record in records]
        require(positions == list(range(1, len(records) + 1)), f"positions have gaps: {positions}")
        for name in names:
            await self._check_session(log, name, [r for r in records if r.session == name])
        replayed = await collect(replay(log))
        require(self._updates == replayed, "live updates must equal replayed ones")
        self._check_consumer(records)
        said = {record.stream for record in records if isinstance(record.event, ScorerFailed)}
        silent = self._unmeasured - self._unsaid - said
        require(not silent, f"nobody says that a measurement is missing: {silent}")
        verification = await log.verify()
        require(not verification.problems, f"verify: {verification.problems[:1]}")
        await check_import(records)
        await self._check_export(log, len(records))

    async def _check_session(self, log: Log, name: str, records: Sequence[Record]) -> None:
        trace = [record for record in records if record.stream == TRACE]
        check_trace(trace)
        texts = [text for r in trace if (text := getattr(r.event, "text", ""))]
        kept = [text for text in self._said.get(name, ()) if text not in self._refused]
        partly = self._cancelled > 0 or self._unopened
        complete = texts == kept or (partly and texts == [text for text in kept if text in texts])
        require(complete, f"{kept} became {texts}")
        failed = [r.stream for r in records if isinstance(r.event, ScorerFailed)]
        # Measurements pass the redaction hook too, and it may refuse them.
        allowed = {"observe@1", "attend@1", *self._unmeasured}
        require(set(failed) <= allowed, f"others failed as well: {failed}")
        require(len(set(failed)) == len(failed), f"a scorer that fails is noted once: {failed}")
        if trace and not self._unmeasured:
            checked = await check_session(log, name, (RetentionUtility(), rule_judge()))
            require(not checked.differences, f"check: {checked.differences[:1]}")

    def _check_consumer(self, records: Sequence[Record]) -> None:
        counted = [
            int(getattr(record.event, "text", "0"))
            for record in records
            if record.session == _SUMS and record.stream == "counted"
        ]
        wanted = [r.position for r in records if r.session != _SUMS]
        require(counted == wanted[: len(counted)], f"a consumer gets all, once: {counted}")

    async def _check_export(self, log: Log, count: int) -> None:
        """The function that shows progress may fail; then the export does, and not the product."""
        try:
            done = await _exported(log, self._progress)
        except (PluginFailed, ValueError):
            require(self._fuses.raised["progress"] > 0, "an export fails for a reason")
        else:
            require(done == count, "an export holds all")


async def _exported(log: Log, progress: Callable[[int], None]) -> int:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as directory:
        return await export_jsonl(log, Path(directory) / "log.jsonl", progress=progress)


@final
class _Counter:
    """A consumer that notes the position of each record, once."""

    name = "counter"
    version = "1"

    def __init__(self, fuses: _Fuses) -> None:
        self._fuses = fuses

    async def consume(self, records: Sequence[Record]) -> Sequence[Output]:
        await anyio.lowlevel.checkpoint()
        self._fuses.call("consumer")
        drafts = [
            Draft(NoteTaken(text=str(record.position)), "counter", "agent", 1.0)
            for record in records
            if record.session != _SUMS
        ]
        return [Output(_SUMS, "counted", drafts)] if drafts else []


@final
class _Scorer:
    """Measures nothing, and may fail; ``attend`` awaits something, ``observe`` nothing."""

    def __init__(self, fuses: _Fuses, kind: str) -> None:
        self._fuses = fuses
        self._kind = kind
        self.ref = ScorerRef(name=kind, version="1", config="")

    def begin(self, session: str) -> SessionScorer:
        if self._kind == "attend":
            return _Waiting(self._fuses)
        return _Computing(self._fuses)


@final
class _Computing:
    def __init__(self, fuses: _Fuses) -> None:
        self._fuses = fuses

    async def observe(self, record: Record) -> Sequence[Measurement]:
        self._fuses.call("observe")
        return ()


@final
class _Waiting:
    def __init__(self, fuses: _Fuses) -> None:
        self._fuses = fuses

    async def observe(self, record: Record) -> Sequence[Measurement]:
        await anyio.lowlevel.checkpoint()
        self._fuses.call("attend")
        return ()
