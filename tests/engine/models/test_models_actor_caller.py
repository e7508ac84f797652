"""Model calls of actors: which take session time, what a view leads to, and late replies."""

from __future__ import annotations

import gc
import logging
import re
import types
from collections.abc import Callable, Iterator

import anyio
import pytest
import structlog
from duolog.engine.errors import ModelTimeout
from duolog.engine.events import ModelCalled, Participant, Role, Tokens
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.models import (
    ActorCaller,
    Caller,
    Message,
    ModelReply,
    ModelRequest,
    Models,
    Retry,
    ScriptedModel,
    Terms,
    model_actor,
)
from duolog.engine.records import TRACE, Record
from duolog.engine.session.actors import Player, Policy, playing
from duolog.engine.session.context import ActorContext
from duolog.engine.session.decisions import NOTHING, Decision, Finish, Say, Wait
from duolog.engine.session.runner import run_session
from duolog.engine.session.sequencer import Sequencer
from duolog.engine.session.time.clock import RealClock, VirtualClock
from duolog.engine.session.time.timing import Timing
from duolog.engine.session.view import View
from duolog.testing import Improviser, Script, a_session, agent, human, streams
from hypothesis import given
from hypothesis import strategies as st
from virtual_loop import in_virtual_time

TIMING = Timing(agent_step=2.0, agent_tps=10.0, human_step=5.0, type_wpm=60.0, read_wpm=60.0)
WRITTEN = Tokens(prompt=50, completion=30)  # 2 s until it starts, 3 s of writing


class Once:
    """Asks so many times, then decides on something; afterwards it finishes."""

    def __init__(self, caller: Caller, decision: Decision, times: int = 1) -> None:
        self._caller = caller
        self._decision = decision
        self._times = times
        self._done = False

    async def decide(self, view: View) -> Decision:
        if view.pending is not None:
            return view.pending
        if self._done:
            return Decision((Finish(),), 0.0)
        self._done = True
        for number in range(self._times):
            message = Message(role="user", content=str(number))
            await self._caller.ask(ModelRequest(model="m", messages=(message,)), purpose="act")
        return self._decision


async def run_once(
    log: EventLog, models: Models, decision: Decision, role: Role = "agent", times: int = 1
) -> list[Record]:
    """One actor that asks and decides, with another that does nothing."""
    me = Participant(name="me", role=role)
    player = Player(me, model_actor(models, lambda caller: Once(caller, decision, times)))
    other = Script().hear(within=1000.0)
    players = (player, human(other)) if role == "agent" else (player, agent(other))
    await run_session(log, a_session(*players, timing=TIMING))
    return (await streams(log, "session"))[TRACE]


def saying(reply: ModelReply) -> Models:
    return Models(ScriptedModel(lambda request: reply))


def time_of(records: list[Record], kind: str, actor: str = "me") -> float:
    return next(r.time for r in records if r.kind == kind and r.actor == actor)


# --- session time ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "seconds"), [(1, 5.0), (2, 10.0), (3, 15.0)])
async def test_an_agent_takes_the_time_of_its_calls(times: int, seconds: float) -> None:
    models = saying(ModelReply(text="whatever", tokens=WRITTEN))
    async with open_log("memory://") as log:
        records = await run_once(log, models, Decision((Say("Hello there"),)), times=times)
    assert time_of(records, "MessageSent") == seconds
    called = [r for r in records if isinstance(r.event, ModelCalled)]
    assert [r.time for r in called] == [0.0] * times  # recorded at once, before time passes
    assert all(isinstance(r.event, ModelCalled) and r.event.latency == 5.0 for r in called)


async def test_where_nobody_counts_the_words_do() -> None:
    reply = ModelReply(text="one two three four five six seven eight nine ten")
    async with open_log("memory://") as log:
        records = await run_once(log, saying(reply), Decision((Say("Hello"),)))
    assert time_of(records, "MessageSent") == pytest.approx(2.0 + 10 * 1.3 / 10.0)


async def test_a_decision_may_say_how_long_it_takes() -> None:
    models = saying(ModelReply(tokens=WRITTEN))
    async with open_log("memory://") as log:
        records = await run_once(log, models, Decision((Say("Hello"),), 77.0))
    assert time_of(records, "MessageSent") == 77.0


