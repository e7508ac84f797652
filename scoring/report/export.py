"""A report for programs: its JSON in the documented shape, flat rows, CSV and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Literal

import msgspec

from ...engine.errors import InvalidInput, MissingExtra
from ..metrics import Buckets, CurvePoint, EffortAxis, Estimate, Group, Numbers
from ..metrics.results import OUTCOMES
from .document import Document

__all__ = (
    "Row",
    "document_csv",
    "document_json",
    "flat_row",
    "group_estimates",
    "outcomes_of",
    "report_data",
    "report_rows",
    "to_dataframe",
)

Json = dict[str, object]
"""An object of JSON values."""

Path = tuple[str, ...]
"""The keys that lead to a value within nested objects."""

Table = Literal["groups", "curves", "buckets", "sessions"]
Row = dict[str, str | int | float | None]


def document_json(document: Document, *, indent: int = 2) -> str:
    """The results that a document was built from as JSON text, ending in a line break.

    Args:
        document: the document.
        indent: spaces per level; 0 for one line.
    """
    text = msgspec.json.encode(document.data)
    return msgspec.json.format(text, indent=indent or -1).decode() + "\n"


def document_csv(document: Document) -> str:
    """The rows of a document as CSV with a header; absent values are empty fields."""
    names = list(dict.fromkeys(name for row in document.rows for name in row))
    file = io.StringIO()
    if names:
        writer = csv.DictWriter(file, fieldnames=names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(document.rows)
    return file.getvalue()


def flat_row(value: object, prefix: str = "") -> Row:
    """A result as one row: nested values have names joined by underscores, and lists are left out."""
    row: Row = {}
    for name, one in msgspec.to_builtins(value).items():
        if isinstance(one, dict):
            row |= flat_row(one, f"{prefix}{name}_")
        elif not isinstance(one, list):
            row[f"{prefix}{name}"] = one
    return row


def report_data(report: Numbers) -> Json:
    """A report as an object of plain dicts, lists, strings and numbers."""
    return {
        "convention": report.convention,
        "taus": list(report.taus),
        "group_by": list(report.group_by),
        "bootstrap": {"level": report.level, "resamples": report.resamples, "seed": report.seed},
        "definitions": report.definitions,
        "axis": report.axis,
        "scorers": list(report.scorers),
        "candidates": list(report.candidates),
        "judges": list(report.judges),
        "simulators": {user: list(stamps) for user, stamps in report.simulators.items()},
        "warnings": list(report.warnings),
        "robustness": msgspec.to_builtins(report.robustness),
        "forgotten": report.forgotten,
        "groups": [_group(group, report) for group in report.groups],
        "buckets": [_buckets(buckets) for buckets in report.buckets],
    }


_ACROSS: Final[Mapping[EffortAxis, str]] = {
    "rounds": "round",
    "seconds": "minutes",
    "tokens_read": "tokens_read",
    "tokens_written": "tokens_written",
}
"""The key of the effort at a point of a curve."""


def _place(report: Numbers, point: CurvePoint) -> int | float:
    return int(point.x) if report.axis == "rounds" else point.x


def group_estimates(group: Group) -> Iterator[tuple[Path, Estimate]]:
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


def _group(group: Group, report: Numbers) -> Json:
    data: Json = {
        "group": dict(group.group),
        "sessions": group.sessions,
        "baseline": group.baseline,
        "utility": {},
        "gain": {},
        "drop": {},
        "curve": [
            {
                _ACROSS[report.axis]: _place(report, point),
                "mean": point.mean,
                "sem": point.sem,
                "sessions": point.sessions,
                "reached": point.reached,
            }
            for point in group.curve
        ],
    }
    intervals: Json = {}
    reasons: dict[str, str] = {}
    for path, estimate in group_estimates(group):
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
        "bounds": {name: msgspec.structs.asdict(one) for name, one in group.bounds.items()},
        "variance": None if group.variance is None else msgspec.structs.asdict(group.variance),
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


def report_rows(report: Numbers, table: Table = "groups") -> list[Row]:
    """The rows of a table; all have the same columns. Labels come first, absent values are None.

    Args:
        report: the report.
        table: ``groups`` has a row per group with all its numbers and their intervals; ``curves``
            one per round of a group; ``buckets`` one per ratio interval; ``sessions`` one per
            session.

    Raises:
        InvalidInput: there is no such table.
    """
    if table not in _TABLES:
        known = ", ".join(_TABLES)
        raise InvalidInput(f"unknown table {table!r}; choose from {known}")
    return _TABLES[table](report)


def to_dataframe(
    report: Numbers,
    table: Table = "groups",
    *,
    library: Literal["pandas", "polars"] | None = None,
) -> Any:  # noqa: ANN401 - a type of a library that may not be installed
    """A table of a report as a data frame.

    Args:
        report: the report.
        table: which table, see ``report_rows``.
        library: the library of the data frame; by default pandas if it is installed, else polars.

    Returns:
        A ``pandas.DataFrame`` or ``polars.DataFrame``.

    Raises:
        InvalidInput: there is no such table or library.
        MissingExtra: the library, or both, are not installed.
    """
    rows = report_rows(report, table)
    if library not in ("pandas", "polars", None):
        raise InvalidInput(f"unknown library {library!r}: choose 'pandas' or 'polars'")
    for name in (library,) if library else ("pandas", "polars"):
        try:
            module = import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            continue
        return module.DataFrame(rows)
    raise MissingExtra("analytics", "a data frame")


def _row(labels: Iterable[str], group: Mapping[str, str], numbers: Row) -> Row:
    """A row: labels and numbers. A label with the name of a number is prefixed by ``group_``."""
    row: Row = {}
    for name in labels:
        row[f"group_{name}" if name in numbers else name] = group.get(name)
    return row | numbers


def outcomes_of(groups: Sequence[Group]) -> list[str]:
    """The outcomes that occur in any of the groups, in the order of a report."""
    found = {name for group in groups for name in group.completion.outcomes}
    return [name for name in OUTCOMES if name in found] + sorted(found - {*OUTCOMES})


def _groups(report: Numbers) -> list[Row]:
    outcomes = outcomes_of(report.groups)
    paths = dict.fromkeys(path for group in report.groups for path, _ in group_estimates(group))
    rows = []
    for group in report.groups:
        found = dict(group_estimates(group))
        numbers: Row = {"baseline": group.baseline, "sessions": group.sessions}
        for path in paths:
            estimate = found.get(path, Estimate())
            name = "_".join(path)
            numbers[name] = estimate.value
            numbers[f"{name}_low"] = estimate.low
            numbers[f"{name}_high"] = estimate.high
        for drop in group.drops:
            numbers[f"drop_{drop.tau}_sessions"] = drop.sessions
            numbers[f"drop_{drop.tau}_stopped"] = drop.stopped
        for name in outcomes:
            share = group.completion.outcomes.get(name)
            numbers[f"outcome_{name}"] = 0 if share is None else share.count
        for name, estimate in group.process.items():
            numbers[f"process_{name}_sessions"] = estimate.sessions
        counts = msgspec.structs.asdict(group.counts)
        counts["faults"] = sum(group.counts.faults.values())
        numbers |= counts | {"max_step": group.max_step}
        rows.append(_row(report.group_by, group.group, numbers))
    return rows


def _curves(report: Numbers) -> list[Row]:
    rows = []
    for group in report.groups:
        for point in group.curve:
            numbers: Row = {_ACROSS[report.axis]: _place(report, point)}
            numbers |= msgspec.structs.asdict(point)
            del numbers["x"]
            rows.append(_row(report.group_by, group.group, numbers))
    return rows


def _bucket_rows(report: Numbers) -> list[Row]:
    labels = dict.fromkeys(name for buckets in report.buckets for name in buckets.group)
    rows = []
    for buckets in report.buckets:
        for bucket in buckets.stats or ():
            numbers: Row = {
                "low": bucket.low,
                "high": bucket.high,
                "mean": bucket.mean.value,
                "mean_low": bucket.mean.low,
                "mean_high": bucket.mean.high,
                "sem": bucket.sem,
                "sessions": bucket.mean.sessions,
            }
            rows.append(_row(labels, buckets.group, numbers))
    return rows


def _sessions(report: Numbers) -> list[Row]:
    rows = []
    for score in report.scores:
        numbers: Row = msgspec.structs.asdict(score)
        del numbers["group"]
        rows.append(_row(report.group_by, score.group, numbers))
    return rows


_TABLES: Mapping[str, Callable[[Numbers], list[Row]]] = {
    "groups": _groups,
    "curves": _curves,
    "buckets": _bucket_rows,
    "sessions": _sessions,
}
