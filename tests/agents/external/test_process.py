"""The program of an external agent: however it is cancelled, it ends."""

from __future__ import annotations

import sys

import anyio
import pytest
from duolog.agents.external.process import LineProcess


@pytest.mark.slow
async def test_a_program_that_begins_while_it_is_cancelled_can_still_be_ended() -> None:
    process = LineProcess((sys.executable, "-c", "input()"), "a program")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await process.start()
    assert process.alive
    await process.stop()
    assert not process.alive
