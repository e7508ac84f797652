"""TRL: environments for the argument ``environment_factory`` of its ``GRPOTrainer``.

Each tool becomes a public method with types and a Google docstring, from which TRL makes its schema. TRL's loop
ends when the model calls no tool, so talking is a tool, too: ``message(text) -> reply``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import msgspec

from ..engine.errors import InvalidInput
from ..engine.events import JSON
from ..engine.models.protocol import Tool, ToolCall
from ..engine.task import Task, find_task
from .blocking import BlockingEpisode, Stage
from .episode import EpisodeSetting
from .seat import Observation

__all__ = ("TrlEnvironment", "trl_environments")

_TYPES: Mapping[str, object] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}
_OWN = frozenset({"reset", "get_reward"})


class TrlEnvironment(Protocol):
    """One environment."""

    def reset(self, **row: object) -> str | None:
        """Begins an episode from a row of the data set."""
        ...

    def get_reward(self) -> float:
        """The reward of the episode."""
        ...

    def __getattr__(self, tool: str) -> Callable[..., str]:
        """Each tool of the task is a further method."""
        ...


Factory: TypeAlias = Callable[[], TrlEnvironment]


def trl_environments(
    stage: Stage, task: str | Task, setting: EpisodeSetting | None = None
) -> Factory:
    """The factory to give to TRL's trainer as ``environment_factory``.

    For example::

        with Stage("sqlite:///training.db") as stage:
            trainer = GRPOTrainer(
                model=...,
                train_dataset=rows,
                environment_factory=trl_environments(stage, "travel"),
            )
            trainer.train()

    A row has the columns ``problem`` (required), ``persona``, ``seed`` and ``repeat``, see ``Episode.reset``;
    other columns do not matter. Members of a group get the same row, and so the same beginning.

    Args:
        stage: plays the episodes; it has to be entered for as long as they are used.
        task: the task, or its name.
        setting: the setting of all episodes.

    Raises:
        InvalidInput: the task is unknown, or one of its actions has a name that TRL cannot use.
    """
    found = find_task(task) if isinstance(task, str) else task
    given = setting or EpisodeSetting()
    methods: dict[str, object] = {}
    for tool in _tools(stage, found, given):
        if tool.name in _OWN or not tool.name.isidentifier() or tool.name.startswith("_"):
            raise InvalidInput(f"TRL cannot call an action named {tool.name!r}: rename it")
        methods[tool.name] = _method(tool)
    made = type("DuologEnvironment", (_Environment,), methods)
    return lambda: made(stage, found, given)


class _Environment:
    """One environment, without its tools; each factory adds those of its task in a subclass."""

    def __init__(self, stage: Stage, task: Task, setting: EpisodeSetting) -> None:
        self._task = task
        self._episode = BlockingEpisode(stage, setting).__enter__()
        self._calls = 0
        self._over = True

    def reset(self, **row: object) -> str | None:
        problem = row.get("problem")
        if problem is None:
            raise InvalidInput("each row of the data set needs a column 'problem', e.g. '0'")
        seen = self._episode.reset(
            self._task,
            str(problem),
            persona=str(row.get("persona") or "proactive"),
            seed=_whole(row, "seed", 0),
            repeat=_whole(row, "repeat", 1),
        )
        self._over = seen.done
        return seen.text

    def get_reward(self) -> float:
        if not self._over:  # the model called no tool: its rollout is over
            self._episode.leave()
            self._over = True
        total = self._episode.reward.total
        return math.nan if total is None else total

    def _call(self, name: str, arguments: Mapping[str, object]) -> str:
        if self._over:
            return "The session is over."
        self._calls += 1
        given = {key: value for key, value in arguments.items() if value is not None}
        text = msgspec.json.encode(given).decode()
        seen = self._episode.step(ToolCall(id=str(self._calls), name=name, arguments=text))
        self._over = seen.done
        return _told(seen)


def _told(seen: Observation) -> str:
    return seen.text or "done"


def _whole(row: Mapping[str, object], name: str, default: int) -> int:
    value = row.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(f"column {name!r} holds {value!r}, and has to hold whole numbers")
    return value


def _tools(stage: Stage, task: Task, setting: EpisodeSetting) -> tuple[Tool, ...]:
    """The tools of a task, from the beginning of an episode that is not recorded in the stage's log."""
    user = next(iter(task.users), "proactive")
    persona = "proactive" if "proactive" in task.users else user
    with Stage() as aside, BlockingEpisode(aside, setting) as episode:
        return episode.reset(task, task.instances(1, 0)[0], persona=persona).tools


def _method(tool: Tool) -> Callable[..., str]:
    properties = tool.parameters.get("properties")
    required = tool.parameters.get("required")
    needed = required if isinstance(required, list | tuple) else ()
    fields = dict(properties) if isinstance(properties, Mapping) else {}
    ordered = sorted(fields, key=lambda name: name not in needed)

    def method(self: _Environment, *args: object, **arguments: object) -> str:
        return self._call(tool.name, dict(zip(ordered, args, strict=False)) | arguments)

    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    lines = [" ".join((tool.description or tool.name).split()), "", "Args:"]
    annotations: dict[str, object] = {"return": str}
    for name in ordered:
        schema = fields[name]
        kind = _type(schema)
        annotations[name] = kind if name in needed else kind | None
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if name in needed else None,
                annotation=annotations[name],
            )
        )
        lines.append(f"    {name}: {_about(schema) or name}")
    if not ordered:
        lines = lines[:1]
    lines += [
        "",
        "Returns:",
        "    What followed: the outcome, and what others said or did meanwhile.",
    ]
    method.__name__ = method.__qualname__ = tool.name
    method.__doc__ = "\n".join(lines)
    method.__annotations__ = annotations
    method.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    return method


def _type(schema: JSON) -> type:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    found = _TYPES.get(kind) if isinstance(kind, str) else None
    return found if isinstance(found, type) else str


def _about(schema: JSON) -> str:
    said = schema.get("description") if isinstance(schema, Mapping) else None
    return " ".join(str(said or "").split())
