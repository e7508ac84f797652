"""Searches for the rules with the best score: Optuna's TPE, with a seed, over all numbers in the rules.

The score is noisy, a trial costs seconds, and most of the numbers are whole or choices. TPE is made for
that, and finds something in tens of trials, where evolution would take hundreds. Trials that
are worse than most after the first kinds of users are not played with the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from ...scoring.control_rules import ControlRules
from .objective import Played, score
from .training import Training

if TYPE_CHECKING:
    from optuna import Trial

    from ...scoring.control_rules import First

__all__ = ("BEGIN_WITH", "Best", "search_rules")

_ALWAYS: Final = 12  # what stands for no limit, in rounds
_SPENT: Final = (60, 660)  # seconds; the upper end stands for no limit
_FIRST: Final[tuple[First, ...]] = ("ask", "defer", "follow")
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
        seed: of the search.
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
            value = score({name: results[name] for name in training.users[:step]}, others)
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
    return ControlRules(
        least=least,
        questions=max(least, trial.suggest_int("questions", 0, _ALWAYS)),
        unanswered=trial.suggest_int("unanswered", 1, 4),
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
        "questions": rules.questions,
        "unanswered": rules.unanswered,
        "first": _FIRST.index(rules.first),
        "gain": rules.gain,
        "persist": rules.persist,
        "insist": rules.insist,
        "pace": rules.pace,
        "tolerance": rules.tolerance,
    }
