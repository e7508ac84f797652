"""People on models who are interrupted while they type: they keep, change or drop their drafts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from duolog.engine.events import DraftDropped, MessageSent, ModelCalled, Participant
from duolog.engine.log.open import open_log
from duolog.engine.models import ModelReply, ModelRequest, Models, ScriptedModel
from duolog.engine.records import Record
from duolog.engine.session.actors import Player, playing
from duolog.engine.session.decisions import Act, Decision, Finish, Say, Submit
from duolog.engine.session.limits import Limits
from duolog.engine.session.runner import run_session
from duolog.engine.session.time.timing import Timing
from duolog.engine.session.view import View, Visibility
from duolog.engine.task import Brief, Cell, Setting
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.testing import Workshop, a_session
from duolog.users.players import user_player

BRIEF = Brief(description="A toast.", output="Two sentences.")
AGENT = Participant(name="agent", role="agent")
LONG = "I would rather that it says where they met, and how, number {} of all that I have to say."


class Restless:
    """An agent that never pauses: it says something, at length perhaps, looks up or puts up something every three seconds."""

    def __init__(self, *kinds: str, times: int = 120) -> None:
        self._kinds = kinds or ("say", "act", "submit")
        self._left = times

    async def decide(self, view: View) -> Decision:
        if view.pending is not None:
            return view.pending
        self._left -= 1
        if self._left < 0:
            return Decision((Finish(),))
        kind = self._kinds[self._left % len(self._kinds)]
        if kind == "say":
            return Decision((Say(f"Still at it, {self._left}."),), 3.0)
        if kind == "talk":
            return Decision((Say(f"{self._left} " + "and so on " * 10),), 3.0)
        if kind == "act":
            return Decision((Act("search"),), 3.0)
        return Decision((Submit(f"A toast, {self._left}.", overwrite=True),), 3.0)


class Typist:
    """A model that always has something to say, and something to reply to news."""

    def __init__(self, reconsider: Callable[[int], str]) -> None:
        self._reconsider = reconsider
        self.composed = 0
        self.prompts: list[str] = []
        self._asked = 0

    def answer(self, request: ModelRequest) -> ModelReply | str:
        prompt = request.messages[-1].content
        if "While you were at that" in prompt:
            self.prompts.append(prompt)
            self._asked += 1
            return self._reconsider(self._asked)
        if "What do you do now?" in prompt:
            return "Offer feedback"
        if "how far have the others" in prompt:
            return "3"
        self.composed += 1
        return LONG.format(self.composed)


async def play(
    typist: Typist, agent: Restless, user: str = "proactive", *, seed: int = 1
) -> Sequence[Record]:
    """The trace of a session of a person on a model and an agent."""
    setting = Setting(models=Models(ScriptedModel(typist.answer)))
    cell = Cell(agent="restless", user=user, instance="0", seed=seed, user_model="m")
    person = user_player("s", cell, setting, brief=BRIEF)
    session = a_session(
        person,
        Player(AGENT, playing(agent)),
        environment=Workshop(),
        limits=Limits(rounds=60, actions=400),
        timing=Timing(),
    )
    async with open_log("memory://") as log:
        await run_session(log, session)
        return [record async for record in log.read(session.id)]


def said(trace: Sequence[Record]) -> list[str]:
    return [r.event.text for r in trace if r.role == "human" and isinstance(r.event, MessageSent)]


def dropped(trace: Sequence[Record]) -> list[DraftDropped]:
    return [r.event for r in trace if isinstance(r.event, DraftDropped)]


def purposes(trace: Sequence[Record]) -> Counter[str]:
    return Counter(r.event.purpose for r in trace if isinstance(r.event, ModelCalled))


def sometimes(number: int) -> str:
    """Keeps nine drafts in ten, and changes the words of the others."""
    return "2\nOn second thought, it is fine as it is." if number % 10 == 0 else "1"


@pytest.mark.parametrize("user", ["proactive", "lazy", "feedback+attention=20"])
async def test_nine_in_ten_composed_acts_are_carried_out_while_an_agent_acts_all_the_time(
    user: str,
) -> None:
    typist = Typist(sometimes)
    trace = await play(typist, Restless(), user)
    assert typist.composed >= 10
    assert typist.prompts  # there were interruptions
    assert len(said(trace)) >= 0.9 * typist.composed
    assert dropped(trace) == []


async def test_a_person_gets_to_say_something_to_an_agent_that_never_stops_talking() -> None:
    """Its messages take longer to read than it needs for them."""
    typist = Typist(lambda _: "1")
    trace = await play(typist, Restless("talk", times=200))
    assert len(said(trace)) >= typist.composed - 1 >= 5  # the last one may be half written


async def test_a_draft_is_shown_with_the_time_spent_on_it_and_need_not_be_written_again() -> None:
    typist = Typist(lambda _: "Go on")
    trace = await play(typist, Restless("say"))
    assert f'You were typing: "{LONG.format(1)}" (' in typist.prompts[0]
    assert re.search(r"\(\d+ of 2\d seconds passed\)", typist.prompts[0])
    calls = purposes(trace)
    assert calls["feedback"] == typist.composed
    assert calls["choose"] <= typist.composed + 1
    first = next(r for r in trace if isinstance(r.event, MessageSent) and r.role == "human")
    assert first.time < 44.0  # typing, and reading what the agent said meanwhile


async def test_what_cannot_concern_a_draft_costs_no_call() -> None:
    typist = Typist(lambda _: "1")
    trace = await play(typist, Restless("act"))
    assert purposes(trace)["reconsider"] == 0
    assert said(trace)


async def test_a_reply_that_cannot_be_read_goes_on() -> None:
    typist = Typist(lambda _: "Well, who knows.")
    trace = await play(typist, Restless("say"))
    assert len(said(trace)) >= 0.9 * typist.composed
    assert purposes(trace)["reconsider again"] == 0


async def test_a_changed_message_is_sent_as_it_is_now() -> None:
    typist = Typist(lambda _: "2. Change it\nNever mind.")
    trace = await play(typist, Restless("say", times=6))
    assert said(trace)[0] == "Never mind."
    assert dropped(trace) == []


async def test_what_was_dropped_is_recorded_for_its_actor_and_for_scorers() -> None:
    typist = Typist(lambda number: "Drop" if number == 1 else "1")
    trace = await play(typist, Restless("say"))
    [draft] = dropped(trace)
    assert draft.text == LONG.format(1)
    assert 0.0 < draft.seconds < draft.of
    assert LONG.format(1) not in said(trace)
    [place] = [r for r in trace if isinstance(r.event, DraftDropped)]
    others = Visibility("agent")
    assert [others.see(r) for r in trace][trace.index(place)] is None
    own = Visibility(place.actor)
    assert own.see(place) == place
    assert not others.is_news(place)


async def test_a_dropped_draft_counts_as_time_and_not_as_words() -> None:
    typist = Typist(lambda number: "Drop" if number == 1 else "1")
    trace = await play(typist, Restless("say"))
    [place] = [r for r in trace if isinstance(r.event, DraftDropped)]
    measured = []
    for records in (trace, [r for r in trace if r is not place]):
        fold = TrajectoryFold(trace[0].session)
        for record in records:
            fold.feed(record)
        measured.append(fold.trajectory().points[-1].effort)
    with_it, without = measured
    assert isinstance(place.event, DraftDropped)
    assert with_it["seconds"] == pytest.approx((without["seconds"] or 0.0) + place.event.seconds)
    assert with_it["tokens_written"] == without["tokens_written"]
    assert with_it["acts"] == without["acts"]
