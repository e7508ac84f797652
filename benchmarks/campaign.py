"""``python -m duolog.benchmarks.campaign``: runs scenarios of the simulator until one fails, or repeats one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from random import SystemRandom
from typing import Annotated

import typer
from duolog.testing.simulator.campaign import Campaign, Failure, command, described, run_seeds
from duolog.testing.simulator.scenario import STORES, Scenario, Store, draw
from duolog.testing.simulator.stage import prepared
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ("main",)

_app = typer.Typer(add_completion=False)

_SHARES = {
    "memory": 0.3,
    "sqlite": 0.55,
    "session": 0.05,
    "product": 0.04,
    "network": 0.06,
}
"""Of the runs: most are on files, where most can fail."""


_PART = 500  # runs in one go
_PARTS = 10  # of one process; those that were killed in it leave a little behind


@_app.command()
def main(
    runs: Annotated[
        int, typer.Option("--runs", "-n", help="how many runs, over all stores")
    ] = 2000,
    seed: Annotated[int | None, typer.Option(help="repeats the run of one seed")] = None,
    first: Annotated[int | None, typer.Option(help="the first of the seeds; else drawn")] = None,
    store: Annotated[
        str, typer.Option(help="memory, sqlite, session, product, network or all")
    ] = "all",
    operations: Annotated[str, typer.Option(help="only these, by number: 0,3,5")] = "",
    faults: Annotated[str, typer.Option(help="only these, by index: 0,2, or none")] = "",
    processes: Annotated[int, typer.Option(help="how many at once")] = 1,
) -> None:
    """Runs logs on virtual time before disks, tasks and plug-ins that fail, and checks what must hold."""
    stores = [each for each in STORES if store in (each, "all")]
    if not stores:
        raise typer.BadParameter(
            f"unknown store {store!r}: memory, sqlite, session, product, network or all"
        )
    console = Console(soft_wrap=True, highlight=False)
    if seed is not None:
        raise typer.Exit(_repeat(console, _chosen(stores[-1], seed, operations, faults)))
    if first is None:
        first = SystemRandom().randrange(10**9)
    failed = False
    for each in stores:
        share = runs if len(stores) == 1 else round(runs * _SHARES[each])
        failed |= _campaign(console, each, range(first, first + share), processes)
    raise typer.Exit(1 if failed else 0)


def _chosen(store: Store, seed: int, operations: str, faults: str) -> Scenario:
    scenario = draw(store, seed)
    numbers = [each.number for each in scenario.operations]
    indices = list(range(len(scenario.faults)))
    return scenario.only(_parsed(operations, numbers), _parsed(faults, indices))


def _parsed(text: str, every: list[int]) -> list[int]:
    if text == "none":
        return []
    return [int(each) for each in text.split(",")] if text else every


def _repeat(console: Console, scenario: Scenario) -> int:
    console.print(described(scenario))
    with prepared() as stage:
        outcome = stage.run(scenario)
    what = f"happened: {', '.join(outcome.happened) or 'no fault'}; {outcome.steps} steps"
    console.print(what)
    console.print(f"FAILED: {outcome.failure}" if outcome.failure else "all holds", markup=False)
    return 1 if outcome.failure else 0


def _campaign(console: Console, store: Store, seeds: range, processes: int) -> bool:
    total = Campaign()
    began = time.perf_counter()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(store, total=len(seeds))
        for total in _run_campaign(
            store, seeds, processes, lambda done: bar.update(task, completed=done)
        ):
            if total.failures:
                break
    seconds = time.perf_counter() - began
    happened = ", ".join(f"{count} {name}" for name, count in sorted(total.happened.items()))
    console.print(
        f"{store}: {total.runs} runs from seed {seeds.start} in {seconds:.1f} s, "
        f"{total.runs / seconds:.0f} per s; {total.steps} steps; faults: {happened or 'none'}; "
        f"{len(total.failures)} failed"
    )
    for failure in total.failures:
        _show(console, failure)
    return bool(total.failures)


def _run_campaign(
    store: Store, seeds: Sequence[int], processes: int, progress: Callable[[int], None]
) -> Iterator[Campaign]:
    """Runs the scenarios of seeds in several processes; gives the results so far after each part."""
    parts = [seeds[at : at + _PART] for at in range(0, len(seeds), _PART)]
    total = Campaign()
    if processes == 1 and len(parts) == 1:
        for part in parts:
            total = total.plus(run_seeds(store, part))
            progress(total.runs)
            yield total
        return
    # Not by max_tasks_per_child: up to Python 3.12.2 a pool hangs when it renews its processes.
    at_once = processes * _PARTS
    for at in range(0, len(parts), at_once):
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            for result in pool.map(partial(run_seeds, store), parts[at : at + at_once]):
                total = total.plus(result)
                progress(total.runs)
                yield total


def _show(console: Console, failure: Failure) -> None:
    console.print(f"\nFAILED: {failure.what}", markup=False)
    console.print(described(failure.scenario))
    console.print(f"repeat it: {command(failure.scenario)}", markup=False)


if __name__ == "__main__":
    _app()
