"""Patience: the engine decides who gives up, by the user's own ratings; it is off by default."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from duolog.engine.events import ProgressRated, SessionClosed
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Record
from duolog.engine.session.actors import playing
from duolog.engine.session.decisions import NOTHING, Decision, Finish, Rate, Say, Verb
from duolog.engine.session.fork import fork
from duolog.engine.session.limits import Limits
from duolog.engine.session.runner import Session, run_session
from duolog.engine.session.view import View
from duolog.scoring.stopping import ToleranceStop
from duolog.scoring.trajectory.options import Options
from duolog.testing import Script, a_session, agent, human, put_records, streams


class Rater:
    """Answers every message, and rates the round before it as it is told; None for no rating."""

    def __init__(self, *ratings: int | None, last: Verb | None = None) -> None:
        self._ratings = ratings
        self._last = last or Say("Thanks, that is all.")

    async def decide(self, view: View) -> Decision:
        heard = sum(message.role == "agent" for message in view.messages)
        said = sum(message.actor == view.me for message in view.messages)
        if not view.messages:
            return Decision((Say("Help me."),))
        if said > heard or heard > len(self._ratings):
            return NOTHING
        rating = self._ratings[heard - 1]
        verb: Verb = self._last if heard == len(self._ratings) else Say(f"No, {heard}.")
        return Decision((verb,) if rating is None else (Rate(rating), verb))


def a_chat(*ratings: int | None, last: Verb | None = None, **settings: object) -> Session:
    helper = Script().hear().say("Like this?").times(len(ratings))
    user = playing(Rater(*ratings, last=last))
    session = a_session(human(user), agent(helper), nudges=0)
    return msgspec.structs.replace(session, **settings)


async def closed(session: Session) -> tuple[SessionClosed, list[Record]]:
    async with open_log("memory://") as log:
        await run_session(log, session)
        trace = (await streams(log, session.id))[TRACE]
        event = trace[-1].event
        assert isinstance(event, SessionClosed)
        return event, trace


def said_by_user(trace: Sequence[Record]) -> int:
    return sum(r.kind == "MessageSent" and r.role == "human" for r in trace)


async def test_it_is_off_by_default() -> None:
    assert Limits().patience is None
    end, trace = await closed(a_chat(1, 1, 1, 1, 1, 1))
    assert end.reason == "stalled"
    assert said_by_user(trace) == 7


async def test_a_person_gives_up_instead_of_acting_again() -> None:
    end, trace = await closed(a_chat(2, 1, 2, limits=Limits(patience=2)))
    assert (end.reason, end.by, end.detail) == (
        "abandoned",
        "user",
        "patience: 2 unproductive rounds",
    )
    assert (trace[-1].actor, trace[-1].role) == ("user", "human")
    assert trace[-2].kind == "ProgressRated", "the rating is recorded, the message is not"
    assert said_by_user(trace) == 2


@pytest.mark.parametrize(
    ("ratings", "leaves_after"),
    [
        ((2,), None),
        ((2, 3, 2, 2), 4),
        ((2, None, 2, 2), 4),
        ((2, 3, 2, 3), None),
        ((None, None, None), None),
        ((4, 1, 1), 3),
    ],
)
async def test_only_unsatisfactory_rounds_in_a_row_count(
    ratings: tuple[int | None, ...], leaves_after: int | None
) -> None:
    end, trace = await closed(a_chat(*ratings, limits=Limits(patience=2)))
    if leaves_after is None:
        assert end.reason == "stalled"
    else:
        assert end.reason == "abandoned"
        assert said_by_user(trace) == leaves_after


async def test_who_says_to_be_satisfied_has_finished() -> None:
    session = a_chat(2, 2, last=Finish("good enough"), limits=Limits(patience=2))
    end, _ = await closed(session)
    assert (end.reason, end.detail) == ("finished", "good enough")


async def test_a_rating_given_before_the_act_counts_at_the_next_act() -> None:
    user = Script().say("Help me.").hear().rate(2).hear().rate(1).say("Still wrong.")
    helper = Script().hear().say("Like this?")
    end, trace = await closed(
        msgspec.structs.replace(
            a_session(human(user), agent(helper), nudges=1), limits=Limits(patience=1)
        )
    )
    assert end.reason == "abandoned"
    assert [r.event.rating for r in trace if isinstance(r.event, ProgressRated)] == [2, 1]
    assert said_by_user(trace) == 1


async def test_the_latest_rating_of_a_round_counts() -> None:
    user = Script().say("Help me.").hear().rate(2).rate(4).say("Fine after all.").finish()
    helper = Script().hear().say("Like this?")
    end, _ = await closed(
        msgspec.structs.replace(a_session(human(user), agent(helper)), limits=Limits(patience=1))
    )
    assert end.reason == "finished"


def stopped_at(tau: int, session: Session) -> ToleranceStop:
    return ToleranceStop(session.id, tau, Options(judge="human"))


@pytest.mark.parametrize(
    ("tau", "patience", "reason", "messages"),
    [(2, 2, "tolerance", 2), (2, 3, "tolerance", 3), (3, 2, "abandoned", 2)],
)
async def test_the_tolerance_wins_where_both_fall_together(
    tau: int, patience: int, reason: str, messages: int
) -> None:
    session = a_chat(2, 2, 2, 2, limits=Limits(patience=patience))
    session = msgspec.structs.replace(session, stop=stopped_at(tau, session))
    end, trace = await closed(session)
    assert end.reason == reason
    assert said_by_user(trace) == messages


async def test_it_goes_before_the_limit_of_rounds() -> None:
    end, _ = await closed(a_chat(2, 2, limits=Limits(patience=2, rounds=2)))
    assert end.reason == "abandoned"


async def test_a_session_cut_short_anywhere_is_abandoned_all_the_same() -> None:
    def make() -> Session:
        return a_chat(2, 4, 1, 2, 2, limits=Limits(patience=2))

    end, whole = await closed(make())
    assert end.reason == "abandoned"
    for length in range(1, len(whole)):
        async with open_log("memory://") as log:
            await put_records(log, whole[:length])
            await run_session(log, make())
            again = (await streams(log, whole[0].session))[TRACE]
        assert [(r.kind, r.time, r.body) for r in again] == [
            (r.kind, r.time, r.body) for r in whole
        ]


async def test_a_fork_inherits_the_ratings() -> None:
    origin = a_chat(2, 2, 2)
    _, trace = await closed(origin)
    rated = [r.version for r in trace if r.kind == "ProgressRated"]
    other = a_chat(2, 2, 2, limits=Limits(patience=2))
    for cut in (rated[1], rated[1] + 1):  # before, and after, the message that followed
        forked = fork(other, trace, cut, past=a_chat(2, 2, 2))
        end, mine = await closed(forked)
        assert end.reason == "abandoned"
        assert mine[-1].version > cut
