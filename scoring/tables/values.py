"""What a session contributes to the means, as SQL over ``cells``: the formulas of both conventions.

They are those of ``metrics.formal`` and ``metrics.paper``, which are the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ..metrics.paper import NEVER
from ..trajectory.tolerance import SATISFACTORY

__all__ = (
    "USUAL",
    "WALKED",
    "Reading",
    "bad_text",
    "effort_columns",
    "first_run",
    "formal_columns",
    "formal_stop",
    "is_rated",
    "paper_columns",
    "paper_reached_at",
    "reached_at",
    "utility_at",
    "walk_columns",
)

_BAD: Final = "b"


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


def utility_at(round_number: str) -> str:
    """U_k of a round that counts; of the only one where the user never spoke, its final utility."""
    return f"if(n IS NULL, final, utilities[list_position(numbers, {round_number})])"


_FINAL: Final = utility_at("last")
WALKED: Final = "missing IS NULL AND NOT result_only"
"""Whether a session has a part in the curve."""


def bad_text(reading: Reading = USUAL) -> str:
    """The ratings that count, up to the first that is pending, with those that lead nowhere marked."""
    text = "split_part(left(ratings, k), '9', 1)"
    for rating in range(1, reading.least):
        text = f"replace({text}, '{rating}', '{_BAD}')"
    return (
        f"if(rated_anywhere, replace({text}, '0', '{_BAD}'), {text})" if reading.missing else text
    )


def first_run(text: str, tau: int) -> str:
    """Where τ bad ones in a row are reached in a text; 0 where they are not."""
    at = f"strpos({text}, '{_BAD * tau}')"
    return f"coalesce(if({at} > 0, {at} + {tau - 1}, 0), 0)"


def is_rated(reading: Reading = USUAL) -> str:
    """Whether a session has any rating."""
    if not reading.missing:
        return "rated"
    return "(rated OR (rated_anywhere AND contains(left(ratings, k), '0')))"


def formal_stop(tau: int, *, at: str, rated: str = "rated") -> str:
    """U_kτ; missing where nobody knows it.

    Args:
        tau: τ.
        at: k_τ, 0 where it is not reached.
        rated: whether the session has any rating.
    """
    return f"""CASE
        WHEN missing IS NOT NULL OR result_only THEN NULL
        WHEN {at} > 0 THEN {utility_at(at)}
        WHEN NOT left_early AND ({rated} OR last <= {tau}) THEN {_FINAL}
    END"""


def reached_at(tau: int) -> str:
    """The column of k_τ."""
    return f"at_{tau}"


def formal_columns(taus: Sequence[int]) -> dict[str, str]:
    """The columns of the formal convention, in the order of ``aggregate``."""
    valued = "missing IS NULL"
    first = utility_at("coalesce(update_at, last)")
    first = f"if({valued} AND NOT result_only AND NOT first_stale, {first}, NULL)"
    overall = f"if({valued}, if(n IS NULL, final, best), NULL)"
    columns = {
        "first": first,
        "final": f"if({valued}, {_FINAL}, NULL)",
        "overall": overall,
        "gain": f"{overall} - {first}",
    }
    for tau in taus:
        stop = formal_stop(tau, at=reached_at(tau))
        columns[f"stop {tau}"] = stop
        columns[f"reference {tau}"] = f"if(({stop}) IS NULL, NULL, {_FINAL})"
    return columns


def paper_columns(taus: Sequence[int], max_step: int | None) -> dict[str, str]:
    """The columns of the paper's convention; all missing where there is no length to cut to."""
    names = ["first", "final", "overall", "gain"]
    names += [f"{kind} {tau}" for tau in taus for kind in ("stop", "reference")]
    if max_step is None:
        return dict.fromkeys(names, "NULL")
    first = utility_at("if(silent OR n IS NULL, 1, coalesce(valued_at, 1))")
    best = "if(n IS NULL, final, best)"
    values = [first, _FINAL, best, f"{best} - {first}"]
    for tau in taus:
        at = _paper_row(tau, max_step)
        values += [f"if({at} = 0, NULL, {utility_at(at)})", utility_at(_paper_row(NEVER, max_step))]
    return {name: f"if(walked, {value}, NULL)" for name, value in zip(names, values, strict=True)}


def paper_reached_at(tau: int, max_step: int) -> str:
    """k_τ within the cut trajectory; 0 where it is not reached."""
    codes = "".join(str(rating) for rating in range(1, SATISFACTORY))
    text = f"if(silent, '', left(ratings, {max_step}))"
    return first_run(f"translate({text}, '{codes}', '{_BAD * len(codes)}')", tau)


def _paper_row(tau: int, max_step: int) -> str:
    """The row that a human who stops is left with."""
    at = paper_reached_at(tau, max_step)
    return f"if({at} > 0, {at} - 1, least(last, {max_step}))"


def walk_columns(walked: str, length: int) -> dict[str, str]:
    """Utilities by round, shorter trajectories carried forward."""
    return {
        f"round {k}": f"if({walked}, {utility_at(f'least(last, {k})')}, NULL)"
        for k in range(1, length + 1)
    }


def effort_columns(measures: Sequence[str], *, published: bool) -> dict[str, str]:
    """Tokens and other effort per session, as ``metrics.effort`` has them."""
    human = "human_tokens"
    if published:
        human = "if(agent_tokens IS NULL, NULL, coalesce(human_tokens, 0))"
    both = f"agent_tokens IS NOT NULL AND ({human}) IS NOT NULL"
    columns = {
        "agent_tokens": "agent_tokens",
        "human_tokens": human,
        "agent of both": f"if({both}, agent_tokens, NULL)",
        "human of both": f"if({both}, {human}, NULL)",
        "all_rounds": "all_rounds",
    }
    return columns | {f"effort {name}": f"effort_{name}" for name in measures}
