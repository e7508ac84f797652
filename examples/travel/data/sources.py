"""Sources of instances: an invented world, or TravelPlanner's files."""

from __future__ import annotations

from typing import Final, Protocol, final

import msgspec

from ....engine import codec
from ....engine.errors import InvalidInput
from ....tasks.kit import BestOutput, generated, index_of, numbered
from ..evaluation import evaluate
from ..plan.text import render_plan
from .dataset import load_dataset
from .instances import Instance, make_instance, solution_of
from .tables import Sandbox
from .world.generator import generate_world

__all__ = ("CONFLICTS", "DatasetInstances", "InstanceSource", "InventedInstances")


CONFLICTS: Final = 0.7
"""Share of the invented instances in which no plan meets all wishes."""


class InstanceSource(Protocol):
    """A source of instances."""

    @property
    def name(self) -> str:
        """Distinguishes sessions on these instances from those on others of the same names."""
        ...

    def names(self, count: int) -> list[str]:
        """Names of the first ``count`` instances.

        Raises:
            InvalidInput: there are fewer.
        """
        ...

    def instance(self, name: str) -> tuple[Instance, Sandbox]:
        """An instance, and the tables for its searches and its evaluation.

        Raises:
            InvalidInput: there is no such instance.
        """
        ...

    def best_output(self, name: str) -> BestOutput:
        """The best utility that an instance allows, and a plan that reaches it.

        Raises:
            InvalidInput: there is no such instance, or its best plan is unknown.
        """
        ...


@final
class InventedInstances:
    """Instances of an invented world, without limit.

    Args:
        seed: the seed of the world.
    """

    def __init__(self, seed: int) -> None:
        self._world = generate_world(seed)
        self.name = generated(seed)

    def names(self, count: int) -> list[str]:
        """``0`` and so on."""
        return numbered(count, self._world.seed)

    def instance(self, name: str) -> tuple[Instance, Sandbox]:
        """The instance with this index."""
        instance = make_instance(self._world, index_of(name), conflicts=CONFLICTS)
        return instance, self._world.sandbox(instance.trip)

    def best_output(self, name: str) -> BestOutput:
        """A plan that satisfies every wish, or all but a budget that no complete plan keeps to."""
        instance, sandbox = self.instance(name)
        plan = solution_of(self._world, index_of(name))
        return BestOutput(evaluate(plan, instance.trip, sandbox).performance, render_plan(plan))


@final
class DatasetInstances:
    """The instances of a file or directory in TravelPlanner's or Collaborative Gym's formats.

    Args:
        path: see ``dataset.load_dataset``.

    Raises:
        InvalidInput: nothing there can be read, or there are no instances in it.
    """

    def __init__(self, path: str) -> None:
        dataset = load_dataset(path)
        if not dataset.instances:
            raise InvalidInput(f"{path} holds tables, but no task instances")
        self._sandbox = dataset.sandbox
        self._instances = {
            str(item.row): Instance(
                id=str(item.row),
                trip=item.trip,
                request=item.request,
                preferences=item.preferences,
            )
            for item in dataset.instances
        }
        builtins = [msgspec.to_builtins(item) for item in self._instances.values()]
        self.name = f"files/{codec.digest(builtins)[:12]}"

    def names(self, count: int) -> list[str]:
        """Numbers of rows."""
        if count > len(self._instances):
            raise InvalidInput(
                f"the data set has {len(self._instances)} instances, and {count} were asked for"
            )
        return list(self._instances)[:count]

    def instance(self, name: str) -> tuple[Instance, Sandbox]:
        """The instance of a row; all share one sandbox, as the benchmark has one database."""
        found = self._instances.get(name)
        if found is None:
            raise InvalidInput(
                f"unknown instance {name!r}; the data set has 0 to {len(self._instances) - 1}"
            )
        return found, self._sandbox

    def best_output(self, name: str) -> BestOutput:
        """Always raises: the files do not contain plans that satisfy their requests."""
        raise InvalidInput(f"nothing says what instance {name!r} of a data set allows at best")
