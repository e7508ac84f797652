"""The context: the acts that an actor can and cannot do."""

from __future__ import annotations

from collections.abc import Callable, Coroutine

import anyio
import pytest
from duolog.engine.codec import digest
from duolog.engine.errors import ContextError
from duolog.engine.events import (
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    Event,
    MessageSent,
    ModelCalled,
    NoteTaken,
    ProgressRated,
    SnapshotTaken,
    Tokens,
    TurnYielded,
)
from duolog.engine.records import Record
from duolog.engine.session.actors import playing
from duolog.engine.session.context import ActorContext, Reply
from duolog.engine.session.decisions import Approve, Decision, Finish, Rate, Say, Wait
from duolog.engine.session.runner import Session
from duolog.engine.session.view import View
from duolog.testing import Script, Workshop, a_session, agent, human, played


async def trace_of(session: Session) -> list[Record]:
    return (await played(session)).trace


async def events_of(*scripts: Script) -> list[Event]:
    """What one agent emits, and the others with it, without the engine's events."""
    first, *others = scripts
    players = [agent(first), *(human(script) for script in others)]
    trace = await trace_of(a_session(*players, environment=Workshop()))
    return [r.event for r in trace if r.role in ("human", "agent") and isinstance(r.event, Event)][
        :-1
    ]


async def test_each_verb_is_an_event() -> None:
    script = Script().say("hi").say("psst", to=["user"]).act("look", at="it").note("n")
    script = script.submit("text").submit({"a": [1, None]}).leave_turn("go on").finish()
    content = {"a": [1, None]}
    assert await events_of(script) == [
        MessageSent(text="hi"),
        MessageSent(text="psst", to=("user",)),
        ActionTaken(name="look", arguments={"at": "it"}),
        NoteTaken(text="n"),
        SnapshotTaken(content="text", digest=digest("text")),
        SnapshotTaken(content=content, digest=digest(content), base=6),
    ]  # it waits for its own outcome, so it does not yield


async def test_yielding_is_said_once_until_one_acts_again() -> None:
    script = Script().leave_turn("a").leave_turn("b").note("n").leave_turn("c").say("d")
    assert await events_of(script.leave_turn("e").leave_turn("f").finish()) == [
        TurnYielded(reason="a"),
        NoteTaken(text="n"),
        MessageSent(text="d"),
        TurnYielded(reason="e"),
    ]


async def test_approvals_are_asked_and_given() -> None:
    asking = Script().ask("May I?").hear().ask("And that?").hear().finish()
    giving = Script().hear().look().approve(comment="yes").hear().look().approve(approved=False)
    assert await events_of(asking, giving) == [
        ApprovalAsked(question="May I?"),
        ApprovalGiven(asked=2, approved=True, comment="yes"),
        ApprovalAsked(question="And that?"),
        ApprovalGiven(asked=4, approved=False),
    ]


async def test_an_approval_answers_what_it_names() -> None:
    trace = await trace_of(
        a_session(
            agent(Script().ask("May I?").hear().finish()), human(Script().hear().look().approve())
        )
    )
    [given] = [r for r in trace if r.kind == "ApprovalGiven"]
    assert given.cause == "trace/2"


async def test_a_rating_is_about_the_latest_round_in_which_an_agent_acted() -> None:
    user = Script().say("a").hear().rate(4, "nice").say("b").rate(2).rate(3, round=2).finish()
    helper = Script().hear().say("x")
    trace = await trace_of(a_session(human(user), agent(helper)))
    ratings = [r.event for r in trace if isinstance(r.event, ProgressRated)]
    assert ratings == [
        ProgressRated(round=1, rating=4, until=3, explanation="nice"),
        ProgressRated(round=1, rating=2, until=3),
        ProgressRated(round=2, rating=3, until=5),
    ]


async def test_where_no_agent_has_acted_there_is_nothing_to_rate() -> None:
    async def rate(context: ActorContext) -> None:
        await context.say("hello?")
        with pytest.raises(ContextError, match="no agent has acted yet"):
            await context.rate(1)
        await context.finish()

    trace = await trace_of(a_session(human(rate)))
    assert [r.kind for r in trace] == ["SessionOpened", "MessageSent", "SessionClosed"]


