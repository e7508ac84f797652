"""The simulated user: it rates before it hands over, and leaves only if it is satisfied."""

from __future__ import annotations

import pytest
from duolog.engine import codec
from duolog.engine.errors import InvalidInput
from duolog.engine.events import Event, MessageSent, ProgressRated, Role
from duolog.engine.records import TRACE, Record
from duolog.engine.session.decisions import NOTHING, Decision, Finish, Note, Rate, Say
from duolog.engine.session.view import View
from duolog.users.personas import PERSONAS, Persona, find_persona
from duolog.users.simulated import SimulatedUser, UserIntent

PERSONA = Persona(name="anybody", description="says what it is made to say")


class Mind:
    """Does as it is told, and rates as it is told."""

    def __init__(self, intent: UserIntent, decision: Decision, rating: int | None = 2) -> None:
        self.intent = intent
        self.decision = decision
        self.rating = rating

    async def choose(self, view: View, persona: Persona) -> UserIntent:
        return self.intent

    async def compose(self, view: View, persona: Persona, intent: UserIntent) -> Decision:
        return self.decision

    async def rate(self, view: View, persona: Persona) -> Rate | None:
        return None if self.rating is None else Rate(self.rating)


def view_of(*events: tuple[str, Role, Event]) -> View:
    view = View("user", "human")
    for version, (actor, role, event) in enumerate(events, start=1):
        kind, schema = codec.kind_of(event)
        body = codec.encode_body(event)
        view.feed(
            Record(
                version, "s", TRACE, version, kind, schema, 0.0, actor, role, None, None, None, body
            )
        )
    return view


SAID: tuple[str, Role, Event] = ("user", "human", MessageSent(text="Help me."))
BAD: tuple[str, Role, Event] = ("user", "human", ProgressRated(round=1, rating=2))
ANSWER = Decision((Say("To Rome."),))


def agent_asked() -> tuple[str, Role, Event]:
    return "agent", "agent", MessageSent(text="Where to?")


async def test_it_rates_the_round_that_its_message_ends() -> None:
    user = SimulatedUser(Mind("answer", ANSWER, rating=4), PERSONA)
    decision = await user.decide(view_of(SAID, agent_asked()))
    assert decision.verbs == (Rate(4), Say("To Rome."))


async def test_it_rates_nothing_while_it_goes_on_speaking_itself() -> None:
    user = SimulatedUser(Mind("feedback", ANSWER), PERSONA)
    assert await user.decide(view_of(agent_asked(), SAID)) == ANSWER


async def test_it_rates_nothing_where_it_hands_nothing_over() -> None:
    note = Decision((Note("to myself"),))
    user = SimulatedUser(Mind("act", note), PERSONA)
    assert await user.decide(view_of(SAID, agent_asked())) == note


async def test_without_an_opinion_there_is_no_rating() -> None:
    user = SimulatedUser(Mind("answer", ANSWER, rating=None), PERSONA)
    assert await user.decide(view_of(SAID, agent_asked())) == ANSWER


async def test_doing_nothing_is_waiting() -> None:
    user = SimulatedUser(Mind("nothing", ANSWER), PERSONA)
    assert await user.decide(view_of(SAID, agent_asked())) == NOTHING


@pytest.mark.parametrize("count", [1, 3, 9])
async def test_it_stays_however_many_rounds_were_bad(count: int) -> None:
    user = SimulatedUser(Mind("answer", ANSWER, rating=1), PERSONA)
    decision = await user.decide(view_of(SAID, *[BAD] * count, agent_asked()))
    assert decision.verbs == (Rate(1), *ANSWER.verbs)


async def test_it_rates_the_round_that_it_finishes_after() -> None:
    content = Decision((Finish("content"),))
    user = SimulatedUser(Mind("finish", content, rating=4), PERSONA)
    decision = await user.decide(view_of(SAID, agent_asked()))
    assert decision.verbs == (Rate(4), Finish("content"))


async def test_it_keeps_the_working_time_that_its_mind_gave() -> None:
    user = SimulatedUser(Mind("answer", Decision((Say("Rome"),), seconds=7.0)), PERSONA)
    assert (await user.decide(view_of(SAID, agent_asked()))).seconds == 7.0


@pytest.mark.parametrize("name", PERSONAS)
def test_every_persona_is_found_by_its_name(name: str) -> None:
    assert find_persona(name).name == name


def test_an_unknown_persona_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        InvalidInput, match="unknown user 'grumpy'; choose from bounded, feedback, lazy"
    ):
        find_persona("grumpy")