async def test_a_person_reads_and_types_however_fast_the_model_is() -> None:
    models = saying(ModelReply(tokens=WRITTEN))
    async with open_log("memory://") as log:
        records = await run_once(log, models, Decision((Say("two words"),)), role="human")
    assert time_of(records, "MessageSent") == 5.0 + 2.0  # a step, and two words at one a second


@pytest.mark.parametrize("decision", [NOTHING, Decision((Wait(),))])
async def test_deciding_to_wait_takes_time_and_then_waits(decision: Decision) -> None:
    models = saying(ModelReply(tokens=WRITTEN))
    async with open_log("memory://") as log:
        records = await run_once(log, models, decision)
    # It waits for news, which comes only when all are nudged: it is asked only once.
    assert sum(record.kind == "ModelCalled" for record in records) == 1
    nudged = next(record.time for record in records if record.kind == "Nudged")
    assert nudged >= 5.0


async def test_failed_attempts_take_no_session_time() -> None:
    failures = iter([ModelTimeout("late"), ModelTimeout("late")])

    def answer(request: ModelRequest) -> ModelReply:
        for failure in failures:
            raise failure
        return ModelReply(tokens=WRITTEN)

    models = Models(ScriptedModel(answer), terms=Terms(retry=Retry(first=0.001)))
    async with open_log("memory://") as log:
        records = await run_once(log, models, Decision((Say("Hello"),)))
    called = [r.event for r in records if isinstance(r.event, ModelCalled)]
    assert [(c.attempt, c.error, c.latency) for c in called] == [
        (1, "ModelTimeout: late", 0.0),
        (2, "ModelTimeout: late", 0.0),
        (3, None, 5.0),
    ]
    assert time_of(records, "MessageSent") == 5.0


async def test_without_a_call_time_is_modelled_as_ever() -> None:
    models = saying(ModelReply(tokens=WRITTEN))
    async with open_log("memory://") as log:
        records = await run_once(log, models, Decision((Say("a b c d e f g h i j"),)), times=0)
    assert time_of(records, "MessageSent") == pytest.approx(2.0 + 10 * 1.3 / 10.0)


async def test_on_a_real_clock_the_call_is_all_the_time_there_is() -> None:
    class Slow:
        async def complete(self, request: ModelRequest) -> ModelReply:
            await anyio.sleep(0.05)
            return ModelReply(tokens=Tokens(completion=10**9), latency=0.05)

    player = Player(
        Participant(name="me", role="agent"),
        model_actor(Models(Slow()), lambda caller: Once(caller, Decision((Say("Hello"),)))),
    )
    session = a_session(player, human(Script().hear()), clock=RealClock(), timing=TIMING)
    async with open_log("memory://") as log:
        result = await run_session(log, session)
        records = (await streams(log, "session"))[TRACE]
    [called] = [record.event for record in records if isinstance(record.event, ModelCalled)]
    assert called.latency == 0.05  # as it was, not as a billion tokens would have it
    assert result.reason == "finished"
    assert 0.05 <= result.seconds < 30.0


@given(st.none() | st.integers(0, 10_000), st.text(alphabet="ab ", max_size=60))
def test_the_duration_of_a_call(completion: int | None, text: str) -> None:
    written = len(text.split()) * 1.3 if completion is None else completion
    assert TIMING.calling(Tokens(completion=completion), text) == pytest.approx(2 + written / 10)


# --- who sees what ---------------------------------------------------------------------------------


def reachable(start: object) -> Iterator[object]:
    """Everything that an object leads to, but for code."""
    seen: set[int] = set()
    todo: list[object] = [start]
    while todo:
        it = todo.pop()
        if id(it) in seen or isinstance(it, type | types.ModuleType | types.FunctionType):
            continue
        seen.add(id(it))
        yield it
        todo.extend(gc.get_referents(it))


