"""Fits the rules of the adaptive agent to a task.

The value of control rules on training sessions is utility, less the drop and the cost of effort.
Per session i, with the effort in minutes of the human's time:

    v_i = U_i + drop · D@2_i - price · minutes_i

Per kind of user, d is the mean of v_i less that of the better of the one- and the two-stage agent on
the same instances. The score is the mean of d over the kinds of users. A loss counts double, to
avoid rules that serve one kind at the expense of another.

Rules with a good v may still be behind one of the other agents in one quantity. ``Weights.behind``
sets a price on that, for rules that are to be nowhere worse:

    d_i -= behind · (b(U) + b(D@2) + 0.4 · b(minutes))

Here b is how much worse the rules are than the better of the two in that quantity, or 0; minutes count as a
share of the lower ones, so that 5 % of them weigh like 0.02 of utility, and D@2 is averaged over the
rating thresholds 2, 3 and 4.

The score is noisy, a trial costs seconds, and most of the numbers are whole or choices. Optuna's TPE is made
for that, and finds something in tens of trials, where evolution would take hundreds. Trials that
are worse than most after the first kinds of users are not played with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, NamedTuple, final

import msgspec
import numpy as np

from .._version import __version__
from ..agents.rules_file import FittedRules, Fitting
from ..agents.settings import AgentSettings
from ..engine.errors import InvalidInput
from ..engine.log.memory import MemoryLog
from ..engine.scorers.protocol import stream_of
from ..engine.session.simulation import Outcome, SessionFailure, simulate
from ..engine.task import AgentVariant, Cell, Setting, Task
from ..scoring.columns.table import Floats
from ..scoring.comparison.sensitivity import THRESHOLDS
from ..scoring.control_rules import ControlRules
from ..scoring.live import score_sessions
from ..scoring.metrics.formal import formal_values
from ..scoring.metrics.values import Facts, Reading
from ..scoring.trajectory.points import Trajectory
from .parts import session_of

if TYPE_CHECKING:
    from optuna import Trial

    from ..scoring.control_rules import First

__all__ = (
    "BEGIN_WITH",
    "Best",
    "Fit",
    "Played",
    "Training",
    "Weights",
    "fit",
    "played",
    "score",
    "search_rules",
)

_TAU = 2
_MINUTE = 60.0
_SHARE: Final = 0.4  # of utility, that as much time again is worth: 5 % are worth 0.02


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """The weights of the drop and of the human's time.

    Attributes:
        drop: weight of the drop at τ = 2.
        price: utility that a minute of the human's time is worth.
        behind: weight of being worse than one of the other agents in one quantity.
    """

    drop: float = 0.1
    price: float = 0.005
    behind: float = 0.0


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one agent with one kind of user.

    Attributes:
        worth: mean of v.
        utility: mean overall utility.
        drops: mean D@2 at each rating threshold.
        minutes: mean time of the human.
    """

    worth: float
    utility: float
    drops: tuple[float, ...] = ()
    minutes: float = 0.0


def played(trajectories: Iterable[Trajectory], weights: Weights) -> Played:
    """What sessions are worth.

    Raises:
        InvalidInput: the utility of none of them was measured.
    """
    facts = Facts(trajectories)
    values = formal_values(facts, (_TAU,))
    if not values.valued.any():
        raise InvalidInput(
            "no scorer measures utility in these sessions: there is nothing to tune to"
        )
    seconds = facts.columns.effort.get("seconds", np.zeros(len(facts.columns)))
    minutes = np.nan_to_num(seconds) / _MINUTE
    lost = np.nan_to_num(values.stops[_TAU] - values.reference)
    worth = values.overall + weights.drop * lost - weights.price * minutes
    readings = [formal_values(facts, (_TAU,), Reading(least, False)) for least in THRESHOLDS]
    drops = [np.nan_to_num(read.stops[_TAU] - read.reference) for read in readings]

    def average(column: Floats) -> float:
        return float(column[values.valued].mean())

    return Played(
        worth=average(worth),
        utility=average(values.overall),
        drops=tuple(map(average, drops)),
        minutes=average(minutes),
    )


def score(
    rules: Mapping[str, Played], others: Mapping[str, Sequence[Played]], weights: Weights
) -> float:
    """The score of rules.

    Args:
        rules: what came of the adaptive agent, by kind of user.
        others: what came of the agents that it is compared with, likewise; none, if there are none.
        weights: the weights of the terms other than utility.
    """
    gaps: list[float] = []
    for user, one in rules.items():
        compared = others.get(user, ())
        gap = one.worth - max((other.worth for other in compared), default=0.0)
        gaps.append((gap if gap > 0 else 2 * gap) - weights.behind * _behind(one, compared))
    return sum(gaps) / len(gaps)


