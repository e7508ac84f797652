"""Many runs in sequence; each failure is reduced, and comes with the command that repeats it."""

from __future__ import annotations

import gc
import re
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from .scenario import Fault, Operation, Outcome, Scenario, Store, draw
from .shrink import shrink
from .stage import Stage, prepared

__all__ = ("Campaign", "Failure", "command", "described", "run_seeds")

_GROWTH = 64 * 1024  # KiB by which a process may grow once it is warm


_OBJECTS = 2000  # objects, of those that the garbage collector knows, that may be added meanwhile
_OBJECTS_OF_ENDED = 300  # that a killed process leaves behind; nothing cleans up after it
_ENDS: Final = ("kill", "power", "sync")


class _Held(NamedTuple):
    """What this process holds: KiB of memory, and objects."""

    memory: int
    objects: int


class Failure(msgspec.Struct, frozen=True):
    """A reduced scenario, and the promise that it breaks."""

    scenario: Scenario
    what: str


class Campaign(msgspec.Struct, frozen=True):
    """How runs went.

    Attributes:
        runs: how many there were.
        happened: how often each fault has taken place.
        steps: steps of event loops.
        failures: the failures of those that failed; at most a few.
    """

    runs: int = 0
    happened: dict[str, int] = {}
    steps: int = 0
    failures: tuple[Failure, ...] = ()

    def plus(self, other: Campaign) -> Campaign:
        """Both together."""
        return Campaign(
            self.runs + other.runs,
            dict(Counter(self.happened) + Counter(other.happened)),
            self.steps + other.steps,
            self.failures + other.failures,
        )


_MOST: Final = 3
"""Failures of one part that are cut down and reported; one cause fails many seeds."""


def run_seeds(store: Store, seeds: Iterable[int], *, stage: Stage | None = None) -> Campaign:
    """Runs the scenarios of seeds in this process.

    Raises:
        AssertionError: the process grew by more than runs may leave behind.
    """
    if stage is None:
        with prepared() as own:
            return run_seeds(store, seeds, stage=own)
    happened: Counter[str] = Counter()
    runs = steps = 0
    warm: _Held | None = None
    failures: list[Failure] = []
    for seed in seeds:
        scenario = draw(store, seed)
        outcome = _run(stage, scenario)
        runs += 1
        steps += outcome.steps
        happened.update(outcome.happened)
        if outcome.failure and len(failures) < _MOST:
            failures.append(_cut_down(stage, scenario, outcome.failure))
        if runs % 100 == 0:
            gc.collect()
            ended = sum(happened[kind] for kind in _ENDS)
            now = _Held(_memory(), len(gc.get_objects()) - _OBJECTS_OF_ENDED * ended)
            warm = warm or now
            if now.memory > warm.memory + _GROWTH or now.objects > warm.objects + _OBJECTS:
                what = f"what the process holds grew from {warm} to {now} within {runs} runs"
                failures.append(Failure(scenario, what))
                break
    return Campaign(runs, dict(happened), steps, tuple(failures))


def _memory() -> int:
    """The most memory that this process has held, in KiB; 0 if the system does not say."""
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _cut_down(stage: Stage, scenario: Scenario, what: str) -> Failure:
    """A failure in as few operations as show the same thing."""
    name = _name(what)
    small = shrink(scenario, lambda candidate: _name(_run(stage, candidate).failure) == name)
    return Failure(small, _run(stage, small).failure or what)


def _run(stage: Stage, scenario: Scenario) -> Outcome:
    with stage.watch.over(lambda: command(scenario)):
        return stage.run(scenario)


def _name(failure: str) -> str:
    """What two failures of one cause have in common: all but the numbers, and how many they are."""
    return re.sub(r"\d+|\[[^]]*\]", "", failure.partition(" (")[0])


def command(scenario: Scenario) -> str:
    """The command that repeats a run."""
    whole = draw(scenario.store, scenario.seed)
    words = [
        f"python -m duolog.benchmarks.campaign --store {scenario.store} --seed {scenario.seed}"
    ]
    if scenario.operations != whole.operations:
        words.append(f"--operations {_numbers(each.number for each in scenario.operations)}")
    if scenario.faults != whole.faults:
        kept = [whole.faults.index(each) for each in scenario.faults]
        words.append(f"--faults {_numbers(kept)}")
    return " ".join(words)


def _numbers(numbers: Iterable[int]) -> str:
    return ",".join(str(number) for number in numbers) or "none"


def described(scenario: Scenario) -> str:
    """A scenario, one thing a line."""
    lines = [_operation(each) for each in scenario.operations]
    lines += [_fault(each) for each in scenario.faults]
    return "\n".join(lines)


def _operation(each: Operation) -> str:
    return f"  {each.number}: {each.kind}, worker {each.worker}, session s{each.session}, {each.size} events"


def _fault(each: Fault) -> str:
    return f"  fault: {each.kind} at {each.at}"
