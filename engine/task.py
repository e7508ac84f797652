"""The protocol of tasks: what agents and users collaborate on, found by entry point.

A task defines its instances, its agents and users, and the setup of a session; the engine does not.
A plug-in registers a ``TaskFactory`` in the entry-point group ``duolog.tasks``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

import msgspec

from .._version import __version__
from . import codec
from .errors import InvalidInput
from .events import JSON, Participant, SessionOpened
from .loading import LoadedFrom, entry_points, load, names_code
from .models.gateway import Models
from .models.prompting.actions import OfferedAction, submit_action
from .models.prompting.conversation import ModelUse
from .models.rehearsal import Rehearsal
from .plugins import PluginCall
from .scorers.runner import StopRule
from .session.actors import Actor
from .session.limits import Limits
from .session.runner import Session
from .session.time.clock import Clock, RealClock, VirtualClock
from .session.time.timing import Timing
from .text import suggestion

__all__ = (
    "NOBODY",
    "AgentVariant",
    "Brief",
    "Cell",
    "FoundTask",
    "OwnPart",
    "Setting",
    "Task",
    "TaskFactory",
    "find_task",
    "kind_of_agent",
    "locate_task",
    "opening",
    "session_clock",
    "session_id",
    "session_seed",
)

GROUP = "duolog.tasks"

NOBODY = "none"
"""The user of an automated run."""


def kind_of_agent(name: str) -> str:
    """The kind of an agent's name: ``adaptive`` of ``adaptive:trips``."""
    return name.partition(":")[0]


class OutputForm(msgspec.Struct, frozen=True, kw_only=True):
    """How models give an output that is a text of an exact form: by its parts, so that its form is not
    what is measured.

    Attributes:
        schema: JSON Schema of the parts.
        write: writes the text of parts that fit the schema; raises ``InvalidInput`` and says what to
            fix.
        read: the parts of a text.
    """

    schema: Mapping[str, JSON]
    write: Callable[[JSON], str]
    read: Callable[[str], JSON]


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a task for model-backed actors, in addition to the request and the actions.

    Attributes:
        description: what the task is about, for all actors.
        output: what the shared output is, and its required form.
        schema: JSON Schema of the output's content.
        media_type: the media type of the output.
        form: how models give the output, if not as its content.
    """

    description: str
    output: str
    schema: Mapping[str, JSON] = msgspec.field(default_factory=lambda: {"type": "string"})
    media_type: str = "text/plain"
    form: OutputForm | None = None

    @property
    def prompts(self) -> JSON:
        """All that models are shown of it, for digests."""
        parts = None if self.form is None else self.form.schema
        return [self.description, self.output, self.schema, self.media_type, parts]


class Cell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cell of an experiment, and one instance in it: an agent, a user and a problem.

    Attributes:
        agent: kind of agent.
        user: kind of user, e.g. a persona.
        instance: which instance of the task; the same in all cells.
        seed: the seed of the world and of all randomness; it chooses the problems.
        model: behind the agent; None for the rules that the task ships.
        user_model: behind the simulated user; None likewise.
        judge_model: behind the judges; None for none.
        repeat: number of the repetition, from 1: each draws other randomness for the session.
    """

    agent: str
    user: str
    instance: str
    seed: int
    model: str | None = None
    user_model: str | None = None
    judge_model: str | None = None
    repeat: int = 1

    @property
    def kind(self) -> str:
        """The kind of agent, without the settings that a variant has behind a colon."""
        return kind_of_agent(self.agent)

    @property
    def models(self) -> Mapping[str, str]:
        """The models by role: ``agent``, ``user``, ``judge``."""
        named = {"agent": self.model, "user": self.user_model, "judge": self.judge_model}
        return {who: model for who, model in named.items() if model is not None}


class OwnPart(msgspec.Struct, frozen=True):
    """A custom agent or user from a file or module, which the task does not define.

    Attributes:
        actor: plays it.
        origin: the file or module that it was loaded from.
    """

    actor: Actor
    origin: LoadedFrom