async def test_a_view_leads_to_nobody_who_could_ask() -> None:
    views: list[View] = []

    class Looking:
        def __init__(self, caller: Caller) -> None:
            self._inner = Improviser(decisions=12)
            self._caller = caller

        async def decide(self, view: View) -> Decision:
            views.append(view)
            message = Message(role="user", content="x")
            await self._caller.ask(ModelRequest(model="m", messages=(message,)), purpose="act")
            found = [type(it) for it in reachable(view)]
            assert Record in found
            assert not {ActorContext, ActorCaller, Looking, Models, Sequencer, ScriptedModel} & set(
                found
            )
            return await self._inner.decide(view)

    models = saying(ModelReply(text="x"))
    players = [
        Player(Participant(name="user", role="human"), model_actor(models, Looking)),
        Player(Participant(name="agent", role="agent"), model_actor(models, Looking)),
    ]
    async with open_log("memory://") as log:
        await run_session(log, a_session(*players))
    assert len(views) > 10


async def test_model_calls_are_in_nobody_elses_view() -> None:
    seen: list[str] = []

    class Watching:
        async def decide(self, view: View) -> Decision:
            seen.extend(record.kind for record in view.records)
            return Decision((Wait(5.0),)) if view.now < 60 else Decision((Finish(),))

    models = saying(ModelReply(text="x", tokens=WRITTEN))
    asker = Player(
        Participant(name="me", role="agent"),
        model_actor(models, lambda caller: Once(caller, Decision((Say("Hello"), Wait(900.0))))),
    )
    async with open_log("memory://") as log:
        watching = Player(Participant(name="user", role="human"), playing(Watching()))
        await run_session(log, a_session(asker, watching, timing=TIMING))
    assert "MessageSent" in seen
    assert "ModelCalled" not in seen


# --- who holds the turn for too long -----------------------------------------------------------------


class Slowly:
    """Takes longer in real time than an actor may hold its turn."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def complete(self, request: ModelRequest) -> ModelReply:
        await anyio.sleep(self._seconds)
        return ModelReply(text="at last", tokens=WRITTEN)


async def reason_of(make: Callable[[Caller], Policy]) -> tuple[str, str | None]:
    player = Player(Participant(name="me", role="agent"), model_actor(Models(Slowly(0.4)), make))
    other = human(Script().hear(within=1000.0))
    async with open_log("memory://") as log:
        result = await run_session(log, a_session(player, other, clock=VirtualClock(hold=0.1)))
    return result.reason, result.error


@in_virtual_time
async def test_whoever_waits_for_a_model_is_not_late() -> None:
    assert await reason_of(lambda caller: Once(caller, Decision((Say("Hello"),)))) == (
        "finished",
        None,
    )


@in_virtual_time
async def test_whoever_waits_for_anything_else_is() -> None:
    class Dawdling(Once):
        async def decide(self, view: View) -> Decision:
            decision = await super().decide(view)
            await anyio.sleep(30)
            return decision

    reason, error = await reason_of(lambda caller: Dawdling(caller, Decision((Say("Hello"),))))
    assert reason == "failed"
    assert error is not None
    assert "held the turn for more than 0.1 s" in error


# --- the program's own log ---------------------------------------------------------------------------


async def test_wall_time_goes_to_the_programs_log_alone(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO, "duolog.models")
    async with open_log("memory://") as log:
        models = Models(Slowly(0.02))
        records = await run_once(log, models, Decision((Say("Hello"),)))
    [line] = [record.getMessage() for record in caplog.records if record.name == "duolog.models"]
    assert "event='model_called' session='session' actor='me' model='m' purpose='act'" in line
    seconds = re.search(r"\bseconds=(\S+)", line)
    assert seconds is not None
    assert 0.01 < float(seconds[1]) != 5.0
    assert [r.event.latency for r in records if isinstance(r.event, ModelCalled)] == [5.0]
    assert capsys.readouterr() == ("", "")


async def test_where_structlog_is_set_up_it_goes_there() -> None:
    captured = structlog.testing.LogCapture()
    structlog.configure(processors=[captured])
    try:
        async with open_log("memory://") as log:
            models = saying(ModelReply(text="x", latency=0.25))
            await run_once(log, models, Decision((Say("Hello"),)))
    finally:
        structlog.reset_defaults()
    [entry] = [entry for entry in captured.entries if entry["event"] == "model_called"]
    assert (entry["session"], entry["actor"], entry["attempt"]) == ("session", "me", 1)
    assert entry["answering"] == 0.25
