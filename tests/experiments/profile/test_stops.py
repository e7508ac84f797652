"""Rules of stopping are replayed on recorded sessions before they are recommended."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from duolog.experiments.profile.advice import recommend
from duolog.experiments.profile.diagnosis import Diagnosis, diagnose
from duolog.experiments.profile.page import profile_document
from duolog.experiments.profile.playing import Profile
from duolog.experiments.profile.signs import Signs
from duolog.experiments.profile.stops import replay_stops
from duolog.scoring.report import document_markdown


def session(utilities: Sequence[float], ratings: Sequence[int | None], *, number: int = 0) -> Signs:
    """A session with rounds of two minutes each, in which the agent loops."""
    return Signs(
        session=f"s{number}",
        task="travel",
        agent="looper",
        user="lazy",
        problem=f"p{number}",
        seed=1,
        baseline=False,
        first=utilities[0],
        final=utilities[-1],
        best=max(utilities),
        minutes=2.0 * len(utilities),
        written=0.0,
        read=0.0,
        rounds=len(utilities),
        looping=0.5,
        utilities=tuple(utilities),
        ratings=tuple(ratings),
        until=tuple(2.0 * round_ for round_ in range(1, len(utilities) + 1)),
    )


IDLE = session([0.5, 0.5, 0.5, 0.5, 0.5], [4, 2, 2, 1, 2])
LATE = session([0.2, 0.2, 0.2, 0.2, 0.9], [4, 2, 2, 1, 5], number=1)


def test_a_replay_cuts_off_what_came_after_the_rule_and_nothing_else() -> None:
    found = replay_stops([IDLE], "unproductive", price=0.01, resamples=0, seed=0)
    assert found is not None
    assert (found.rounds, found.stopped, found.sessions) == (1, 1, 1)
    assert found.utility.value == 0.0
    assert found.minutes.value == pytest.approx(-6.0)
    assert found.net.value == pytest.approx(0.06)
    assert found.pays
    lively = session([0.2, 0.4, 0.6], [4, None, 4])
    kept = replay_stops([lively], "unproductive", price=0.01, resamples=0, seed=0)
    assert kept is not None
    assert (kept.stopped, kept.net.value, kept.pays) == (0, 0.0, False)


def test_before_there_is_any_output_utility_cannot_have_stopped_to_rise() -> None:
    asked = session([0.0, 0.0, 0.6, 0.6, 0.6], [3, 3, 5, 3, 3])
    found = replay_stops([asked], "flat", price=0.01, resamples=0, seed=0)
    assert found is not None
    assert (found.rounds, found.stopped) == (1, 1)
    assert found.minutes.value == pytest.approx(-2.0)


def test_sessions_without_a_human_or_an_agent_are_left_out() -> None:
    alone = msgspec.structs.replace(IDLE, baseline=True)
    assert replay_stops([alone], "flat", price=0.01, resamples=0, seed=0) is None


def page(signs: list[Signs]) -> tuple[str, Diagnosis]:
    diagnosis = diagnose(signs, resamples=0)
    advice = recommend(signs, {"looper": diagnosis}, resamples=0)
    found = Profile(
        subject="looper",
        suite="suite-1",
        digest="0" * 32,
        published=True,
        tasks=("travel",),
        planned=len(signs),
        played=len(signs),
        diagnoses={"looper": diagnosis},
        recommendation=advice,
    )
    return document_markdown(profile_document(found)), diagnosis


def test_the_page_says_what_the_replay_gave() -> None:
    shown, diagnosis = page([IDLE])
    assert diagnosis.kind == "loop"
    assert "Stop a session after 1 unproductive round in a row: --stop-at 1." in shown
    assert (
        "Replayed on 1 session with looper: it ends 1 early; utility 0.000, minutes -6.00" in shown
    )
    assert "Not recommended" not in shown


def test_a_rule_that_would_have_cost_more_than_it_saved_is_not_recommended() -> None:
    shown, _ = page([LATE])
    assert "Not recommended: Stop a session after 1 unproductive round in a row" in shown
    assert "utility -0.700" in shown
