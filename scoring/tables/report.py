"""The report on a directory of tables: the numbers of ``metrics.aggregate``, computed by DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import msgspec

from ...engine.errors import InvalidInput
from ..metrics.bootstrap import LEVEL
from ..metrics.buckets import make_buckets, token_ratio
from ..metrics.cells import (
    BASELINE_ITSELF,
    NO_BASELINE,
    Cell,
    Stops,
    absent_utility,
    baseline_group,
    collaboration_group,
    sample_seed,
)
from ..metrics.completion import outcome_shares
from ..metrics.grouping import bucket_labels, chosen_labels, compared_labels
from ..metrics.paper import NEVER, TOO_FEW, middle_length
from ..metrics.process import PROCESS_MEASURES
from ..metrics.results import (
    DEFINITIONS,
    Buckets,
    Convention,
    Counts,
    Estimate,
    Group,
    Report,
    SessionOutcomes,
)
from ..metrics.sample import Sample
from ..metrics.survival import Hazard, hazards, survival_of_counts
from ..metrics.values import BROKEN_OFF
from ..trajectory.options import Options
from ..trajectory.points import NO_SCORE, NOT_EVALUATED
from ..trajectory.tolerance import check_taus
from .labels import matching, named, selected
from .layout import load_manifest, view_of
from .order import order_warnings
from .query import COUNTED, EFFORTS, FORKED, Tables, label_of, listed, quoted
from .rows import COLUMNS
from .values import (
    WALKED,
    Stored,
    Value,
    cut_reached_at,
    effort_columns,
    formal_columns,
    formal_stop,
    paper_columns,
    reached_at,
    walk_columns,
)

if TYPE_CHECKING:
    from .folding import Integers

__all__ = ("TablesReport", "report_tables")

_JUDGES: Final = f"SELECT DISTINCT unnest(judges) FROM all_sessions WHERE {COUNTED}"

_THREADS: Final = 2
"""Groups at once. Each more takes the memory of its columns, and draws in a thread of its own."""


class TablesReport(msgspec.Struct, frozen=True):
    """A report on tables.

    Attributes:
        report: without sessions one by one.
        forks: how many forks were left out, since their origins are there.
    """

    report: Report
    forks: int


def report_tables(
    directory: Path,
    options: Options,
    *,
    convention: Convention = "formal",
    group_by: Sequence[str] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    whole: bool = True,
) -> TablesReport:
    """Computes the paper's numbers for each group of the sessions in a directory of tables.

    They are those of ``aggregate`` on the same sessions, to the last digits.

    Args:
        directory: of the tables.
        options: how they are scored, and the tolerances.
        convention: as ``aggregate``.
        group_by: the labels to group by.
        bootstrap: resamples for the intervals.
        seed: seeds the resampling.
        whole: also intervals of curves and of measures of effort, and buckets by ratio of tokens, which
            the table does not show.

    Raises:
        InvalidInput: the tables are not scored in this way, a file cannot be read, or an argument is
            not valid.
        MissingExtra: DuckDB is not installed.
    """
    taus = check_taus(options.taus)
    wanted = view_of(options)
    view = load_manifest(directory).find(wanted)
    if view is None or not view.parts:
        raise InvalidInput(
            f"{directory} has no closed session with rounds by {wanted.convention}, utility "
            f"{wanted.utility} and judge {wanted.judge}: export the log with these options"
        )
    if view.columns != COLUMNS or view.definitions != DEFINITIONS:
        raise InvalidInput(
            f"another version of Duolog wrote {directory}: export the log there again"
        )
    if bootstrap < 0:
        raise InvalidInput(f"the number of bootstrap resamples is {bootstrap}: give 0 or more")
    formal = convention == "formal"
    tables = Tables(directory, view, taus if formal else sorted({*taus, NEVER}), formal=formal)
    try:
        return _TablesFold(tables, convention, taus, bootstrap, seed, whole=whole).report(group_by)
    finally:
        tables.close()


@final
class _TablesFold:
    def __init__(
        self,
        tables: Tables,
        convention: Convention,
        taus: tuple[int, ...],
        bootstrap: int,
        seed: int,
        *,
        whole: bool,
    ) -> None:
        self._tables = tables
        self._convention = convention
        self._formal = convention == "formal"
        self._taus = taus
        self._bootstrap = bootstrap
        self._seed = seed
        self._whole = whole

    def report(self, group_by: Sequence[str] | None) -> TablesReport:
        """All of it."""
        rows, number = self._tables.rows, self._tables.number
        labels = chosen_labels(
            self._tables.labels, group_by, some=number("SELECT count(*) FROM cells") > 0
        )
        keys = sorted(
            (bool(baseline), tuple(named(labels, values)))
            for baseline, *values in rows(f"SELECT DISTINCT baseline{selected(labels)} FROM cells")
        )
        with ThreadPoolExecutor(_THREADS) as pool:
            warnings = pool.submit(self._order_warnings)
            groups = self._groups(labels, keys, pool)
        forks = number(f"SELECT count(*) FROM all_sessions WHERE {FORKED}")
        lost = number("SELECT count(*) FROM all_sessions") - forks
        lost -= number("SELECT count(*) FROM cells")
        report = Report(
            convention=self._convention,
            taus=self._taus,
            group_by=labels,
            level=LEVEL,
            resamples=self._bootstrap,
            seed=self._seed,
            groups=tuple(groups),
            buckets=self._buckets(labels) if self._whole else (),
            scores=(),
            judges=tuple(sorted(name for (name,) in rows(_JUDGES))),
            warnings=warnings.result(),
            forgotten=lost,
        )
        return TablesReport(report, forks)

    def _order_warnings(self) -> tuple[str, ...]:
        return order_warnings(self._tables, self._taus) if self._formal else ()

    # --- groups ----------------------------------------------------------------------------------

    def _groups(
        self,
        labels: Sequence[str],
        keys: Iterable[tuple[bool, tuple[tuple[str, str], ...]]],
        pool: Executor,
    ) -> list[Group]:
        groups: list[Future[Group]] = []
        references: dict[tuple[tuple[str, str], ...], Estimate] = {}
        for baseline, mine in keys:
            where = f"baseline = {baseline} AND {matching(labels, dict(mine))}"
            beside = compared_labels(mine)
            if baseline:
                groups.append(pool.submit(self._baseline, dict(mine), where))
                continue
            if beside not in references:
                references[beside] = self._reference(dict(beside))
            reference = references[beside]
            groups.append(pool.submit(self._collaboration, dict(mine), where, reference))
        return [group.result() for group in groups]

    def _baseline(self, labels: Mapping[str, str], where: str) -> Group:
        cell = self._cell(labels, where, published=False)
        columns: dict[str, Value] = {"performance": "performance"}
        columns |= effort_columns(cell.measures, published=not self._formal)
        sample = self._sample(columns, where, "baseline", labels)
        return baseline_group(cell, sample, BASELINE_ITSELF, self._taus)

    def _collaboration(self, labels: Mapping[str, str], where: str, reference: Estimate) -> Group:
        cell = self._cell(labels, where, published=not self._formal)
        max_step = None
        if self._formal:
            columns, walked = formal_columns(self._taus), WALKED
            stopped = [reached_at(tau) for tau in self._taus]
            (length,) = self._tables.rows(
                f"SELECT coalesce(max(last), 0) FROM cells WHERE {where} AND {walked}"
            )[0]
        else:
            lengths = self._tables.rows(
                f"SELECT n FROM cells WHERE {where} AND n > 0 AND NOT silent ORDER BY n"
            )
            max_step = middle_length([n for (n,) in lengths])
            columns, length = paper_columns(self._taus, max_step), max_step or 0
            walked = "false" if max_step is None else "walked"
            stopped = [cut_reached_at(tau, max_step or 0) for tau in self._taus]
        valued = "missing IS NULL" if self._formal else walked
        counts = self._counts_of(
            {
                "valued": valued,
                "results": f"{valued} AND result_only AND {self._formal}",
                "unrated": f"{valued} AND NOT rated",
                **{f"round {k}": f"{walked} AND last >= {k}" for k in range(1, length + 1)},
                **{
                    f"{kind} {tau}": f"{valued} AND {condition}"
                    for tau, at in zip(self._taus, stopped, strict=True)
                    for kind, condition in self._stop_conditions(tau, at)
                },
            },
            where,
        )
        columns |= walk_columns(walked, length)
        columns |= effort_columns(cell.measures, published=not self._formal)
        columns |= {f"process {name}": Stored(f"process_{name}") for name in PROCESS_MEASURES}
        without = [f"round {k}" for k in range(1, length + 1)]
        without += [f"effort {name}" for name in cell.measures]
        sample = self._sample(
            columns, where, "group", labels, without=() if self._whole else without
        )
        cell = cell._replace(
            absent=TOO_FEW if not self._formal and max_step is None else cell.absent,
            valued=counts["valued"],
            results=counts["results"],
            unrated=counts["unrated"],
            stops=tuple(
                [
                    Stops(
                        *[counts[f"{kind} {tau}"] for kind in ("stopped", "unrated", "cut short")]
                    )
                    for tau in self._taus
                ]
            ),
            reached=tuple([counts[f"round {k}"] for k in range(1, length + 1)]),
            max_step=max_step,
        )
        return collaboration_group(cell, sample, reference, self._taus, formal=self._formal)

    def _stop_conditions(self, tau: int, at: str) -> list[tuple[str, str]]:
        """Who stops at a tolerance, and who is left out, and why."""
        without = f"({formal_stop(tau)}) IS NULL" if self._formal else "false"
        return [
            ("stopped", f"{at} > 0"),
            ("unrated", f"{without} AND NOT rated"),
            ("cut short", f"{without} AND rated AND NOT result_only"),
        ]

    def _cell(self, labels: Mapping[str, str], where: str, *, published: bool) -> Cell:
        """What is counted alike under both conventions."""
        rows = self._tables.rows
        reasons: dict[str | None, int] = dict(
            rows(f"SELECT missing, count(*) FROM cells WHERE {where} GROUP BY missing")
        )
        states = dict(rows(f"SELECT state, count(*) FROM cells WHERE {where} GROUP BY state"))
        sessions = sum(states.values())
        return Cell(
            labels=labels,
            sessions=sessions,
            absent=absent_utility(reasons),
            counts=self._counts(reasons, where, published=published),
            completion=self._completion(states, where),
            measures=EFFORTS
            if self._tables.number(f"SELECT count(*) FROM cells WHERE {where} AND n > 0")
            else (),
        )

    def _counts(self, reasons: Mapping[str | None, int], where: str, *, published: bool) -> Counts:
        silent = "(silent OR n IS NULL)" if published else "n IS NULL"
        sums = "n", "stale_points", "missing_ratings", "pending_ratings", "closing_rounds"
        listed_sums = ", ".join(f"coalesce(sum({name}), 0)" for name in sums)
        (totals,) = self._tables.rows(f"SELECT {listed_sums} FROM cells WHERE {where}")
        rounds, stale, missing, pending, closing = map(int, totals)
        counts = self._counts_of(
            {
                "estimated": "estimated",
                "unscored": f"NOT baseline AND missing IS NULL AND update_stale AND {not published}",
                "results": f"NOT baseline AND result_only AND {not published}",
                "unrated": "NOT baseline AND NOT rated",
                "broken": f"baseline AND state IN ({listed(BROKEN_OFF)})",
                "closing": "n > 0 AND k = 0",
                "silent": silent,
                "open": "state = 'open'",
                "faulty": "list_max(map_values(faults)) > 0",
            },
            where,
        )
        faults = self._tables.rows(
            "SELECT fault.key, sum(fault.value) FROM (SELECT unnest(map_entries(faults)) AS fault "
            f"FROM cells WHERE {where}) GROUP BY 1 ORDER BY 1"
        )
        return Counts(
            total_rounds=rounds,
            stale_points=stale,
            missing_ratings=missing,
            pending_ratings=pending,
            estimated_tokens=counts["estimated"],
            unvalued_sessions=sum(
                count
                for why, count in reasons.items()
                if why is not None and not (published and why == NO_SCORE)
            ),
            unevaluated_sessions=reasons.get(NOT_EVALUATED, 0),
            failed_sessions=reasons.get(NO_SCORE, 0),
            unscored_first=counts["unscored"],
            result_only=counts["results"],
            unrated_sessions=counts["unrated"],
            broken_baselines=counts["broken"],
            closing_rounds=closing,
            closing_only=counts["closing"],
            silent_sessions=counts["silent"],
            open_sessions=counts["open"],
            faulty_sessions=counts["faulty"],
            faults={kind: int(count) for kind, count in faults},
        )

    def _counts_of(self, conditions: Mapping[str, str], where: str) -> dict[str, int]:
        """How many sessions meet each condition."""
        filters = ", ".join(f"count(*) FILTER ({one})" for one in conditions.values())
        (found,) = self._tables.rows(f"SELECT {filters} FROM cells WHERE {where}")
        return dict(zip(conditions, found, strict=True))

    def _completion(self, states: Mapping[str, int], where: str) -> SessionOutcomes:
        lengths = self._tables.rows(
            f"SELECT coalesce(k, 0), left_early, count(*) FROM cells WHERE {where} GROUP BY ALL"
        )
        rated = self._counts_of({"rated": "rated"}, where)["rated"]
        return SessionOutcomes(
            outcomes=outcome_shares(states),
            survival=survival_of_counts({(k, left): count for k, left, count in lengths}),
            hazard=self._hazard(where) if rated else (),
        )

    def _hazard(self, where: str) -> tuple[Hazard, ...]:
        found = self._tables.columns(f"SELECT place, left_early FROM cells WHERE {where} AND k > 0")
        runs, last = self._tables.rounds.stalls(found["place"])
        return hazards(_tally(runs), _tally(last[found["left_early"]]))

    # --- samples ---------------------------------------------------------------------------------

    def _sample(
        self,
        columns: Mapping[str, Value],
        where: str,
        kind: str,
        labels: Mapping[str, str],
        *,
        without: Iterable[str] = (),
    ) -> Sample:
        return Sample.of_arrays(
            self._tables.arrays(columns, where),
            self._bootstrap,
            sample_seed(self._seed, kind, labels),
            intervals=set(columns) - set(without),
        )

    def _reference(self, beside: Mapping[str, str]) -> Estimate:
        """Mean final performance of the automated runs whose labels do not contradict a row's."""
        same = [
            f"coalesce({label_of(name)}, {quoted(value)}) = {quoted(value)}"
            for name, value in beside.items()
        ]
        where = " AND ".join(["baseline", *same])
        sample = self._sample({"performance": "performance"}, where, "reference", beside)
        return sample.estimate("performance", absent=NO_BASELINE)

    def _buckets(self, labels: Sequence[str]) -> tuple[Buckets, ...]:
        pooled = bucket_labels(labels)
        found = self._tables.rows(
            f"SELECT DISTINCT 1{selected(pooled)} FROM cells WHERE NOT baseline"
        )
        keys = sorted(tuple(named(pooled, values)) for _, *values in found)
        return tuple([self._bucket(pooled, dict(key)) for key in keys])

    def _bucket(self, pooled: Sequence[str], mine: Mapping[str, str]) -> Buckets:
        rows = self._tables.rows(
            "SELECT agent_tokens, human_tokens, performance FROM cells "
            f"WHERE NOT baseline AND {matching(pooled, mine)}"
        )
        rated = [
            (ratio, performance)
            for agent, human, performance in rows
            if (ratio := token_ratio(agent, human, self._convention)) is not None
        ]
        return make_buckets(mine, rated, self._bootstrap, sample_seed(self._seed, "buckets", mine))


def _tally(numbers: Integers) -> dict[int, int]:
    """How often each number occurs."""
    import numpy as np

    counts = np.bincount(numbers).tolist()
    return {number: count for number, count in enumerate(counts) if count}
