"""Evaluates a file of plans, line by line, for ``travel evaluate``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from ....engine.errors import InvalidInput, malformed
from ..data.dataset import Dataset
from .evaluator import evaluate
from .hard import asked_of
from .results import Variant
from .summary import Scored

__all__ = ("score_submissions",)


def score_submissions(
    lines: Iterable[str],
    dataset: Dataset,
    variant: Variant = "published",
    *,
    source: str = "plans",
) -> Iterator[Scored]:
    """Evaluates submissions one by one, one JSON object per line; blank lines are skipped.

    An object has the plan under ``plan`` (null where none was delivered) and says which instance
    it is for: by ``row_index``; or by ``query``, TravelPlanner's whole request; or by ``idx``. Both
    numbers count the rows of the data file from 0. Where several are given the first of these
    counts, since TravelPlanner's own scripts number ``idx`` from 1 and state the query with it.

    Args:
        lines: the submissions.
        dataset: the instances, and the sandbox.
        variant: the rules of evaluation.
        source: name of the file, for errors.

    Yields:
        One result per plan, in the order of the lines.

    Raises:
        InvalidInput: a line is no such object, or names an instance that is not there; the message
            says which line.
    """
    rows: dict[str, list[int]] = {}
    for row, instance in enumerate(dataset.instances):
        rows.setdefault(instance.query, []).append(row)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            submission = _submission(line)
            row = _row(submission, rows, len(dataset.instances))
        except InvalidInput as error:
            raise InvalidInput(f"{source}, line {number}: {error}") from error
        plan, trip = submission["plan"], dataset.instances[row].trip
        yield Scored(
            row_index=row,
            delivered=bool(plan),
            asked=asked_of(trip),
            evaluation=evaluate(plan, trip, dataset.sandbox, variant),
        )


def _submission(line: str) -> Mapping[str, object]:
    try:
        # The standard library reads what Python scripts write, NaN and large numbers included.
        value: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"this is not JSON: {malformed(error)}") from error
    if not isinstance(value, dict):
        raise InvalidInput(f"expected a JSON object, found a {type(value).__name__}")
    if "plan" not in value:
        raise InvalidInput("'plan' is missing; if none was delivered, write null")
    return value


def _row(submission: Mapping[str, object], rows: Mapping[str, list[int]], count: int) -> int:
    if "row_index" in submission:
        return _in_range("row_index", submission["row_index"], count)
    query = submission.get("query")
    found = rows.get(query, []) if isinstance(query, str) else []
    if len(found) == 1:
        return found[0]
    if "idx" in submission:
        return _in_range("idx", submission["idx"], count)
    if query is None:
        raise InvalidInput("it does not say which instance it is for: row_index, query or idx")
    raise InvalidInput(f"{len(found) or 'no'} instances have the query {str(query)[:80]!r}")


def _in_range(key: str, value: object, count: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count:
        return value
    raise InvalidInput(f"{key} is {str(value)[:40]!r}; the instances are numbered 0 to {count - 1}")
