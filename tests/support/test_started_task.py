"""The clerk fills the basket in the end, and one seed gives one session."""

import anyio
from duolog.engine.task import Cell, Setting
from duolog.testing import played

from started_task import StartedTask


def test_the_basket_is_full_in_the_end() -> None:
    cell = Cell(agent="clerk", user="customer", instance="0", seed=0)
    first = anyio.run(played, StartedTask.session(cell, Setting()))
    assert first.result.reason == "finished"
    assert first.result.utility == 1.0

    again = anyio.run(played, StartedTask.session(cell, Setting()))
    assert again.streams == first.streams
