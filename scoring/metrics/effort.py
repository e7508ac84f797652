"""The effort of a group of sessions: tokens of either side, and every other measure of effort."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..trajectory.points import Trajectory
from .numbers import quotient
from .results import Convention, Effort
from .sample import Column, Sample

__all__ = ("ELSEWHERE", "effort_columns", "effort_measures", "effort_of")

ELSEWHERE = frozenset({"agent_tokens", "human_tokens", "token_ratio"})
"""Measures of a session whose aggregates are the tokens of either side and their ratio."""

_NAMES = {"rounds": "human_led_rounds"}
"""Names in a report, where ``rounds`` alone would leave open which rounds."""


def effort_columns(members: Sequence[Trajectory], convention: Convention) -> dict[str, Column]:
    """Tokens and other effort per session.

    Under ``paper``, sessions without agent tokens are left out of both means, and a missing human
    count is 0. Under ``formal`` a missing count is missing, and the ratio of means is taken over
    the sessions that have both.
    """
    agent: Column = [item.agent_tokens for item in members]
    human: Column = [item.human_tokens for item in members]
    if convention == "paper":
        human = [None if a is None else h or 0 for a, h in zip(agent, human, strict=True)]
    pairs = list(zip(agent, human, strict=True))
    both = [None not in pair for pair in pairs]
    columns: dict[str, Column] = {
        "agent_tokens": agent,
        "human_tokens": human,
        "agent of both": [a if ok else None for (a, _), ok in zip(pairs, both, strict=True)],
        "human of both": [h if ok else None for (_, h), ok in zip(pairs, both, strict=True)],
    }
    columns["all_rounds"] = [len(item.points) for item in members]
    for name in effort_measures(members):
        columns[f"effort {name}"] = [
            item.points[-1].effort.get(name) if item.points else None for item in members
        ]
    return columns


def effort_measures(members: Iterable[Trajectory]) -> list[str]:
    """The measures at the end of a session, but those that a report has under a name of its own."""
    found = {name for item in members if item.points for name in item.points[-1].effort}
    return sorted(found - ELSEWHERE)


def effort_of(sample: Sample, measures: Iterable[str]) -> Effort:
    """The mean effort of a group, from a sample that holds the columns of ``effort_columns``.

    Args:
        sample: holds those columns.
        measures: as ``effort_measures`` gives them.
    """
    unknown = "no session has a token count"
    return Effort(
        agent_tokens=sample.estimate("agent_tokens", absent=unknown),
        human_tokens=sample.estimate("human_tokens", absent=unknown),
        ratio=sample.estimate(
            "agent of both",
            "human of both",
            formula=quotient,
            absent="no session has token counts of both sides",
            undefined="the humans generated no tokens",
        ),
        all_rounds=sample.estimate("all_rounds", absent="there are no sessions"),
        measures={
            _NAMES.get(name, name): sample.estimate(
                f"effort {name}", absent="the measure does not apply"
            )
            for name in measures
        },
    )
