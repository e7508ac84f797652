"""Every place where a plug-in is called, with everything that a plug-in may raise.

In each case the code around it is not cancelled and the program does not end. The failure is
recorded, counted or raised as an exception, and everything independent of the plug-in continues.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import NoReturn

import anyio
import anyio.lowlevel
import duolog
import pytest
from duolog.engine import task as tasks
from duolog.engine.events import (
    ActionResolved,
    ActorFailed,
    ScorerFailed,
    ScorerRef,
    StopAdvised,
    UtilityScored,
)
from duolog.engine.log.consumer import run_consumer
from duolog.engine.log.contract import EventLog
from duolog.engine.log.exchange.jsonl_export import export_jsonl
from duolog.engine.log.exchange.jsonl_import import import_jsonl
from duolog.engine.log.follower import Output
from duolog.engine.log.open import MemoryLog, open_log
from duolog.engine.models.gateway import Models
from duolog.engine.models.protocol import Message, ModelReply, ModelRequest
from duolog.engine.records import Draft, Record
from duolog.engine.scorers.protocol import Measurement, SessionScorer
from duolog.engine.session.actors import playing
from duolog.engine.session.decisions import Decision
from duolog.engine.session.environment import Action, Outcome
from duolog.engine.session.simulation import simulate
from duolog.engine.session.view import View
from duolog.interop.follow import Step
from duolog.interop.importers.json_sniff import Shape
from duolog.interop.importers.protocol import Found, Reading
from duolog.interop.importers.run import import_foreign
from duolog.interop.litellm.recorder import CallRecorder
from duolog.scoring.live import score_log, score_sessions, watch
from duolog.scoring.trajectory.options import Options
from duolog.telemetry.live_updates import LiveUpdates
from duolog.telemetry.log import Log
from duolog.testing import Script, Workshop, a_session, agent, played
from duolog.testing.tools import message
from http_server import serving
from log_measurements import last_utility


class Odd(BaseException):
    """No exception that anybody expects."""


async def gone() -> NoReturn:
    """Awaits a cancelled task."""
    task = asyncio.ensure_future(anyio.sleep_forever())
    task.cancel()
    await task
    raise AssertionError


KINDS: Mapping[str, Callable[[], BaseException]] = {
    "RuntimeError": lambda: RuntimeError("odd"),
    "CancelledError": lambda: asyncio.CancelledError("odd"),
    "SystemExit": lambda: SystemExit("odd"),
    "GeneratorExit": lambda: GeneratorExit("odd"),
    "Odd": lambda: Odd("odd"),
}


class Fault:
    """The behaviour of a broken plug-in."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def now(self) -> NoReturn:
        raise KINDS[self.kind]()

    async def soon(self) -> NoReturn:
        """Fails as a coroutine does: while it waits for something."""
        await anyio.lowlevel.checkpoint()
        if self.kind == "CancelledError":
            await gone()
        self.now()


Seam = Callable[[Fault, Path], Awaitable[str]]
SEAMS: dict[str, Seam] = {}


def seam(function: Seam) -> Seam:
    SEAMS[function.__name__] = function
    return function


async def raised(call: Awaitable[object]) -> str:
    """The error that a call raises, which has to be an exception."""
    with pytest.raises(Exception) as found:  # noqa: PT011  (of any kind)
        await call
    error: BaseException = found.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


# --- in a simulation -------------------------------------------------------------------------------


async def failed_actor(session: duolog.Session) -> str:
    trace = (await played(session, fails=True)).trace
    [failure] = [r.event for r in trace if isinstance(r.event, ActorFailed)]
    assert trace[-1].kind == "SessionClosed"
    return failure.type


@seam
async def an_actor(fault: Fault, _: Path) -> str:
    return await failed_actor(a_session(agent(Script().then(lambda _: fault.soon()))))


@seam
async def a_policy(fault: Fault, _: Path) -> str:
    class Broken:
        async def decide(self, view: View) -> Decision:
            await fault.soon()

    return await failed_actor(a_session(agent(playing(Broken()))))


@seam
async def an_environment(fault: Fault, _: Path) -> str:
    class Broken:
        actions = Workshop().actions

        async def perform(self, action: Action) -> Outcome:
            await fault.soon()

        def recall(self, action: Action, resolved: ActionResolved) -> None:
            pass

    return await failed_actor(
        a_session(agent(Script().act("search").pause(1)), environment=Broken())
    )


class Raising:
    """A scorer that fails at a given method, in sessions of one name."""

    ref = ScorerRef(name="raising", version="1", config="-")

    def __init__(self, fault: Fault, where: str) -> None:
        self._fault = fault
        self._where = where

    def begin(self, session: str) -> SessionScorer:
        if self._where == "begin" and session != "fine":
            self._fault.now()
        return self if session != "fine" else Fine()

    async def observe(self, record: Record) -> Sequence[Measurement]:
        await self._fault.soon()


