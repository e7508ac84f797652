"""How long it takes to load TravelPlanner's instances, and to judge a plan.

    python benchmarks/travel_scoring.py DATA [--plans PLANS] [--rounds 5]

DATA is what ``load_dataset`` takes; PLANS a file of submissions. Without any, the plans judged are
made up from the tables of each instance. Printed are medians over rounds, each in a fresh sandbox:
the first pass fills its caches, the second finds them warm.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from duolog.examples.travel.data.dataset import Dataset, DatasetInstance, load_dataset
from duolog.examples.travel.data.tables import Sandbox
from duolog.examples.travel.evaluation import VARIANTS, Variant, evaluate
from duolog.examples.travel.plan.plan import DayPlan, Plan, plan_to_json

Job = tuple[DatasetInstance, object]


def made_up(instance: DatasetInstance, sandbox: Sandbox) -> Plan:
    """A plan of the right length in the first city that has everything."""
    trip = instance.trip
    state = trip.destination
    cities = sandbox.cities_of.get(state, (state,))
    city = next((c for c in cities if sandbox.accommodations_in.get(c)), trip.origin)
    tables = (sandbox.restaurants_in, sandbox.attractions_in, sandbox.accommodations_in)
    meals, sights, rooms = ([f"{row.name}, {city}" for row in t.get(city, ())] for t in tables)
    meals, sights, rooms = ((names or ["-"]) * 3 * trip.days for names in (meals, sights, rooms))
    return tuple(
        DayPlan(
            days=day + 1,
            current_city=f"from {trip.origin} to {city}" if day == 0 else city,
            transportation=f"Taxi, from {trip.origin} to {city}" if day == 0 else "-",
            breakfast=meals[3 * day],
            lunch=meals[3 * day + 1],
            dinner=meals[3 * day + 2],
            attraction=f"{sights[2 * day]};{sights[2 * day + 1]};",
            accommodation=rooms[0],
        )
        for day in range(trip.days)
    )


def jobs_of(dataset: Dataset, plans: Path | None) -> Iterator[Job]:
    """The plans to judge, each with its instance."""
    if plans is None:
        for instance in dataset.instances:
            yield instance, plan_to_json(made_up(instance, dataset.sandbox))
        return
    for line in plans.read_text(encoding="utf-8").splitlines():
        submission = json.loads(line)
        yield dataset.instances[submission["row_index"]], submission["plan"]


def milliseconds(action: Callable[[], object]) -> float:
    """How long an action takes."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def judged(jobs: list[Job], sandbox: Sandbox, variant: Variant) -> list[float]:
    """Milliseconds for each plan."""
    return [
        milliseconds(partial(evaluate, plan, instance.trip, sandbox, variant))
        for instance, plan in jobs
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path)
    parser.add_argument("--plans", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    loading = [milliseconds(lambda: load_dataset(options.data)) for _ in range(options.rounds)]
    dataset = load_dataset(options.data)
    print(f"load {len(dataset.instances)} instances: {statistics.median(loading):.0f} ms")
    jobs = list(jobs_of(dataset, options.plans))
    for variant in VARIANTS:
        passes: dict[str, list[float]] = {"first": [], "again": []}
        for _ in range(options.rounds):
            sandbox = load_dataset(options.data).sandbox
            for times in passes.values():
                times += judged(jobs, sandbox, variant)
        for name, times in passes.items():
            times.sort()
            median, high, most = statistics.median(times), times[len(times) * 95 // 100], times[-1]
            print(
                f"{variant:>9} {name}: median {median:.3f} ms, 95th percentile {high:.3f} ms, "
                f"longest {most:.3f} ms of {len(jobs)} plans"
            )


if __name__ == "__main__":
    main()
