"""Sparklines, and the row of a session that holds them."""

from __future__ import annotations

import pytest
from duolog.cli.text.names import distinct
from duolog.cli.watch.painting import header, name_width, row_line
from duolog.cli.watch.sparkline import BARS, sparkline
from duolog.scoring.listing.rows import SessionRow
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
    row = SessionRow(
        session="a-session-with-a-rather-long-name\x1b[31m",
        state="finished",
        rounds=12,
        utility=0.5,
        utilities=(None, *(0.5,) * 11),
        efforts=(3.0,) * 12,
        stops={1: 2, 2: 7},
    )
    [name] = distinct([row.session], name_width(width))
    line = row_line(row, width, name)
    assert line.cell_len == header(width).cell_len == width
    assert "\x1b" not in line.plain
    assert line.plain.rstrip().endswith("τ≤2")
    assert "finished    12  0.500" in line.plain


def test_a_row_says_its_problem() -> None:
    assert "damaged" in row_line(SessionRow(session="s", problem="it is damaged"), 60, "s").plain
