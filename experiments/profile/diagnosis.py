"""Names the kind of collaborator that sessions show, with the evidence, and how sure that is.

The kinds are those that the framework of collaborative effort scaling names (Shen et al., sections 4.2 and 5). Each rests on one or two
signs, whose mean over sessions is compared with a limit. The limits lie between what the shipped agents show and what
agents that were planted with one flaw show; ``docs/profile.md`` says how often the diagnosis is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...scoring.metrics.results import Estimate
from ...scoring.metrics.sample import draws
from .signs import Signs

__all__ = (
    "FLAWS",
    "KINDS",
    "LIMITS",
    "Diagnosis",
    "Finding",
    "Kind",
    "Limit",
    "diagnose",
    "estimated",
    "over_problems",
)

Floats: TypeAlias = NDArray[np.float64]

Kind = Literal[
    "loop",
    "flood",
    "early polish",
    "shifted",
    "opaque",
    "plateau",
    "sustained",
    "unclear",
]
"""A kind of collaborator; see ``KINDS``."""

KINDS: Final[Mapping[Kind, str]] = {
    "loop": "does the same again and again",
    "flood": "sends the human more text than they can read",
    "early polish": "puts up an output early and then changes what does not matter",
    "shifted": "hands the work back to the human",
    "opaque": "changes the output without saying what or why",
    "plateau": "stops getting better while the human goes on",
    "sustained": "turns the human's effort into a better output, up to the end",
    "unclear": "shows none of these clearly",
}
"""The kinds, in the order in which they are looked for: one that explains others comes first."""


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence for a kind: the mean of a sign, and the value from which it counts.

    Attributes:
        sign: a field of ``Signs``.
        least: from this mean on.
        words: what the number is.
        percent: it is a share.
    """

    sign: str
    least: float
    words: str
    percent: bool = True


LIMITS: Final[Mapping[Kind, Limit]] = {
    "loop": Limit(sign="looping", least=0.1, words="of its acts repeat the ones before"),
    "flood": Limit(
        sign="words", least=120.0, words="words for each turn in which it writes", percent=False
    ),
    "early polish": Limit(
        sign="empty", least=0.7, words="of its later outputs leave utility as it was"
    ),
    "shifted": Limit(
        sign="handed", least=0.85, words="of its later turns only ask the human something"
    ),
    "opaque": Limit(
        sign="unexplained", least=0.5, words="of its turns with a later output say nothing about it"
    ),
    "plateau": Limit(
        sign="idle",
        least=0.4,
        words="of its later turns neither work on anything nor ask anything",
    ),
    "sustained": Limit(
        sign="gain", least=0.05, words="of utility gained after its first output", percent=False
    ),
}
"""The evidence for each kind."""

FLAWS: Final[tuple[Kind, ...]] = ("loop", "flood", "early polish", "shifted", "opaque", "plateau")
"""The kinds that are flaws, in the order in which they are looked for."""

_TAIL: Final = 0.4
"""A plateau, too: so large a share of the rounds after the last rise of utility ..."""

_FLAT: Final = 0.05
"""... if the first output was improved by less than this."""

_POLISHED: Final = 1.0
"""Later outputs, in each session that did not end with the first one, below which there is nothing to call polish."""

_WAITED: Final = 1.5
"""Idle turns per session below which there is nothing to call a plateau: every agent says a last word."""

_LOOKED_AT: Final = 3


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A sign, and whether it is beyond its limit.

    Attributes:
        kind: what it speaks for.
        sign: the mean of the sign with its interval; absent if no session shows anything of it.
        limit: from which it counts.
        holds: whether it does.
        certainty: share of resamples, by problem, with the same answer.
        sessions: the sessions that show it most, ids, at most three.
    """

    kind: Kind
    sign: Estimate
    limit: Limit
    holds: bool
    certainty: float
    sessions: tuple[str, ...] = ()


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of collaborator that some sessions show.

    Attributes:
        kind: the first kind that holds, in the order of ``KINDS``.
        certainty: share of resamples, by problem, that give the same kind.
        findings: every sign, whether it holds or not.
        sessions: how many sessions it rests on.
        problems: how many problems they are about.
    """

    kind: Kind
    certainty: float
    findings: tuple[Finding, ...]
    sessions: int
    problems: int

    @property
    def flaws(self) -> tuple[Finding, ...]:
        """The flaws that hold."""
        return tuple(one for one in self.findings if one.holds and one.kind in FLAWS)

    def finding(self, kind: Kind) -> Finding:
        """The finding on a kind."""
        return next(one for one in self.findings if one.kind == kind)


