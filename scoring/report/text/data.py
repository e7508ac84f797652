"""A report as JSON: the documented shape, absent values null with their reasons beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ...metrics import Buckets, CurvePoint, Estimate, Group, Report

__all__ = ("Json", "Path", "curve_data", "estimates", "report_data", "report_json")

Json = dict[str, object]
"""An object of JSON values."""

Path = tuple[str, ...]
"""The keys that lead to a value within nested objects."""


def report_json(report: Report, *, indent: int = 2) -> str:
    """A report as JSON text, ending in a line break.

    Args:
        report: the report.
        indent: spaces per level; 0 for one line.
    """
    text = msgspec.json.encode(report_data(report))
    return msgspec.json.format(text, indent=indent or -1).decode() + "\n"


def report_data(report: Report) -> Json:
    """A report as an object of plain dicts, lists, strings and numbers."""
    return {
        "convention": report.convention,
        "taus": list(report.taus),
        "group_by": list(report.group_by),
        "bootstrap": {"level": report.level, "resamples": report.resamples, "seed": report.seed},
        "definitions": report.definitions,
        "judges": list(report.judges),
        "warnings": list(report.warnings),
        "forgotten": report.forgotten,
        "groups": [_group(group) for group in report.groups],
        "buckets": [_buckets(buckets) for buckets in report.buckets],
    }


def estimates(group: Group) -> Iterator[tuple[Path, Estimate]]:
    """The numbers of a group with the keys that lead to them in its JSON."""
    yield ("utility", "first"), group.first
    yield ("utility", "final"), group.final
    yield ("utility", "overall"), group.overall
    yield ("gain", "abs"), group.gain_abs
    yield ("gain", "rel"), group.gain_rel
    for drop in group.drops:
        yield ("drop", str(drop.tau), "abs"), drop.abs
        yield ("drop", str(drop.tau), "rel"), drop.rel
    yield ("effort", "agent_tokens"), group.effort.agent_tokens
    yield ("effort", "human_tokens"), group.effort.human_tokens
    yield ("effort", "ratio"), group.effort.ratio
    yield ("effort", "all_rounds"), group.effort.all_rounds
    for name, estimate in group.effort.measures.items():
        yield ("effort", "measures", name), estimate
    for name, estimate in group.process.items():
        yield ("process", name), estimate
    yield ("reference",), group.reference


def curve_data(curve: Sequence[CurvePoint]) -> list[Json]:
    """A curve by rounds as a list of plain dicts."""
    return [
        {
            "round": int(point.x),
            "mean": point.mean,
            "sem": point.sem,
            "sessions": point.sessions,
            "reached": point.reached,
        }
        for point in curve
    ]


def _group(group: Group) -> Json:
    data: Json = {
        "group": dict(group.group),
        "sessions": group.sessions,
        "baseline": group.baseline,
        "utility": {},
        "gain": {},
        "drop": {},
        "curve": curve_data(group.curve),
    }
    intervals: Json = {}
    reasons: dict[str, str] = {}
    for path, estimate in estimates(group):
        _put(data, path, estimate.value)
        if estimate.low is not None:
            _put(intervals, path, _interval(estimate))
        if estimate.reason is not None:
            reasons[".".join(path)] = estimate.reason
    for drop in group.drops:
        _put(data, ("drop", str(drop.tau), "sessions"), drop.sessions)
    for name, estimate in group.process.items():
        _put(data, ("process", "sessions", name), estimate.sessions)
    intervals["curve"] = [
        {"low": point.low, "high": point.high, "sessions": point.sessions}
        for point in group.curve
        if point.low is not None
    ]
    counts = msgspec.structs.asdict(group.counts)
    counts["stopped"] = {str(drop.tau): drop.stopped for drop in group.drops}
    completion = msgspec.to_builtins(group.completion)
    extras = {
        "completion": completion,
        "reasons": reasons,
        "counts": counts,
        "max_step": group.max_step,
    }
    return data | {"intervals": intervals} | extras


def _buckets(buckets: Buckets) -> Json:
    data: Json = {"group": dict(buckets.group), "edges": None, "stats": None}
    if buckets.edges is not None and buckets.stats is not None:
        data["edges"] = list(buckets.edges)
        data["stats"] = [
            {
                "low": bucket.low,
                "high": bucket.high,
                "mean": bucket.mean.value,
                "count": bucket.mean.sessions,
            }
            for bucket in buckets.stats
        ]
        data["intervals"] = [
            None if bucket.mean.low is None else _interval(bucket.mean) for bucket in buckets.stats
        ]
    data["sessions"] = buckets.sessions
    data["reason"] = buckets.reason
    return data


def _interval(estimate: Estimate) -> Mapping[str, object]:
    return {"low": estimate.low, "high": estimate.high, "sessions": estimate.sessions}


def _put(data: Json, path: Path, value: object) -> None:
    *parents, name = path
    for parent in parents:
        inner = data.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise TypeError(f"{parent!r} already holds a value")
        data = inner
    data[name] = value