class Fine:
    async def observe(self, record: Record) -> Sequence[Measurement]:
        scored = UtilityScored(scorer=Raising.ref, round=1, value=0.5)
        return (Measurement(scored, f"record/{record.version}"),)


async def failures(log: EventLog, session: str) -> list[str]:
    events = [record.event async for record in log.read_all(session=session)]
    return [event.type for event in events if isinstance(event, ScorerFailed)]


async def simulated(fault: Fault, where: str) -> str:
    async with open_log("memory://") as log:
        session = a_session(agent(Script().say("x")), scorers=(Raising(fault, where),))
        result = await duolog.run_session(log, session)
        assert result.reason != "failed"
        [failure] = await failures(log, session.id)
        return failure


@seam
async def a_scorer_that_begins(fault: Fault, _: Path) -> str:
    return await simulated(fault, "begin")


@seam
async def a_scorer(fault: Fault, _: Path) -> str:
    return await simulated(fault, "observe")


@seam
async def a_rule_of_stops(fault: Fault, _: Path) -> str:
    class Rule:
        def feed(self, record: Record) -> StopAdvised | None:
            fault.now()

    async with open_log("memory://") as log:
        session = a_session(agent(Script().say("x")), stop=Rule())
        assert (await duolog.run_session(log, session)).reason != "failed"
        [failure] = await failures(log, session.id)
        return failure


@seam
async def a_maker_of_sessions(fault: Fault, _: Path) -> str:
    async with open_log("memory://") as log:
        return await raised(simulate(log, [fault.now]))


@seam
async def on_outcome(fault: Fault, _: Path) -> str:
    async with open_log("memory://") as log:
        sessions = [lambda: a_session(agent(Script().say("x")))]
        return await raised(simulate(log, sessions, on_outcome=lambda _: fault.now()))


@seam
async def a_task(fault: Fault, _: Path) -> str:
    with pytest.MonkeyPatch.context() as patch:
        entry = EntryPoint("broken", f"{__name__}:broken", tasks.GROUP)
        patch.setattr(EntryPoint, "load", lambda _: fault.now)
        patch.setattr(tasks, "entry_points", lambda group: [entry])

        async def find() -> None:
            tasks.find_task("broken")

        return await raised(find())


@seam
async def a_client_of_models(fault: Fault, _: Path) -> str:
    class Broken:
        async def complete(self, request: ModelRequest) -> ModelReply:
            await fault.soon()

    request = ModelRequest(model="m", messages=(Message(role="user", content="hello"),))
    return await raised(Models(Broken()).attempt(request))


# --- next to a product -----------------------------------------------------------------------------


async def converse(log: Log, *, rounds: int = 1) -> None:
    s = await log.session("broken", judge="rule-judge")
    for _ in range(rounds):
        await s.human.says("No, that is wrong.")
        await s.agent.says("Sorry.")
    await s.human.says("No.", durable=True)


@seam
async def a_scorer_beside_a_log(fault: Fault, _: Path) -> str:
    async with duolog.open("memory://") as log:
        updates = log.watch(scorers=[Raising(fault, "observe")]).start()
        await converse(log)
        fine = await log.session("fine")
        await fine.human.says("x", durable=True)
        await updates.settle()
        assert await last_utility(log, "fine") == 0.5
        assert updates.statistics().scorers[0].quarantined == 1
        [failure] = await failures(log, "broken")
        return failure


async def counted(log: Log, updates: LiveUpdates, caplog: pytest.LogCaptureFixture) -> str:
    await converse(log, rounds=4)
    await updates.settle()
    statistics = updates.statistics()
    assert statistics.failed > 1, "it was called again"
    assert statistics.position == log.statistics().position
    return caplog.text


# --- the log ---------------------------------------------------------------------------------------


@seam
async def a_redaction_hook(fault: Fault, _: Path) -> str:
    def redact(draft: Draft) -> Draft:
        if getattr(draft.event, "text", "") == "secret":
            fault.now()
        return draft

    async with duolog.open("memory://", redact=redact) as log:
        s = await log.session("s")
        before = await s.human.says("before")
        secret = await s.human.says("secret")
        after = await s.human.says("after")
        await log.settle()
        assert before.version is not None
        assert after.version is not None
        assert secret.version is None
        statistics = log.recorder.statistics()
        assert (statistics.waiting, statistics.failed + statistics.refused) == (0, 1)
        assert not [r async for r in log.read_all() if "secret" in str(r.body)]
        return str(secret.error)


@seam
async def a_consumer(fault: Fault, _: Path) -> str:
    class Broken:
        name, version = "broken", "1"

        async def consume(self, records: Sequence[Record]) -> Sequence[Output]:
            await fault.soon()

    async with MemoryLog() as log:
        await log.append("s", [message("x")])
        said = await raised(run_consumer(log, Broken(), upto=1))
        assert await log.checkpoint("broken", "1") == 0
        return said