class AgentVariant(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of agent with specific settings, which cells name as ``KIND:SETTING``.

    Attributes:
        settings: as they are recorded; see ``agents.settings``.
        origin: the file that they come from; None if the name itself contains them.
    """

    settings: Mapping[str, JSON]
    origin: LoadedFrom | None = None


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that all cells of an experiment share.

    Attributes:
        timing: how long things take.
        limits: when to close a session.
        stop: makes the rule of a session (by its id) that decides on stops to enforce.
        config: recorded in every opening too, e.g. the parameters of ``stop``.
        models: reaches the models that cells name.
        uses: how some models are asked, by their names.
        rehearsal: lets the task's rules answer in place of the models; see ``Rehearsal``.
        person: a real person, who plays the human in place of a simulated user; the session then
            runs on a real clock.
        task_origin: the file or module that the task was loaded from; None for an installed task.
        agents: agents in addition to the task's, by the kind that cells name.
        users: users in addition to the task's, likewise.
        variants: agents of the task with specific settings, by the name that cells use.
    """

    timing: Timing = Timing()
    limits: Limits = Limits()
    stop: Callable[[str], StopRule] | None = None
    config: Mapping[str, JSON] = {}
    models: Models | None = None
    uses: Mapping[str, ModelUse] = {}
    rehearsal: Rehearsal | None = None
    person: Actor | None = None
    task_origin: LoadedFrom | None = None
    agents: Mapping[str, OwnPart] = {}
    users: Mapping[str, OwnPart] = {}
    variants: Mapping[str, AgentVariant] = {}

    def use(self, model: str) -> ModelUse:
        """How a model is asked."""
        return self.uses.get(model) or ModelUse(model=model)

    def reach(self, model: str) -> Models:
        """The ``Models`` through which to reach a model.

        Raises:
            InvalidInput: the setting has none.
        """
        if self.models is None:
            raise InvalidInput(f"the setting lacks a client to reach model {model!r}")
        return self.models

    def recorded(self, cell: Cell) -> Mapping[str, JSON]:
        """A cell's models and its agent's variant, as recorded in ``SessionOpened.config``."""
        used = {who: msgspec.to_builtins(self.use(model)) for who, model in cell.models.items()}
        variant = self.variants.get(cell.agent)
        return {
            **({"models": used} if used else {}),
            **({"variant": msgspec.to_builtins(variant)} if variant is not None else {}),
        }

    def loaded_from(self, cell: Cell) -> Mapping[str, JSON]:
        """The sources of a cell's task, agent and user, as recorded."""
        agent, user = self.agents.get(cell.agent), self.users.get(cell.user)
        origins = {
            "task": self.task_origin,
            "agent": agent and agent.origin,
            "user": user and user.origin,
        }
        found = {what: msgspec.to_builtins(one) for what, one in origins.items() if one is not None}
        return {"loaded_from": found} if found else {}


class Task(Protocol):
    """A task that sessions can be run on."""

    @property
    def name(self) -> str:
        """As it is named on the command line."""
        ...

    @property
    def description(self) -> str:
        """One line that describes the task."""
        ...

    @property
    def agents(self) -> Mapping[str, str]:
        """Kinds of agents, each with a one-line description."""
        ...

    @property
    def users(self) -> Mapping[str, str]:
        """Kinds of users, each with a one-line description."""
        ...

    def automated(self, agent: str) -> bool:
        """Whether an agent works without a collaborating human: the automated baseline."""
        ...

    def instances(self, count: int, seed: int) -> list[str]:
        """Names of the first ``count`` instances under a seed; all of them if there are fewer.

        Raises:
            InvalidInput: there are fewer, if the task would rather refuse.
        """
        ...

    def session(self, cell: Cell, setting: Setting) -> Session:
        """The session of a cell, ready to run.

        Raises:
            InvalidInput: there is no such agent, user or instance.
        """
        ...


def session_id(task: str, cell: Cell, *played_by: str) -> str:
    """The id of a cell's session: readable, and a digest of all that makes it this session.

    The same cell run again thus finds the session that the log holds.

    Args:
        task: name of the task, and what tells apart its data.
        cell: the cell.
        played_by: models and the like.
    """
    digest = codec.digest([task, cell, list(played_by)])[:10]
    model = "" if cell.model is None else f"{_UNFIT.sub('-', cell.model)}-"
    agent = _UNFIT.sub("-", cell.agent)
    return f"{task}-{cell.instance}-{agent}-{model}{cell.user}-{digest}"


def session_seed(cell: Cell, *data: str) -> int:
    """The seed of a cell's session: the same for all agents and users, different for each repeat.

    Args:
        cell: the cell.
        data: texts that identify the task or its data.
    """
    repeats = [] if cell.repeat == 1 else [cell.repeat]
    return int(codec.digest([cell.seed, *data, cell.instance, *repeats])[:8], 16)


def session_clock(setting: Setting) -> Clock:
    """The clock of a session: a real one if a real person plays, else a virtual one."""
    return VirtualClock() if setting.person is None else RealClock()


def opening(
    task: str,
    cell: Cell,
    setting: Setting,
    participants: Sequence[Participant],
    *,
    request: str,
    private: Mapping[str, JSON],
    utility: str,
    judge: str,
    seed: int,
    problem: str | None = None,
    config: Mapping[str, JSON] = {},
) -> SessionOpened:
    """The opening of a cell's session, with all that resuming, reports and chats go by.

    Args:
        task: name of the task.
        cell: the cell.
        setting: shared by all cells.
        participants: the participants of the session; without a human it is an automated run.
        request: the initial request. It is recorded here if no human sends it.
        private: what only some may see, by participant: the human's wishes, a scorer's data.
        utility: whose ``UtilityScored`` counts, a scorer's name or ``name@version``.
        judge: whose ``ProgressRated`` counts, likewise, or ``human``; none in an automated run.
        seed: the seed of the session.
        problem: which problem it is: see ``problem.problem_key``.
        config: what else to record of how it was set up.
    """
    alone = all(one.role != "human" for one in participants)
    return SessionOpened(
        task=task,
        instance=cell.instance,
        participants=tuple(participants),
        clock=session_clock(setting).name,
        seed=seed,
        request=request if alone else None,
        config={
            "group": {"agent": cell.agent, "user": NOBODY if alone else cell.user},
            "cell": msgspec.to_builtins(cell),
            "baseline": alone,
            "judge": "none" if alone else judge,
            "utility": utility,
            "timing": msgspec.to_builtins(setting.timing),
            "limits": msgspec.to_builtins(setting.limits),
            **config,
            **setting.recorded(cell),
            **setting.loaded_from(cell),
            **setting.config,
        },
        private=private,
        problem=problem,
        package=__version__,
    )


_UNFIT = re.compile(r"[^\w.]+")
"""Characters in names of models and agents that are unsuitable for the id of a session."""


class TaskFactory(Protocol):
    """The factory that a plug-in registers: makes its task, on a data set if one is given."""

    def __call__(self, dataset: str | None = None) -> Task:
        """The task.

        Raises:
            InvalidInput: the data set cannot be used.
        """
        ...


class FoundTask(msgspec.Struct, frozen=True):
    """A task, and the file or module that it was loaded from; None for one that is installed."""

    task: Task
    origin: LoadedFrom | None = None


def find_task(name: str, dataset: str | None = None) -> Task:
    """The task with this name, from an installed package or from a user's file or module.

    Args:
        name: the name of the entry point; or ``file.py:Name`` or ``module:Name``.
        dataset: path of the data for the task's instances; None for the task's own.

    Raises:
        InvalidInput: the task does not exist, the name is ambiguous, or the data set cannot be used.
    """
    return locate_task(name, dataset).task


def locate_task(name: str, dataset: str | None = None, *, digest: str | None = None) -> FoundTask:
    """The task with this name and its source; see ``find_task``.

    Args:
        name: as for ``find_task``.
        dataset: likewise.
        digest: that the file has to have, if any.

    Raises:
        InvalidInput: likewise, or the file has another digest.
    """
    if names_code(name):
        loaded = load(name, digest=digest)
        return FoundTask(_task_of(loaded.value, dataset, name), loaded.origin)
    found = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if not found:
        known = {entry.name for entry in entry_points(group=GROUP)}
        file = f"{name}.py"
        hint = f"; the one in a file is named {file}:NAME" if Path(file).is_file() else ""
        raise InvalidInput(f"unknown task {name!r}{suggestion(name, known)}{hint}")
    if len({entry.value for entry in found}) > 1:
        packages = ", ".join(sorted(entry.value for entry in found))
        raise InvalidInput(f"several packages offer a task {name!r}: {packages}")
    with PluginCall(f"task {name!r}"):
        return FoundTask(_task_of(found[0].load(), dataset, name))


_PARTS = ("name", "description", "agents", "users", "automated", "instances", "session")
"""Attributes that a task must have."""


def _task_of(value: object, dataset: str | None, name: str) -> Task:
    """A task, or the one that a class or function makes.

    Raises:
        InvalidInput: it is none, and makes none.
    """
    made = inspect.isclass(value) or (callable(value) and not hasattr(value, "session"))
    factory = cast("Callable[..., object]", value) if made else None
    if dataset is not None and not (factory and inspect.signature(factory).parameters):
        raise InvalidInput(f"task {name} takes no data set: leave --dataset out")
    if factory is not None:
        value = factory() if dataset is None else factory(dataset)
    missing = [part for part in _PARTS if not hasattr(value, part)]
    if missing:
        raise InvalidInput(f"{name} is not a task: it lacks {', '.join(missing)}")
    return cast("Task", value)


def output_action(brief: Brief) -> OfferedAction:
    """How an actor on a model submits the output of a task: as its content, or by its parts."""
    if brief.form is None:
        return submit_action(brief.schema, brief.media_type)
    return submit_action(brief.form.schema, brief.media_type, brief.form.write)