def _behind(one: Played, others: Sequence[Played]) -> float:
    """How much worse rules are than the better of the other agents, summed over the quantities."""
    if not others:
        return 0.0
    utility = max(other.utility for other in others) - one.utility
    drops = [max(other.drops[at] for other in others) - own for at, own in enumerate(one.drops)]
    least = min(other.minutes for other in others)
    later = one.minutes / least - 1.0 if least else 0.0
    lost = sum(max(drop, 0.0) for drop in drops) / max(len(drops), 1)
    return max(utility, 0.0) + lost + _SHARE * max(later, 0.0)


_ADAPTIVE: Final = "adaptive"
_OTHERS: Final = ("one-stage", "two-stage")


@final
class Training:
    """The training sessions of a task.

    Args:
        task: the task.
        users: kinds of users.
        seeds: the seeds of the worlds.
        sessions: instances of each seed, with each kind of user.
        weights: the weights of the terms other than utility.
        concurrency: how many sessions run at once.

    Attributes:
        scorer: whose utility counts, as the sessions say; empty before any was played.

    Raises:
        InvalidInput: the task has no adaptive agent, or no such user.
    """

    def __init__(
        self,
        task: Task,
        users: Sequence[str],
        seeds: Sequence[int],
        sessions: int,
        *,
        weights: Weights,
        concurrency: int,
    ) -> None:
        if _ADAPTIVE not in task.agents:
            raise InvalidInput(
                f"task {task.name} lacks an adaptive agent, so it has nothing to tune"
            )
        self._task = task
        self._users = users
        self._instances = [(one, seed) for seed in seeds for one in task.instances(sessions, seed)]
        self._weights = weights
        self._concurrency = concurrency
        self.scorer = ""

    @property
    def users(self) -> Sequence[str]:
        """Kinds of users."""
        return self._users

    @property
    def weights(self) -> Weights:
        """The weights of the terms other than utility."""
        return self._weights

    async def rules(self, rules: ControlRules, user: str) -> Played:
        """Plays the adaptive agent by these rules, with one kind of user."""
        name = f"{_ADAPTIVE}:tried"
        settings = msgspec.to_builtins(AgentSettings(rules=rules))
        return await self._play(name, user, {name: AgentVariant(settings=settings)})

    async def others(self, user: str) -> tuple[Played, ...]:
        """Plays the agents that it is compared with."""
        names = [name for name in _OTHERS if name in self._task.agents]
        return tuple([await self._play(name, user, {}) for name in names])

    async def _play(self, agent: str, user: str, variants: Mapping[str, AgentVariant]) -> Played:
        setting = Setting(variants=variants)
        cells = [
            Cell(agent=agent, user=user, instance=instance, seed=seed)
            for instance, seed in self._instances
        ]
        makers = [partial(session_of, self._task, cell, setting) for cell in cells]
        failures: list[str] = []

        def note(outcome: Outcome) -> None:
            if isinstance(outcome, SessionFailure):
                failures.append(f"session {outcome.session} could not be run: {outcome.error}")

        found: list[Trajectory] = []
        async with MemoryLog() as log:
            await simulate(log, makers, concurrency=self._concurrency, on_outcome=note)
            if failures:
                raise InvalidInput(failures[0])
            found = [item async for item in score_sessions(log)]
        self.scorer = self.scorer or stream_of(makers[0]().scorers[0].ref)
        return played(found, self._weights)


_ALWAYS: Final = 12  # no limit, in rounds
_SPENT: Final = (60, 660)  # seconds; the upper end means unlimited
_SHOW: Final = 3  # rounds of questions before an early draft; 0 means none
_AT_ONCE: Final = 5  # questions in one message
_FIRST: Final[tuple[First, ...]] = ("ask", "yield", "follow")
_WARM_UP: Final = 12  # trials before the sampler learns from them, and any is broken off

BEGIN_WITH: Final = (
    ControlRules(measure="seconds"),
    # Does as the two-stage agent does.
    ControlRules(
        questions=_ALWAYS,
        unanswered=4,
        first="ask",
        persist=_ALWAYS,
        insist=_ALWAYS,
        measure="seconds",
        tolerance=_ALWAYS,
    ),
    # The same, but whoever brings progress leads, and those who defer are asked.
    ControlRules(
        questions=_ALWAYS,
        unanswered=4,
        first="follow",
        persist=2,
        insist=_ALWAYS,
        keep=1,
        measure="seconds",
        tolerance=_ALWAYS,
    ),
)
"""Rules to begin with, so that what is found is on these sessions no worse than they are."""


class Best(NamedTuple):
    """The best rules.

    Attributes:
        rules: the rules.
        score: theirs.
        played: what came of them, by kind of user.
        others: what came of the agents that they are compared with, likewise.
    """

    rules: ControlRules
    score: float
    played: dict[str, Played]
    others: dict[str, tuple[Played, ...]]


