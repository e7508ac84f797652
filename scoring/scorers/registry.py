"""Scorers by name, from installed packages and from Python files.

A package offers a scorer by an entry point in the group ``duolog.scorers``: a factory without
arguments, of a ``ScorerPlugin``; or anything that may be in a file, see ``find_scorer``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Final, Protocol, final, runtime_checkable

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import SessionOpened, SnapshotTaken
from ...engine.files import output_text
from ...engine.loading import entry_points, load, names_code
from ...engine.models.gateway import Models
from ...engine.models.prompting.conversation import ModelUse
from ...engine.plugins import error_with_place
from ...engine.rounds import Rounds
from ...engine.scorers.protocol import Scorer
from ...engine.text import suggestion
from .criterion import Criterion
from .utility import Missing, Score, SnapshotUtility, as_score

__all__ = ("GROUP", "ScorerPlugin", "ScoringSetting", "find_scorer", "scorer_names")

GROUP: Final = "duolog.scorers"


class ScoringSetting(msgspec.Struct, frozen=True, kw_only=True):
    """The information available to make a scorer for a recorded session.

    Attributes:
        opened: the session's opening.
        rounds: how rounds are counted.
        models: access to models; None if no model may be called.
        use: which model judges, and how it is called; None likewise.
        criteria: the rubric, for a scorer that goes by one.
    """

    opened: SessionOpened
    rounds: Rounds = "handoff"
    models: Models | None = None
    use: ModelUse | None = None
    criteria: tuple[Criterion, ...] = ()


class ScorerPlugin(Protocol):
    """Makes a scorer for recorded sessions, one by one."""

    @property
    def asks_model(self) -> bool:
        """Whether it needs ``ScoringSetting.models`` and ``use``."""
        ...

    def make(self, setting: ScoringSetting) -> Scorer:
        """The scorer of a session.

        Raises:
            InvalidInput: this session cannot be scored so; says why.
        """
        ...


def scorer_names() -> list[str]:
    """Names of the scorers that installed packages offer, in alphabetical order."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def find_scorer(name: str) -> ScorerPlugin:
    """The scorer of a name, or the one in a file or module: ``file.py:Name``, ``module:Name``.

    ``Name`` is a scorer; or a class or function that makes one, from a ``ScoringSetting`` if it takes
    an argument, else from nothing; or a utility, which is a function of one argument that is annotated
    as ``str``, the text of an output; or a task, whose own utility is meant.

    Raises:
        InvalidInput: there is none, there are several, or the file cannot be loaded.
    """
    if names_code(name):
        loaded = load(name)
        return _Held(name, loaded.value, loaded.origin.digest[:8])
    found = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if not found:
        known = suggestion(name, scorer_names())
        raise InvalidInput(f"unknown scorer {name!r}{known}; your own is file.py:Name")
    if len({entry.value for entry in found}) > 1:
        packages = ", ".join(sorted(entry.value for entry in found))
        raise InvalidInput(f"several packages offer a scorer {name!r}: {packages}")
    value = found[0].load()
    if inspect.isclass(value) or (inspect.isfunction(value) and not signature(value).parameters):
        made = value()
        if isinstance(made, _PluginLike):
            return made
    version = "1" if found[0].dist is None else found[0].dist.version
    return _Held(name, value, version)


@runtime_checkable
class _PluginLike(ScorerPlugin, Protocol):
    """What tells a plug-in from a scorer."""


@runtime_checkable
class _ScorerLike(Protocol):
    """What tells a scorer from a function that makes one."""

    def begin(self, session: str) -> object: ...


@runtime_checkable
class _TaskLike(Protocol):
    """What tells a task from all of these."""

    @property
    def name(self) -> str: ...

    def scorers(self, opened: SessionOpened) -> Sequence[Scorer]: ...


@final
class _Held:
    """A scorer, or a factory of scorers, from a user's file or package."""

    asks_model = False

    def __init__(self, name: str, held: object, version: str) -> None:
        self._name = name
        self._held = held
        self._version = version

    def make(self, setting: ScoringSetting) -> Scorer:
        """The object itself, or what it makes."""
        try:
            scorer = self._made(self._held, setting)
            if getattr(scorer, "ref", None) is None or not isinstance(scorer, _ScorerLike):
                raise TypeError(f"{type(scorer).__name__} is not a scorer: it lacks ref or begin")
        except InvalidInput:
            raise
        except Exception as error:
            raise InvalidInput(f"{self._name}: {error_with_place(error)}") from error
        return scorer  # type: ignore[return-value]  # what it begins shows when it measures

    def _made(self, held: object, setting: ScoringSetting) -> object:
        if not inspect.isclass(held):
            if isinstance(held, _ScorerLike):
                return held
            if isinstance(held, _TaskLike):
                return _of_task(held, setting.opened)
        if not callable(held):
            raise TypeError("neither a scorer nor a function that makes one")
        parameters = list(signature(held).parameters.values())
        if hasattr(held, "scorers"):
            parameters = []  # the class of a task, whose argument would be a data set
        if len(parameters) == 1 and parameters[0].annotation in (str, "str"):
            name = self._name.rpartition(":")[2]
            return SnapshotUtility(name, self._version, _of_text(held))
        made: object = held(setting) if parameters else held()
        if isinstance(made, _TaskLike) and not isinstance(made, _ScorerLike):
            return _of_task(made, setting.opened)
        return made


def _of_task(task: _TaskLike, opened: SessionOpened) -> Scorer:
    """The scorer of a task whose utility counts.

    Raises:
        InvalidInput: the session is of another task, or its task cannot score it.
    """
    if opened.task != task.name:
        raise InvalidInput(f"the session is of the task {opened.task!r}, not of {task.name!r}")
    scorers = task.scorers(opened)
    counts = str(opened.config.get("utility")).partition("@")[0]
    for scorer in [*(one for one in scorers if one.ref.name == counts), *scorers]:
        return scorer
    raise InvalidInput(f"task {task.name!r} lacks a scorer for this session")


def _of_text(
    utility: Callable[..., object],
) -> Callable[[SnapshotTaken, SessionOpened], Score | Missing]:
    def score(snapshot: SnapshotTaken, opened: SessionOpened) -> Score | Missing:
        return as_score(utility(output_text(snapshot)), "the utility")

    return score
