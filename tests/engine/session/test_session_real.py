"""Sessions on the wall clock: people, products, and policies that work at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import anyio
import pytest
from duolog.engine.errors import Divergence
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ActorFailed,
    ScorerRef,
    SessionClosed,
    UtilityScored,
)
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Record
from duolog.engine.scorers.protocol import Measurement, SessionScorer
from duolog.engine.session.actors import playing
from duolog.engine.session.context import ActorContext
from duolog.engine.session.decisions import NOTHING, Decision, Finish, Say, Submit, Wait
from duolog.engine.session.limits import Limits
from duolog.engine.session.runner import Session, measured_mark, run_session
from duolog.engine.session.time.clock import RealClock
from duolog.engine.session.time.timing import Timing
from duolog.engine.session.view import View
from duolog.testing import (
    Script,
    Steps,
    Workshop,
    a_session,
    agent,
    human,
    played,
    put_records,
    streams,
)

AT_ONCE = Timing(
    read_wpm=1e9, type_wpm=1e9, human_step=0.0, agent_step=0.0, agent_tps=1e9, action=0.0
)


async def run(session: Session, *, fails: bool = False) -> list[Record]:
    return (await played(session, fails=fails)).trace


def kinds(trace: list[Record]) -> list[tuple[str, str]]:
    return [(record.kind, record.actor) for record in trace]


async def test_a_session_with_people() -> None:
    """Somebody outside the kernel (a web socket, a terminal) hands the actor what was typed."""
    typed_send, typed = anyio.create_memory_object_stream[str](10)
    shown: list[str] = []

    async def person(context: ActorContext) -> None:
        async with typed:
            async for line in typed:
                await context.say(line)
                if line == "bye":
                    await context.finish()

    class Polite:
        async def decide(self, view: View) -> Decision:
            if view.messages and view.messages[-1].actor == "user":
                shown.append(view.messages[-1].text)
                return Decision((Say(f"You said {shown[-1]}."),))
            return NOTHING

    session = a_session(
        human(person), agent(playing(Polite())), clock=RealClock(), seed=None, timing=AT_ONCE
    )
    async with open_log("memory://") as log, anyio.create_task_group() as tasks, typed_send:
        tasks.start_soon(run_session, log, session)
        async with log.subscribe() as records:
            for line in ("hello", "and then?", "bye"):
                await typed_send.send(line)
                async for record in records:
                    if record.kind == "SessionClosed" or (
                        record.kind == "MessageSent" and record.actor == "agent"
                    ):
                        break
        trace = (await streams(log, "session"))[TRACE]
    assert shown[:2] == ["hello", "and then?"]
    assert kinds(trace)[-1] == ("SessionClosed", "user")
    times = [r.time for r in trace]
    assert times == sorted(times)
    assert times[0] > 1e9, "seconds since the epoch"


async def test_a_time_out_is_told_apart_from_news() -> None:
    outcomes: list[bool] = []
    spoken = anyio.Event()

    async def listen(context: ActorContext) -> None:
        outcomes.append(await context.news(within=0.001))
        context.look()
        spoken.set()
        outcomes.append(await context.news(within=60))
        context.look()
        outcomes.append(await context.news(within=0))
        await context.finish()

    async def speak(context: ActorContext) -> None:
        await spoken.wait()
        await context.say("news")

    trace = await run(a_session(human(speak), agent(listen), clock=RealClock(), seed=None))
    assert outcomes == [False, True, False]
    assert [k for k, _ in kinds(trace)] == ["SessionOpened", "MessageSent", "SessionClosed"]


async def test_news_that_came_while_an_actor_was_busy_is_not_lost() -> None:
    steps = Steps()
    heard: list[str] = []

    async def busy(context: ActorContext) -> None:
        async with steps(1):
            pass  # working, and not looking
        assert await context.news()
        heard.extend(m.text for m in context.view.messages)  # the view changes only by looking
        context.look()
        heard.extend(m.text for m in context.view.messages)
        await context.finish()

    async def speak(context: ActorContext) -> None:
        async with steps(0):
            await context.say("one")
            await context.say("two")

    await run(a_session(human(speak), agent(busy), clock=RealClock(), seed=None))
    assert heard == ["one", "two"]


async def test_when_all_wait_on_the_wall_it_stalls() -> None:
    patient = Script().hear().times(9)
    trace = await run(
        a_session(human(patient), agent(patient), clock=RealClock(), seed=None, nudges=2)
    )
    assert [k for k, _ in kinds(trace)] == ["SessionOpened", *["Nudged"] * 4, "SessionClosed"]
    assert isinstance(trace[-1].event, SessionClosed)
    assert trace[-1].event.reason == "stalled"


async def test_who_works_outside_the_kernel_does_not_stall_it() -> None:
    gate = anyio.Event()

    async def think(context: ActorContext) -> None:
        await gate.wait()
        await context.finish()

    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        session = a_session(
            human(Script().hear().times(9)), agent(think), clock=RealClock(), seed=None, nudges=0
        )
        tasks.start_soon(run_session, log, session)
        await anyio.wait_all_tasks_blocked()
        assert (await log.summary("session")).state == "open"
        gate.set()


async def test_who_waits_for_an_outcome_does_not_stall_it() -> None:
    helper = Script().act("look").result().finish()
    trace = await run(
        a_session(
            human(Script().hear().times(9)),
            agent(helper),
            clock=RealClock(),
            seed=None,
            nudges=0,
            environment=Workshop(pace=0.001),
        )
    )
    assert kinds(trace)[-2:] == [("ActionResolved", "environment"), ("SessionClosed", "agent")]


async def test_a_limit_of_time_closes_on_the_wall() -> None:
    trace = await run(
        a_session(
            human(Script().pause(3600)),
            agent(Script().hear(within=3600)),
            clock=RealClock(),
            seed=None,
            limits=Limits(seconds=0.01),
        )
    )
    assert isinstance(trace[-1].event, SessionClosed)
    assert trace[-1].event.detail == "seconds: 0.01"


async def test_an_actor_that_raises_on_the_wall() -> None:
    async def fail(context: ActorContext) -> None:
        raise LookupError("lost")

    trace = await run(
        a_session(human(Script().hear()), agent(fail), clock=RealClock(), seed=None), fails=True
    )
    where = f"test_session_real.py, line {fail.__code__.co_firstlineno + 1}, in fail"
    assert trace[-2].event == ActorFailed(error=f"lost ({where})", type="LookupError")


async def test_it_resumes_from_its_view() -> None:
    """What happened is news to those who come back; nothing of it is done again."""
    views: list[list[str]] = []

    class Recalling:
        async def decide(self, view: View) -> Decision:
            views.append([m.text for m in view.messages])
            return Decision((Say("I am back."), Finish())) if len(views) > 1 else NOTHING

    async def away(context: ActorContext) -> None:
        await anyio.sleep_forever()

    def session() -> Session:
        return a_session(
            human(away),
            agent(playing(Recalling())),
            clock=RealClock(),
            seed=None,
            request="A trip, please.",
            timing=AT_ONCE,
        )

    async with open_log("memory://") as log:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_session, log, session())
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        before = (await streams(log, "session"))[TRACE]
        result = await run_session(log, session())
        after = (await streams(log, "session"))[TRACE]
    assert views == [["A trip, please."], ["A trip, please."]]
    assert after[: len(before)] == before
    assert result.resumed == len(before)
    assert kinds(after)[len(before) :] == [("MessageSent", "agent"), ("SessionClosed", "agent")]


async def test_resuming_on_the_wall_recalls_outcomes_and_sees_to_what_was_in_flight() -> None:
    first = Script().act("look").result().act("build").act("search").hear().hear()

    async def report(context: ActorContext) -> None:
        context.look()
        while context.view.in_flight:
            await context.news()
            context.look()
        await context.finish()

    async def start(workshop: Workshop, then: Script) -> list[Record]:
        session = a_session(
            agent(then),
            clock=RealClock(),
            seed=None,
            environment=workshop,
            nudges=9,
            timing=AT_ONCE,
        )
        await run_session(log, session)
        return (await streams(log, "session"))[TRACE]

    slow, again = Workshop(pace=0.001), Workshop(pace=0.0)
    async with open_log("memory://") as log:
        async with anyio.create_task_group() as tasks:

            async def cut() -> None:
                async with log.subscribe() as records:
                    async for record in records:
                        if b'"search"' in (record.body or b""):
                            break
                tasks.cancel_scope.cancel()

            tasks.start_soon(cut)
            await start(slow, first)
        trace = await start(again, Script(report))
    outcomes = {r.event.action: r.event for r in trace if isinstance(r.event, ActionResolved)}
    [look, build, search] = sorted(outcomes)
    assert again.recalled == [look]
    assert again.performed == [search]
    assert outcomes[build].outcome == "failed"
    assert "interrupted" in (outcomes[build].error or "")
    assert outcomes[search].observation == {"count": 2, "arguments": {}}


class Lengths:
    """Scores snapshots by their length."""

    ref = ScorerRef(name="lengths", version="1", config="")

    def begin(self, session: str) -> SessionScorer:
        return self

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if record.kind != "SnapshotTaken":
            return []
        value = len(record.body or b"") / 1000
        scored = UtilityScored(scorer=self.ref, snapshot=record.version, value=value)
        return [Measurement(scored, f"snapshot/{record.version}")]


DEEDS = ("look", "build", "search", "draft", "fumble", "draft", "look")


async def by_the_list(context: ActorContext) -> None:
    """Continues with the list from wherever its view says that it is."""
    while True:
        context.look()
        own = [record for record in context.view.records if record.actor == "agent"]
        done = len([record for record in own if record.kind in ("ActionTaken", "SnapshotTaken")])
        if context.view.in_flight and done != 2:  # only the second and the third overlap
            await context.news()
        elif done == len(DEEDS):
            return await context.finish()
        elif DEEDS[done] == "draft":
            await context.submit(f"draft {done}")
        else:
            await context.act(DEEDS[done])


async def test_restored_at_any_record_it_does_the_rest_and_nothing_twice() -> None:
    async def stay_away(context: ActorContext) -> None:
        await anyio.sleep_forever()

    def session(workshop: Workshop) -> Session:
        return a_session(
            human(stay_away),
            agent(by_the_list),
            clock=RealClock(),
            seed=None,
            request="A list of deeds.",
            environment=workshop,
            timing=AT_ONCE,
            scorers=[Lengths()],
        )

    whole = await played(session(Workshop(pace=0.0)))
    assert [r.event.name for r in whole.trace if isinstance(r.event, ActionTaken)] == [
        deed for deed in DEEDS if deed != "draft"
    ]
    for cut in range(1, len(whole.trace) + 1):
        held = whole.trace[:cut]
        scores = [r for r in whole.streams["lengths@1"] if r.event.snapshot <= cut]  # type: ignore[union-attr]
        workshop = Workshop(pace=0.0)
        async with open_log("memory://") as log:
            await put_records(log, held + scores[:1])
            result = await run_session(log, session(workshop))
            got = await streams(log, "session")
            mark = await log.checkpoint(*measured_mark(session(workshop)))
            last = [record.position async for record in log.read_all()][-1]
        trace = got[TRACE]
        assert [r.body for r in trace[:cut]] == [r.body for r in held]
        assert (result.resumed, result.events, result.reason) == (cut, len(trace), "finished")
        taken = {r.version: r.event.name for r in trace if isinstance(r.event, ActionTaken)}
        assert [*taken.values()] == ["look", "build", "search", "fumble", "look"]
        resolved = [r for r in trace if isinstance(r.event, ActionResolved)]
        outcomes = {
            r.event.action: r.event for r in resolved if isinstance(r.event, ActionResolved)
        }
        assert sorted(outcomes) == [*taken], "each action has one outcome"
        assert len(resolved) == len(taken)
        closed = held[-1].kind == "SessionClosed"
        before = [v for v in taken if v <= cut and outcomes[v] in [r.event for r in held]]
        open_build = [v for v in taken if taken[v] == "build" and v <= cut and v not in before]
        assert workshop.recalled == ([] if closed else before)
        assert workshop.performed == [v for v in taken if v not in before and v not in open_build]
        for version in open_build:
            assert "interrupted" in (outcomes[version].error or "")
        fine = [v for v in taken if outcomes[v].outcome == "ok"]
        assert len(fine) == 4 - len(open_build)
        counts = [
            cast("Mapping[str, int]", outcomes[v].observation)["count"]
            for v in fine
            if v not in before
        ]
        assert sorted(counts) == [*range(len(fine) - len(counts) + 1, len(fine) + 1)]
        snapshots = [r.version for r in trace if r.kind == "SnapshotTaken"]
        assert [r.event.snapshot for r in got["lengths@1"]] == snapshots  # type: ignore[union-attr]
        assert result.utility == pytest.approx(len(trace[snapshots[-1] - 1].body or b"") / 1000)
        assert mark == last, "all of it is noted as measured"


async def test_resuming_on_the_wall_recalls_no_refused_snapshot() -> None:
    async def blind(context: ActorContext) -> None:
        await context.emit(Submit("blind"))
        await context.finish()

    steps = Steps()

    async def edit(context: ActorContext) -> None:
        async with steps(0):
            await context.submit("mine")

    async def later(context: ActorContext) -> None:
        async with steps(1):
            await blind(context)

    workshop = Workshop()
    async with open_log("memory://") as log:
        session = a_session(human(edit), agent(later), clock=RealClock(), seed=None)
        await run_session(log, session)
        whole = [r async for r in log.read_all()]
    async with open_log("memory://") as log:
        await put_records(log, whole[:-1])
        session = a_session(
            human(Script()),
            agent(Script().finish()),
            clock=RealClock(),
            seed=None,
            environment=workshop,
        )
        await run_session(log, session)
    assert [r.kind for r in whole if r.actor == "engine"][-1:] == ["ActionResolved"]
    assert workshop.recalled == []
    assert workshop.performed == []


async def test_another_participant_cannot_resume_it() -> None:
    async with open_log("memory://") as log:
        session = a_session(human(Script().finish()), clock=RealClock(), seed=None)
        await run_session(log, session)
        other = a_session(human(Script(), "somebody"), clock=RealClock(), seed=None)
        with pytest.raises(Divergence, match="participants was"):
            await run_session(log, other)


async def test_times_go_on_where_they_were_though_the_wall_was_set_back() -> None:
    wall = 2_000_000.0
    clock = RealClock(wall=lambda: wall)

    def session(script: Script) -> Session:
        return a_session(human(script), clock=clock, seed=None)

    async with open_log("memory://") as log:
        await run_session(log, session(Script().say("a").finish()))
        held = [r async for r in log.read_all()]
    wall = 1_000_000.0
    async with open_log("memory://") as log:
        await put_records(log, held[:-1])
        await run_session(log, session(Script().say("b").finish()))
        times = [r.time async for r in log.read_all()]
    assert times == sorted(times)
    assert times[0] >= 2_000_000.0


async def test_a_policy_waits_on_the_wall_too() -> None:
    seen: list[bool] = []

    class Waiting:
        async def decide(self, view: View) -> Decision:
            seen.append(view.idle)
            return Decision((Finish(),)) if view.idle else Decision((Wait(0.001),))

    await run(a_session(agent(playing(Waiting())), clock=RealClock(), seed=None, timing=AT_ONCE))
    assert seen == [False, True]