async def search_rules(
    training: Training,
    trials: int,
    seed: int,
    on_trial: Callable[[int, float | None], None] = lambda number, best: None,
) -> Best:
    """The rules with the best score on the training sessions; the same for the same arguments.

    Args:
        training: plays the sessions.
        trials: how many rules are tried, at least 1.
        seed: the seed of the search.
        on_trial: called after each trial with its number and the best score so far.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=_WARM_UP),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=_WARM_UP),
    )
    for rules in BEGIN_WITH[:trials]:
        study.enqueue_trial(_numbers(rules))
    others = {user: await training.others(user) for user in training.users}
    known: dict[ControlRules, dict[str, Played]] = {}
    best: Best | None = None
    for number in range(1, trials + 1):
        trial = study.ask()
        rules = _rules(trial)
        results = known.setdefault(rules, {})
        value = 0.0
        for step, user in enumerate(training.users, start=1):
            if user not in results:
                results[user] = await training.rules(rules, user)
            so_far = {name: results[name] for name in training.users[:step]}
            value = score(so_far, others, training.weights)
            trial.report(value, step)
            if step < len(training.users) and trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                break
        else:
            study.tell(trial, value)
            if best is None or value > best.score:
                best = Best(rules, value, results, others)
        on_trial(number, None if best is None else best.score)
    if best is None:
        raise RuntimeError("the first trials are never broken off")
    return best


def _rules(trial: Trial) -> ControlRules:
    """The rules of a trial."""
    least = trial.suggest_int("least", 0, 6)
    keep = trial.suggest_int("keep", 0, 3)
    enough = trial.suggest_float("enough", 0.5, 1.0, step=0.05)
    spent = trial.suggest_int("spent", *_SPENT, step=60)
    asks = trial.suggest_int("asks", 0, _ALWAYS)
    return ControlRules(
        least=least,
        questions=max(least, trial.suggest_int("questions", 0, _ALWAYS)),
        unanswered=trial.suggest_int("unanswered", 1, 4),
        show=trial.suggest_int("show", 0, _SHOW) or None,
        asks=asks if asks < _ALWAYS else None,
        at_once=trial.suggest_int("at_once", 1, _AT_ONCE),
        first=_FIRST[trial.suggest_int("first", 0, len(_FIRST) - 1)],
        gain=round(trial.suggest_float("gain", 0.0, 0.1, step=0.01), 2),
        persist=trial.suggest_int("persist", 1, _ALWAYS),
        insist=trial.suggest_int("insist", 1, _ALWAYS),
        keep=keep or None,
        enough=round(enough, 2) if enough < 1.0 else None,
        spent=float(spent) if spent < _SPENT[1] else None,
        pace=round(trial.suggest_float("pace", 0.0, 0.6, step=0.1), 1),
        measure="seconds",
        tolerance=trial.suggest_int("tolerance", 2, _ALWAYS),
    )


def _numbers(rules: ControlRules) -> dict[str, float]:
    """Rules as a trial has them."""
    return {
        "least": rules.least,
        "keep": rules.keep or 0,
        "enough": 1.0 if rules.enough is None else rules.enough,
        "spent": _SPENT[1] if rules.spent is None else int(rules.spent),
        "asks": _ALWAYS if rules.asks is None else rules.asks,
        "show": rules.show or 0,
        "at_once": rules.at_once,
        "questions": rules.questions,
        "unanswered": rules.unanswered,
        "first": _FIRST.index(rules.first),
        "gain": rules.gain,
        "persist": rules.persist,
        "insist": rules.insist,
        "pace": rules.pace,
        "tolerance": rules.tolerance,
    }


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """What to fit on.

    Attributes:
        users: kinds of users.
        seeds: the seeds of the worlds.
        sessions: instances of each seed, with each kind of user.
        trials: how many rules to try.
        seed: the seed of the search.
        weights: the weights of the terms other than utility.
        concurrency: how many sessions run at once; it changes nothing of what is found.
    """

    users: tuple[str, ...]
    seeds: tuple[int, ...]
    sessions: int
    trials: int
    seed: int = 0
    weights: Weights = Weights()
    concurrency: int = 32


async def fit(
    task: Task,
    wanted: Fit,
    on_trial: Callable[[int, float | None], None] = lambda number, best: None,
) -> tuple[FittedRules, Best]:
    """Fits the rules of the adaptive agent.

    Args:
        task: plays the sessions.
        wanted: what to fit on.
        on_trial: called after each trial with its number and the best score so far.

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
    best = await search_rules(training, wanted.trials, wanted.seed, on_trial)
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
        behind=wanted.weights.behind,
        score=round(best.score, 4),
        utility={user: round(one.utility, 4) for user, one in best.played.items()},
    )
    return FittedRules(rules=best.rules, fitted=how), best