def diagnose(signs: Sequence[Signs], *, resamples: int = 1000, seed: int = 0) -> Diagnosis:
    """The diagnosis of some sessions with an agent; those that failed, or lack a human or an agent, are left out.

    Args:
        signs: the signs of the sessions.
        resamples: how often the problems are resampled, for intervals and certainty.
        seed: the seed of the draws.
    """
    used = [one for one in signs if not one.baseline and not one.failed]
    if not used:
        return Diagnosis(kind="unclear", certainty=0.0, findings=(), sessions=0, problems=0)
    values = {limit.sign: [_value(one, limit.sign) for one in used] for limit in LIMITS.values()}
    values |= {
        "tail": [one.tail for one in used],
        "polished": [one.polished for one in used],
        "waited": [float(one.waited) for one in used],
    }
    problems = [f"{one.task}/{one.problem}" for one in used]
    means = over_problems(problems, values, resamples, seed)
    holds = _holding(means)
    kinds = list(KINDS)
    chosen = np.argmax(np.stack([holds[kind] for kind in kinds]), axis=0)
    kind = kinds[int(chosen[0])]
    findings = []
    for one, limit in LIMITS.items():
        column = means[limit.sign]
        findings.append(
            Finding(
                kind=one,
                sign=estimated(column, sum(v is not None for v in values[limit.sign])),
                limit=limit,
                holds=bool(holds[one][0]),
                certainty=float(np.mean(holds[one][1:] == holds[one][0])) if resamples else 1.0,
                sessions=_strongest(used, limit.sign)
                or (_strongest(used, "tail") if one == "plateau" else ()),
            )
        )
    return Diagnosis(
        kind=kind,
        certainty=float(np.mean(chosen[1:] == chosen[0])) if resamples else 1.0,
        findings=tuple(findings),
        sessions=len(used),
        problems=len(set(problems)),
    )


def over_problems(
    problems: Sequence[str],
    values: Mapping[str, Sequence[float | None]],
    resamples: int,
    seed: int,
) -> dict[str, Floats]:
    """Means of some quantities, and the same means with resampled problems.

    All quantities see the same draws, so that what is decided by several of them is decided on the
    same problems.

    Args:
        problems: the problem of each session.
        values: by quantity, the value of each session; None for none.
        resamples: how often problems are drawn.
        seed: the seed of the draws.

    Returns:
        By quantity, the mean, and then one for each resample; not a number if none is known.
    """
    names = sorted(set(problems))
    places = {name: place for place, name in enumerate(names)}
    at = np.array([places[one] for one in problems])
    drawn = [np.ones((1, len(names)))]
    if resamples:
        drawn += [np.asarray(part, np.float64) for part in draws(len(names), resamples, f"{seed}")]
    weights = np.concatenate(drawn)
    found: dict[str, Floats] = {}
    for quantity, column in values.items():
        given = np.array([np.nan if value is None else value for value in column], np.float64)
        known = ~np.isnan(given)
        sums = np.bincount(at[known], weights=given[known], minlength=len(names))
        counts = np.bincount(at[known], minlength=len(names)).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            found[quantity] = (weights @ sums) / (weights @ counts)
    return found


def _holding(means: Mapping[str, Floats]) -> dict[Kind, NDArray[np.bool_]]:
    """By kind, whether it holds; a mean that is not known speaks for nothing."""
    found: dict[Kind, NDArray[np.bool_]] = {}
    with np.errstate(invalid="ignore"):
        for kind, limit in LIMITS.items():
            found[kind] = means[limit.sign] >= limit.least
        found["early polish"] &= means["polished"] >= _POLISHED
        found["plateau"] &= means["waited"] >= _WAITED
        flat = (means["tail"] >= _TAIL) & (means["gain"] < _FLAT)
    found["plateau"] |= flat
    found["unclear"] = np.ones_like(flat)
    return found


def _value(one: Signs, sign: str) -> float | None:
    if sign == "gain":
        return one.best - one.first
    value: float | None = getattr(one, sign)
    return value


def estimated(column: Floats, sessions: int) -> Estimate:
    """A mean and its resamples, as ``over_problems`` gives them, as a number with a 95 % interval."""
    if np.isnan(column[0]):
        return Estimate(reason="no session shows anything of it")
    rest = column[1:][~np.isnan(column[1:])]
    if not len(rest):
        return Estimate(value=float(column[0]), sessions=sessions)
    low, high = np.quantile(rest, (0.025, 0.975))
    return Estimate(value=float(column[0]), low=float(low), high=float(high), sessions=sessions)


def _strongest(used: Sequence[Signs], sign: str) -> tuple[str, ...]:
    shown = [(value, one.session) for one in used if (value := _value(one, sign)) is not None]
    return tuple(session for _, session in sorted(shown, key=lambda one: -one[0])[:_LOOKED_AT])
