"""Texts of lists: times in a few characters."""

from __future__ import annotations

from datetime import datetime

import pytest
from duolog.scoring.display.texts import day_or_hour

NOW = datetime(2026, 11, 24, 15, 30)


@pytest.mark.parametrize(
    ("when", "shown"),
    [
        (datetime(2026, 11, 24, 9, 14), "09:14"),
        (datetime(2026, 11, 23, 23, 59), "yesterday"),
        (datetime(2026, 5, 3, 8, 0), "3 May"),
        (datetime(2023, 5, 3, 8, 0), "3 May 2023"),
        (datetime(2026, 11, 25, 8, 0), "25 Nov"),  # a clock that is ahead
    ],
)
def test_a_time_is_as_short_as_its_age_allows(when: datetime, shown: str) -> None:
    assert day_or_hour(when.timestamp(), NOW) == shown


def test_a_time_out_of_range_is_the_number() -> None:
    assert day_or_hour(1e30, NOW) == "1e+30"
