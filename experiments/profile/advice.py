"""Recommends a scaffold, or no collaboration at all, and says how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from ...engine.text import quantity
from ...scoring.metrics.results import Estimate
from .diagnosis import Diagnosis, Kind, estimated, over_problems
from .signs import Signs
from .stops import Replayed, StopRule, replay_stops

__all__ = (
    "ALONE",
    "AUTOMATED",
    "PRICE",
    "RULES",
    "STOPS",
    "Choice",
    "Recommendation",
    "Rule",
    "recommend",
)

AUTOMATED: Final = "auto"
"""The agent that works alone."""

ALONE: Final = "human-alone"
"""The human who works alone."""

PRICE: Final = 0.005
"""Utility that a minute of the human's time is worth: what ``duolog tune`` fits rules with, too."""

RULES: Final[Mapping[Kind, str]] = {
    "early polish": (
        "Have it ask before its first output: adaptive with least = 1 in its rules (duolog tune)."
    ),
    "shifted": (
        "Limit its questions: adaptive with questions = 1 and insist = 1 in its rules (duolog tune)."
    ),
    "opaque": "Have it say what it assumes and doubts: the habits assumptions+doubts.",
    "flood": "Limit what it writes: max_tokens in its table, and ask for short messages in its prompt.",
    "sustained": "Fit the rules of the adaptive agent to your task: duolog tune.",
}
"""The rules of control that change what the agent does, by the kind that they answer."""

STOPS: Final[Mapping[Kind, StopRule]] = {"loop": "unproductive", "plateau": "flat"}
"""The rules that end sessions, likewise."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One way to get the work done: its utility and its cost.

    Attributes:
        name: a scaffold, ``auto`` or ``human-alone``.
        utility: final utility.
        minutes: the human's minutes.
        net: utility less the price of the human's minutes.
        wins: share of resamples, by problem, in which it is the best.
    """

    name: str
    utility: Estimate
    minutes: Estimate
    net: Estimate
    wins: float


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of control that answers what was diagnosed.

    Attributes:
        kind: what it answers.
        scaffolds: the agents that show that.
        text: the rule, and how to set it.
        replayed: its replay on the sessions with these agents; None for a rule that changes what the agent
            does, which recorded sessions cannot show.
    """

    kind: Kind
    scaffolds: tuple[str, ...]
    text: str
    replayed: Replayed | None = None

    @property
    def recommended(self) -> bool:
        """Whether nothing speaks against it: the sessions would not have been worth less with it."""
        return self.replayed is None or self.replayed.pays


class Recommendation(msgspec.Struct, frozen=True, kw_only=True):
    """The best way to get the work done, by utility less the price of the human's time.

    Attributes:
        choice: its name.
        certainty: share of resamples, by problem, in which it is the best.
        choices: all that were compared, the best first.
        margin: how much more it is worth than the next.
        price: the price of a minute of the human's time.
        rules: rules of control that answer what was diagnosed; those that end sessions were replayed.
    """

    choice: str
    certainty: float
    choices: tuple[Choice, ...]
    margin: Estimate
    price: float
    rules: tuple[Rule, ...] = ()


def recommend(
    signs: Sequence[Signs],
    diagnoses: Mapping[str, Diagnosis],
    *,
    price: float = PRICE,
    resamples: int = 1000,
    seed: int = 0,
) -> Recommendation | None:
    """The recommendation; None without a session with an agent.

    Compared are the problems that every choice has played, if there are any.

    Args:
        signs: the signs of all sessions: with each scaffold, and of the baselines.
        diagnoses: by scaffold.
        price: utility that a minute of the human's time is worth.
        resamples: how often the problems are resampled.
        seed: the seed of the draws.
    """
    names = list(dict.fromkeys(one.agent for one in signs))
    if not set(names) - {ALONE}:  # a budget that is used up says nothing for the human alone
        return None
    every = signs
    signs = _shared(signs, names)
    columns: dict[str, list[float | None]] = {}
    for name in names:
        mine = [one if one.agent == name else None for one in signs]
        columns[f"utility/{name}"] = [one and one.final for one in mine]
        columns[f"minutes/{name}"] = [one and one.minutes for one in mine]
    problems = [f"{one.task}/{one.problem}" for one in signs]
    means = over_problems(problems, columns, resamples, seed)
    nets = {name: means[f"utility/{name}"] - price * means[f"minutes/{name}"] for name in names}
    table = np.nan_to_num(np.stack([nets[name] for name in names]), nan=-np.inf)
    best = np.argmax(table, axis=0)
    shares = [
        float(np.mean(best[1:] == place)) if resamples else 0.0 for place in range(len(names))
    ]
    counts = {name: sum(one.agent == name for one in signs) for name in names}
    choices = [
        Choice(
            name=name,
            utility=estimated(means[f"utility/{name}"], counts[name]),
            minutes=estimated(means[f"minutes/{name}"], counts[name]),
            net=estimated(nets[name], counts[name]),
            wins=shares[place],
        )
        for place, name in enumerate(names)
    ]
    choices.sort(key=lambda one: -(one.net.value if one.net.value is not None else -np.inf))
    first = choices[0]
    margin = Estimate(reason="there is nothing to compare it with")
    if len(choices) > 1:
        margin = estimated(nets[first.name] - nets[choices[1].name], counts[first.name])
    return Recommendation(
        choice=first.name,
        certainty=first.wins if resamples else 1.0,
        choices=tuple(choices),
        margin=margin,
        price=price,
        rules=tuple(_rules(every, diagnoses, price, resamples, seed)),
    )


def _rules(
    signs: Sequence[Signs],
    diagnoses: Mapping[str, Diagnosis],
    price: float,
    resamples: int,
    seed: int,
) -> Iterator[Rule]:
    """The rules that answer the kinds found; those for a sustained agent only if no other kind was found."""
    found: dict[Kind, list[str]] = {}
    for scaffold, diagnosis in diagnoses.items():
        found.setdefault(diagnosis.kind, []).append(scaffold)
    if found.keys() - {"sustained", "unclear"}:
        found.pop("sustained", None)
    for kind, scaffolds in found.items():
        if kind in RULES:
            yield Rule(kind=kind, scaffolds=tuple(scaffolds), text=RULES[kind])
        elif kind in STOPS:
            mine = [one for one in signs if one.agent in scaffolds]
            replayed = replay_stops(mine, STOPS[kind], price=price, resamples=resamples, seed=seed)
            if replayed is not None:
                text = _stopping(replayed)
                yield Rule(kind=kind, scaffolds=tuple(scaffolds), text=text, replayed=replayed)


def _stopping(rule: Replayed) -> str:
    if rule.rule == "unproductive":
        rounds = quantity(rule.rounds, "unproductive round")
        return f"Stop a session after {rounds} in a row: --stop-at {rule.rounds}."
    return (
        f"Hand over once utility has not risen for {quantity(rule.rounds, 'round')}: adaptive with "
        f"persist = {rule.rounds} in its rules (duolog tune)."
    )


def _shared(signs: Sequence[Signs], names: Sequence[str]) -> Sequence[Signs]:
    """The sessions on problems that all choices have played; all sessions if there are none."""
    played = [{(s.task, s.problem) for s in signs if s.agent == name} for name in names]
    both = set.intersection(*played)
    return [one for one in signs if (one.task, one.problem) in both] if both else signs
