"""Finds tasks, agents and users by name, and those that played in a recorded session.

What foreign code raises becomes one line, which says where in its file it was raised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol, final, runtime_checkable

import msgspec

from ..agents.external.address import USUAL_TERMS, ExternalTerms, names_external, read_address
from ..agents.habits import HABITS, read_habits
from ..agents.kinds import KINDS
from ..agents.rules_file import read_rules
from ..agents.settings import AgentSettings
from ..engine import codec
from ..engine.errors import DuologError, InvalidInput
from ..engine.events import SessionOpened
from ..engine.loading import Loaded, LoadedFrom, entry_points, load, names_code
from ..engine.plugins import PluginCall, error_with_place, failure_of
from ..engine.redacting import redaction_in
from ..engine.scorers.protocol import Scorer
from ..engine.session.actors import actor_of
from ..engine.session.runner import Session
from ..engine.settings import settings_text
from ..engine.task import (
    AgentVariant,
    Brief,
    Cell,
    FoundTask,
    OwnPart,
    Setting,
    Task,
    kind_of_agent,
    locate_task,
)
from ..engine.text import suggestion
from ..users.personas import is_persona_file, read_persona

__all__ = (
    "OwnParts",
    "RescorableTask",
    "default_agents",
    "default_users",
    "guarded_task",
    "installed_tasks",
    "kind_of",
    "named_task",
    "names_variant",
    "origins_of",
    "own_parts",
    "recorded_part",
    "recorded_task",
    "recorded_variants",
    "session_of",
    "user_kind",
    "variant_name",
    "variants_of",
)


@runtime_checkable
class RescorableTask(Protocol):
    """A task that can score a recorded session."""

    def scorers(self, opened: SessionOpened) -> Sequence[Scorer]:
        """The scorers of a session with this opening.

        Raises:
            InvalidInput: the data that it was run on are not available.
        """
        ...


class OwnParts(msgspec.Struct, frozen=True, kw_only=True):
    """What of an experiment came out of files or modules; see ``Setting``."""

    task_origin: LoadedFrom | None = None
    agents: Mapping[str, OwnPart] = {}
    users: Mapping[str, OwnPart] = {}
    variants: Mapping[str, AgentVariant] = {}

    @property
    def own_agents(self) -> tuple[str, ...]:
        """The names of the agents that the task does not list."""
        return (*self.agents, *self.variants)

    def put_into(self, setting: Setting) -> Setting:
        """The setting, with these parts in it."""
        return msgspec.structs.replace(
            setting,
            task_origin=self.task_origin,
            agents=self.agents,
            users=self.users,
            variants=self.variants,
        )


@contextmanager
def _own_code(what: str) -> Iterator[None]:
    """Turns what foreign code raises into an error of one line."""
    try:
        with PluginCall(what):
            yield
    except Exception as error:
        raised = failure_of(error)
        if isinstance(raised, DuologError):
            raise
        text = f"{type(raised).__name__}: {error_with_place(raised)}"
        raise InvalidInput(f"{what}: {text}") from error


@final
class _Guarded:
    """A foreign task, whose errors are of one line."""

    def __init__(self, task: Task, name: str) -> None:
        self._task = task
        self._what = f"task {name}"
        with _own_code(self._what):
            self.name = task.name
            self.description = task.description
            self.agents: Mapping[str, str] = dict(task.agents)
            self.users: Mapping[str, str] = dict(task.users)
            self.default_agents = default_agents(task)
            self.default_users = default_users(task)
            self.brief = brief_of(task)
        if not self.name:
            raise InvalidInput(f"{self._what} has an empty name")

    def automated(self, agent: str) -> bool:
        with _own_code(self._what):
            return self._task.automated(agent)

    def instances(self, count: int, seed: int) -> list[str]:
        with _own_code(self._what):
            return self._task.instances(count, seed)

    def session(self, cell: Cell, setting: Setting) -> Session:
        with _own_code(self._what):
            session = self._task.session(cell, setting)
        if not isinstance(session, Session):
            raise InvalidInput(
                f"{self._what}: its session is not a Session, but {type(session).__name__}"
            )
        return session

    def scorers(self, opened: SessionOpened) -> Sequence[Scorer]:
        if not isinstance(self._task, RescorableTask):
            return ()
        with _own_code(self._what):
            return self._task.scorers(opened)


def named_task(name: str, dataset: str | None = None, *, digest: str | None = None) -> FoundTask:
    """The task of a name, or of ``file.py:Name`` or ``module:Name``.

    Args:
        name: the name of the task.
        dataset: data of the task's own kind; None for the task's own.
        digest: that its file has to have, if any.

    Raises:
        InvalidInput: there is none, or it cannot be used.
    """
    with _own_code(f"task {name}"):
        found = locate_task(name, dataset, digest=digest)
    if type(found.task).__module__.startswith(f"{__name__.partition('.')[0]}.examples."):
        return found
    return FoundTask(_Guarded(found.task, name), found.origin)


def guarded_task(task: Task) -> FoundTask:
    """A task that a program has made, whose errors are of one line.

    Raises:
        InvalidInput: it cannot be used.
    """
    return FoundTask(_Guarded(task, getattr(task, "name", "") or type(task).__name__), None)


def installed_tasks() -> list[str]:
    """The names of the tasks that are installed."""
    return sorted({entry.name for entry in entry_points(group="duolog.tasks")})


def default_agents(task: Task) -> tuple[str, ...]:
    """The agents of a run that names none: the task's ``default_agents``, or all that it has."""
    return tuple(getattr(task, "default_agents", None) or task.agents)


