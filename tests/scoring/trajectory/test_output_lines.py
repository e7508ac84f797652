"""Lines of an output are split and compared once, and are what each fold would find by itself."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from duolog.engine.events import JSON, SnapshotTaken
from duolog.engine.log.open import open_log
from duolog.scoring.columns.rows import SessionFold
from duolog.scoring.process import ProcessFold
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.output_lines import OutputLines
from duolog.testing.tools import collect
from scripted_logs import MOVES, interleave, script_of


def output(content: JSON) -> SnapshotTaken:
    return SnapshotTaken(content=content, digest=str(content))


def test_what_was_split_or_compared_is_not_again() -> None:
    lines = OutputLines()
    event = output("a\nb")
    old = lines.of(event)
    assert old == {"": ["a", "b"]}
    assert lines.of(event) is old
    new = lines.of(output("b\nc\nd"))
    found = lines.new(old, new)
    assert found == "c\nd"
    assert lines.new(old, new) is found
    assert lines.new(new, old) == "a"
    assert lines.new({}, old) == "a\nb"


@pytest.mark.parametrize("content", ["", " \n\t\n", {"day": 1}])
def test_outputs_that_are_blank_or_no_text(content: JSON) -> None:
    lines = OutputLines()
    event = output(content)
    assert lines.of(event) == lines.of(output(content))
    lines.clear()
    assert lines.new({}, {}) == ""
    assert lines.of(event) == OutputLines().of(event)


async def test_folds_that_share_them_find_what_each_finds_alone(tmp_path: Path) -> None:
    chance = random.Random(11)
    scripts = [script_of(chance.choices(MOVES, k=40), f"s{number}") for number in range(6)]
    async with open_log(str(tmp_path / "log.db")) as log:
        await interleave(log, scripts, [chance.randrange(6) for _ in range(200)])
        records = await collect(log.read_all())
    for session in {record.session for record in records}:
        together = SessionFold(session, Options())
        fold, process = TrajectoryFold(session, emit=False), ProcessFold()
        for record in records:
            if record.session == session:
                together.feed(record)
                fold.feed(record)
                process.feed(record)
        assert together.folded().session.process == process.measures
        assert together.folded().rounds == fold.trajectory().points
