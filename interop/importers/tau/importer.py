"""The importer for trajectories of τ-bench and τ²-bench.

τ-bench writes a list of runs (``task_id``, ``reward``, ``traj``, ``trial``), whose ``traj`` are chat
messages; τ²-bench a file of results (``simulations``, with ``tasks`` and ``info``), or one beside a
directory ``simulations`` with a file for each. Users call tools there too. What an agent, a user or
the evaluation alone may know (its policy, the scenario, what was to be done) is private to it. The
reward is the utility of the last round; a run that broke off for reasons outside of it has none.

Markers with which simulated users end a conversation, ``###STOP###`` for instance, stay in their
messages, and are what closes the session.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, final

from ....engine.errors import InvalidInput
from ..json_sniff import Shape, shape_of
from ..protocol import Found, Reading
from .tau1 import read_runs
from .tau2 import DIRECTORY, RESULTS, read_results, read_simulations

__all__ = ("TauImporter",)

_NAME: Final = "tau"
_RUN: Final = frozenset({"task_id", "reward", "traj"})
_SIMULATION: Final = frozenset({"task_id", "messages", "termination_reason"})
_TICKS: Final = frozenset({"task_id", "ticks", "termination_reason"})


@final
class TauImporter:
    """Reads trajectories of τ-bench and τ²-bench."""

    @property
    def name(self) -> str:
        """``tau``."""
        return _NAME

    @property
    def about(self) -> str:
        """In a few words."""
        return "trajectories of τ-bench and results of τ²-bench"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file holds runs or results, or a directory results in several files."""
        if source.is_dir():
            return (source / RESULTS).is_file() and (source / DIRECTORY).is_dir()
        return shape is not None and (_is_run(shape) or _is_results(shape) or _is_simulation(shape))

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads all runs.

        Raises:
            InvalidInput: there are none, or a file cannot be read.
        """
        if source.is_dir():
            if not self.recognises(source, None):
                raise InvalidInput(
                    f"{source} is no result of τ²-bench: it holds no {RESULTS} with a directory "
                    f"{DIRECTORY}"
                )
            yield from read_results(source / RESULTS, reading)
            return
        shape = shape_of(source)
        if shape is not None and _is_run(shape):
            yield from read_runs(source, reading)
        elif shape is not None and _is_results(shape):
            yield from read_results(source, reading)
        elif shape is not None and _is_simulation(shape):
            yield from read_simulations(source, reading)
        else:
            raise InvalidInput(
                f"{source} is neither of τ-bench (a list of runs with task_id, reward and traj) nor "
                "of τ²-bench (results with simulations)"
            )


def _is_run(shape: Shape) -> bool:
    return shape.keys >= _RUN


def _is_results(shape: Shape) -> bool:
    return (
        shape.form == "object"
        and "info" in shape.keys
        and bool(shape.keys & {"simulations", "simulation_index", "tasks"})
    )


def _is_simulation(shape: Shape) -> bool:
    return shape.keys >= _SIMULATION or shape.keys >= _TICKS
