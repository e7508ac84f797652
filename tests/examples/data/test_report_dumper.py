"""The bad example: a whole report at once, nothing asked, nothing explained."""

from __future__ import annotations

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import MessageSent, SnapshotTaken
from duolog.engine.task import Cell, Setting
from duolog.examples.data.data_task import REPORT_DUMPER, data_task
from duolog.testing import played

TASK = data_task()


def cell(model: str | None = None) -> Cell:
    return Cell(agent=REPORT_DUMPER, user="proactive", instance="0", seed=3, model=model)


async def test_it_puts_up_everything_and_refers_to_it() -> None:
    one = await played(TASK.session(cell(), Setting()))
    mine = [record.event for record in one.trace if record.role == "agent"]
    said = [event.text for event in mine if isinstance(event, MessageSent)]
    reports = [event for event in mine if isinstance(event, SnapshotTaken)]
    assert len(reports) == 1
    assert str(reports[0].content).count("Method: ") > 1
    assert said[0] == "The full report is up, with all queries and findings."
    assert set(said[1:]) == {"All of that is in the report."}
    assert not any("?" in text for text in said)


def test_it_is_listed_and_plays_on_rules_only() -> None:
    assert "bad example" in TASK.agents[REPORT_DUMPER]
    assert REPORT_DUMPER not in TASK.default_agents
    with pytest.raises(InvalidInput, match="report-dumper works by rules only; leave --models out"):
        TASK.session(cell(model="gpt-4o"), Setting())
