"""Sparklines, and the row of a session that holds them."""

from __future__ import annotations

import pytest
from duolog.cli.text.names import distinct
from duolog.cli.watch.painting import BARS, header, name_width, row_line, sparkline
from duolog.scoring.columns.rows import Folded, SessionRow
from duolog.scoring.index.lines import SessionLine
from duolog.scoring.trajectory.points import Point
from hypothesis import given
from hypothesis import strategies as st

VALUES = st.lists(st.none() | st.floats(0, 1e9), max_size=60)


def test_bars_grow_with_the_values() -> None:
    assert sparkline([0, 0.25, 0.5, 0.99, 1], 8, top=1.0) == "▁▃▅██"


def test_without_a_top_the_greatest_value_is_a_full_bar() -> None:
    assert sparkline([2, 4], 8) == "▅█"


def test_no_value_is_a_dot() -> None:
    assert sparkline([None, 1], 8) == "·█"


def test_nothing_but_noughts_lies_flat() -> None:
    assert sparkline([0, 0], 8) == "▁▁"


def test_several_values_share_a_bar() -> None:
    assert sparkline([0, 1, 0, 0], 2, top=1.0) == "█▁"
    assert sparkline([0, 1, 0, 0], 2, top=1.0, several=lambda some: some[0]) == "▁▁"


@given(VALUES, st.integers(1, 20), st.none() | st.floats(0, 2))
def test_it_is_never_wider_than_it_may_be(
    values: list[float | None], width: int, top: float | None
) -> None:
    drawn = sparkline(values, width, top=top)
    assert len(drawn) == min(len(values), width)
    assert set(drawn) <= {*BARS, "·"}


@pytest.mark.parametrize("width", [40, 60, 77, 140])
def test_a_row_is_as_wide_as_its_titles(width: int) -> None:
    row = SessionRow(session="a-session-with-a-rather-long-name\x1b[31m", state="finished")
    ratings = [5, 1, *[5] * 5, 1, 1, *[5] * 3]
    points = [
        Point(
            round=n,
            value=0.5 if n > 1 else None,
            utility=0.5,
            rating=rating,
            effort={"acts": 3.0 * n},
        )
        for n, rating in enumerate(ratings, start=1)
    ]
    [name] = distinct([row.session], name_width(width))
    line = row_line(SessionLine(Folded(row, tuple(points))), "acts", width, name)
    assert line.cell_len == header(width).cell_len == width
    assert "\x1b" not in line.plain
    assert line.plain.rstrip().endswith("τ≤2")
    assert "finished    12  0.500" in line.plain


def test_a_row_says_its_problem() -> None:
    line = SessionLine(Folded(SessionRow(session="s", unreadable="it is damaged")))
    assert "damaged" in row_line(line, "acts", 60, "s").plain


def test_the_list_has_the_agent_where_there_is_room() -> None:
    row = SessionRow(session="s", labels={"agent": "two-stage"}, state="open")
    line = SessionLine(Folded(row, (Point(round=1, utility=0.5),)))
    assert "agent" in header(80).plain
    assert "two-stage" in row_line(line, "acts", 80, "s").plain
    assert "agent" not in header(30).plain