def default_users(task: Task) -> tuple[str, ...]:
    """The users of a run that names none: the task's ``default_users``, or all that it has."""
    return tuple(getattr(task, "default_users", None) or task.users)


def session_of(task: Task, cell: Cell, setting: Setting) -> Session:
    """The session of a cell, in which those who were given from outside of the task do play.

    Raises:
        InvalidInput: the task has no seat for them, or cannot make the session.
    """
    session = task.session(cell, setting)
    playing = [player.actor for player in session.players]
    if setting.person is not None and setting.person not in playing:
        raise InvalidInput(
            f"task {task.name!r} does not seat a person: in its session, where setting.person is "
            "not None, let the human be Player(Participant(name='user', role='human'), "
            "setting.person) and the clock session_clock(setting)"
        )
    own = {"agent": setting.agents.get(cell.agent), "user": setting.users.get(cell.user)}
    agent = own["agent"]
    if setting.rehearsal is not None and agent is not None and names_external(agent.origin.name):
        raise InvalidInput(
            f"what {cell.agent} would do cannot be estimated: it would have to be run"
        )
    for role, part in own.items():
        if role == "user" and (setting.person is not None or task_alone(session)):
            continue
        if part is not None and part.actor not in playing:
            raise InvalidInput(
                f"task {task.name!r} does not seat other {role}s: in its session, let "
                f"setting.{role}s[cell.{role}].actor play where cell.{role} is in setting.{role}s"
            )
    return msgspec.structs.replace(session, redact=redaction_in(setting.config.get("redact")))


def task_alone(session: Session) -> bool:
    """Whether no actor plays the human."""
    return all(player.participant.role != "human" for player in session.players)


def kind_of(name: str) -> str:
    """The name of an agent or user: ``Name`` of ``file.py:Name``; ``exec-name`` of ``exec:name.py``.

    A variant of a kind of agent is called as ``variants.variant_name`` says.
    """
    if names_variant(name):
        return variant_name(name)
    if names_external(name):
        return read_address(name).name
    return name.rpartition(":")[2] if names_code(name) else name


def user_kind(name: str) -> str:
    """The name of a user, likewise; of a file in TOML, the persona that it describes.

    Raises:
        InvalidInput: there is no such persona.
    """
    return read_persona(name) if is_persona_file(name) else kind_of(name)


