"""A report as flat tables: CSV, and data frames of pandas or polars."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Literal

import msgspec

from ....engine.errors import InvalidInput, MissingExtra
from ...metrics import Estimate, Report
from .completion import outcomes_of
from .data import estimates

__all__ = ("Row", "Table", "report_csv", "report_rows", "to_dataframe")

Table = Literal["groups", "curves", "buckets", "sessions"]
Row = dict[str, str | int | float | bool | None]


def report_rows(report: Report, table: Table = "groups") -> list[Row]:
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
        raise InvalidInput(f"a report has no table {table!r}: choose one of {known}")
    return _TABLES[table](report)


def report_csv(report: Report, table: Table = "groups") -> str:
    """A table of a report as CSV with a header; absent values are empty fields.

    Raises:
        InvalidInput: there is no such table.
    """
    rows = report_rows(report, table)
    file = io.StringIO()
    if rows:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return file.getvalue()


def to_dataframe(
    report: Report,
    table: Table = "groups",
    *,
    library: Literal["pandas", "polars"] | None = None,
) -> Any:  # noqa: ANN401 - a type of a library that may not be installed
    """A table of a report as a data frame.

    Args:
        report: the report.
        table: which table, see ``report_rows``.
        library: of the data frame; by default pandas if it is installed, else polars.

    Returns:
        A ``pandas.DataFrame`` or ``polars.DataFrame``.

    Raises:
        InvalidInput: there is no such table or library.
        MissingExtra: the library, or both, are not installed.
    """
    rows = report_rows(report, table)
    if library not in ("pandas", "polars", None):
        raise InvalidInput(f"no data frames of {library!r}: choose 'pandas' or 'polars'")
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


def _groups(report: Report) -> list[Row]:
    paths = dict.fromkeys(path for group in report.groups for path, _ in estimates(group))
    rows = []
    for group in report.groups:
        found = dict(estimates(group))
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
        for name in outcomes_of(report.groups):
            share = group.completion.outcomes.get(name)
            numbers[f"outcome_{name}"] = 0 if share is None else share.count
        for name, estimate in group.process.items():
            numbers[f"process_{name}_sessions"] = estimate.sessions
        counts = msgspec.structs.asdict(group.counts)
        counts["faults"] = sum(group.counts.faults.values())
        numbers |= counts | {"max_step": group.max_step}
        rows.append(_row(report.group_by, group.group, numbers))
    return rows


def _curves(report: Report) -> list[Row]:
    rows = []
    for group in report.groups:
        for point in group.curve:
            numbers: Row = {"round": int(point.x)} | msgspec.structs.asdict(point)
            del numbers["x"]
            rows.append(_row(report.group_by, group.group, numbers))
    return rows


def _bucket_rows(report: Report) -> list[Row]:
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


def _sessions(report: Report) -> list[Row]:
    rows = []
    for score in report.scores:
        numbers: Row = msgspec.structs.asdict(score)
        del numbers["group"]
        rows.append(_row(report.group_by, score.group, numbers))
    return rows


_TABLES: Mapping[str, Callable[[Report], list[Row]]] = {
    "groups": _groups,
    "curves": _curves,
    "buckets": _bucket_rows,
    "sessions": _sessions,
}
