"""The columns of many sessions as arrays: what all numbers are computed from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, Final, Generic, TypeAlias, TypeVar, final

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..process import Process
from ..trajectory.points import Trajectory
from .rows import PROCESS_MEASURES, Folded, rows_of

__all__ = (
    "TAG",
    "Coded",
    "Columns",
    "ColumnsBuilder",
    "Flags",
    "Floats",
    "Integers",
    "Rounds",
    "column_of",
    "columns_of",
)

Array: TypeAlias = NDArray[Any]
Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.signedinteger[Any]]

T = TypeVar("T", bound=Hashable)

TAG: Final = "tag"
"""The label by which sessions are grouped by the tags of reviewers."""


class Coded(msgspec.Struct, Generic[T], frozen=True):
    """A column with few different values.

    Attributes:
        codes: per row, the index of its value; -1 if it has none.
        values: the values.
    """

    codes: NDArray[np.int32]
    values: Sequence[T]

    def flags(self, which: Callable[[T], bool]) -> Flags:
        """Which rows have a value that meets a condition."""
        chosen = np.array([*map(which, self.values), False])
        found: Flags = chosen[self.codes]
        return found

    def counts(self, rows: Integers) -> dict[T, int]:
        """How often each value occurs in some rows; values that do not occur are left out."""
        codes = self.codes[rows]
        found = np.bincount(codes[codes >= 0], minlength=len(self.values)).tolist()
        return {value: n for value, n in zip(self.values, found, strict=True) if n}

    def of(self, row: int) -> T | None:
        """The value in a row; None if it has none."""
        code = int(self.codes[row])
        return None if code < 0 else self.values[code]

    def take(self, rows: Integers) -> Coded[T]:
        """The same column of some rows."""
        return Coded(self.codes[rows], self.values)


class Rounds(msgspec.Struct, frozen=True, kw_only=True):
    """The round table. Rounds of a session are adjacent, in order.

    Attributes:
        utility: the utility after the round; not a number if the session has none.
        value: the newly measured utility; not a number if nothing was measured.
        rating: 1 to 5; 0 if it is missing or pending.
        pending: the rating is not recorded yet.
        updated: the agent updated the output.
        stale: the output changed, and its score is missing.
        closing: the last round, which holds messages of humans only.
        effort: cumulative, by measure; not a number if the measure does not apply. A function gives
            it, since few numbers need it.
    """

    utility: Floats
    value: Floats
    rating: NDArray[np.int8]
    pending: Flags
    updated: Flags
    stale: Flags
    closing: Flags
    effort: Callable[[str], Floats]


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The session table and the round table, as arrays.

    ``docs/columns.md`` lists the columns. A missing number is not a number.

    Attributes:
        session: session ids.
        state: ``open``, why the session was closed, or ``forgotten``.
        labels: a column per label.
        instance: the task instance; empty if it is not known.
        scorer: whose utility counts.
        problem: which problem it was, by content.
        candidates: the scorers to choose from, if none is chosen.
        judges: whose ratings count.
        faults: faults of simulated users: pairs of kind and number.
        measures: the names of the measures of effort at the end of a session.
        forked_from: ids of origins.
        forked_version: the last trace version that a fork shares with its origin.
        forked_at: round of a fork's first own act.
        baseline: automated runs.
        evaluated: sessions whose utility was measured, or was to be.
        output: sessions that pose a shared output.
        silent: sessions whose human took no turn after the request.
        estimated: sessions whose tokens are estimated.
        agent_tokens: tokens that agents generated.
        human_tokens: tokens that humans generated.
        final: final performance, if it is known apart from the rounds.
        final_missing: sessions whose final performance is said to be missing.
        lost: events that could not be recorded; not a number if the source does not say.
        coarse: versions of the output that were not compared in full; not a number if the source does not say.
        tags: the tags by reviewers.
        reviewers: who reviewed the sessions.
        review_rating: mean ratings by reviewers; not a number if nobody rated a session.
        comments: how many comments of reviewers there are; not a number if the source does not say.
        process: process measures by name.
        effort: effort at the end of each session, by measure.
        starts: where the rounds of each session begin, and the number of all rounds.
        rounds: the round table.
    """

    session: Sequence[str]
    state: Coded[str]
    labels: Mapping[str, Coded[str]]
    instance: Coded[str]
    scorer: Coded[str]
    problem: Coded[str]
    candidates: Coded[tuple[str, ...]]
    judges: Coded[tuple[str, ...]]
    faults: Coded[tuple[tuple[str, int], ...]]
    measures: Coded[tuple[str, ...]]
    forked_from: Coded[str]
    forked_version: Floats
    forked_at: Floats
    baseline: Flags
    evaluated: Flags
    output: Flags
    silent: Flags
    estimated: Flags
    agent_tokens: Floats
    human_tokens: Floats
    final: Floats
    final_missing: Flags
    lost: Floats
    coarse: Floats
    tags: Coded[tuple[str, ...]]
    reviewers: Coded[tuple[str, ...]]
    review_rating: Floats
    comments: Floats
    process: Mapping[str, Floats]
    effort: Mapping[str, Floats]
    starts: Integers
    rounds: Rounds

    def __len__(self) -> int:
        return len(self.session)

    def group(self, row: int, labels: Iterable[str]) -> dict[str, str]:
        """The labels that a session has, of some."""
        pairs = [(name, self.labels[name].of(row)) for name in labels if name in self.labels]
        return {name: value for name, value in pairs if value is not None}

    def grouped(
        self, rows: Integers, labels: Iterable[str]
    ) -> list[tuple[dict[str, str], Integers]]:
        """Groups some sessions by labels.

        The label ``tag`` means the tags by reviewers, unless sessions have a label of that name.
        A session with several tags is in the group of each.

        Args:
            rows: which sessions.
            labels: which labels; a session without one of them is in a group without it.

        Returns:
            The labels and the rows of each group, in the order of their labels.
        """
        names = list(labels)
        if TAG in names and self.by_tag:
            rest = [name for name in names if name != TAG]
            found = [
                ({name: {**group, **tag}[name] for name in names if name in {**group, **tag}}, some)
                for tag, members in self._tagged(rows)
                for group, some in self.grouped(members, rest)
            ]
            return sorted(found, key=lambda one: tuple(one[0].items()))
        names = [name for name in labels if name in self.labels]
        group = np.zeros(len(rows), np.int64)
        for name in names:
            coded = self.labels[name]
            group = group * (len(coded.values) + 1) + coded.codes[rows] + 1
            group = np.unique(group, return_inverse=True)[1]
        order = np.argsort(group, kind="stable")
        members = np.split(rows[order], np.flatnonzero(np.diff(group[order])) + 1)
        found = [(self.group(int(some[0]), names), some) for some in members if len(some)]
        return sorted(found, key=lambda one: tuple(one[0].items()))

    @property
    def by_tag(self) -> bool:
        """Whether the label ``tag`` means the tags by reviewers."""
        return TAG not in self.labels and any(self.tags.values)

    def _tagged(self, rows: Integers) -> list[tuple[dict[str, str], Integers]]:
        """Some sessions by tag; those without any come first."""
        found: list[tuple[dict[str, str], Integers]] = []
        untagged = rows[~self.tags.flags(bool)[rows]]
        if len(untagged):
            found.append(({}, untagged))
        for tag in sorted({tag for tags in self.tags.counts(rows) for tag in tags}):
            having = self.tags.flags(partial(_holds, tag))
            found.append(({TAG: tag}, rows[having[rows]]))
        return found

    def problems(self, rows: Integers) -> Integers:
        """The problem of some sessions as a number, by task and key; -1 if it is not known."""
        known = np.array([problem != "" for problem in self.problem.values] + [False])
        codes = self.problem.codes[rows].astype(np.int64)
        task = self.labels.get("task")
        if task is not None:
            codes = codes * (len(task.values) + 1) + task.codes[rows] + 1
        return np.where(known[self.problem.codes[rows]], codes, -1)

    def take(self, rows: Integers) -> Columns:
        """The columns of some sessions, in the order in which they are named."""
        if np.array_equal(rows, np.arange(len(self))):
            return self
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        at = np.repeat(self.starts[:-1][rows] - starts[:-1], lengths) + np.arange(starts[-1])
        rounds = self.rounds
        taken = {
            name: getattr(rounds, name)[at] for name in rounds.__struct_fields__ if name != "effort"
        }
        columns: dict[str, Any] = {
            "session": [self.session[row] for row in rows.tolist()],
            "starts": starts,
            "rounds": Rounds(effort=lambda name: rounds.effort(name)[at], **taken),
        }
        for name in self.__struct_fields__:
            column = getattr(self, name)
            if name in columns:
                continue
            if isinstance(column, Mapping):
                columns[name] = {key: _taken(one, rows) for key, one in column.items()}
            else:
                columns[name] = _taken(column, rows)
        return Columns(**columns)