def own_parts(
    role: str,
    names: Sequence[str] | None,
    task: Task,
    *,
    terms: ExternalTerms = USUAL_TERMS,
) -> tuple[tuple[str, ...] | None, dict[str, OwnPart]]:
    """Kinds of agents or users as they were named, and those among them that are not the task's.

    They come out of files, or of packages: by entry points in ``duolog.agents`` and ``duolog.users``.
    Agents may be external ones as well; see ``read_address``.

    Args:
        role: ``agent`` or ``user``.
        names: as they were named; None if none was.
        task: what they are to play in.
        terms: how external agents are run.

    Returns:
        The names, in which ``file.py:Name`` is ``Name``, and a file in TOML the persona in it; and the parts that were loaded, by these.

    Raises:
        InvalidInput: one of them cannot be loaded, or two have the same name.
    """
    if names is None:
        return None, {}
    known = task.agents if role == "agent" else task.users
    kinds: list[str] = []
    parts: dict[str, OwnPart] = {}
    for name in names:
        kind = user_kind(name) if role == "user" else kind_of(name)
        if role == "agent" and names_variant(name):
            pass  # it is the task's; see ``variants_of``
        elif names_external(name):
            parts[kind] = _external(role, name, task, terms)
        elif names_code(name):
            parts[kind] = _part(load(name), name)
        elif kind not in known:
            parts.update(_installed(role, kind))
        if kind in parts and kind in known:
            raise InvalidInput(f"the task has its own {role} {kind!r}: {name} needs another name")
        if kind in kinds:
            raise InvalidInput(f"two {role}s are called {kind!r}: a report would mix them up")
        kinds.append(kind)
    return tuple(kinds), parts


def _installed(role: str, name: str) -> dict[str, OwnPart]:
    """The agent or user that an installed package offers under a name; nothing if none does."""
    for entry in entry_points(group=f"duolog.{role}s"):
        if entry.name == name:
            with _own_code(f"{role} {name}"):
                actor = actor_of(entry.load(), name)
            return {name: OwnPart(actor, LoadedFrom(entry.value, ""))}
    return {}


def _external(role: str, name: str, task: Task, terms: ExternalTerms) -> OwnPart:
    """An external agent, which is told of the task what agents on models are told of it.

    Raises:
        InvalidInput: it is named as a user, or its address is not valid.
    """
    if role != "agent":
        raise InvalidInput(f"{name} is an agent, and cannot be a {role}")
    from ..agents.external.seat import TIMEOUT, external_agent

    timeout = terms.timeout
    if timeout is not None and not timeout > 0:
        raise InvalidInput(f"agent_timeout must be more than 0 seconds, got {timeout:g}")
    agent = external_agent(name, timeout=TIMEOUT if timeout is None else timeout, passed=terms.env)
    return OwnPart(agent.actor(brief_of(task)), LoadedFrom(name, codec.digest(name)))


def brief_of(task: Task) -> Brief:
    """The brief of a task: its own brief, if it has one as ``brief``; else its description."""
    found = getattr(task, "brief", None)
    return found if isinstance(found, Brief) else Brief(description=task.description, output="")


def _part(loaded: Loaded, name: str) -> OwnPart:
    with _own_code(name):
        return OwnPart(actor_of(loaded.value, name), loaded.origin)  # type: ignore[arg-type]


def origins_of(opened: SessionOpened) -> dict[str, LoadedFrom]:
    """The origins of the task, the agent and the user of a recorded session.

    Raises:
        InvalidInput: the log says something else there.
    """
    try:
        return msgspec.convert(opened.config.get("loaded_from", {}), dict[str, LoadedFrom])
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the session does not say what it was loaded from: {error}") from error