@seam
async def progress_of_json_lines(fault: Fault, path: Path) -> str:
    async with MemoryLog() as log:
        await log.append("s", [message("x")])
        await export_jsonl(log, path / "log.jsonl")
        said = await raised(export_jsonl(log, path / "other", progress=lambda _: fault.now()))
        async with MemoryLog() as other:
            source = io.BytesIO((path / "log.jsonl").read_bytes())
            assert said == await raised(import_jsonl(other, source, progress=lambda _: fault.now()))
        return said


class Reader:
    """An importer that fails, or finds nothing."""

    name, about = "broken", "nothing"

    def __init__(self, fault: Fault | None = None) -> None:
        self._fault = fault

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        return True

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        if self._fault is not None:
            self._fault.now()
        yield from ()


@seam
async def an_importer(fault: Fault, path: Path) -> str:
    async with MemoryLog() as log:
        return await raised(import_foreign(log, path, Reader(fault)))


@seam
async def progress_of_an_import(fault: Fault, path: Path) -> str:
    async with MemoryLog() as log:
        return await raised(import_foreign(log, path, Reader(), progress=lambda _: fault.now()))


@seam
async def a_counter_of_tokens(fault: Fault, _: Path) -> str:
    def count(text: str) -> int:
        if text == "x":
            fault.now()
        return 1

    async with MemoryLog() as log:
        await log.append("s", [message("x")])
        await log.append("fine", [message("y")])
        async with watch(log, options=Options(count=count)) as updates:
            said = await raised(updates.step())
            assert (await updates.step())[0].session == "fine"
        return said


@seam
async def a_counter_of_tokens_where_a_session_is_scored(fault: Fault, _: Path) -> str:
    async with MemoryLog() as log:
        await log.append("s", [message("x")])
        return await raised(score_log(log, "s", Options(count=lambda text: fault.now())))


@seam
async def a_rule_of_deferrals_where_all_sessions_are_scored(fault: Fault, _: Path) -> str:
    async with MemoryLog() as log:
        await log.append("s", [message("x")])
        return await raised(anext(score_sessions(log, Options(vague=lambda text: fault.now()))))


# --- tests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SEAMS)
async def test_what_a_plug_in_raises_stays_its_own_failure(
    name: str, kind: str, tmp_path: Path
) -> None:
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()
    with anyio.fail_after(120):
        said = await SEAMS[name](Fault(kind), tmp_path)
    assert kind in said
    assert task.cancelling() == before
    await anyio.lowlevel.checkpoint()  # raises if a cancellation was left behind


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("callback", ["on_update", "on_stop"])
async def test_what_a_callback_raises_is_logged_and_counted(
    callback: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(update: object) -> None:
        await Fault(kind).soon()

    async with duolog.open("memory://") as log:
        judge = duolog.rule_judge()
        updates = log.watch(
            scorers=[judge],
            on_update=broken if callback == "on_update" else None,
            on_stop=broken if callback == "on_stop" else None,
        ).start()
        assert kind in await counted(log, updates, caplog)


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_callback_raises_does_not_reach_who_takes_the_updates(kind: str) -> None:
    """The product's own loop over updates, which a made-up cancellation used to end."""

    async def broken(update: object) -> None:
        await Fault(kind).soon()

    async with duolog.open("memory://") as log, log.watch(on_update=broken) as updates:
        await converse(log)
        taken = [await anext(updates) for _ in range(2)]
        assert len(taken) == updates.statistics().failed == 2


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_callback_of_the_synchronous_log_raises_is_counted(kind: str) -> None:
    with duolog.open_sync("memory://") as log:
        seen: list[object] = []

        def broken(update: object) -> None:
            seen.append(update)
            Fault(kind).now()

        updates = log.watch(on_update=broken)
        log.session("s").human.says("x", durable=True)
        updates.settle()
        assert updates.statistics().failed == len(seen) > 0


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "RuntimeError"])
async def test_what_follows_a_log_for_http_fails_its_own_stream(kind: str) -> None:
    @asynccontextmanager
    async def broken(
        log: EventLog, session: str | None, after: int
    ) -> AsyncIterator[AsyncIterator[Step]]:
        async def steps() -> AsyncIterator[Step]:
            async for record in log.read_all():
                if record.version == 1:
                    await Fault(kind).soon()
                yield record, ()

        yield steps()

    async with MemoryLog() as log, serving(log, updates=broken) as (client, _):
        await log.append("s", [message("x")])
        async with client.follow("?updates=1") as events:
            told = [event async for event in events]
        assert kind in str(told[-1].data["message"])
        assert (await client.get("/healthz")).status == 200


@pytest.mark.parametrize("kind", KINDS)
async def test_what_an_object_of_litellm_raises_is_counted(kind: str) -> None:
    class Details(dict[str, object]):
        def get(self, key: str, default: object = None) -> NoReturn:
            Fault(kind).now()

    async with duolog.open("memory://") as log:
        calls = CallRecorder(log, {})
        calls.begin(Details())
        assert calls.statistics().failed == 1
