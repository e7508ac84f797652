"""D@τ under other readings of the ratings."""

from __future__ import annotations

from collections.abc import Sequence

from duolog.scoring.comparison.sensitivity import (
    Sensitivity,
    SensitivityRow,
    change_warnings,
    robustness,
    sensitivity,
)
from duolog.scoring.report import make_report, report_document
from duolog.scoring.trajectory.points import Point, Trajectory


def rated(agent: str, *rounds: tuple[float, int | None]) -> Trajectory:
    points = tuple(
        [
            Point(round=k, value=value, utility=value, updated=True, rating=rating)
            for k, (value, rating) in enumerate(rounds, start=1)
        ]
    )
    return Trajectory(session=f"{agent}-1", group={"agent": agent}, points=points)


def row(
    found: Sensitivity, agent: str, least: int, missing: str, judge: str = "rules"
) -> SensitivityRow:
    [one] = [
        each
        for each in found.rows
        if (each.group["agent"], each.least, each.missing, each.judge)
        == (agent, least, missing, judge)
    ]
    return one


def order_warnings(
    sessions: Sequence[Trajectory], taus: Sequence[int] = (1, 2, 3)
) -> tuple[str, ...]:
    return change_warnings(sensitivity({"": sessions}, taus=taus).changes)


ASKS = rated("asks", (0.1, 2), (0.4, None), (0.9, 4))
DRAFTS = rated("drafts", (0.5, 3), (0.6, 3), (0.8, 3))


def test_each_choice_moves_the_stop() -> None:
    found = sensitivity({"rules": [ASKS, DRAFTS]}, taus=(1,))
    assert len(found.rows) == 2 * 3 * 2
    usual = row(found, "asks", 3, "productive")
    assert usual.usual
    assert usual.drop.value is not None
    assert abs(usual.drop.value - (0.1 - 0.9)) < 1e-12
    assert row(found, "asks", 2, "productive").drop.value == 0  # 2 is not below 2: no session stops
    late = row(found, "asks", 2, "unproductive")  # the missing rating of round 2 stops it
    assert late.drop.value == 0.4 - 0.9
    assert row(found, "drafts", 3, "productive").stopped == 0
    assert row(found, "drafts", 4, "productive").drop.value == 0.5 - 0.8


def test_an_order_that_depends_on_the_choice_is_said() -> None:
    worse = rated("worse", (0.5, 2), (0.6, 3), (0.7, 3))
    found = sensitivity({"rules": [worse, DRAFTS]}, taus=(1,))
    # Below 3 stops only `worse`, at .5 of .7; below 4 stops both in round 1, and drafts loses more.
    [change] = found.changes
    assert (change.first, change.second, change.tau) == ("drafts", "worse", 1)
    assert (change.above, change.below) == (2, 2)


def test_judges_stand_beside_each_other() -> None:
    kind = rated("asks", (0.1, 4), (0.4, 4), (0.9, 4))
    found = sensitivity({"rules": [ASKS], "model": [kind]}, taus=(1,), least=(3,))
    assert row(found, "asks", 3, "productive", "model").drop.value == 0
    assert row(found, "asks", 3, "productive", "rules").stopped == 1
    assert found.changes == ()


def test_what_nobody_rated_stays_missing() -> None:
    found = sensitivity({"none": [rated("asks", (0.1, None), (0.9, None))]}, taus=(1,))
    assert {each.drop.value for each in found.rows} == {None}


def test_automated_runs_are_in_no_row() -> None:
    alone = Trajectory(session="x", group={"agent": "auto"}, baseline=True, final=0.5)
    assert {r.group["agent"] for r in sensitivity({"rules": [ASKS, alone]}).rows} == {"asks"}


def test_a_report_can_warn_of_it() -> None:
    worse = rated("worse", (0.5, 2), (0.6, 3), (0.7, 3))
    [warning] = order_warnings([worse, DRAFTS], (1, 2))
    assert warning.startswith("the order of drafts and worse by the drop at τ = 1")
    assert order_warnings([DRAFTS]) == ()
    assert order_warnings([ASKS, rated("lost", (0.1, 1), (0.2, 1), (0.9, 1))], (1,)) == ()


def test_drops_that_differ_by_rounding_alone_have_no_order() -> None:
    # Below 3 both lose a tenth, as far as floating point goes; below 4 the second loses more.
    first = rated("first", (0.3, 2), (0.4, 5))
    second = rated("second", (0.2, 3), (0.5, 2), (0.6, 5))
    found = sensitivity({"": [first, second]}, taus=(1,))
    ones, others = (
        row(found, agent, 3, "productive", "").drop.value for agent in ("first", "second")
    )
    assert ones != others
    assert order_warnings([first, second], (1,)) == ()


def test_sign_and_order_hold_only_if_they_do_under_all_readings() -> None:
    lost = rated("lost", (0.1, 1), (0.2, 1), (0.9, 1))
    found = robustness(sensitivity({"": [lost, DRAFTS]}, taus=(1,)))
    assert found.readings == 6
    signs = {one.group["agent"]: one for one in found.signs}
    assert (signs["lost"].negative, signs["lost"].holds) == (6, True)
    assert (signs["drafts"].negative, signs["drafts"].zero) == (2, 4)
    assert not signs["drafts"].holds
    [order] = found.orders
    assert (order.first, order.second, order.above, order.holds) == ("drafts", "lost", 6, True)


def test_a_report_says_below_its_table_what_holds() -> None:
    lost = rated("lost", (0.1, 1), (0.2, 1), (0.9, 1))
    document = report_document(make_report([lost, DRAFTS], taus=(1, 2)))
    notes = [note.text for note in document.sections[0].notes]
    [found] = [text for text in notes if text.startswith("The drop under 6 readings")]
    assert "τ = 1: the sign does not hold for drafts; the order holds." in found
    assert "τ = 2: " in found
    unrated = rated("lost", (0.1, None), (0.2, None))
    alone = report_document(make_report([unrated]))
    assert not [note for note in alone.sections[0].notes if "readings" in note.text]
