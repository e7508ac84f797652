"""The careful agent: when it asks for permission, and how it handles a yes, a no, and silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest
from duolog.agents.careful import Careful
from duolog.agents.kinds import KINDS
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    NoteTaken,
    SnapshotTaken,
)
from duolog.engine.records import TRACE
from duolog.engine.session.actors import playing
from duolog.engine.session.decisions import (
    NOTHING,
    Act,
    Approve,
    Decision,
    Finish,
    Say,
    Submit,
    Verb,
)
from duolog.engine.session.environment import Action, ActionSpec, Outcome
from duolog.engine.session.view import View
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.options import Options
from duolog.testing import Played, a_session, agent, human, played

LIMIT = 300.0


class Agency:
    """A task environment in which one can look, and book."""

    @property
    def actions(self) -> Mapping[str, ActionSpec]:
        look = ActionSpec(name="look", description="Looks at prices.", repeatable=True)
        book = ActionSpec(name="book", description="Books a room.", consequential=True)
        return {"look": look, "book": book}

    async def perform(self, action: Action) -> Outcome:
        return Outcome(observation=f"done: {action.name}")

    def recall(self, action: Action, resolved: ActionResolved) -> None:
        pass


class Wanting:
    """Wants to do one thing after the other, once it has been spoken to; shows what it was told."""

    def __init__(self, *wanted: Verb) -> None:
        self._wanted = wanted

    async def decide(self, view: View) -> Decision:
        done = sum(record.kind in _DONE for record in view.records if record.actor == view.me)
        if not view.messages or view.in_flight or done >= len(self._wanted):
            return NOTHING
        return Decision((self._wanted[done],))


_DONE = frozenset({"ActionTaken", "SnapshotTaken", "MessageSent"})


GO_ON = Say("Go on")


class Person:
    """Speaks, and answers what it is asked; ends the session when it hears no more."""

    def __init__(self, answer: Callable[[int], Approve | None], first: Verb = GO_ON) -> None:
        self._answer = answer
        self._first = first

    async def decide(self, view: View) -> Decision:
        if not any(record.actor == view.me for record in view.records):
            return Decision((self._first, Say("please")))
        if view.open_approvals:
            answer = self._answer(view.open_approvals[0].version)
            if answer is not None:
                return Decision((answer,))
        return NOTHING


async def play(person: Person, *wanted: Verb) -> Played:
    careful = Careful(Wanting(*wanted), patience=LIMIT)
    return await played(
        a_session(human(playing(person)), agent(playing(careful)), environment=Agency())
    )


def of(found: Played, kind: type[object]) -> Sequence[object]:
    return [r.event for r in found.streams[TRACE] if isinstance(r.event, kind)]


ROOM = Act("book", {"room": "12"})


async def test_what_is_allowed_is_done_once() -> None:
    found = await play(Person(Approve), Act("look"), ROOM)
    assert of(found, ActionTaken) == [
        ActionTaken(name="look"),
        ActionTaken(name="book", arguments={"room": "12"}),
    ]
    [asked] = of(found, ApprovalAsked)
    assert asked == ApprovalAsked(
        question="May I do this: book(room=12)?", action="book", arguments={"room": "12"}
    )
    assert of(found, NoteTaken) == []


async def test_what_is_refused_is_not_done_and_the_agent_sees_why() -> None:
    found = await play(Person(lambda asked: Approve(asked, False, "Too dear.")), ROOM)
    assert of(found, ActionTaken) == []
    assert len(of(found, ApprovalAsked)) == 1
    assert of(found, NoteTaken) == [
        NoteTaken(text="I was refused this: Too dear. May I do this: book(room=12)?")
    ]


async def test_silence_is_a_refusal_after_a_while() -> None:
    found = await play(Person(lambda asked: None), ROOM)
    assert of(found, ActionTaken) == []
    [asked] = [r for r in found.streams[TRACE] if isinstance(r.event, ApprovalAsked)]
    [note] = [r for r in found.streams[TRACE] if isinstance(r.event, NoteTaken)]
    assert isinstance(note.event, NoteTaken)
    assert note.event.text.startswith("Nobody answered within 300 s, so I leave it: May I do this")
    assert note.time - asked.time >= LIMIT


class Waiting:
    """Asks for permission to book one room and, without an answer, to book another one."""

    async def decide(self, view: View) -> Decision:
        rooms = ("12", "14")
        asked = len(view.approvals)
        if not view.messages or asked == len(rooms):
            return NOTHING
        return Decision((Act("book", {"room": rooms[asked]}),))


class Late:
    """Allows all at once what it was asked for, as soon as these are two things."""

    async def decide(self, view: View) -> Decision:
        if not any(record.actor == view.me for record in view.records):
            return Decision((GO_ON,))
        waiting = view.open_approvals
        return Decision(tuple(Approve(one.version) for one in waiting if len(waiting) > 1))


async def test_several_answers_at_once_are_all_acted_on() -> None:
    careful = agent(playing(Careful(Waiting(), patience=LIMIT)))
    found = await played(a_session(human(playing(Late())), careful, environment=Agency()))
    assert [
        event.arguments for event in of(found, ActionTaken) if isinstance(event, ActionTaken)
    ] == [
        {"room": "12"},
        {"room": "14"},
    ]


@pytest.mark.parametrize(("approved", "end"), [(True, "finished"), (False, "stalled")])
async def test_it_asks_before_it_ends_the_work(approved: bool, end: str) -> None:
    found = await play(Person(lambda asked: Approve(asked, approved)), Finish())
    assert found.result.reason == end
    assert len(of(found, ApprovalAsked)) == 1


@pytest.mark.parametrize("approved", [True, False])
async def test_it_asks_before_it_replaces_what_the_human_has_made(approved: bool) -> None:
    person = Person(lambda asked: Approve(asked, approved), first=Submit("by hand"))
    found = await play(person, Submit("by the agent"))
    made = [event.content for event in of(found, SnapshotTaken) if isinstance(event, SnapshotTaken)]
    assert made == (["by hand", "by the agent"] if approved else ["by hand"])
    [asked] = of(found, ApprovalAsked)
    assert isinstance(asked, ApprovalAsked)
    assert asked.question == "May I replace your version of the output with mine?"


async def test_what_can_be_undone_is_done_at_once() -> None:
    found = await play(Person(Approve), Act("look"), Submit("first"), Say("Here it is."))
    assert of(found, ApprovalAsked) == []
    assert len(of(found, ActionTaken)) == len(of(found, SnapshotTaken)) == 1


async def test_questions_and_answers_are_effort() -> None:
    spared = effort(await play(Person(Approve), Act("look")))
    asked = effort(await play(Person(lambda at: Approve(at, True, "Fine by me.")), ROOM))
    assert asked["acts"] == spared["acts"] + 1
    assert asked["tokens_read"] > spared["tokens_read"]
    assert asked["tokens_written"] > spared["tokens_written"]


def effort(found: Played) -> dict[str, float]:
    """Cumulative effort at the end."""
    fold = TrajectoryFold(found.result.session, Options())
    for record in found.streams[TRACE]:
        fold.feed(record)
    return {name: n or 0.0 for name, n in fold.trajectory().points[-1].effort.items()}


def test_careful_agents_are_on_offer() -> None:
    assert "careful" in KINDS
