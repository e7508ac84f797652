"""The JSON of a report as types, and the JSON Schema that follows from them.

``duolog report --json-schema`` prints it. The docs on measures define the numbers.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from ..metrics.results import (
    Bounds,
    Convention,
    Counts,
    EffortAxis,
    Robustness,
    SessionOutcomes,
)
from ..metrics.variance import Variance

__all__ = ("ReportDocument", "report_schema")

Unit = Annotated[float, Meta(ge=0, le=1)]
Difference = Annotated[float, Meta(ge=-1, le=1)]
Number = Annotated[int, Meta(ge=0)]
Tau = Annotated[str, Meta(pattern=r"^[1-9][0-9]*$")]


class _Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object without other keys than these."""


class Span(_Shape, frozen=True):
    """A bootstrap interval, and the sessions that its number rests on."""

    low: float | None
    high: float | None
    sessions: Number


class Utility(_Shape, frozen=True):
    """Means of utility; null where missing."""

    first: Unit | None
    final: Unit | None
    overall: Unit | None


class Change(_Shape, frozen=True):
    """A mean difference of utility, and the same relative to a mean."""

    abs: Difference | None
    rel: float | None


class Drop(_Shape, frozen=True):
    """D@τ, and the sessions in it."""

    abs: Difference | None
    rel: float | None
    sessions: Number


class CurvePoint(_Shape, frozen=True):
    """Mean utility after one round, or at another effort: the one that ``axis`` says."""

    mean: Unit
    sem: float | None
    sessions: Number
    reached: Number
    round: Number | None = None
    minutes: float | None = None
    tokens_read: float | None = None
    tokens_written: float | None = None


class Effort(_Shape, frozen=True):
    """Mean effort of a session."""

    agent_tokens: float | None
    human_tokens: float | None
    ratio: float | None
    all_rounds: float | None
    measures: dict[str, float | None] = {}


class UtilitySpans(_Shape, frozen=True):
    """Intervals of the means of utility that have one."""

    first: Span | None = None
    final: Span | None = None
    overall: Span | None = None


class ChangeSpans(_Shape, frozen=True):
    """Intervals of a difference, as far as there are any."""

    abs: Span | None = None
    rel: Span | None = None


class EffortSpans(_Shape, frozen=True):
    """Intervals of the effort, as far as there are any."""

    agent_tokens: Span | None = None
    human_tokens: Span | None = None
    ratio: Span | None = None
    all_rounds: Span | None = None
    measures: dict[str, Span] = {}


class Intervals(_Shape, frozen=True):
    """Intervals, each under the keys of its number."""

    curve: list[Span]
    utility: UtilitySpans | None = None
    gain: ChangeSpans | None = None
    drop: dict[Tau, ChangeSpans] = {}
    effort: EffortSpans | None = None
    process: dict[str, Span] = {}
    reference: Span | None = None


class Completeness(Counts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How complete the data of a group are."""

    stopped: dict[Tau, Number]


class Group(_Shape, frozen=True):
    """One row of the paper's table. A number that was not measured is null: see ``reasons``."""

    group: dict[str, str]
    sessions: Number
    baseline: bool
    utility: Utility
    gain: Change
    drop: dict[Tau, Drop]
    curve: list[CurvePoint]
    effort: Effort
    reference: Unit | None
    intervals: Intervals
    completion: SessionOutcomes
    reasons: dict[str, str]
    bounds: dict[str, Bounds]
    variance: Variance | None
    counts: Completeness
    max_step: Number | None
    process: dict[str, float | dict[str, Number] | None] = {}


class Bucket(_Shape, frozen=True):
    """The sessions of one quintile of the token ratio."""

    low: float
    high: float | None
    mean: Unit | None
    count: Number


class Buckets(_Shape, frozen=True):
    """Final performance by quintile of the ratio of agent to human tokens."""

    group: dict[str, str]
    edges: list[float | None] | None
    stats: list[Bucket] | None
    sessions: Number
    reason: str | None
    intervals: list[Span | None] = []


class Bootstrap(_Shape, frozen=True):
    """How intervals were computed."""

    level: Unit
    resamples: Number
    seed: int


class ReportDocument(_Shape, frozen=True):
    """What ``duolog report --json`` prints."""

    convention: Convention
    taus: list[Annotated[int, Meta(ge=1)]]
    group_by: list[str]
    bootstrap: Bootstrap
    definitions: Annotated[int, Meta(ge=1)]
    axis: EffortAxis
    scorers: list[str]
    candidates: list[str]
    judges: list[str]
    simulators: dict[str, list[str]]
    warnings: list[str]
    robustness: Robustness | None
    forgotten: Number
    groups: list[Group]
    buckets: list[Buckets]


def report_schema() -> dict[str, object]:
    """The JSON Schema (draft 2020-12) of a report as JSON."""
    (found,), parts = msgspec.json.schema_components([ReportDocument])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A Duolog report",
        **found,
        "$defs": parts,
    }
