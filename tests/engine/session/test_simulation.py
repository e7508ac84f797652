"""Many sessions against one log: each once, each to its end, whatever becomes of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import anyio
import msgspec
import pytest
from duolog.engine.errors import InvalidInput, LogUnavailable
from duolog.engine.events import ScorerRef, UtilityScored
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Record
from duolog.engine.scorers.protocol import Measurement, SessionScorer
from duolog.engine.session.context import ActorContext
from duolog.engine.session.runner import Session, SessionResult, run_session
from duolog.engine.session.simulation import Outcome, SessionFailure, simulate
from duolog.testing import Script, Workshop, a_session, agent, human, played, streams


class Counting:
    """Scores each record, and counts how often it was asked."""

    ref = ScorerRef(name="counting", version="1", config="")

    def __init__(self) -> None:
        self.asked = 0

    def begin(self, session: str) -> SessionScorer:
        return self

    async def observe(self, record: Record) -> Sequence[Measurement]:
        self.asked += 1
        scored = UtilityScored(scorer=self.ref, snapshot=record.version, value=0.5)
        return [Measurement(scored, f"record/{record.version}")]


def chat(name: str, *, length: int = 3) -> Session:
    user = Script().say("a").act("look").pause(1).times(length).finish()
    helper = Script().hear().say("b").times(length)
    return a_session(human(user), agent(helper), id=name, environment=Workshop())


def failing(name: str) -> Session:
    async def fail(context: ActorContext) -> None:
        raise LookupError("lost")

    return a_session(agent(fail), id=name)


def makers(count: int) -> list[Callable[[], Session]]:
    return [lambda number=number: chat(f"s{number}") for number in range(count)]  # type: ignore[misc]


@pytest.mark.parametrize("concurrency", [1, 3, 50])
async def test_each_is_run_once_and_to_its_end(concurrency: int) -> None:
    outcomes: list[Outcome] = []
    async with open_log("memory://") as log:
        await simulate(log, makers(10), concurrency=concurrency, on_outcome=outcomes.append)
        for number in range(10):
            expected = (await played(chat(f"s{number}"))).streams
            assert await streams(log, f"s{number}") == expected
    assert {o.session for o in outcomes if isinstance(o, SessionResult)} == {
        f"s{number}" for number in range(10)
    }


async def test_so_many_run_at_a_time_and_none_is_made_before_its_turn() -> None:
    open_now = 0
    most = 0
    made = 0

    def sessions() -> Iterator[Callable[[], Session]]:
        for number in range(20):
            yield lambda number=number: make(number)  # type: ignore[misc]

    def make(number: int) -> Session:
        nonlocal open_now, most, made
        open_now += 1
        made += 1
        most = max(most, open_now)
        return chat(f"s{number}")

    def done(outcome: Outcome) -> None:
        nonlocal open_now
        open_now -= 1

    async with open_log("memory://") as log:
        await simulate(log, sessions(), concurrency=4, on_outcome=done)
    assert (most, made, open_now) == (4, 20, 0)


@pytest.mark.parametrize("concurrency", [0, -1])
async def test_none_at_a_time_is_an_error(concurrency: int) -> None:
    async with open_log("memory://") as log:
        with pytest.raises(InvalidInput, match=f"not {concurrency}"):
            await simulate(log, makers(1), concurrency=concurrency)


async def test_what_the_log_holds_is_not_run_again_and_what_is_open_is_resumed() -> None:
    outcomes: list[Outcome] = []
    expected = (await played(chat("s1"))).streams
    async with open_log("memory://") as log:
        await run_session(log, chat("s0"))
        async with anyio.create_task_group() as tasks:

            async def cut() -> None:
                async with log.subscribe(session="s1") as records:
                    async for record in records:
                        if record.version == 5:
                            break
                tasks.cancel_scope.cancel()

            tasks.start_soon(cut)
            tasks.start_soon(run_session, log, chat("s1"))
        assert (await log.summary("s1")).state == "open"
        count = (await log.summary("s0")).events
        await simulate(log, makers(3), on_outcome=outcomes.append)
        assert (await log.summary("s0")).events == count
        assert await streams(log, "s1") == expected
    kinds = {o if isinstance(o, str) else o.session: type(o).__name__ for o in outcomes}
    assert kinds == {"s0": "str", "s1": "SessionResult", "s2": "SessionResult"}
    [resumed] = [o.resumed for o in outcomes if isinstance(o, SessionResult) and o.resumed]
    assert resumed >= 5


async def test_one_that_fails_does_not_take_the_others_with_it() -> None:
    outcomes: list[Outcome] = []
    async with open_log("memory://") as log:
        mixed = [*makers(2), lambda: failing("bad"), lambda: chat("s9")]
        await simulate(log, mixed, concurrency=2, on_outcome=outcomes.append)
        states = {s.session: s.state async for s in log.sessions()}
    assert states == {"s0": "finished", "s1": "finished", "bad": "failed", "s9": "finished"}
    [error] = [o.error for o in outcomes if isinstance(o, SessionResult) and o.error]
    assert error is not None
    assert error.startswith("LookupError: lost (test_simulation.py, line ")


async def test_one_that_cannot_be_run_is_told_and_the_others_go_on() -> None:
    """It differs from what the log holds, or contradicts itself."""
    outcomes: list[Outcome] = []
    other_seed = msgspec.structs.replace(
        chat("s0"), opened=msgspec.structs.replace(chat("s0").opened, seed=99)
    )
    contradicting = a_session(agent(Script()), agent(Script()), id="twins")
    async with open_log("memory://") as log:
        async with anyio.create_task_group() as tasks:

            async def cut() -> None:
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()

            async def wait(context: ActorContext) -> None:
                await anyio.sleep_forever()

            tasks.start_soon(cut)
            tasks.start_soon(run_session, log, a_session(human(wait), agent(wait), id="s0"))
        before = await streams(log, "s0")
        sessions = [lambda: other_seed, lambda: contradicting, lambda: chat("s1")]
        await simulate(log, sessions, concurrency=1, on_outcome=outcomes.append)
        assert await streams(log, "s0") == before
    first, second, third = outcomes
    assert isinstance(first, SessionFailure)
    assert first.session == "s0"
    assert "seed was 7, and now it would be 99" in first.error
    assert isinstance(second, SessionFailure)
    assert "unique names" in second.error
    assert isinstance(third, SessionResult)


async def test_a_session_run_in_two_places_is_finished_in_one() -> None:
    outcomes: list[Outcome] = []
    async with open_log("memory://") as log:
        await simulate(log, [lambda: chat("s0"), lambda: chat("s0")], on_outcome=outcomes.append)
        assert await streams(log, "s0") == (await played(chat("s0"))).streams
    assert sorted(type(o).__name__ for o in outcomes) == ["SessionFailure", "SessionResult"]


async def test_a_log_that_fails_ends_the_simulation_and_it_can_go_on_later() -> None:
    class Full:
        def __init__(self, log: EventLog, room: int) -> None:
            self._log = log
            self._room = room

        async def append(self, *args: object, **options: object) -> list[Record]:
            self._room -= 1
            if self._room < 0:
                raise LogUnavailable("the disk is full")
            return await self._log.append(*args, **options)  # type: ignore[arg-type]

        def __getattr__(self, name: str) -> object:
            return getattr(self._log, name)

    async with open_log("memory://") as log:
        with pytest.raises(LogUnavailable, match="the disk is full"):
            await simulate(Full(log, 40), makers(8), concurrency=4)  # type: ignore[arg-type]
        await simulate(log, makers(8), concurrency=4)
        for number in range(8):
            expected = (await played(chat(f"s{number}"))).streams
            assert await streams(log, f"s{number}") == expected


async def test_what_was_closed_and_not_wholly_measured_is_measured() -> None:
    async with open_log("memory://") as log:
        await run_session(log, chat("s0"))
        for asked in (True, False):
            scorer = Counting()
            session = msgspec.structs.replace(chat("s0"), scorers=(scorer,))
            await simulate(log, [lambda session=session: session])  # type: ignore[misc]
            assert (scorer.asked > 0) is asked
        found = await streams(log, "s0")
    assert len(found["counting@1"]) == len(found[TRACE])
