"""What a session contributes to the means, as SQL over ``cells``: the formulas of both conventions.

They are those of ``metrics.formal`` and ``metrics.paper``, which are the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from ..metrics.paper import NEVER
from ..trajectory.tolerance import SATISFACTORY

__all__ = (
    "FINAL",
    "USUAL",
    "WALKED",
    "At",
    "Less",
    "Reading",
    "Stored",
    "Value",
    "cut_reached_at",
    "effort_columns",
    "formal_columns",
    "formal_stop",
    "paper_columns",
    "reached_at",
    "walk_columns",
)


class Reading(NamedTuple):
    """What counts as an unsatisfactory rating.

    Attributes:
        least: the least rating that counts as progress.
        missing: whether a missing rating counts as unsatisfactory, in a session that was rated.
    """

    least: int = SATISFACTORY
    missing: bool = False


USUAL: Final = Reading()
"""As the definitions have it."""


class At(NamedTuple):
    """A column of utilities, each after a round of the session.

    Attributes:
        number: SQL of the number of the round; missing where it is null. A session without rounds has one,
            worth its final performance.
    """

    number: str


class Less(NamedTuple):
    """A column less another one.

    Attributes:
        whole: the name of the one.
        part: of the other.
    """

    whole: str
    part: str


class Stored(NamedTuple):
    """A column of the sessions as it was written.

    Attributes:
        name: of the column.
    """

    name: str


Value: TypeAlias = str | At | Less | Stored
"""What a column holds: SQL of a number, or how it follows from rounds or other columns, or where it is."""

FINAL: Final = "if(n IS NULL, final, last_utility)"
WALKED: Final = "missing IS NULL AND NOT result_only"
"""Whether a session has a part in the curve."""


def reached_at(tau: int) -> str:
    """The column of k_τ; 0 where it is not reached."""
    return f"at_{tau}"


def formal_stop(tau: int) -> str:
    """The round at which the human stops, or the last; missing where nobody knows it."""
    at = reached_at(tau)
    return f"""CASE
        WHEN missing IS NOT NULL OR result_only THEN NULL
        WHEN {at} > 0 THEN {at}
        WHEN NOT left_early AND (rated OR last <= {tau}) THEN last
    END"""


def formal_columns(taus: Sequence[int]) -> dict[str, Value]:
    """The columns of the formal convention, in the order of ``aggregate``."""
    columns: dict[str, Value] = {
        "first": At(f"if({WALKED} AND NOT first_stale, coalesce(update_at, last), NULL)"),
        "final": f"if(missing IS NULL, {FINAL}, NULL)",
        "overall": "if(missing IS NULL, if(n IS NULL, final, best), NULL)",
        "gain": Less("overall", "first"),
    }
    for tau in taus:
        stop = formal_stop(tau)
        columns[f"stop {tau}"] = At(stop)
        columns[f"reference {tau}"] = f"if(({stop}) IS NULL, NULL, {FINAL})"
    return columns


def paper_columns(taus: Sequence[int], max_step: int | None) -> dict[str, Value]:
    """The columns of the paper's convention; all missing where there is no length to cut to."""
    walked = "false" if max_step is None else "walked"
    columns: dict[str, Value] = {
        "first": At(f"if({walked}, if(silent OR n IS NULL, 1, coalesce(valued_at, 1)), NULL)"),
        "final": f"if({walked}, {FINAL}, NULL)",
        "overall": f"if({walked}, if(n IS NULL, final, best), NULL)",
        "gain": Less("overall", "first"),
    }
    for tau in taus:
        for name, row in (("stop", tau), ("reference", NEVER)):
            columns[f"{name} {tau}"] = At(f"if({walked}, {_paper_row(row, max_step or 0)}, NULL)")
    return columns


def cut_reached_at(tau: int, max_step: int) -> str:
    """k_τ within the cut trajectory; 0 where it is not reached."""
    at = reached_at(tau)
    return f"if(silent OR {at} > {max_step}, 0, {at})"


def _paper_row(tau: int, max_step: int) -> str:
    """The row that a human who stops is left with; 0 for none."""
    at = cut_reached_at(tau, max_step)
    return f"if({at} > 0, {at} - 1, least(last, {max_step}))"


def walk_columns(walked: str, length: int) -> dict[str, Value]:
    """Utilities by round, shorter trajectories carried forward."""
    return {f"round {k}": At(f"if({walked}, least(last, {k}), NULL)") for k in range(1, length + 1)}


def effort_columns(measures: Sequence[str], *, published: bool) -> dict[str, Value]:
    """Tokens and other effort per session, as ``metrics.effort`` has them."""
    human = "human_tokens"
    if published:
        human = "if(agent_tokens IS NULL, NULL, coalesce(human_tokens, 0))"
    both = f"agent_tokens IS NOT NULL AND ({human}) IS NOT NULL"
    columns: dict[str, Value] = {
        "agent_tokens": "agent_tokens",
        "human_tokens": human,
        "agent of both": f"if({both}, agent_tokens, NULL)",
        "human of both": f"if({both}, {human}, NULL)",
        "all_rounds": "all_rounds",
    }
    return columns | {f"effort {name}": Stored(f"effort_{name}") for name in measures}
