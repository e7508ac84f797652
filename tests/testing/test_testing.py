"""The tools of the tests are tested too: a check that cannot fail checks nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import anyio
import pytest
from duolog.engine.events import (
    Event,
    MessageSent,
    ModelCalled,
    NoteTaken,
    ProgressRated,
    ScorerFailed,
    ScorerRef,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from duolog.engine.log.open import MemoryLog, open_log
from duolog.engine.records import Record
from duolog.engine.rounds import Round, RoundProjector
from duolog.engine.scorers.protocol import Measurement, SessionScorer
from duolog.engine.session.actors import playing
from duolog.engine.session.context import ActorContext
from duolog.engine.session.runner import run_session
from duolog.testing import (
    Improviser,
    Script,
    Steps,
    Workshop,
    a_session,
    agent,
    by,
    check_event_log,
    check_scorer,
    given,
    human,
    played,
    put_records,
    records_of,
    streams,
    virtual_turns,
)
from virtual_loop import in_virtual_time

REF = ScorerRef(name="words", version="2", config="")


# --- scripts and sessions ------------------------------------------------------------------------------


async def test_a_script_is_continued_and_not_changed() -> None:
    greeting = Script().say("Hello.")
    longer = greeting.say("How are you?")
    twice = Script(greeting, longer).times(2)
    lengths = []
    for script in (greeting, longer, twice):
        trace = (await played(a_session(agent(script)))).trace
        lengths.append(sum(r.kind == "MessageSent" for r in trace))
    assert lengths == [1, 2, 6]


async def test_a_scripted_model_is_a_recorded_call() -> None:
    found = await played(a_session(agent(Script().call("an answer", {"q": 1}).finish())))
    [call] = [r.event for r in found.trace if isinstance(r.event, ModelCalled)]
    assert (call.model, call.reply) == ("scripted", "an answer")


async def test_played_makes_failed_actors_count() -> None:
    async def claim(context: ActorContext) -> None:
        assert context.name == "somebody else"

    with pytest.raises(AssertionError, match="it ended as failed: AssertionError"):
        await played(a_session(agent(claim)))
    assert (await played(a_session(agent(claim)), fails=True)).result.reason == "failed"
    with pytest.raises(AssertionError, match="it ended as finished"):
        await played(a_session(agent(Script().finish())), fails=True)


async def test_approving_what_nobody_asked_is_an_error() -> None:
    found = await played(a_session(agent(Script().approve())), fails=True)
    assert "no approval was requested from 'agent'" in (found.result.error or "")


async def test_an_improviser_does_everything() -> None:
    kinds: set[str] = set()
    for seed in range(12):
        actor = playing(Improviser(30, ("look", "fumble")))
        session = a_session(
            human(actor),
            agent(playing(Improviser(30, ("look",)))),
            seed=seed,
            environment=Workshop(),
        )
        trace = (await played(session)).trace
        kinds |= {record.kind for record in trace}
    assert kinds >= {
        "MessageSent", "ActionTaken", "ActionResolved", "SnapshotTaken", "ApprovalAsked",
        "ApprovalGiven", "NoteTaken", "TurnYielded", "ProgressRated", "SessionClosed",
    }  # fmt: skip


async def test_records_are_put_into_another_log_as_they_are() -> None:
    session = a_session(
        agent(Script().say("a").act("look").result().finish()), environment=Workshop()
    )
    async with open_log("memory://") as log, open_log("memory://") as copy:
        await run_session(log, session)
        await put_records(copy, [r async for r in log.read_all()])
        assert await streams(copy, "session") == await streams(log, "session")
        assert (await copy.summary("session")).state == "finished"


@in_virtual_time
async def test_turns_for_tests_name_who_is_overdue() -> None:
    errors: list[str] = []
    loop_errors = anyio.Event()

    def on_error(loop: object, context: dict[str, object]) -> None:
        errors.append(str(context["exception"]))
        loop_errors.set()

    asyncio.get_running_loop().set_exception_handler(on_error)
    with virtual_turns("a", hold=0.01) as turns:
        await turns.begin("a")
        await loop_errors.wait()
    assert errors[0] == "'a' held the turn for more than 0.01 s"


# --- an order for tasks --------------------------------------------------------------------------------


async def test_steps_come_in_the_order_of_their_numbers() -> None:
    steps = Steps()
    order: list[int] = []

    async def take(*numbers: int) -> None:
        for number in numbers:
            async with steps(number):
                order.append(number)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take, 1, 4)
        tasks.start_soon(take, 3)
        tasks.start_soon(take, 0, 2, 5)
    assert order == [0, 1, 2, 3, 4, 5]


async def test_a_step_is_taken_once() -> None:
    steps = Steps()
    async with steps(0):
        pass
    with pytest.raises(ValueError, match="step 0 was taken already"):
        async with steps(0):
            raise AssertionError("never reached")


async def test_a_step_that_fails_lets_the_next_go() -> None:
    steps = Steps()
    with pytest.raises(LookupError):
        async with steps(0):
            raise LookupError
    async with steps(1):
        pass


# --- folds ---------------------------------------------------------------------------------------------


def test_a_fold_is_told_as_a_story() -> None:
    round_one = Round(
        number=1, first=1, last=2, last_act=2, human_acts=1, agent_acts=1, messages=1, closed=True
    )
    hello = [by("human", MessageSent(text="Hi")), by("agent", MessageSent(text="Hello"))]
    again = by("human", MessageSent(text="A trip, please."))
    given(*hello).when(RoundProjector(), again).then(round_one)
    given(*hello, again).when(RoundProjector()).then(round_one)
    given(*hello, again).when(RoundProjector(), again).then_nothing()
    with pytest.raises(AssertionError, match="is not"):
        given(*hello).when(RoundProjector(), again).then()
    with pytest.raises(AssertionError, match="came of it"):
        given(*hello).when(RoundProjector(), again).then_nothing()


def test_records_of_facts_are_what_a_log_would_hold() -> None:
    opened = SessionOpened(task="t", instance="1", participants=(), clock="virtual")
    first, second = records_of(
        opened, by("agent", NoteTaken(text="x"), actor="bot", time=2.5), session="s", after=4
    )
    assert (first.version, first.actor, first.role, first.event) == (
        5,
        "environment",
        "environment",
        opened,
    )
    assert (second.version, second.actor, second.role, second.time) == (6, "bot", "agent", 2.5)
    assert second.id == "s/trace/6"


# --- contracts -----------------------------------------------------------------------------------------


async def test_the_check_of_logs_is_offered() -> None:
    await check_event_log(MemoryLog)


Observe = Callable[["WordsOfSession", Record], Sequence[Measurement]]


class Words:
    """A scorer that keeps its promises, or not, by the given ``observe``."""

    def __init__(self, observe: Observe, ref: ScorerRef = REF, shared: bool = False) -> None:
        self.ref = ref
        self._observe = observe
        self._shared = WordsOfSession(observe) if shared else None

    def begin(self, session: str) -> SessionScorer:
        return self._shared or WordsOfSession(self._observe)


class WordsOfSession:
    def __init__(self, observe: Observe) -> None:
        self.count = 0
        self._observe = observe

    async def observe(self, record: Record) -> Sequence[Measurement]:
        return self._observe(self, record)


def sound(state: WordsOfSession, record: Record) -> Sequence[Measurement]:
    event = record.event
    if isinstance(event, MessageSent):
        state.count += len(event.text.split())
    if not isinstance(event, SnapshotTaken):
        return []
    value = min(1.0, state.count / 100)
    scored = UtilityScored(scorer=REF, snapshot=record.version, value=value, parts={"words": value})
    rated = ProgressRated(scorer=REF, round=1, rating=None, missing="no judge")
    return [Measurement(scored, f"snapshot/{record.version}")] + [
        Measurement(rated, f"rating/{record.version}")
    ]


def of_snapshots(event: Callable[[Record], Event]) -> Observe:
    def observe(state: WordsOfSession, record: Record) -> Sequence[Measurement]:
        if record.kind != "SnapshotTaken":
            return []
        return [Measurement(event(record), f"snapshot/{record.version}")]

    return observe


def scored(**fields: object) -> Observe:
    return of_snapshots(
        lambda r: UtilityScored(**{"scorer": REF, "snapshot": r.version, **fields})  # type: ignore[arg-type]
    )


def rated(**fields: object) -> Observe:
    return of_snapshots(lambda r: ProgressRated(**{"round": 1, "scorer": REF, **fields}))  # type: ignore[arg-type]


def counting(state: WordsOfSession, record: Record) -> Sequence[Measurement]:
    state.count += 1
    value = min(1.0, state.count / 1000)
    if record.kind != "SnapshotTaken":
        return []
    scored = UtilityScored(scorer=REF, snapshot=record.version, value=value)
    return [Measurement(scored, f"{record.version}")]


def strict(state: WordsOfSession, record: Record) -> Sequence[Measurement]:
    if not isinstance(record.event, Event):
        raise TypeError(f"what is {record.kind}?")
    return []


def only_once(state: WordsOfSession, record: Record) -> Sequence[Measurement]:
    if record.kind != "SnapshotTaken":
        return []
    return [Measurement(UtilityScored(scorer=REF, snapshot=record.version, value=1.0), "it")]


async def test_a_sound_scorer_passes() -> None:
    await check_scorer(Words(sound))
    await check_scorer(Words(counting))
    fact = by("agent", SnapshotTaken(content="x", digest="d"))
    opened = SessionOpened(task="t", instance="1", participants=(), clock="virtual")
    await check_scorer(Words(scored(value=0.5)), records_of(opened, fact))


@pytest.mark.parametrize(
    ("scorer", "promise"),
    [
        (Words(sound, ScorerRef(name="", version="1", config="")), "a name and a version"),
        (Words(counting, shared=True), "the same measurements"),
        (Words(only_once), "measured once in each respect"),
        (Words(scored(value=1.5)), r"the value is in \[0, 1\]"),
        (Words(scored(value=-0.5)), r"the value is in \[0, 1\]"),
        (Words(scored(value=float("nan"))), "can be written and read"),
        (Words(scored(value=0.5, parts={"a": 2.0})), r"a is in \[0, 1\]"),
        (Words(scored(value=None)), "a missing value has a reason"),
        (Words(scored(value=0.5, round=1)), "a snapshot's or a round's"),
        (Words(scored(value=0.5, snapshot=None)), "a snapshot's or a round's"),
        (Words(scored(value=0.5, snapshot=1)), "a snapshot of the trace"),
        (
            Words(scored(scorer=ScorerRef(name="x", version="1", config=""), value=1)),
            "its scorer's",
        ),
        (Words(rated(rating=0)), "a rating is 1 to 5"),
        (Words(rated(rating=6)), "a rating is 1 to 5"),
        (Words(rated(rating=None)), "a missing rating has its reason"),
        (Words(rated(rating=3, round=0)), "rounds are numbered from 1"),
        (
            Words(of_snapshots(lambda r: ScorerFailed(scorer=REF, error="x", type="E"))),
            "a scorer that fails raises",
        ),
        (Words(strict), "must accept events that it does not know"),
    ],
)
async def test_a_scorer_that_breaks_a_promise_does_not(scorer: Words, promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        await check_scorer(scorer)


async def test_sessions_measured_together_must_not_affect_each_other() -> None:
    shared = [0]

    class Leaky(Words):
        def begin(self, session: str) -> SessionScorer:
            shared[0] = 0
            return super().begin(session)

    def leak(state: WordsOfSession, record: Record) -> Sequence[Measurement]:
        shared[0] += 1
        if record.kind != "SnapshotTaken":
            return []
        value = min(1.0, shared[0] / 1000)
        scored = UtilityScored(scorer=REF, snapshot=record.version, value=value)
        return [Measurement(scored, f"{record.version}")]

    with pytest.raises(AssertionError, match="do not affect each other"):
        await check_scorer(Leaky(leak))


class OfRounds(Words):
    """Is handed closed rounds, and says what each record takes."""

    def __init__(self, cost: str, identity: str = "round/{}") -> None:
        super().__init__(sound)
        self.cost = cost
        self.identity = identity

    def begin(self, session: str) -> SessionScorer:
        return OfRoundsOfSession(self)


class OfRoundsOfSession:
    rounds = "handoff"

    def __init__(self, scorer: OfRounds) -> None:
        self._scorer = scorer

    def cost(self, record: Record, over: Round | None) -> str:
        return "quick" if over is None else self._scorer.cost

    async def observe(self, record: Record) -> Sequence[Measurement]:
        return ()

    async def close_round(self, over: Round) -> Sequence[Measurement]:
        await anyio.lowlevel.checkpoint()
        rated = ProgressRated(scorer=REF, round=over.number, rating=3)
        return [Measurement(rated, self._scorer.identity.format(over.number))]


async def test_a_scorer_of_rounds_is_checked_on_them_and_on_what_it_says_of_its_cost() -> None:
    await check_scorer(OfRounds("waits"))
    with pytest.raises(AssertionError, match="not twice in"):
        await check_scorer(OfRounds("waits", identity="round"))
    with pytest.raises(AssertionError, match="awaits nothing"):
        await check_scorer(OfRounds("computes"))
    with pytest.raises(AssertionError, match="quick, computes or waits: 'cheap'"):
        await check_scorer(OfRounds("cheap"))
