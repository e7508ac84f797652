"""How a session's numbers are explained, on a session worked out by hand."""

from __future__ import annotations

import pytest
from duolog.engine.errors import InvalidInput
from duolog.scoring.metrics.explain import explain
from duolog.scoring.trajectory.files import decode_trajectory

# U: 0, .4, .8, .6, .6; rounds 2 and 3 are bad; the first update (round 1) is stale
SESSION = decode_trajectory(
    '{"session": "s", "rounds": ['
    '{"utility": null, "updated": true, "rating": 4},'
    '{"utility": 0.4, "updated": true, "rating": 2},'
    '{"utility": 0.8, "updated": true, "rating": 1},'
    '{"utility": 0.6, "updated": true, "rating": null},'
    '{"utility": null, "updated": false, "rating": 2}]}'
)


def test_formal() -> None:
    found = explain(SESSION, taus=(3, 1, 2))
    assert (found.first_round, found.first, found.first_found) == (1, None, True)
    assert (found.best_round, found.overall) == (3, 0.8)
    assert (found.final_round, found.final) == (5, 0.6)
    assert found.gain is None
    assert (found.reference_round, found.reference) == (5, 0.6)
    assert [note.unproductive for note in found.rounds] == [False, True, True, False, True]
    assert [note.run for note in found.rounds] == [0, 1, 2, 0, 1]
    assert [note.stale for note in found.rounds] == [True, False, False, False, False]
    one, two, three = found.stops
    assert (one.tau, one.reached, one.used, one.utility) == (1, 2, 2, 0.4)
    assert one.drop == pytest.approx(-0.2)
    assert (two.reached, two.used, two.utility) == (3, 3, 0.8)
    assert (three.reached, three.used, three.drop) == (None, 5, 0)


def test_paper() -> None:
    found = explain(SESSION, convention="paper", max_step=4)
    assert (found.first_round, found.first) == (2, 0.4)
    assert found.gain == pytest.approx(0.4)
    assert (found.final_round, found.final) == (5, 0.6)
    assert (found.reference_round, found.reference) == (4, 0.6)
    assert [note.cut for note in found.rounds] == [False, False, False, False, True]
    one, two, three = found.stops
    assert (one.reached, one.used, one.utility) == (2, 1, 0)
    assert one.drop == pytest.approx(-0.6)
    assert (two.reached, two.used, two.utility) == (3, 2, 0.4)
    assert (three.reached, three.used, three.drop) == (None, 4, 0)


def test_paper_leaves_nothing_of_a_session_that_is_bad_at_once() -> None:
    line = '{"session": "s", "rounds": [{"utility": 0.4, "rating": 1}, {"utility": 0.5}]}'
    stop = explain(decode_trajectory(line), convention="paper", max_step=2, taus=(1,)).stops[0]
    assert (stop.reached, stop.used, stop.utility, stop.drop) == (1, None, None, None)
    stop = explain(decode_trajectory(line), taus=(1,)).stops[0]
    assert (stop.reached, stop.used, stop.utility) == (1, 1, 0.4)


def test_paper_never_is_a_hundred_rounds() -> None:
    rounds = ",".join(f'{{"utility": {k / 200}, "rating": 1}}' for k in range(1, 121))
    long = decode_trajectory(f'{{"session": "s", "rounds": [{rounds}]}}')
    found = explain(long, convention="paper", max_step=120, taus=(2,))
    assert (found.reference_round, found.reference) == (99, 99 / 200)
    assert found.stops[0].drop == pytest.approx(1 / 200 - 99 / 200)


def test_a_pending_rating_stops_the_count() -> None:
    line = (
        '{"session": "s", "rounds": [{"utility": 0.4, "rating": 1},'
        '{"utility": 0.5, "pending": true}, {"utility": 0.6, "rating": 1}]}'
    )
    found = explain(decode_trajectory(line), taus=(1, 2))
    assert [note.run for note in found.rounds] == [1, None, None]
    assert [note.unproductive for note in found.rounds] == [True, False, False]
    assert [stop.reached for stop in found.stops] == [1, None]
    taken = explain(decode_trajectory(line), convention="paper", max_step=3, taus=(2,))
    assert [note.run for note in taken.rounds] == [1, 0, 1]


def test_a_silent_session_is_one_round_of_final_performance() -> None:
    silent = decode_trajectory('{"session": "s", "rounds": [], "final": 0.3}')
    for found in (explain(silent), explain(silent, convention="paper", max_step=4)):
        assert found.silent
        assert found.rounds == ()
        assert (found.first_round, found.final_round, found.best_round) == (1, 1, 1)
        assert (found.first, found.gain) == (0.3, 0)
        assert [stop.drop for stop in found.stops] == [0, 0, 0]


def test_what_cannot_be_computed_has_a_reason() -> None:
    nothing = decode_trajectory('{"session": "s", "rounds": []}')
    assert explain(nothing).reason == "no round and no final performance"
    uncut = explain(SESSION, convention="paper")
    assert uncut.reason is not None
    assert "fewer than two sessions" in uncut.reason
    assert uncut.first is None
    assert len(uncut.rounds) == 5


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(InvalidInput, match="unknown convention 'x'"):
        explain(SESSION, convention="x")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="must be at least 1, not 0"):
        explain(SESSION, taus=(0,))
