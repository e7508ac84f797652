"""Runs a store under the simulator: many small workloads on virtual time, each task cancelled at any step.

def test_my_store(tmp_path):
check_log_in_simulation(lambda: MyLog(tmp_path / uuid4().hex))
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from ...engine.log.contract import EventLog
from ...engine.records import Redact
from ..simulator.campaign import described, run_seeds
from ..simulator.loop import no_worker_threads
from ..simulator.stage import Stage

__all__ = ("check_log_in_simulation",)


def check_log_in_simulation(
    factory: Callable[[], EventLog], *, runs: int = 500, first_seed: int = 0
) -> None:
    """Checks that the logs a factory makes keep their promises, whichever task is cancelled when.

    The event loop is simulated: a store that needs sockets, threads or real time cannot run on it.
    Call it outside of any event loop.

    Args:
        factory: returns a new, empty log, not entered yet, on each call.
        runs: how many workloads.
        first_seed: seed of the first; the others follow.

    Raises:
        AssertionError: a promise is broken; says which, and in how few operations.
    """

    def open_log(_path: Path, _redact: Redact) -> EventLog:
        return factory()

    with tempfile.TemporaryDirectory(prefix="duolog-") as directory, no_worker_threads():
        stage = Stage(Path(directory), [], open_log)
        seeds = range(first_seed, first_seed + runs)
        failures = run_seeds("memory", seeds, stage=stage).failures
    for failure in failures:
        scenario = failure.scenario
        raise AssertionError(f"seed {scenario.seed}: {failure.what}\n{described(scenario)}")