async def test_what_was_seen_is_recorded_with_what_was_done() -> None:
    helper = Script().pause(1).note("blind").look().note("seeing").pause(1).say("late")
    user = Script().say("a").pause(1.5).say("b").pause(9).finish()
    trace = await trace_of(a_session(human(user), agent(helper)))
    seen = {r.event.text: r.seen for r in trace if isinstance(r.event, MessageSent | NoteTaken)}
    assert seen == {"a": 0, "blind": 0, "seeing": 3, "b": 0, "late": 3}


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        (Rate(0), "1 to 5, not 0"),
        (Rate(6), "1 to 5, not 6"),
        (Rate(3, round=2), "cannot rate round 2: it is in round 1"),
        (Approve(17), "no approval was requested at version 17"),
        (Wait(1.0), "Wait cannot be emitted"),
        (Finish(), "Finish cannot be emitted"),
    ],
    ids=str,
)
async def test_what_makes_no_sense_is_refused_and_nothing_is_written(
    verb: Rate | Approve | Wait | Finish, message: str
) -> None:
    async def nonsense(context: ActorContext) -> None:
        with pytest.raises(ContextError, match=message):
            await context.emit(Say("before"), verb)
        await context.finish()

    trace = await trace_of(a_session(agent(nonsense)))
    assert [r.kind for r in trace] == ["SessionOpened", "SessionClosed"]


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), float("-inf")])
async def test_waiting_for_a_time_that_never_comes_is_refused(seconds: float) -> None:
    async def wait(context: ActorContext) -> None:
        for waiting in (context.pause, lambda s: context.news(within=s)):
            with pytest.raises(ContextError, match="leave the time out"):
                await waiting(seconds)
        await context.finish()

    result, _ = await played(a_session(agent(wait)))
    assert result.reason == "finished"


async def test_a_result_of_somebody_elses_is_no_result() -> None:
    async def wait_for_the_others(context: ActorContext) -> None:
        await context.pause(0.5)
        context.look()
        [taken] = [r for r in context.view.records if r.kind == "ActionTaken"]
        with pytest.raises(ContextError, match="is not an action of 'user'"):
            await context.result(taken)

    helper = Script().act("look").result().finish()
    await played(a_session(human(wait_for_the_others), agent(helper), environment=Workshop()))


async def test_a_result_is_awaited() -> None:
    results: list[tuple[float, object]] = []

    async def look(context: ActorContext) -> None:
        search = await context.act("search")
        first = await context.act("look")
        for action in (first, search, first):
            resolved = await context.result(action)
            results.append((context.now, resolved.observation))
        await context.finish()

    await played(a_session(agent(look), environment=Workshop()))
    found = [{"count": 2, "arguments": {}}, {"count": 1, "arguments": {}}]
    assert results == [(1.5, found[0]), (20.0, found[1]), (20.0, found[0])]


async def test_news_is_a_cursor_and_not_a_flag() -> None:
    """Looking twice shows nothing twice, and waiting for news that one has seen waits."""

    async def read(context: ActorContext) -> None:
        assert await context.news()
        assert await context.news(), "not looked yet: it is news still"
        assert [r.kind for r in context.look()] == ["SessionOpened", "MessageSent", "MessageSent"]
        assert context.look() == ()
        assert not await context.news(within=1.0)
        await context.finish()

    result, _ = await played(a_session(human(Script().say("a").say("b")), agent(read)))
    assert result.error is None


async def test_what_one_does_oneself_is_no_news() -> None:
    async def speak(context: ActorContext) -> None:
        await context.say("a")
        await context.act("nonsense", {})
        assert not await context.news(within=0.5)
        assert [r.kind for r in context.look()] == ["SessionOpened", "MessageSent", "ActionTaken"]
        await context.finish()

    await played(a_session(agent(speak), environment=Workshop()))


async def test_the_view_changes_only_by_looking() -> None:
    async def watch(context: ActorContext) -> None:
        context.look()
        before = (context.view.version, context.view.now, len(context.view.messages))
        await context.pause(5)
        assert (context.view.version, context.view.now, len(context.view.messages)) == before
        assert context.now == 5.0
        context.look()
        assert context.view.now == 5.0
        assert [m.text for m in context.view.messages] == ["a", "b"]
        await context.finish()

    await played(a_session(human(Script().say("a").pause(1).say("b")), agent(watch)))


async def test_a_pause_passes_come_what_may() -> None:
    times: list[float] = []

    async def rest(context: ActorContext) -> None:
        await context.pause(10)
        times.append(context.now)
        await context.finish()

    await played(a_session(human(Script().say("hey").pause(1).times(5)), agent(rest)))
    assert times == [10.0]


# --- models ------------------------------------------------------------------------------------------


async def test_a_model_call_is_recorded_with_all_there_is_to_it() -> None:
    async def send() -> Reply:
        return Reply(
            reply={"text": "hello"},
            tokens=Tokens(prompt=10, completion=5, cached=3),
            latency=0.5,
            cost=0.001,
        )

    async def ask(context: ActorContext) -> None:
        reply = await context.models.call(
            model="m-1", purpose="plan", request={"b": 1, "a": [2]}, send=send, attempt=2
        )
        assert reply == await send()
        await context.finish()

    trace = await trace_of(a_session(agent(ask)))
    assert trace[1].event == ModelCalled(
        model="m-1",
        purpose="plan",
        request=digest({"a": [2], "b": 1}),
        reply={"text": "hello"},
        tokens=Tokens(prompt=10, completion=5, cached=3),
        latency=0.5,
        cost=0.001,
        attempt=2,
    )


