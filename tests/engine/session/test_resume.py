"""Resuming: a session cut short after any record ends as it would have, or says why it cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import msgspec
import pytest
from anyio.lowlevel import checkpoint
from duolog.engine.errors import Divergence, InvalidInput
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    MessageSent,
    ModelCalled,
    Participant,
    ProgressRated,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    StopAdvised,
    UtilityScored,
)
from duolog.engine.log.open import open_log
from duolog.engine.records import ENGINE, TRACE, Draft, Record
from duolog.engine.scorers.protocol import Measurement, SessionScorer
from duolog.engine.session.actors import playing
from duolog.engine.session.context import ActorContext, Reply
from duolog.engine.session.decisions import Submit
from duolog.engine.session.fork import fork
from duolog.engine.session.limits import Limits
from duolog.engine.session.resume import ENGINE_NUMBER
from duolog.engine.session.runner import Session, SessionResult, run_session
from duolog.testing import (
    Improviser,
    Script,
    Workshop,
    a_session,
    agent,
    human,
    put_records,
    streams,
)

pytestmark = pytest.mark.slow

Make = Callable[[list[str]], Session]
"""Makes a session afresh; the models that it asks leave their names in the list."""


# --- what is measured ------------------------------------------------------------------------------


class Lengths:
    """Scores snapshots by their length, and rates progress whenever a human speaks."""

    def __init__(self, name: str = "lengths", rating: int = 2) -> None:
        self.ref = ScorerRef(name=name, version="1", config="")
        self._rating = rating

    def begin(self, session: str) -> SessionScorer:
        return LengthsOfSession(self.ref, self._rating)


class LengthsOfSession:
    def __init__(self, ref: ScorerRef, rating: int) -> None:
        self._ref = ref
        self._rating = rating
        self._spoken = 0

    async def observe(self, record: Record) -> Sequence[Measurement]:
        await checkpoint()
        if record.kind == "SnapshotTaken":
            value = min(1.0, len(record.body or b"") / 1000)
            scored = UtilityScored(scorer=self._ref, snapshot=record.version, value=value)
            return [Measurement(scored, f"snapshot/{record.version}")]
        if record.kind == "MessageSent" and record.role == "human":
            self._spoken += 1
            rated = ProgressRated(scorer=self._ref, round=self._spoken, rating=self._rating)
            return [Measurement(rated, f"round/{self._spoken}")]
        return []


class Faulty:
    """A scorer that measures twice, and then fails."""

    ref = ScorerRef(name="faulty", version="3", config="")

    def begin(self, session: str) -> SessionScorer:
        return FaultySession()


class FaultySession:
    def __init__(self) -> None:
        self._count = 0

    async def observe(self, record: Record) -> Sequence[Measurement]:
        self._count += 1
        if self._count == 3:
            raise ZeroDivisionError("the third is one too many")
        scored = UtilityScored(scorer=Faulty.ref, round=self._count, missing="nothing to score")
        return [Measurement(scored, f"round/{self._count}")]


class StopAfter:
    """Has the human leave after so many bad ratings."""

    def __init__(self, count: int) -> None:
        self._left = count

    def feed(self, record: Record) -> StopAdvised | None:
        event = record.event
        if isinstance(event, ProgressRated) and (event.rating or 3) < 3:
            self._left -= 1
            if self._left == 0:
                return StopAdvised(round=event.round, tau=2, enforced=True)
        return None


# --- sessions worth interrupting ---------------------------------------------------------------------


def model(calls: list[str], name: str) -> Script:
    """Asks a model, lets its latency pass, and says what it replied."""

    async def step(context: ActorContext) -> None:
        async def send() -> Reply:
            calls.append(name)
            await checkpoint()
            return Reply(reply={"text": f"reply to {name}"}, latency=1.0, cost=0.01)

        reply = await context.models.call(model="m", purpose="act", request=[name], send=send)
        await context.pause(reply.latency)
        await context.say(str(reply.reply))

    return Script(step)


def collaboration(calls: list[str]) -> Session:
    """A bit of everything."""

    async def from_an_old_base(context: ActorContext) -> None:
        await context.emit(Submit("made before I looked"))

    user = Script(
        Script().pause(2).act("search", of="fares").act("look", at="maps").pause(1),
        Script().act("look", at="weather").say("Anything yet?").result(),
        Script().submit("mine", overwrite=True).rate(2, "slow").say("Well?").hear(),
        Script().pause(35).look().approve(comment="go on").rate(4).note("it asks nicely"),
        model(calls, "user's"),
        Script().hear(within=500).leave_turn("your turn").hear(within=10).finish("enough"),
    )
    helper = Script(
        Script().hear().act("search", of="hotels").act("look", at="prices").note("busy"),
        model(calls, "first"),
        Script().submit("draft one", overwrite=True).pause(25).then(from_an_old_base),
        Script().look().submit("draft two").ask("May I book?").act("search", of="the room"),
        model(calls, "second"),
        Script().result().say("Booked.").act("nonsense"),
    )
    return a_session(
        human(user),
        agent(helper),
        environment=Workshop(),
        request="A weekend in Oslo, please.",
        private={"user": {"likes": "fjords"}},
        scorers=(Lengths(), Faulty()),
    )


def waiting(calls: list[str]) -> Session:
    """Both wait for each other, are nudged, and give up."""
    polite = Script().say("After you.").hear().leave_turn().hear().note("hm").hear().hear().hear()
    return a_session(human(polite), agent(polite), nudges=2, scorers=(Lengths(),))


def stopped(calls: list[str]) -> Session:
    """The human loses patience while actions are in flight."""
    user = Script().pause(3).say("Faster!").times(9)
    helper = Script().act("search", of="time").pause(1).times(9)
    return a_session(
        human(user),
        agent(helper),
        environment=Workshop(),
        scorers=(Lengths(), Lengths("second", rating=5)),
        stop=StopAfter(4),
    )


def failing(calls: list[str]) -> Session:
    """An agent fails, in words that no log can hold, while actions are in flight."""

    async def fail(context: ActorContext) -> None:
        raise LookupError("lost the thread \udcff")

    user = Script().say("Go.").note("I wait").pause(1).note("and wait").pause(99)
    helper = Script().hear().act("search").act("look").pause(3).then(fail)
    return a_session(human(user), agent(helper), environment=Workshop(), scorers=(Lengths(),))


def limited(calls: list[str]) -> Session:
    """Time runs out while actions are in flight."""
    return a_session(
        human(Script().say("And another thing.").pause(2).times(20)),
        agent(Script().act("search").pause(3).times(20)),
        environment=Workshop(),
        limits=Limits(seconds=21.0),
        scorers=(Lengths(),),
    )


def improvised(seed: int, calls: list[str], *, build: bool = False) -> Session:
    """Three who do anything at all."""
    actions = ("look", "search", "fumble", "nonsense", *(("build",) if build else ()))
    return a_session(
        human(playing(Improviser(12, actions))),
        agent(playing(Improviser(12, actions)), "left"),
        agent(playing(Improviser(None, actions)), "right"),
        seed=seed,
        environment=Workshop(),
        request="Do something.",
        limits=Limits(actions=40),
        scorers=(Lengths(), Faulty()),
    )


SESSIONS: Mapping[str, Make] = {
    "collaboration": collaboration,
    "waiting": waiting,
    "stopped": stopped,
    "failing": failing,
    "limited": limited,
    **{f"improvised-{seed}": partial(improvised, seed) for seed in range(5)},
}


BUILDING: Mapping[str, Make] = {
    f"building-{seed}": partial(improvised, seed, build=True) for seed in range(4)
}
"""Sessions with actions that may not be performed again."""


async def undisturbed(make: Make) -> tuple[list[Record], list[str], SessionResult]:
    """All records of an uninterrupted session, the models it asked, and how it ended."""
    calls: list[str] = []
    async with open_log("memory://") as log:
        result = await run_session(log, make(calls))
        return [record async for record in log.read_all()], calls, result


def by_stream(records: Sequence[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        alike = msgspec.structs.replace(record, position=0, _event=None)
        found.setdefault(record.stream, []).append(alike)
    return found


async def resumed(
    make: Make, prefix: Sequence[Record]
) -> tuple[dict[str, list[Record]], list[str], SessionResult]:
    """The result of a session if the log already holds a prefix of it."""
    calls: list[str] = []
    async with open_log("memory://") as log:
        await put_records(log, prefix)
        session = make(calls)
        result = await run_session(log, session)
        return await streams(log, session.id), calls, result


@pytest.mark.parametrize("name", SESSIONS)
async def test_cut_after_any_record_it_ends_as_it_would_have(name: str) -> None:
    make = SESSIONS[name]
    whole, asked, undisturbed_result = await undisturbed(make)
    expected = by_stream(whole)
    assert len(whole) > 10
    for cut in range(len(whole) + 1):
        got, calls, result = await resumed(make, whole[:cut])
        assert got == expected, f"cut after {cut} of {len(whole)}"
        recorded = sum(record.kind == "ModelCalled" for record in whole[:cut])
        assert calls == asked[recorded:], "recorded replies are not asked for again"
        assert result == msgspec.structs.replace(
            undisturbed_result, resumed=sum(r.stream == TRACE for r in whole[:cut])
        )


@pytest.mark.parametrize("name", [*SESSIONS, *BUILDING])
async def test_forked_after_any_record_with_the_same_players_it_is_the_rest(name: str) -> None:
    make = {**SESSIONS, **BUILDING}[name]
    whole, asked, _ = await undisturbed(make)
    expected = by_stream(whole)
    expected[TRACE] = expected[TRACE][1:]
    end = closing_append(whole)
    for cut in range(2, end):
        calls: list[str] = []
        async with open_log("memory://") as log:
            forked = fork(make(calls), whole, cut)
            await run_session(log, forked)
            got = await streams(log, forked.id)
        got[TRACE] = got[TRACE][1:]
        found = {
            stream: [msgspec.structs.replace(r, session=whole[0].session) for r in records]
            for stream, records in got.items()
        }
        assert found == expected, f"cut at {cut}"
        recorded = sum(r.kind == "ModelCalled" and r.version <= cut for r in whole)
        assert calls == asked[recorded:], "recorded replies are not asked for again"


def closing_append(records: Sequence[Record]) -> int:
    """The trace version from which on a session cannot be forked: its close, or its stop."""
    trace = [record for record in records if record.stream == TRACE]
    closed = trace[-1].event
    assert isinstance(closed, SessionClosed)
    if closed.reason != "tolerance":
        return len(trace)
    cancelled = [
        r.version
        for r in trace
        if isinstance(r.event, ActionResolved) and r.event.outcome == "cancelled"
    ]
    with pytest.raises(InvalidInput, match=f"stopped at {cancelled[0]}"):
        fork(stopped([]), records, cancelled[0])
    return cancelled[0]


async def test_the_sessions_hold_what_makes_resuming_hard() -> None:
    """Guards the test above: the interrupted sessions are rich."""
    traces = {name: (await undisturbed(make))[0] for name, make in SESSIONS.items()}
    rich = traces["collaboration"]
    kinds = {record.kind for record in rich}
    assert kinds >= {
        "MessageSent", "ActionTaken", "ActionResolved", "SnapshotTaken", "ApprovalAsked",
        "ApprovalGiven", "NoteTaken", "TurnYielded", "ProgressRated", "ModelCalled",
        "UtilityScored", "ScorerFailed", "SessionClosed",
    }  # fmt: skip
    resolved = [r.event.action for r in rich if isinstance(r.event, ActionResolved)]
    assert resolved != sorted(resolved), "actions resolve out of order"
    assert any(r.kind == "ActionResolved" and r.actor == "engine" for r in rich), "a refusal"
    ends = {
        name: next(r.event for r in trace if isinstance(r.event, SessionClosed))
        for name, trace in traces.items()
    }
    assert ends["waiting"].reason == "stalled"
    assert [r.event for r in traces["waiting"] if r.kind == "Nudged"]
    assert ends["stopped"].reason == "tolerance"
    assert ends["failing"].reason == "failed"
    assert ends["limited"].reason == "limit"
    for name in ("stopped", "failing", "limited"):
        outcomes = {r.event.outcome for r in traces[name] if isinstance(r.event, ActionResolved)}
        assert "cancelled" in outcomes


async def test_what_was_in_flight_and_may_not_be_repeated_fails_as_interrupted() -> None:
    def make(calls: list[str]) -> Session:
        user = Script().pause(1).say("Hm.").pause(9).say("And now?").hear(within=200).finish()
        helper = Script().act("build", what="a bridge").act("search").result().say("Done.")
        return a_session(human(user), agent(helper), environment=Workshop())

    whole, _, _ = await undisturbed(make)
    [taken] = [r for r in whole if isinstance(r.event, ActionTaken) and r.event.name == "build"]
    [done] = [
        r for r in whole if isinstance(r.event, ActionResolved) and r.event.action == taken.version
    ]
    for cut in range(1, len(whole)):
        got, _, _ = await resumed(make, whole[:cut])
        trace = got[TRACE]
        assert trace[:cut] == by_stream(whole)[TRACE][:cut]
        assert trace[-1].kind == "SessionClosed"
        [outcome] = [
            r.event
            for r in trace
            if isinstance(r.event, ActionResolved) and r.event.action == taken.version
        ]
        if taken.version <= cut < done.version:
            assert outcome.outcome == "failed"
            assert "interrupted" in (outcome.error or "")
        else:
            assert got == by_stream(whole)


def builds_in_flight(trace: Sequence[Record]) -> set[int]:
    """Actions that may not be repeated and are still without an outcome."""
    found: set[int] = set()
    for record in trace:
        if isinstance(record.event, ActionTaken) and record.event.name == "build":
            found.add(record.version)
        elif isinstance(record.event, ActionResolved):
            found.discard(record.event.action)
    return found


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("apart", [(11, 7), pytest.param((5, 3), marks=pytest.mark.soak)])
async def test_interrupted_twice(number: int, apart: tuple[int, int]) -> None:
    """A session with an interrupted action can itself be interrupted, and resumed, anywhere."""
    make = partial(improvised, number, build=True)
    first, second = apart
    whole, _, _ = await undisturbed(make)
    for cut in range(1 + number % first, len(whole), first):
        async with open_log("memory://") as log:
            await put_records(log, whole[:cut])
            await run_session(log, make([]))
            once = [record async for record in log.read_all()]
        assert by_stream(once[:cut]) == by_stream(whole[:cut])
        for again in range(cut, len(once) + 1, second):
            prefix = once[:again]
            got, _, _ = await resumed(make, prefix)
            if builds_in_flight([r for r in prefix if r.stream == TRACE]):
                assert got[TRACE][-1].kind == "SessionClosed"
            else:
                assert got == by_stream(once), f"cut after {cut}, and again after {again}"


async def test_outcomes_are_taken_over_and_not_performed_again() -> None:
    whole, _, _ = await undisturbed(collaboration)
    performed = Workshop()
    recalled = Workshop()
    for environment, cut in ((performed, 0), (recalled, len(whole) - 3)):
        async with open_log("memory://") as log:
            await put_records(log, whole[:cut])
            session = msgspec.structs.replace(collaboration([]), environment=environment)
            await run_session(log, session)
    assert performed.recalled == []
    assert recalled.recalled == performed.performed[: len(recalled.recalled)]
    assert performed.count == recalled.count
    assert set(recalled.recalled) | set(recalled.performed) == set(performed.performed)


async def test_a_session_that_is_over_is_not_run_again() -> None:
    whole, _, result = await undisturbed(collaboration)
    session = msgspec.structs.replace(
        collaboration([]),
        players=tuple(
            msgspec.structs.replace(player, actor=Script().say("I was not asked."))
            for player in collaboration([]).players
        ),
    )
    got, calls, again = await resumed(lambda calls: session, whole)
    assert got == by_stream(whole)
    assert calls == []
    assert again == msgspec.structs.replace(result, resumed=again.events)


async def test_a_scorer_that_was_not_there_measures_what_is_recorded() -> None:
    whole, _, _ = await undisturbed(collaboration)
    late = Lengths("late")
    got, _, _ = await resumed(
        lambda calls: msgspec.structs.replace(collaboration(calls), scorers=(late,)), whole
    )
    assert {name: got[name] for name in by_stream(whole)} == by_stream(whole)
    assert len(got["late@1"]) == len(got["lengths@1"])


async def test_a_scorer_that_failed_stays_quarantined() -> None:
    """Though it would not fail this time."""

    class Recovered:
        ref = Faulty.ref

        def begin(self, session: str) -> SessionScorer:
            return Lengths("faulty").begin(session)

    whole, _, _ = await undisturbed(collaboration)
    for cut in (len(whole) // 2, len(whole)):
        got, _, _ = await resumed(
            lambda calls: msgspec.structs.replace(
                collaboration(calls), scorers=(Lengths(), Recovered())
            ),
            whole[:cut],
        )
        assert got[TRACE] == by_stream(whole)[TRACE]
        assert got["faulty@3"] == by_stream(whole)["faulty@3"]


# --- what cannot be resumed --------------------------------------------------------------------------


def other_seed(session: Session) -> Session:
    return msgspec.structs.replace(session, opened=msgspec.structs.replace(session.opened, seed=8))


def other_policy(session: Session) -> Session:
    user, helper = session.players
    participant = Participant(name="agent", role="agent", policy="two-stage", prompt="abc")
    opened = msgspec.structs.replace(session.opened, participants=(user.participant, participant))
    players = (user, msgspec.structs.replace(helper, participant=participant))
    return msgspec.structs.replace(session, opened=opened, players=players)


def other_behaviour(session: Session) -> Session:
    user, helper = session.players
    players = (user, msgspec.structs.replace(helper, actor=Script().pause(1).say("I differ.")))
    return msgspec.structs.replace(session, players=players)


def another_model_is_asked(session: Session) -> Session:
    user, helper = session.players
    actor = Script(
        Script().hear().act("search", of="hotels").act("look", at="prices").note("busy"),
        model([], "another"),
    )
    return msgspec.structs.replace(
        session, players=(user, msgspec.structs.replace(helper, actor=actor))
    )


def no_model_is_asked(session: Session) -> Session:
    user, helper = session.players
    actor = Script(
        Script().hear().act("search", of="hotels").act("look", at="prices").note("busy"),
        Script().say("I know it by heart."),
    )
    return msgspec.structs.replace(
        session, players=(user, msgspec.structs.replace(helper, actor=actor))
    )


def silence(session: Session) -> Session:
    players = tuple(msgspec.structs.replace(p, actor=Script().hear()) for p in session.players)
    return msgspec.structs.replace(session, players=players)


def swallowing(session: Session) -> Session:
    """An actor that differs, and catches all that is thrown at it."""
    user, helper = session.players

    async def stubborn(context: ActorContext) -> None:
        while True:
            with suppress(Exception):
                await context.say("I differ, and will not hear of it.")

    return msgspec.structs.replace(
        session, players=(user, msgspec.structs.replace(helper, actor=stubborn))
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_seed, "seed was 7, and now it would be 8"),
        (other_policy, "participants was .*scripted.* now it would be .*two-stage"),
        (other_behaviour, "MessageSent"),
        (another_model_is_asked, "ModelCalled"),
        (
            no_model_is_asked,
            "kind of ModelCalled was 'ModelCalled', now it would be 'MessageSent'",
        ),
        (silence, "version 3"),
        (swallowing, "version 3"),
    ],
)
async def test_what_differs_is_an_error_and_nothing_is_written(
    change: Callable[[Session], Session], message: str
) -> None:
    whole, _, _ = await undisturbed(collaboration)
    async with open_log("memory://") as log:
        await put_records(log, whole[:-4])
        before = await streams(log, "session")
        with pytest.raises(Divergence, match=message) as caught:
            await run_session(log, change(collaboration([])))
        assert caught.value.session == "session"
        assert await streams(log, "session") == before
        # and it can still be resumed as what it was
        await run_session(log, collaboration([]))
        assert await streams(log, "session") == by_stream(whole)


async def test_a_session_of_another_engine_is_not_executed_again() -> None:
    whole, _, _ = await undisturbed(collaboration)
    first = whole[0].event
    assert isinstance(first, SessionOpened)
    newer = msgspec.structs.replace(first, engine=ENGINE_NUMBER + 1, package="9.9.9")
    async with open_log("memory://") as log:
        await log.append("session", [Draft(newer, ENGINE, "environment", 0.0)])
        with pytest.raises(Divergence, match=r"use Duolog 9\.9\.9 to resume it, or fork it from"):
            await run_session(log, collaboration([]))
        assert [record.version async for record in log.read_all()] == [1]


async def test_another_version_of_the_same_engine_resumes_a_session() -> None:
    whole, _, _ = await undisturbed(collaboration)
    session = collaboration([])
    opened = msgspec.structs.replace(session.opened, package="9.9.9")
    async with open_log("memory://") as log:
        await put_records(log, whole[:-4])
        await run_session(log, msgspec.structs.replace(session, opened=opened))
        assert await streams(log, "session") == by_stream(whole)


async def test_a_model_asked_where_the_log_has_something_else_is_not_asked() -> None:
    asked: list[str] = []

    def make(calls: list[str]) -> Session:
        return a_session(human(Script().pause(1).say("one").pause(1).say("two").finish()))

    whole, _, _ = await undisturbed(make)
    session = a_session(human(Script(Script().pause(1), model(asked, "unexpected"))))
    async with open_log("memory://") as log:
        await put_records(log, whole[:2])
        with pytest.raises(Divergence, match="'user' asks a model"):
            await run_session(log, session)
    assert asked == []


async def test_a_log_that_holds_no_opening_is_another_session() -> None:
    whole, _, _ = await undisturbed(waiting)
    async with open_log("memory://") as log:
        await put_records(log, whole[1:3])
        with pytest.raises(Divergence, match="its first record is not an opening"):
            await run_session(log, waiting([]))


async def test_replies_are_durable_before_what_follows_from_them() -> None:
    whole, _, _ = await undisturbed(collaboration)
    for record in whole:
        if isinstance(record.event, ModelCalled):
            assert isinstance(record.event.reply, dict)
            text = record.event.reply["text"]
            [said] = [r for r in whole if isinstance(r.event, MessageSent) and text in r.event.text]
            assert said.position > record.position
