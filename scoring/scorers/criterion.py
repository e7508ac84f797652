"""A criterion of a rubric, and rubrics in TOML files."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ...engine.errors import InvalidInput
from ...engine.settings import mismatch, read_settings

__all__ = ("Criterion", "read_rubric")


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """One criterion of a rubric.

    Attributes:
        name: short, unique in its rubric, without a colon or a line break.
        description: the criterion in words, for the model.
        weight: its weight in the utility, relative to the other criteria.

    Raises:
        InvalidInput: a name that is ambiguous in a line of the reply, or a weight of 0 or less.
    """

    name: str
    description: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not self.name.strip() or ":" in self.name or "\n" in self.name:
            raise InvalidInput(f"a criterion cannot be called {self.name!r}")
        if not self.weight > 0.0:  # so that NaN is refused too
            raise InvalidInput(f"criterion {self.name!r} needs a weight above 0")


class _Rubric(msgspec.Struct, forbid_unknown_fields=True):
    criterion: tuple[Criterion, ...]


def read_rubric(path: Path) -> tuple[Criterion, ...]:
    """A rubric from a file in TOML: a table ``[[criterion]]`` for each, with ``name``,
    ``description`` and, if it is not 1, ``weight``.

    Raises:
        InvalidInput: the file cannot be read, or holds no rubric.
    """
    data = read_settings(path)
    try:
        criteria = msgspec.convert(data, _Rubric).criterion
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{path} is not a rubric: {mismatch(error)}") from error
    if not criteria:
        raise InvalidInput(f"{path} is not a rubric: it lacks a criterion")
    return criteria
