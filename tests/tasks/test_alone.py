"""People without an agent read, tire and settle as people with one do."""

from __future__ import annotations

import pytest
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    Participant,
    SessionClosed,
    SnapshotTaken,
)
from duolog.engine.records import Record
from duolog.engine.session.actors import Player, playing
from duolog.engine.session.decisions import NOTHING, Act, Decision, Finish, Submit
from duolog.engine.session.limits import Limits
from duolog.engine.session.view import View
from duolog.engine.text import count_words, text_of
from duolog.tasks.kit import LimitedAlone
from duolog.testing import Workshop, a_session, played
from duolog.users.personas import Persona

HUMAN = Participant(name="ann", role="human")


class Diligent:
    """Looks something up, then puts up one version after the other, ten minutes each."""

    async def decide(self, view: View) -> Decision:
        if view.pending is not None:
            return view.pending
        if view.in_flight:
            return NOTHING
        if not view.actions:
            return Decision((Act("search"),), 1.0)
        number = sum(record.kind == "SnapshotTaken" for record in view.records)
        if number == 9:
            return Decision((Finish("done"),))
        return Decision((Submit(f"Version {number}"),), 600.0)


async def play(**numbers: float) -> list[Record]:
    persona = Persona(name="p", description="somebody", **numbers)  # type: ignore[arg-type]
    player = Player(HUMAN, playing(LimitedAlone(Diligent(), persona)))
    one = await played(a_session(player, environment=Workshop(), limits=Limits(rounds=None)))
    return list(one.streams["trace"])


def versions(trace: list[Record]) -> int:
    return sum(isinstance(record.event, SnapshotTaken) for record in trace)


async def test_who_has_no_limits_does_all_of_it() -> None:
    trace = await play(stamina=600.0)
    assert versions(trace) == 9


@pytest.mark.parametrize(("stamina", "left"), [(5.0, 1), (25.0, 3), (60.0, 6)])
async def test_stamina_ends_the_work_once_there_is_an_output(stamina: float, left: int) -> None:
    trace = await play(stamina=stamina)
    assert versions(trace) == left
    closed = trace[-1].event
    assert isinstance(closed, SessionClosed)
    assert closed.detail == "tired of it"


async def test_who_is_content_with_less_stops_sooner() -> None:
    trace = await play(contentment=0.0)
    assert versions(trace) == 1
    closed = trace[-1].event
    assert isinstance(closed, SessionClosed)
    assert closed.detail == "good enough"


async def test_results_are_read_at_the_pace_of_the_session() -> None:
    trace = await play(stamina=600.0)
    found = next(r for r in trace if isinstance(r.event, ActionResolved))
    first = next(r for r in trace if isinstance(r.event, SnapshotTaken))
    assert isinstance(found.event, ActionResolved)
    words = count_words(text_of(found.event.observation))
    assert words
    assert first.time - found.time == pytest.approx(600.0 + words * 0.28 * 60.0 / 238.0)
    assert next(r for r in trace if isinstance(r.event, ActionTaken)).time == 1.0