def _holds(tag: str, tags: tuple[str, ...]) -> bool:
    return tag in tags


def _taken(column: Array | Coded[Any], rows: Integers) -> Array | Coded[Any]:
    return column.take(rows) if isinstance(column, Coded) else column[rows]


def column_of(values: Iterable[float | None]) -> Floats:
    """A column of numbers, None for a missing one."""
    return np.array([*values], np.float64)


def columns_of(source: Columns | Iterable[Trajectory]) -> Columns:
    """The columns of trajectories; columns stay as they are."""
    if isinstance(source, Columns):
        return source
    builder = ColumnsBuilder()
    for trajectory in source:
        builder.add(rows_of(trajectory))
    return builder.columns()


_NUMBERS: Final = (
    "forked_version",
    "forked_at",
    "agent_tokens",
    "human_tokens",
    "final",
    "lost",
    "coarse",
    "review_rating",
    "comments",
)
_CODED: Final = (
    "state",
    "instance",
    "problem",
    "scorer",
    "candidates",
    "judges",
    "faults",
    "measures",
    "forked_from",
    "tags",
    "reviewers",
)
_FLAGS: Final = ("baseline", "evaluated", "output", "silent", "estimated", "final_missing")
_ROUND_FLAGS: Final = ("pending", "updated", "stale", "closing")
_BLOCK: Final = 1 << 12  # sessions that become arrays together


