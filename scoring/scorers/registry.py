"""Scorers by name: those that installed packages offer, and those in a Python file of one's own.

A package offers a scorer by an entry point in the group ``duolog.scorers``: a factory without
arguments, of a ``ScorerPlugin``.
"""

from __future__ import annotations

import inspect
import sys
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final, Protocol, final, runtime_checkable

import msgspec

from ...engine.errors import InvalidInput, error_text
from ...engine.events import SessionOpened
from ...engine.models.gateway import Models
from ...engine.models.prompting.conversation import ModelUse
from ...engine.rounds import Rounds
from ...engine.scorers.protocol import Scorer
from .criterion import Criterion

__all__ = ("GROUP", "ScorerPlugin", "ScoringSetting", "find_scorer", "scorer_names")

GROUP: Final = "duolog.scorers"

_SUFFIX: Final = ".py"


class ScoringSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What a scorer may go by when it is made for a recorded session.

    Attributes:
        opened: the session's opening.
        rounds: how rounds are counted.
        models: access to models; None where no model is to be asked.
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
    """The scorer of a name, or the one in a file: ``file.py:Name``.

    ``Name`` is a scorer, or a class or function that makes one: from a ``ScoringSetting`` if it takes
    an argument, else from nothing.

    Raises:
        InvalidInput: there is none, there are several, or the file cannot be loaded.
    """
    path, colon, attribute = name.rpartition(":")
    if colon and path.endswith(_SUFFIX):
        return _FromFile(name, _load(Path(path), attribute))
    found = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if not found:
        known = ", ".join(scorer_names())
        raise InvalidInput(f"there is no scorer {name!r}; there are: {known}, and file.py:Name")
    if len({entry.value for entry in found}) > 1:
        packages = ", ".join(sorted(entry.value for entry in found))
        raise InvalidInput(f"several packages offer a scorer {name!r}: {packages}")
    plugin: ScorerPlugin = found[0].load()()
    return plugin


@runtime_checkable
class _ScorerLike(Protocol):
    """What tells a scorer from a function that makes one."""

    def begin(self, session: str) -> object: ...


@final
class _FromFile:
    """A scorer out of somebody's file."""

    asks_model = False

    def __init__(self, name: str, held: object) -> None:
        self._name = name
        self._held = held

    def make(self, setting: ScoringSetting) -> Scorer:
        """The object itself, or what it makes."""
        scorer: object = self._held
        try:
            if inspect.isclass(scorer) or not isinstance(scorer, _ScorerLike):
                if not callable(scorer):
                    raise TypeError("neither a scorer nor a function that makes one")
                takes = bool(inspect.signature(scorer).parameters)
                scorer = scorer(setting) if takes else scorer()
            ref = getattr(scorer, "ref", None)
            if ref is None or not isinstance(scorer, _ScorerLike):
                raise TypeError(f"{type(scorer).__name__} has no ref or no begin: it is no scorer")
        except InvalidInput:
            raise
        except Exception as error:
            raise InvalidInput(f"{self._name}: {error_text(error)}") from error
        return scorer  # type: ignore[return-value]  # what it begins shows when it measures


def _load(path: Path, attribute: str) -> object:
    if not path.is_file():
        raise InvalidInput(f"cannot read {path}: no such file")
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"cannot load {path}")
    module: ModuleType = module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # where its own classes look for their names
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidInput(f"cannot load {path}: {type(error).__name__}: {error}") from error
    try:
        held: object = getattr(module, attribute)
    except AttributeError:
        raise InvalidInput(f"{path} has no {attribute!r}") from None
    return held
