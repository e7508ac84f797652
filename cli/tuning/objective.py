"""What rules of control are worth on training sessions: utility, less what is lost and what it costs.

Per session i, with the effort in minutes of the human's time:

    v_i = U_i + drop · D@2_i - price · minutes_i

Per kind of user, d is the mean of v_i less that of the better of the one- and the two-stage agent on
the same instances. The score is the mean of d over the kinds of users, where a loss counts double: rules
that serve one kind at the expense of another are not what is looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ...engine.errors import InvalidInput
from ...scoring.metrics.formal import formal_values
from ...scoring.metrics.numbers import mean
from ...scoring.trajectory.points import Trajectory

__all__ = ("Played", "Weights", "played", "score")

_TAU = 2
_MINUTE = 60.0


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """What counts beside utility.

    Attributes:
        drop: weight of the drop at τ = 2.
        price: utility that a minute of the human's time is worth.
    """

    drop: float = 0.1
    price: float = 0.005


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the sessions of one agent with one kind of user.

    Attributes:
        worth: mean of v.
        utility: mean overall utility.
    """

    worth: float
    utility: float


def played(trajectories: Iterable[Trajectory], weights: Weights) -> Played:
    """What sessions are worth.

    Raises:
        InvalidInput: the utility of none of them was measured.
    """
    worth: list[float] = []
    utilities: list[float] = []
    for item in trajectories:
        values = formal_values(item, (_TAU,))
        if values is None:
            continue
        seconds = (item.points[-1].effort.get("seconds") if item.points else None) or 0.0
        lost = values.drop(0) or 0.0
        utilities.append(values.overall)
        worth.append(values.overall + weights.drop * lost - weights.price * seconds / _MINUTE)
    value, utility = mean(worth), mean(utilities)
    if value is None or utility is None:
        raise InvalidInput("nobody measures utility in these sessions: there is nothing to tune to")
    return Played(worth=value, utility=utility)


def score(rules: Mapping[str, Played], others: Mapping[str, Sequence[Played]]) -> float:
    """The score of rules.

    Args:
        rules: what came of the adaptive agent, by kind of user.
        others: what came of the agents that it is compared with, likewise; none, if there are none.
    """
    gaps = [
        one.worth - max((other.worth for other in others.get(user, ())), default=0.0)
        for user, one in rules.items()
    ]
    return sum(gap if gap > 0 else 2 * gap for gap in gaps) / len(gaps)