async def test_a_failed_call_is_a_reply_with_an_error() -> None:
    async def send() -> Reply:
        return Reply(error="overloaded")

    async def ask(context: ActorContext) -> None:
        reply = await context.models.call(model="m", purpose="act", request=None, send=send)
        await context.note(str(reply.error))
        await context.finish()

    trace = await trace_of(a_session(agent(ask)))
    assert isinstance(trace[1].event, ModelCalled)
    assert trace[1].event.error == "overloaded"
    assert trace[2].event == NoteTaken(text="overloaded")


async def test_model_calls_of_one_session_do_not_overlap() -> None:
    calling: list[str] = []
    most = 0

    async def ask(context: ActorContext) -> None:
        async def send() -> Reply:
            nonlocal most
            calling.append(context.name)
            most = max(most, len(calling))
            await anyio.sleep(0.001)
            calling.remove(context.name)
            return Reply(reply="x")

        for _ in range(3):
            await context.models.call(model="m", purpose="act", request=None, send=send)
            await context.pause(1)

    trace = await trace_of(a_session(agent(ask, "a"), agent(ask, "b"), agent(ask, "c")))
    assert sum(r.kind == "ModelCalled" for r in trace) == 9
    assert most == 1


# --- whose context it is --------------------------------------------------------------------------------

Use = Callable[[ActorContext], Coroutine[None, None, object]]


async def looking(context: ActorContext) -> object:
    return context.look()


async def send_nothing() -> Reply:
    raise AssertionError("it must not come to this")


USES: dict[str, Use] = {
    "say": lambda context: context.say("x"),
    "act": lambda context: context.act("look"),
    "submit": lambda context: context.submit("x"),
    "ask": lambda context: context.ask("x"),
    "note": lambda context: context.note("x"),
    "change_profile": lambda context: context.change_profile("x"),
    "rate": lambda context: context.rate(3),
    "yield": lambda context: context.yield_turn(),
    "finish": lambda context: context.finish(),
    "news": lambda context: context.news(),
    "pause": lambda context: context.pause(1),
    "look": looking,
    "call": lambda context: context.models.call(
        model="m", purpose="p", request=1, send=send_nothing
    ),
}


@pytest.mark.parametrize("use", USES)
async def test_a_context_used_from_another_task_raises(use: str) -> None:
    caught: list[ContextError] = []

    async def trespass(context: ActorContext) -> None:
        with pytest.raises(ContextError, match="from a task that is not its actor's") as error:
            await USES[use](context)
        caught.append(error.value)

    async def share(context: ActorContext) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(trespass, context)
        await context.finish()

    trace = await trace_of(a_session(agent(share)))
    assert len(caught) == 1
    assert [r.kind for r in trace] == ["SessionOpened", "SessionClosed"]


@pytest.mark.parametrize("use", USES)
async def test_a_context_used_out_of_turn_raises(use: str) -> None:
    """A time-out of the wall's around a wait of the session's takes an actor out of its turn."""

    async def hurry(context: ActorContext) -> None:
        with anyio.move_on_after(0.001):
            await context.pause(1e9)
        with pytest.raises(ContextError, match="measure the wall"):
            await USES[use](context)
        done.set()

    done = anyio.Event()

    async def work(context: ActorContext) -> None:
        await context.pause(1)
        await done.wait()
        await context.finish()

    trace = await trace_of(a_session(agent(hurry), human(work)))
    assert [r.kind for r in trace] == ["SessionOpened", "SessionClosed"]


async def test_time_outs_of_the_wall_may_serve_real_work() -> None:
    async def work(context: ActorContext) -> None:
        with anyio.move_on_after(0.001) as scope:
            await anyio.sleep_forever()
        assert scope.cancelled_caught
        await context.say("it took too long")
        await context.pause(5)
        await context.finish()

    result, _ = await played(a_session(agent(work)))
    assert (result.reason, result.seconds) == ("finished", 5.0)


# --- policies with the context ------------------------------------------------------------------------------


async def test_randomness_is_the_sessions_the_actors_and_the_decisions() -> None:
    drawn: dict[tuple[int, str], list[float]] = {}

    class Drawing:
        def __init__(self, seed: int) -> None:
            self._seed = seed

        async def decide(self, view: View) -> Decision:
            first = view.random.random()
            again = view.random.random()
            assert first != again, "one stream per decision"
            numbers = drawn.setdefault((self._seed, view.me), [])
            numbers.append(first)
            return Decision((Finish(),) if len(numbers) == 3 else (), seconds=1.0)

    for seed in (1, 2):
        for _ in range(2):
            drawn.pop((seed, "agent"), None)
            drawn.pop((seed, "user"), None)
            policy = playing(Drawing(seed))
            await played(a_session(agent(policy), human(policy), seed=seed))
            drawn.setdefault((seed + 10, "agent"), drawn[seed, "agent"])
    assert drawn[1, "agent"][:2] == drawn[11, "agent"][:2]
    numbers = [n for (seed, _), ns in drawn.items() if seed < 10 for n in ns]
    assert len(set(numbers)) == len(numbers)
