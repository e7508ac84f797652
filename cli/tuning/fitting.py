"""From a task to a file of rules: the search with its progress, and what it is written down with."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from types import TracebackType
from typing import Self, final

import msgspec
from rich.console import Console

from ..._version import __version__
from ...agents.rules_file import FittedRules, Fitting
from ...engine.task import Task
from ..text.progress import progress_bar
from .objective import Weights
from .search import Best, search_rules
from .training import Training

__all__ = ("Fit", "fit", "summary")


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """What to fit on.

    Attributes:
        users: kinds of users.
        seeds: of the worlds.
        sessions: instances of each seed, with each kind of user.
        trials: how many rules to try.
        seed: of the search.
        weights: what counts beside utility.
        concurrency: how many sessions run at once; it changes nothing of what is found.
    """

    users: tuple[str, ...]
    seeds: tuple[int, ...]
    sessions: int
    trials: int
    seed: int = 0
    weights: Weights = Weights()
    concurrency: int = 16


async def fit(task: Task, wanted: Fit) -> tuple[FittedRules, Best]:
    """Fits the rules of the adaptive agent; shows its progress on the standard error.

    Raises:
        InvalidInput: the task has no such agent, or a session of it cannot be run.
    """
    training = Training(
        task,
        wanted.users,
        wanted.seeds,
        wanted.sessions,
        weights=wanted.weights,
        concurrency=wanted.concurrency,
    )
    with _TrialProgress(wanted.trials) as progress:
        best = await search_rules(training, wanted.trials, wanted.seed, progress.advance)
    how = Fitting(
        task=task.name,
        scorer=training.scorer,
        duolog=__version__,
        users=wanted.users,
        seeds=wanted.seeds,
        sessions=wanted.sessions,
        trials=wanted.trials,
        optimiser=f"optuna {version('optuna')}, TPE",
        seed=wanted.seed,
        drop=wanted.weights.drop,
        price=wanted.weights.price,
        score=round(best.score, 4),
        utility={user: round(one.utility, 4) for user, one in best.played.items()},
    )
    return FittedRules(rules=best.rules, fitted=how), best


def summary(best: Best) -> Iterator[str]:
    """What was found, a line for each kind of user."""
    for user, one in best.played.items():
        others = ", ".join(f"{other.utility:.3f}" for other in best.others[user])
        beside = f" (one-stage, two-stage: {others})" if others else ""
        yield f"{user}: overall utility {one.utility:.3f}{beside}"
    yield f"score {best.score:+.4f} on the training sessions"


@final
class _TrialProgress:
    """Shows the trials and the best score so far; without a terminal, a line at the end.

    Args:
        total: number of trials.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._console = Console(stderr=True)
        self._bar = progress_bar(self._console)
        self._task = self._bar.add_task("trials", total=total, note="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def advance(self, number: int, best: float | None) -> None:
        """Shows that a trial is done."""
        note = "" if best is None else f"best score {best:+.4f}"
        self._bar.update(self._task, completed=number, note=note)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()
        if kind is None:
            self._console.print(f"{self._total} trials", highlight=False)