def recorded_task(
    opened: SessionOpened, given: str | None = None, dataset: str | None = None
) -> FoundTask:
    """The task that a recorded session was run on.

    Args:
        opened: the opening of the session.
        given: the name of the task, if given; None to use the one in the log.
        dataset: the data that the session was run on, if any.

    Raises:
        InvalidInput: it is not here, its file has changed since, or another task is given.
    """
    if given is not None:
        found = named_task(given, dataset)
        if found.task.name != opened.task:
            raise InvalidInput(
                f"the session is of the task {opened.task!r}, but {given} is {found.task.name!r}"
            )
        return found
    origin = origins_of(opened).get("task")
    if origin is None:
        try:
            return named_task(opened.task, dataset)
        except InvalidInput as error:
            raise InvalidInput(
                f"{error}. If it is in a file, say so: --task FILE.py:NAME"
            ) from None
    try:
        return named_task(origin.name, dataset, digest=origin.digest)
    except InvalidInput as error:
        raise InvalidInput(
            f"the session was run on the task of {origin.name}, and {error}; pass the task's path with --task, or "
            f"accept the current version with --task {origin.name}"
        ) from None


def recorded_part(
    opened: SessionOpened, role: str, task: Task, *, terms: ExternalTerms = USUAL_TERMS
) -> OwnPart | None:
    """The agent or user of a recorded session that is not the task's; None if none was.

    Args:
        opened: the opening of the session.
        role: ``agent`` or ``user``.
        task: that they play in.
        terms: how external agents are run.

    Raises:
        InvalidInput: it is not here, or its file has changed since.
    """
    origin = origins_of(opened).get(role)
    if origin is None:
        return None
    if names_external(origin.name):
        return _external(role, origin.name, task, terms)
    try:
        return _part(load(origin.name, digest=origin.digest or None), origin.name)
    except InvalidInput as error:
        raise InvalidInput(
            f"the session was run with the {role} of {origin.name}, and {error}: run this in the "
            f"folder of that file, as it was then"
        ) from None


_TUNED: Final = "adaptive"


def names_variant(name: str) -> bool:
    """Whether a name is a kind of agent followed by its settings."""
    return ":" in name and kind_of_agent(name) in KINDS


def variant_name(name: str) -> str:
    """What cells and reports call it: a file by its name without folders and ending."""
    kind, _, setting = name.partition(":")
    return f"{kind}:{Path(setting).stem}" if _is_file(kind, setting) else name


def variants_of(names: Sequence[str] | None, task: Task) -> dict[str, AgentVariant]:
    """The variants among the names of agents.

    Args:
        names: as they were given on the command line; None if none was.
        task: what they are to play in.

    Raises:
        InvalidInput: a file holds no rules for this task, there is no such habit, or the task has no
            such agent.
    """
    found: dict[str, AgentVariant] = {}
    for name in names or ():
        if names_variant(name):
            kind = kind_of_agent(name)
            if kind not in task.agents:
                raise InvalidInput(f"unknown agent {kind!r} to vary{suggestion(kind, task.agents)}")
            found[variant_name(name)] = _variant(name, task)
    return found


def recorded_variants(opened: SessionOpened) -> dict[str, AgentVariant]:
    """The variant that played in a recorded session, by its name; empty if none did.

    Raises:
        InvalidInput: the log says something else there.
    """
    config = opened.config
    if "variant" not in config:
        return {}
    try:
        cell = msgspec.convert(config.get("cell"), Cell)
        return {cell.agent: msgspec.convert(config["variant"], AgentVariant)}
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the session does not say which agent played: {error}") from error


def _variant(name: str, task: Task) -> AgentVariant:
    kind, _, setting = name.partition(":")
    if not _is_file(kind, setting):
        try:
            habits = read_habits(setting)
        except InvalidInput as error:
            raise InvalidInput(f"{name}: {error}") from None
        return _recorded(AgentSettings(habits=habits))
    path = Path(setting)
    settings = AgentSettings(rules=read_rules(path, task=task.name).rules)
    return _recorded(settings, LoadedFrom(path.name, codec.digest(settings_text(path))))


def _recorded(settings: AgentSettings, origin: LoadedFrom | None = None) -> AgentVariant:
    return AgentVariant(settings=msgspec.to_builtins(settings), origin=origin)


def _is_file(kind: str, setting: str) -> bool:
    """Whether the part after the colon is a file; only the adaptive agent takes one."""
    habits = {part.removeprefix("no-") for part in setting.split("+")}
    return kind == _TUNED and not habits <= HABITS.keys()
