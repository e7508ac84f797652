"""Breaks the engine in known ways, one at a time, and says after how many runs the simulator notices.

    python -P -m duolog.benchmarks.mutant_hunt            all of them
    python -P -m duolog.benchmarks.mutant_hunt --only 3   one, with what was found

Each change is made while its module is imported, in a separate process.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from multiprocessing import get_context
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

from duolog.benchmarks.mutants import MUTANTS, Mutant, mutated

__all__ = ("Finder", "Found", "hunt")


class Found(NamedTuple):
    """The number of runs after which a mutant was noticed (None if it was not), and the failure."""

    runs: int | None
    seconds: float
    failure: str


class Finder(MetaPathFinder):
    """Finds a module with the change of a mutant in it."""

    def __init__(self, mutant: Mutant) -> None:
        self._name = f"duolog.{mutant.module}"
        self._mutant = mutant

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of the mutant's module; None for every other module."""
        if name != self._name:
            return None
        spec = PathFinder.find_spec(name, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Loader(name, spec.origin, self._mutant)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, mutant: Mutant) -> None:
        super().__init__(name, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        source = Path(self.path).read_text(encoding="utf-8")
        return compile(mutated(source, self._mutant), self.path, "exec")


def hunt(number: int, most: int) -> Found:
    """Runs scenarios against a mutant, until one fails."""
    mutant = MUTANTS[number]
    assert f"duolog.{mutant.module}" not in sys.modules
    sys.meta_path.insert(0, Finder(mutant))
    from duolog.testing.simulator.scenario import STORES, Store, draw
    from duolog.testing.simulator.stage import prepared

    store: Store = next(each for each in STORES if each == mutant.store)
    began = time.perf_counter()
    with prepared() as stage:
        for seed in range(most):
            outcome = stage.run(draw(store, seed))
            if outcome.failure:
                return Found(seed + 1, time.perf_counter() - began, outcome.failure)
    return Found(None, time.perf_counter() - began, "")


def _hunt_apart(number: int, most: int) -> Found:
    """The same in a separate process, which imports the engine once."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(hunt, number, most).result()


def main() -> int:
    """Hunts mutants, and prints a table of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, help="number of one mutant")
    parser.add_argument("--most", type=int, default=2000, help="runs for each")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    numbers = range(len(MUTANTS)) if options.only is None else [options.only]
    missed = 0
    print("| mutant | store | found after runs | seconds |\n|---|---|---|---|")
    with ThreadPoolExecutor(options.processes) as pool:
        for number, found in zip(
            numbers, pool.map(partial(_hunt_apart, most=options.most), numbers), strict=True
        ):
            mutant = MUTANTS[number]
            missed += found.runs is None
            runs = f"not within {options.most}" if found.runs is None else found.runs
            print(f"| {mutant.what} | {mutant.store} | {runs} | {found.seconds:.1f} |", flush=True)
            if options.only is not None:
                print(found.failure)
    print(f"\n{len(numbers) - missed} of {len(numbers)} were found")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
