"""The frozen suites that profiles are made on: tasks, problems, people and scaffolds, with a digest."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from ...engine import codec
from ...engine.errors import InvalidInput
from ...engine.task import Cell, Setting, Task, find_task
from ...engine.text import suggestion

__all__ = ("SUITES", "Suite", "secret_seed", "shortened", "suite_digest", "suite_named")

SUITES: Final = ("suite-1",)
"""The suites that ship with Duolog."""


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The design of a suite.

    Attributes:
        name: the name of the suite, with its version.
        tasks: names of tasks.
        users: personas of the simulated users.
        scaffolds: kinds of agents that a model is played in.
        problems: how many of each task, in each half.
        repeats: how often each is played.
        rounds: limit of a session.
        actions: limit of a session.
        seed: the seed of the public half.
        digest: the digest of all of it and of the public problems, as published; empty while it is
            being made.
    """

    name: str
    tasks: tuple[str, ...]
    users: tuple[str, ...]
    scaffolds: tuple[str, ...]
    problems: int
    repeats: int = 1
    rounds: int = 30
    actions: int = 200
    seed: int = 0
    digest: str = ""


def suite_named(name: str) -> Suite:
    """A suite that ships with Duolog.

    Raises:
        InvalidInput: there is none of this name.
    """
    if name not in SUITES:
        raise InvalidInput(f"unknown suite {name!r}{suggestion(name, SUITES)}")
    text = files(__package__).joinpath("suites", f"{name}.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Suite)


def suite_digest(suite: Suite) -> str:
    """The digest of a suite as it would be played now: its design, and its public problems by content.

    A task whose problems have changed gives another digest, though the suite has the same name.

    Raises:
        InvalidInput: a task is not installed.
    """
    design = msgspec.to_builtins(msgspec.structs.replace(suite, digest=""))
    return codec.digest([design, {name: _problems(name, suite) for name in suite.tasks}])


@cache
def _problems(name: str, suite: Suite) -> Sequence[str | None]:
    task = find_task(name)
    names = task.instances(suite.problems, suite.seed)
    return [_problem(task, suite, instance) for instance in names]


def _problem(task: Task, suite: Suite, instance: str) -> str | None:
    cell = Cell(agent=suite.scaffolds[0], user=suite.users[0], instance=instance, seed=suite.seed)
    return task.session(cell, Setting()).opened.problem


def secret_seed(suite: Suite, secret: str) -> int:
    """The seed of the half that only those know who know the secret.

    Args:
        suite: the suite.
        secret: any text; keep it, the same one gives the same problems.

    Raises:
        InvalidInput: it is empty.
    """
    if not secret.strip():
        raise InvalidInput("the secret of a suite is empty: give any text that others cannot guess")
    return int(codec.digest([suite.name, "secret", secret])[:12], 16)


def shortened(suite: Suite, tasks: Sequence[str] | None) -> Suite:
    """The suite with some of its tasks only.

    Raises:
        InvalidInput: it does not have one of them.
    """
    if tasks is None:
        return suite
    for name in tasks:
        if name not in suite.tasks:
            raise InvalidInput(
                f"unknown task {name!r} in {suite.name}{suggestion(name, suite.tasks)}"
            )
    return msgspec.structs.replace(suite, tasks=tuple(dict.fromkeys(tasks)))
