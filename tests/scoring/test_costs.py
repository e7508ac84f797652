"""What agents cost, and how long their answers take: missing stays missing."""

from __future__ import annotations

import pytest
from duolog.engine.events import ModelCalled
from duolog.engine.log.open import open_log
from duolog.scoring.columns.parquet import session_table
from duolog.scoring.columns.rows import SessionFold
from duolog.scoring.costs import CostFold, Costs
from duolog.scoring.display.texts import dollars
from duolog.scoring.index.order import parse_order
from duolog.scoring.index.query import parse_query
from duolog.scoring.index.select import select
from duolog.scoring.trajectory.options import Options
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records


def script_of(
    *prices: float | None, answers: tuple[float, ...] = (), session: str = "s"
) -> RecordWriter:
    """A session whose agent makes calls with these prices, and answers after these times."""
    script = RecordWriter(session)
    script.opened(clock="virtual")
    for price in prices:
        script.agent(ModelCalled(model="m", purpose="act", request="r", cost=price), at=0.0)
    now = 0.0
    for seconds in answers:
        script.human("And?", at=now)
        now += seconds
        script.agent("Yes.", at=now)
    return script


def costs_of(script: RecordWriter) -> Costs:
    fold = CostFold()
    for record in script.records:
        fold.feed(record)
    return fold.costs


@pytest.mark.parametrize(
    ("prices", "expected", "unpriced"),
    [((), None, 0), ((None, None), None, 2), ((0.25, None, 0.5), 0.75, 1), ((0.0,), 0.0, 0)],
)
def test_the_cost_is_that_of_calls_with_a_price(
    prices: tuple[float | None, ...], expected: float | None, unpriced: int
) -> None:
    found = costs_of(script_of(*prices))
    assert (found.dollars, found.unpriced) == (expected, unpriced)


def test_calls_of_a_simulated_user_are_not_the_agents() -> None:
    script = script_of(0.25)
    script.human(ModelCalled(model="m", purpose="act", request="r", cost=9.0), at=1.0)
    assert costs_of(script).dollars == 0.25


def test_the_latency_is_the_median_time_until_an_answer() -> None:
    assert costs_of(script_of(answers=(2.0, 10.0, 3.0))).latency == 3.0
    assert costs_of(script_of()).latency is None


def test_a_source_without_times_has_no_latency() -> None:
    assert costs_of(script_of(answers=(0.0, 0.0))).latency is None


def test_a_row_has_the_costs_and_so_have_tables() -> None:
    fold = SessionFold("s", Options())
    for record in script_of(0.25, None, answers=(4.0,)).records:
        fold.feed(record)
    folded = fold.folded()
    assert (folded.session.cost, folded.session.unpriced, folded.session.latency) == (0.25, 1, 4.0)
    pytest.importorskip("pyarrow", reason="tables need the extra analytics")
    [row] = session_table([folded]).to_pylist()
    assert (row["cost"], row["unpriced"], row["latency"]) == (0.25, 1, 4.0)


async def test_sessions_are_ordered_and_selected_by_costs_with_missing_ones_last() -> None:
    async with open_log("memory://") as log:
        for name, price, answer in (("a", None, 9.0), ("b", 2.0, 1.0), ("c", 0.5, 5.0)):
            script = script_of(price, answers=(answer,), session=name)
            await put_records(log, script.records)

        async def found(*terms: str, order: str = "session") -> str:
            listed = select(log, parse_query(terms), parse_order(order))
            return "".join([one.session async for one in listed])

        assert await found(order="cost") == "cba"
        assert await found(order="-cost") == "bca"
        assert await found(order="-latency") == "acb"
        assert await found("cost=none") == "a"
        assert await found("cost<1") == "c"
        assert await found("cost=..2", "latency>=5") == "c"


def test_small_amounts_are_not_shown_as_nothing() -> None:
    assert [dollars(one) for one in (0.0, 0.004, 0.005, 1234.5)] == [
        "$0.00",
        "<$0.01",
        "$0.01",
        "$1,234.50",
    ]
