"""Folds of a session's first records, a few of them, from which any moment is reached by reading on."""

from __future__ import annotations

import pickle
from typing import Final, final

from ....scoring.trajectory.fold import TrajectoryFold

__all__ = ("KeptFolds",)

_APART: Final = 2000
_MOST: Final = 16


@final
class KeptFolds:
    """Keeps a fold every so many records. Where they become too many, they lie twice as far apart.

    They are kept in brief, since an object graph is copied slowly. Each is as long as the session was, so that an
    unlimited number of them would take room by the square of its length.

    Args:
        apart: records between two folds at first.
        most: how many are kept.

    Attributes:
        apart: records between two folds.
    """

    def __init__(self, apart: int = _APART, most: int = _MOST) -> None:
        self.apart = apart
        self._most = most
        self._folds: list[tuple[int, bytes]] = []
        self._can = True

    def __len__(self) -> int:
        return len(self._folds)

    def offer(self, number: int, fold: TrajectoryFold) -> None:
        """Keeps the fold of so many records, where it is time to.

        One whose options hold a function of somebody's own cannot be kept: such a session is folded
        from its start.
        """
        if number % self.apart or not self._can:
            return
        try:
            self._folds.append((number, pickle.dumps(fold, pickle.HIGHEST_PROTOCOL)))
        except (pickle.PicklingError, AttributeError):
            self._can = False
        if len(self._folds) > self._most:
            self.apart *= 2
            self._folds = [one for one in self._folds if one[0] % self.apart == 0]

    def last(self, count: int, after: int = 0) -> tuple[int, TrajectoryFold] | None:
        """The last fold of at most so many records, and of how many; None where none is behind ``after``."""
        for number, brief in reversed(self._folds):
            if number <= count:
                return (number, pickle.loads(brief)) if number > after else None
        return None
