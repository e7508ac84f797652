"""The distance of simulated talk from people's, for the half that was fitted and the half that was not."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from duolog.benchmarks.manners import half_of, main
from duolog.engine.codec import digest
from duolog.engine.events import MessageSent, Participant, SessionOpened, SnapshotTaken
from duolog.engine.log.open import open_log
from duolog.testing import by

TURNS = ("Make it blue.", "Could you make it rhyme?")


async def write(path: Path, persona: str | None) -> None:
    async with open_log(str(path)) as log:
        for number in range(8):
            people = (Participant(name="user", role="human", persona=persona),)
            opened = SessionOpened(
                task="t", instance="1", participants=people, clock="virtual", request="A poem."
            )
            facts = [by("environment", opened, actor="engine")]
            for text in TURNS[: 1 + (persona is None)]:
                drawn = SnapshotTaken(content=text, digest=digest(text))
                facts.append(by("agent", drawn, actor="agent"))
                facts.append(by("human", MessageSent(text=text), actor="user"))
            await log.append(f"{persona}-{number}", facts)


def test_it_compares_each_half_with_the_simulated_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    anyio.run(write, tmp_path / "people.db", None)
    anyio.run(write, tmp_path / "simulated.db", "lazy")
    assert {half_of(f"None-{number}") for number in range(8)} == {0, 1}
    assert main([str(tmp_path / "simulated.db"), str(tmp_path / "people.db")]) == 0
    lines = capsys.readouterr().out.splitlines()
    for half in ("fitted", "other"):
        assert f"| {half} half | lazy | question_rate | 0.50 | 0.00 | 0.50 |" in lines
    assert "| t | 8 | 1 | 1.00 | 0.88 | 0.00 | 0.00 | 0.00 | 0.00 | 0.00 | 0.00 |" in lines
    assert any(line.startswith("| people | 16 | 2 | 1.00 | 0.88 |") for line in lines)
