"""Every importer and endpoint, on inputs that are made up: each is read or refused, in little memory."""

from __future__ import annotations

import random
import subprocess
import sys

import fuzzing
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="it has no limit for a process"),
]


@pytest.mark.parametrize(
    "runs",
    [300, pytest.param(50_000, marks=[pytest.mark.soak, pytest.mark.timeout(7200)])],
)
def test_no_input_ends_a_door_or_fills_the_memory(
    runs: int, request: pytest.FixtureRequest
) -> None:
    fresh = runs > 1000  # the long form tries other inputs each time
    seed = random.randrange(10**9) if fresh else 0
    command = [sys.executable, "-P", fuzzing.__file__, str(seed), str(runs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-3000:]}"
