"""Scorers that are handed closed rounds: when, which, and the same live as afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import duolog
import msgspec
import pytest
from anyio.lowlevel import checkpoint
from duolog.engine.errors import CodecError
from duolog.engine.events import ProgressRated, ScorerFailed, ScorerRef
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import MemoryLog, open_log
from duolog.engine.records import Record
from duolog.engine.rounds import Round, RoundProjector, Rounds
from duolog.engine.scorers.driver import ScorerPool
from duolog.engine.scorers.observing import Observer
from duolog.engine.scorers.protocol import Measurement, SessionScorer
from duolog.engine.session.runner import run_session
from duolog.scoring.rescore import rescore
from duolog.testing import Script, a_session, agent, human, played, streams


class Rated:
    """Rates each round 3; notes in which order it is handed what.

    Args:
        rounds: how it counts; None to be handed none.
        waits: whether it waits for something over each round.
    """

    def __init__(self, rounds: Rounds | None = "handoff", *, waits: bool = False) -> None:
        self.rounds = rounds
        self.waits = waits
        self.ref = ScorerRef(name=f"rated-{rounds}", version="1", config="")
        self.handed: list[str] = []

    def begin(self, session: str) -> SessionScorer:
        return Waiting(self) if self.waits else Rating(self)


class Rating:
    def __init__(self, rated: Rated) -> None:
        self.rounds = rated.rounds
        self._rated = rated

    async def observe(self, record: Record) -> Sequence[Measurement]:
        self._rated.handed.append(f"{record.version} {record.kind}")
        return ()

    async def close_round(self, over: Round) -> Sequence[Measurement]:
        self._rated.handed.append(f"round {over.number}: {over.first} to {over.last}")
        rated = ProgressRated(round=over.number, rating=3, until=over.last_act)
        return (Measurement(rated, f"round/{over.number}"),)


class Waiting:
    """As ``Rating``, with a wait over each round."""

    def __init__(self, rated: Rated) -> None:
        self.rounds = rated.rounds
        self._rating = Rating(rated)

    async def observe(self, record: Record) -> Sequence[Measurement]:
        return await self._rating.observe(record)

    async def close_round(self, over: Round) -> Sequence[Measurement]:
        await checkpoint()
        return await self._rating.close_round(over)


def talk(*scorers: Rated) -> duolog.Session:
    user = Script().say("A plan, please.").hear().say("And lunch?").hear().finish()
    helper = Script().hear().submit("a plan").say("Here.").hear().say("Soup.")
    return a_session(human(user), agent(helper), scorers=scorers)


async def live(log: EventLog, *scorers: Rated) -> None:
    pool = ScorerPool(log, scorers)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pool.run)
        await run_session(log, talk())
        await pool.settle()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("waits", [False, True])
async def test_a_round_comes_before_the_act_that_opens_the_next_and_after_the_close(
    waits: bool,
) -> None:
    rated = Rated(waits=waits)
    trace = (await played(talk(rated))).trace
    rounds = RoundProjector()
    closed = {r.version: over for r in trace if (over := rounds.feed(r)) is not None}
    expected: list[str] = []
    for record in trace:
        shown = [f"{record.version} {record.kind}"]
        if (over := closed.get(record.version)) is not None:
            shown.append(f"round {over.number}: {over.first} to {over.last}")
        expected += shown if record.kind == "SessionClosed" else reversed(shown)
    assert rated.handed == expected
    assert [line for line in rated.handed if line.startswith("round")]
    assert rated.handed[-1].startswith("round")


@pytest.mark.parametrize("waits", [False, True])
async def test_live_afterwards_and_in_a_simulation_the_same_is_measured(waits: bool) -> None:
    def scorers() -> tuple[Rated, ...]:
        return Rated("handoff", waits=waits), Rated("human-turn"), Rated(None)

    async with open_log("memory://") as log:
        simulated = await run_session(log, talk(*scorers()))
        expected = await streams(log, simulated.session)
    assert len(expected) == 3  # the trace, and two that were handed rounds
    async with open_log("memory://") as log:
        await live(log, *scorers())
        assert await streams(log, simulated.session) == expected
    async with open_log("memory://") as log:
        await run_session(log, talk())
        await rescore(log, simulated.session, scorers())
        assert await streams(log, simulated.session) == expected


async def test_rounds_are_counted_once_for_all_scorers(monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[Record] = []
    feed = RoundProjector.feed

    def counted(self: RoundProjector, record: Record) -> Round | None:
        fed.append(record)
        return feed(self, record)

    async with MemoryLog() as log:
        result = await run_session(log, talk())
        trace = [record async for record in log.read(result.session)]
        monkeypatch.setattr(RoundProjector, "feed", counted)
        one, other = Rated(), Rated()
        other.ref = ScorerRef(name="other", version="1", config="")
        await rescore(log, result.session, (one, other))
    assert fed == trace


async def test_a_damaged_record_is_the_failure_of_who_is_handed_rounds() -> None:
    result = await played(talk())
    damaged = [
        msgspec.structs.replace(record, body=b"{", _event=None)
        if record.kind == "SessionOpened"
        else record
        for record in result.trace
    ]
    observer = Observer(Rated().begin("s"))
    with pytest.raises(CodecError):
        await observer.observe(damaged[0])


async def test_who_fails_over_a_round_is_quarantined() -> None:
    class Failing(Rated):
        def begin(self, session: str) -> SessionScorer:
            return Fails(self)

    class Fails(Rating):
        async def close_round(self, over: Round) -> Sequence[Measurement]:
            raise ZeroDivisionError("no acts")

    async with MemoryLog() as log:
        await live(log, Failing())
        events = [record.event async for record in log.read_all()]
    failures = [event for event in events if isinstance(event, ScorerFailed)]
    assert [failure.type for failure in failures] == ["ZeroDivisionError"]