@final
class ColumnsBuilder:
    """Builds columns from the rows of sessions, some sessions at a time.

    Of each session it keeps only the values in the columns.
    """

    def __init__(self) -> None:
        self._waiting: list[Folded] = []
        self._session: list[str] = []
        self._lengths: list[int] = []
        self._rounds = 0
        self._parts: dict[str, list[tuple[int, Array]]] = {}
        self._known: dict[str, dict[Hashable, int]] = {}

    def add(self, folded: Folded) -> None:
        """Adds a session."""
        self._waiting.append(folded)
        if len(self._waiting) >= _BLOCK:
            self._flush()

    def columns(self) -> Columns:
        """The columns of all sessions so far; nothing can be added after this."""
        self._flush()
        count = len(self._session)
        starts = np.concatenate([[0], np.cumsum(self._lengths, dtype=np.int64)])
        last, begun = starts[1:] - 1, np.diff(starts) > 0
        effort = {name[1:]: self._of(name, self._rounds) for name in self._parts if name[0] == "~"}
        columns: dict[str, Any] = {name: self._of(name, count) for name in (*_NUMBERS, *_FLAGS)}
        flags: dict[str, Any] = {name: self._of(name, self._rounds) for name in _ROUND_FLAGS}
        for name in _CODED:
            columns[name] = self._coded(name, count)
        return Columns(
            session=self._session,
            labels={name[1:]: self._coded(name, count) for name in self._parts if name[0] == "="},
            process={name: self._of(f"process_{name}", count) for name in PROCESS_MEASURES},
            effort={name: np.where(begun, column[last], np.nan) for name, column in effort.items()},
            starts=starts,
            rounds=Rounds(
                utility=self._of("utility", self._rounds),
                value=self._of("value", self._rounds),
                rating=self._of("rating", self._rounds),
                effort=lambda name: effort.get(name, np.full(self._rounds, np.nan)),
                **flags,
            ),
            **columns,
        )

    def _flush(self) -> None:
        """Makes arrays of the rows that wait."""
        at, round_at = len(self._session), self._rounds
        rows = [one.session for one in self._waiting]
        points = [point for one in self._waiting for point in one.rounds]
        ends = [one.rounds[-1].effort if one.rounds else None for one in self._waiting]
        self._session += [row.session for row in rows]
        self._lengths += [len(one.rounds) for one in self._waiting]
        self._rounds += len(points)
        self._waiting = []
        for name in _NUMBERS:
            self._put(name, at, _given([*map(attrgetter(name), rows)]))
        for name in _FLAGS:
            self._put(name, at, np.array([*map(attrgetter(name), rows)], np.bool_))
        self._code("state", at, [row.state for row in rows])
        self._code("instance", at, [row.instance for row in rows])
        self._code("scorer", at, [row.scorer for row in rows])
        self._code("problem", at, [row.problem for row in rows])
        self._code("candidates", at, [tuple(row.candidates) or None for row in rows])
        self._code("judges", at, [tuple(row.judges) for row in rows])
        self._code("faults", at, [tuple(row.faults.items()) for row in rows])
        self._code("tags", at, [tuple(row.tags) or None for row in rows])
        self._code("reviewers", at, [tuple(row.reviewers) or None for row in rows])
        self._code("forked_from", at, [row.forked_from for row in rows])
        self._code("measures", at, [None if end is None else tuple(end) for end in ends])
        for name in dict.fromkeys(name for row in rows for name in row.labels):
            self._code(f"={name}", at, [row.labels.get(name) for row in rows])
        works = [row.process or _NO_PROCESS for row in rows]
        for name in PROCESS_MEASURES:
            self._put(f"process_{name}", at, column_of(map(attrgetter(name), works)))
        self._put("utility", round_at, _given([*map(attrgetter("utility"), points)]))
        self._put("value", round_at, column_of(map(attrgetter("value"), points)))
        self._put("rating", round_at, np.array([point.rating or 0 for point in points], np.int8))
        for name in _ROUND_FLAGS:
            self._put(name, round_at, np.array([*map(attrgetter(name), points)], np.bool_))
        spent = [point.effort for point in points]
        kinds = set(map(tuple, spent))
        for name in dict.fromkeys(name for names in kinds for name in names):
            # Mostly, all rounds have the same measures.
            get = (
                itemgetter(name)
                if all(name in names for names in kinds)
                else methodcaller("get", name)
            )
            self._put(f"~{name}", round_at, column_of(map(get, spent)))

    def _put(self, name: str, at: int, column: Array) -> None:
        self._parts.setdefault(name, []).append((at, column))

    def _code(self, name: str, at: int, values: Iterable[Hashable]) -> None:
        known = self._known.setdefault(name, {None: -1})
        values = [*values]
        for value in dict.fromkeys(values):
            known.setdefault(value, len(known) - 1)
        self._put(name, at, np.array([*map(known.__getitem__, values)], np.int32))

    def _of(self, name: str, count: int) -> Array:
        """A column of all rows; a label or a measure may have come up late."""
        parts = self._parts[name]
        kind = parts[0][1].dtype
        missing = -1 if name in self._known else np.nan if kind == np.float64 else 0
        column = np.full(count, missing, kind)
        for at, part in parts:
            column[at : at + len(part)] = part
        return column

    def _coded(self, name: str, count: int) -> Coded[Any]:
        values = [value for value in self._known[name] if value is not None]
        return Coded(self._of(name, count), values)


_NO_PROCESS: Final = Process(initiatives={})
_INFINITE: Final = float("inf")


def _given(values: Sequence[float | None]) -> Floats:
    """A column of numbers as they were given: one that is not a number is not taken for a missing one."""
    column = column_of(values)
    missing = np.isnan(column)
    if int(missing.sum()) > values.count(None):
        for at in np.flatnonzero(missing).tolist():
            if values[at] is not None:
                column[at] = _INFINITE
    return column
