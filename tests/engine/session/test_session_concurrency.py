"""Actors who work at the same time: what each sees of the others' work, and when."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from anyio.lowlevel import checkpoint
from duolog.engine.errors import StaleBase
from duolog.engine.events import JSON, ActionResolved, ActionTaken, MessageSent, SnapshotTaken
from duolog.engine.records import Record
from duolog.engine.session.actors import carry_out, playing
from duolog.engine.session.context import ActorContext
from duolog.engine.session.decisions import NOTHING, Act, Decision, Finish, Note, Say, Submit, Wait
from duolog.engine.session.environment import Action, ActionSpec, Outcome
from duolog.engine.session.runner import Session
from duolog.engine.session.time.timing import Timing
from duolog.engine.session.view import View
from duolog.testing import Script, Workshop, a_session, agent, human, played


async def trace_of(session: Session) -> list[Record]:
    return (await played(session)).trace


def told(trace: Sequence[Record]) -> list[tuple[float, str, JSON]]:
    """Messages and snapshots: when, by whom, what."""
    return [
        (record.time, record.actor, event.text if isinstance(event, MessageSent) else event.content)
        for record in trace
        if isinstance(event := record.event, MessageSent | SnapshotTaken)
    ]


class Drafting:
    """Drafts for ten seconds, and reacts to a message that comes meanwhile as it is told to."""

    def __init__(self, reaction: str) -> None:
        self._reaction = reaction
        self.views: list[tuple[float, str | None, int]] = []

    async def decide(self, view: View) -> Decision:
        pending = view.pending
        self.views.append((view.now, type(pending).__name__ if pending else None, len(view.news)))
        if pending is not None:
            if self._reaction == "keep":
                return pending
            if self._reaction == "drop":
                return NOTHING
            return Decision((Submit(f"with {view.messages[-1].text}"),), seconds=10.0)
        if view.snapshot is None and view.request:
            return Decision((Submit("a draft"),), seconds=10.0)
        return NOTHING


@pytest.mark.parametrize(
    ("reaction", "expected"),
    [
        ("keep", (10.0, "agent", "a draft")),
        ("change", (16.0, "agent", "with less walking")),
        ("drop", None),
    ],
)
async def test_news_while_drafting_has_the_draft_reconsidered(
    reaction: str, expected: tuple[float, str, str] | None
) -> None:
    policy = Drafting(reaction)
    user = Script().say("A walk.").pause(6).say("less walking").pause(60).finish()
    trace = await trace_of(a_session(human(user), agent(playing(policy))))
    snapshots = [entry for entry in told(trace) if entry[1] == "agent"]
    assert snapshots == ([expected] if expected else [])
    assert (6.0, "Decision", 1) in policy.views, "it looked up when the message came"
    for record in trace:
        if record.kind == "SnapshotTaken":
            said = next(r.version for r in trace if r.time == 6.0)
            assert (record.seen or 0) >= said, "it had seen the message when it submitted"


async def test_a_decision_that_stands_goes_on_where_it_was_once_the_news_is_read() -> None:
    """An agent reads in no time; a person takes a minute for 60 words, and then writes on."""
    words = " ".join(["word"] * 60)

    class Writing:
        async def decide(self, view: View) -> Decision:
            if view.pending is not None:
                return view.pending
            return Decision((Say("done"), Finish()), seconds=100.0)

    writer = playing(Writing())
    other = Script().pause(50).say(words)
    timing = Timing(read_wpm=60.0)
    by_agent = await trace_of(a_session(human(other), agent(writer), timing=timing))
    by_human = await trace_of(a_session(human(writer), agent(other), timing=timing))
    assert by_agent[-1].time == 100.0
    assert by_human[-1].time == 160.0


async def test_another_decision_comes_after_all_that_was_seen_has_been_read() -> None:
    words = " ".join(["word"] * 60)

    class Answering:
        async def decide(self, view: View) -> Decision:
            if view.messages and view.messages[-1].text == "Well?":
                return Decision((Say("yes"), Finish()), seconds=10.0)
            return NOTHING

    other = Script().pause(50).say(words).pause(20).say("Well?").pause(200)
    timing = Timing(read_wpm=60.0)
    trace = await trace_of(a_session(human(playing(Answering())), agent(other), timing=timing))
    assert trace[-1].time == 50.0 + 60.0 + 1.0 + 10.0


async def test_a_person_takes_at_least_as_long_as_typing_takes() -> None:
    class Hasty:
        async def decide(self, view: View) -> Decision:
            return Decision((Say("one two three"), Finish()), seconds=1.0)

    timing = Timing(type_wpm=60.0)
    for part, other, lasts in ((human, agent, 3.0), (agent, human, 1.0)):
        session = a_session(part(playing(Hasty())), other(Script().pause(60)), timing=timing)
        assert (await trace_of(session))[-1].time == lasts


async def test_news_at_the_very_moment_of_submitting_is_still_seen() -> None:
    for seed in range(8):
        policy = Drafting("change")
        user = Script().say("A walk.").pause(10).say("a dog").pause(60).finish()
        trace = await trace_of(a_session(human(user), agent(playing(policy)), seed=seed))
        [snapshot] = [r for r in trace if isinstance(r.event, SnapshotTaken)]
        said = next(r for r in trace if r.time == 10.0 and r.kind == "MessageSent")
        assert isinstance(snapshot.event, SnapshotTaken)
        if snapshot.version > said.version:
            assert snapshot.event.content == "with a dog"
        else:
            assert snapshot.event.content == "a draft"


async def test_the_user_edits_while_the_agent_searches() -> None:
    user = Script().say("A trip.").hear(within=5).submit("my own beginning").pause(30).finish()
    helper = Script().hear().act("search", of="hotels").result().look().submit("hotels added")
    trace = await trace_of(a_session(human(user), agent(helper), environment=Workshop()))
    kinds = [(r.kind, r.actor) for r in trace]
    taken = kinds.index(("ActionTaken", "agent"))
    edited = kinds.index(("SnapshotTaken", "user"))
    resolved = kinds.index(("ActionResolved", "environment"))
    added = kinds.index(("SnapshotTaken", "agent"))
    assert taken < edited < resolved < added
    [event] = [r.event for r in trace if r.actor == "agent" and isinstance(r.event, SnapshotTaken)]
    assert event.base == trace[edited].version


async def test_several_actions_are_in_flight_and_resolve_when_each_is_due() -> None:
    helper = Script().act("search").act("look").pause(1).act("look").result().finish()
    trace = await trace_of(a_session(agent(helper), environment=Workshop()))
    taken = [r for r in trace if isinstance(r.event, ActionTaken)]
    outcomes = {r.event.action: r for r in trace if isinstance(r.event, ActionResolved)}
    times = [(r.time, outcomes[r.version].time) for r in taken]
    assert times == [(0.0, 20.0), (0.0, 1.5), (1.0, 2.5)]
    counts = [outcomes[r.version].event.observation["count"] for r in taken]  # type: ignore[union-attr]
    assert counts == [1, 2, 3], "effects are applied in log order"
    assert all(outcomes[r.version].cause == f"trace/{r.version}" for r in taken)


async def test_a_snapshot_from_an_outdated_base_is_refused_and_its_author_told() -> None:
    raised: list[StaleBase] = []

    async def submit_blindly(context: ActorContext) -> None:
        with pytest.raises(StaleBase) as caught:
            await context.submit("from nothing")
        raised.append(caught.value)

    user = Script().pause(1).submit("mine").pause(20).finish()
    helper = Script().pause(5).then(submit_blindly).look().submit("from yours")
    trace = await trace_of(a_session(human(user), agent(helper)))
    contents = [r.event.content for r in trace if isinstance(r.event, SnapshotTaken)]
    assert contents == ["mine", "from yours"]
    [attempt] = [r for r in trace if isinstance(r.event, ActionTaken)]
    [refusal] = [r for r in trace if isinstance(r.event, ActionResolved)]
    assert isinstance(attempt.event, ActionTaken)
    assert isinstance(refusal.event, ActionResolved)
    assert (attempt.event.name, attempt.event.arguments["content"]) == ("submit", "from nothing")
    assert (refusal.event.action, refusal.event.outcome) == (attempt.version, "failed")
    assert refusal.version == attempt.version + 1
    assert str(raised[0]) == refusal.event.error
    mine = next(r.version for r in trace if r.kind == "SnapshotTaken")
    assert (raised[0].base, raised[0].latest) == (None, mine)


async def test_a_policy_sees_its_refused_snapshot_as_an_action_that_failed() -> None:
    """It keeps a draft that was made before the edit, is refused, and builds upon the edit."""
    seen: list[str | None] = []

    class Stubborn:
        async def decide(self, view: View) -> Decision:
            if view.pending is not None:
                return view.pending
            failed = [a.resolved for a in view.actions.values() if a.resolved is not None]
            if not failed:
                return Decision((Submit("mine"), Say("Here!"), Finish()), seconds=10.0)
            seen.append(failed[-1].error)
            assert view.snapshot is not None
            return Decision((Submit(f"{view.snapshot.content} and mine"), Finish()), seconds=1.0)

    user = Script().pause(5).submit("yours").pause(60).finish()
    trace = await trace_of(a_session(human(user), agent(playing(Stubborn()))))
    assert told(trace) == [(5.0, "user", "yours"), (11.0, "agent", "yours and mine")]
    assert seen == [str(StaleBase(None, 2))]
    assert trace[-1].actor == "agent"


async def test_what_was_decided_on_a_refused_snapshot_is_dropped_and_so_is_the_end() -> None:
    """The edit comes between the last look and the emission: only possible with a context by hand."""
    after: list[bool] = []

    async def decide_blindly(context: ActorContext) -> None:
        decision = Decision((Note("n"), Submit("blind"), Say("Here you are."), Finish()))
        after.append(await carry_out(context, decision))

    user = Script().pause(1).submit("mine").pause(20).finish("by the user")
    helper = Script().pause(5).then(decide_blindly)
    trace = await trace_of(a_session(human(user), agent(helper)))
    assert after == [True]
    assert [r.kind for r in trace if r.actor == "agent"] == ["NoteTaken", "ActionTaken"]
    assert trace[-1].actor == "user"


async def test_overwriting_needs_no_base() -> None:
    user = Script().pause(1).submit("mine").pause(20).finish()
    helper = Script().pause(5).submit("over it", overwrite=True)
    trace = await trace_of(a_session(human(user), agent(helper)))
    first, second = [r for r in trace if isinstance(r.event, SnapshotTaken)]
    assert isinstance(second.event, SnapshotTaken)
    assert second.event.base == first.version


async def test_ones_own_snapshot_is_a_base_one_knows() -> None:
    helper = Script().submit("one").submit("two").pause(2).submit("three").finish()
    trace = await trace_of(a_session(agent(helper)))
    assert [c for _, _, c in told(trace)] == ["one", "two", "three"]
    bases = [r.event.base for r in trace if isinstance(r.event, SnapshotTaken)]
    assert bases == [None, 2, 3]


async def test_two_snapshots_in_one_decision_stand_on_each_other() -> None:
    async def both(context: ActorContext) -> None:
        await context.emit(Submit("one"), Say("and"), Submit("two"))

    trace = await trace_of(a_session(agent(Script().then(both).finish())))
    assert [c for _, _, c in told(trace)] == ["one", "and", "two"]
    assert [r.event.base for r in trace if isinstance(r.event, SnapshotTaken)] == [None, 2]


async def test_ones_own_snapshot_does_not_hide_an_edit_that_came_after_it() -> None:
    async def refused(context: ActorContext) -> None:
        with pytest.raises(StaleBase):
            await context.submit("two")

    user = Script().hear().pause(1).submit("edited").pause(9).finish()
    helper = Script().submit("one").pause(5).then(refused)
    trace = await trace_of(a_session(human(user), agent(helper)))
    assert [c for _, _, c in told(trace)] == ["one", "edited"]


async def test_effects_are_applied_in_log_order_one_at_a_time() -> None:
    order: list[tuple[str, int]] = []

    class Slow:
        @property
        def actions(self) -> dict[str, ActionSpec]:
            return {"go": ActionSpec(name="go", description="goes")}

        async def perform(self, action: Action) -> Outcome:
            order.append(("begin", action.version))
            for _ in range(5):
                await checkpoint()
            order.append(("end", action.version))
            return Outcome(observation=action.version, seconds=float(10 - action.version))

        def recall(self, action: Action, resolved: ActionResolved) -> None:
            raise AssertionError("nothing is resumed here")

    both = Script().act("go").pause(0.5).act("go").pause(0.5).act("go").result()
    trace = await trace_of(a_session(human(both), agent(both.finish()), environment=Slow()))
    versions = [r.version for r in trace if isinstance(r.event, ActionTaken)]
    begun = [version for what, version in order if what == "begin"]
    assert begun == versions[: len(begun)]
    assert [what for what, _ in order] == ["begin", "end"] * len(begun)
    resolved = [r.event.action for r in trace if isinstance(r.event, ActionResolved)]
    assert resolved != sorted(resolved)


async def test_several_of_a_role_take_part() -> None:
    """Two agents and two humans; a message to one is heard only by that one."""
    heard: dict[str, list[str]] = {}

    def listener(name: str) -> Script:
        async def remember(context: ActorContext) -> None:
            context.look()
            heard[name] = [m.text for m in context.view.messages if m.actor != name]

        return Script().pause(9).then(remember)

    trace = await trace_of(
        a_session(
            human(Script().say("to all").say("to ada", to=["ada"]).then(listener("ann")), "ann"),
            human(listener("ben"), "ben"),
            agent(listener("ada"), "ada"),
            agent(Script().pause(1).say("to both", to=["ann", "ben"]).then(listener("bot")), "bot"),
        )
    )
    assert heard == {
        "ann": ["to both"],
        "ben": ["to all", "to both"],
        "ada": ["to all", "to ada"],
        "bot": ["to all"],
    }
    assert [r.kind for r in trace[-1:]] == ["SessionClosed"]


async def test_a_wait_is_over_when_there_is_news_or_its_time_has_come() -> None:
    looks: list[tuple[float, bool, int]] = []

    class Waiting:
        async def decide(self, view: View) -> Decision:
            looks.append((view.now, view.idle, len(view.news)))
            if len(looks) == 4:
                return Decision((Finish(),))
            return Decision((Wait(10.0, "no hurry"),))

    user = Script().pause(4).say("News!")
    timing = Timing(read_wpm=1e9)
    await trace_of(a_session(human(user), agent(playing(Waiting())), timing=timing))
    assert looks == [(0.0, False, 1), (4.0, False, 2), (14.0, True, 0), (24.0, True, 0)]


async def test_who_waits_says_so_once() -> None:
    """Two who wait do not wake each other by saying so."""

    class Silent:
        async def decide(self, view: View) -> Decision:
            return NOTHING

    silent = playing(Silent())
    trace = await trace_of(a_session(human(silent), agent(silent), nudges=2))
    assert sum(r.kind == "TurnYielded" for r in trace) == 2
    assert sum(r.kind == "Nudged" for r in trace) == 4


async def test_who_waits_for_an_outcome_does_not_yield() -> None:
    class Acting:
        async def decide(self, view: View) -> Decision:
            if not view.actions:
                return Decision((Act("look"),), seconds=0.0)
            return Decision((Finish(),)) if not view.in_flight else NOTHING

    trace = await trace_of(a_session(agent(playing(Acting())), environment=Workshop()))
    assert [r.kind for r in trace] == [
        "SessionOpened",
        "ActionTaken",
        "ActionResolved",
        "SessionClosed",
    ]
