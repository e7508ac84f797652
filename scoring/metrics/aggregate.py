"""From columns to a report: grouping, and the numbers of each group.

What ``first``, ``final``, ``overall``, ``gain`` and ``drop`` mean is stated in ``formal`` and
``paper``, a module for each convention. Common to both: an interval is a seeded bootstrap over
sessions (95 %, see ``sample``), and an absent number is None with a reason, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Final, NamedTuple, final

import msgspec
import numpy as np

from ...engine.errors import InvalidInput
from ...engine.log.summary import FORGOTTEN
from ...engine.text import quantity, suggestion
from ..columns.rows import PROCESS_MEASURES
from ..columns.table import TAG, Columns, Flags, Floats, Integers
from ..trajectory.points import NO_ROUND, UNDECIDED, Trajectory, undecided
from ..trajectory.tolerance import check_taus
from .buckets import make_buckets, token_ratios
from .curves import UNITS, effort_curve, round_columns, round_curve
from .formal import formal_values
from .numbers import known, whole
from .paper import TOO_FEW, cut_length, is_silent, paper_values
from .results import (
    MOST_MISSING,
    OUTCOMES,
    Bounds,
    Buckets,
    Convention,
    Counts,
    CurvePoint,
    Drop,
    Effort,
    EffortAxis,
    Estimate,
    Group,
    Numbers,
    SessionOutcomes,
    SessionScore,
    Share,
)
from .sample import LARGE, LEVEL, Column, Sample, change, difference, ratio
from .survival import hazards, survival_of_counts, wilson
from .values import BROKEN_OFF, MISSING, Facts, Values, facts_of
from .variance import variance_components

__all__ = (
    "LABELS",
    "absent_utility",
    "aggregate",
    "chosen_labels",
    "drop_columns",
    "drops_of",
    "sample_seed",
)

LABELS: Final = ("agent", "model", "user", "task")
"""The labels by which sessions are grouped unless said otherwise, as far as they occur."""

_BESIDE: Final = frozenset({"agent", "user"})
"""Labels in which an automated run may differ from the row that it is compared with."""

_ELSEWHERE: Final = frozenset({"agent_tokens", "human_tokens", "token_ratio"})
"""Measures of a session whose aggregates are the tokens of either side and their ratio."""

_DEFERRED: Final = "deferrals_after_unproductive"
"""Deferrals in rounds that follow an unproductive one: a burden that the human defers."""

_NAMES: Final = {"rounds": "human_led_rounds"}
"""Names in a report, where ``rounds`` alone would leave open which rounds."""

_ITSELF: Final = Estimate(reason="an automated run itself")
_AUTOMATED: Final = Estimate(reason="automated runs: there is no collaboration to measure")
_NO_BASELINE: Final = "no automated run to compare with"
_NO_FIRST: Final = "the first update of every session has no score"
_NO_OUTPUT: Final = "without a shared output there is no first update"
_RESULTS: Final = "only the results of these sessions were measured, and nothing before them"
_UNRATED: Final = "no round of these sessions was rated"
_EARLY: Final = "every session is unrated, or its human left before τ could be reached"
_NO_WHOLE: Final = "no session has all its events on record"
_NO_PROCESS: Final = "no session has messages of a human and an agent to measure it by"
_LINEARISED: Final = (
    f"intervals of groups of more than {LARGE:,} sessions are linearised, not resampled"
)


def aggregate(
    source: Facts | Columns | Iterable[Trajectory],
    *,
    convention: Convention = "formal",
    taus: Sequence[int] = (1, 2, 3),
    group_by: Sequence[str] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    scores: bool = True,
    axis: EffortAxis = "rounds",
) -> Numbers:
    """Computes the paper's numbers for each group of sessions.

    Args:
        source: the sessions, collaborating ones and automated runs, in any order.
        convention: ``formal`` reads the formulas of the paper's section 3 to the letter;
            ``paper`` computes as the published analysis does.
        taus: the tolerances τ to give the drop for.
        group_by: the labels to group by; by default those of ``LABELS`` that occur.
        bootstrap: resamples for the intervals; 0 for none.
        seed: seeds the resampling. The same sessions and seed give the same intervals.
        scores: list each session with its own numbers.
        axis: the effort that the curves have as their axis.

    Returns:
        The report; without groups if there are no sessions.

    Raises:
        InvalidInput: an argument is not valid, no session has a label to group by, or a utility is
            not within 0 and 1.
    """
    if convention not in ("formal", "paper"):
        raise InvalidInput(f"unknown convention {convention!r}: choose 'formal' or 'paper'")
    if bootstrap < 0:
        raise InvalidInput(f"the number of bootstrap resamples is {bootstrap}: give 0 or more")
    facts = facts_of(source)
    kept = ~facts.columns.state.flags(FORGOTTEN.__eq__)
    facts = facts.take(kept)
    facts.check_range()
    ordered = check_taus(taus)
    labels = chosen_labels(facts.columns, group_by)
    if TAG in labels and facts.columns.by_tag and convention == "paper":
        raise InvalidInput(
            "a session can have several tags, and the published analysis cuts each group by itself: "
            "group by tag under the convention 'formal'"
        )
    report = _ReportFold(
        facts, convention, ordered, labels, bootstrap, seed, scores=scores, axis=axis
    ).report()
    return msgspec.structs.replace(report, forgotten=int((~kept).sum()))


def chosen_labels(columns: Columns, group_by: Sequence[str] | None) -> tuple[str, ...]:
    """The labels to group by.

    Args:
        columns: the sessions.
        group_by: those that are asked for; None for those of ``LABELS`` that occur.

    Raises:
        InvalidInput: no session has a label that is asked for.
    """
    present = {name for name, coded in columns.labels.items() if (coded.codes >= 0).any()}
    if group_by is None:
        return tuple([name for name in LABELS if name in present])
    if columns.by_tag:
        present.add(TAG)
    for name in group_by:
        if name == TAG and len(columns) and name not in present:
            raise InvalidInput(
                "no reviewer has tagged a session to group by: duolog review LOG SESSION --tag TAG --reviewer NAME"
            )
        if len(columns) and name not in present:
            known = suggestion(name, present) if present else "; sessions have none"
            raise InvalidInput(f"no session has a label {name!r} to group by{known}")
    return tuple(dict.fromkeys(group_by))


def sample_seed(seed: int, kind: str, labels: Mapping[str, str]) -> str:
    """The seed for the resampling of a group."""
    return f"{seed}/{kind}/{sorted(labels.items())}"


@final
class _ReportFold:
    def __init__(
        self,
        facts: Facts,
        convention: Convention,
        taus: tuple[int, ...],
        labels: tuple[str, ...],
        resamples: int,
        seed: int,
        *,
        scores: bool,
        axis: EffortAxis,
    ) -> None:
        self._facts = facts
        self._axis = axis
        self._columns = facts.columns
        self._convention = convention
        self._formal = convention == "formal"
        self._taus = taus
        self._labels = labels
        self._resamples = resamples
        self._seed = seed
        self._scores = scores

    def report(self) -> Numbers:
        """All of it."""
        columns = self._columns
        whole, automated = (
            columns.grouped(np.flatnonzero(columns.baseline == baseline), self._labels)
            for baseline in (False, True)
        )
        cuts = [None if self._formal else cut_length(self._facts, rows) for _, rows in whole]
        values = self._values([rows for _, rows in whole], cuts)
        groups: list[Group] = []
        scores: list[SessionScore] = []
        references: dict[tuple[tuple[str, str], ...], Estimate] = {}
        for (labels, rows), cut in zip(whole, cuts, strict=True):
            shared = tuple(
                [one for one in labels.items() if one[0] in columns.labels.keys() - _BESIDE]
            )
            if shared not in references:
                references[shared] = self._reference(dict(shared))
            groups.append(self._collaboration(labels, rows, values, cut, references[shared]))
            scores += self._listed(labels, rows, values)
        for labels, rows in automated:
            groups.append(self._baseline(labels, rows))
            scores += self._listed(labels, rows, None)
        large = any(group.sessions > LARGE for group in groups)
        everybody = np.arange(len(columns))
        return Numbers(
            convention=self._convention,
            taus=self._taus,
            group_by=self._labels,
            level=LEVEL,
            resamples=self._resamples,
            seed=self._seed,
            axis=self._axis,
            groups=tuple(groups),
            buckets=self._buckets(),
            scores=tuple(scores),
            scorers=tuple(sorted(columns.scorer.counts(everybody))),
            candidates=choices_of(columns, everybody),
            judges=tuple(
                sorted({name for some in columns.judges.counts(everybody) for name in some})
            ),
            warnings=(_LINEARISED,) if large and self._resamples else (),
        )

    def _values(self, groups: Iterable[Integers], cuts: Iterable[int | None]) -> Values:
        if self._formal:
            return formal_values(self._facts, self._taus)
        each = np.zeros(len(self._columns), np.int64)
        for rows, cut in zip(groups, cuts, strict=True):
            each[rows] = cut or 0
        return paper_values(self._facts, self._taus, each)

    # --- groups ----------------------------------------------------------------------------------

    def _sample(
        self,
        columns: Mapping[str, Column],
        kind: str,
        labels: Mapping[str, str],
        rows: Integers,
    ) -> Sample:
        """The columns of some sessions; those on one problem are drawn together if problems repeat."""
        seed = sample_seed(self._seed, kind, labels)
        clusters = self._columns.problems(rows) if self._formal else None
        if clusters is not None:
            known = clusters[clusters >= 0]
            repeated = len(known) and np.bincount(known).max() > 1
            clusters = clusters if repeated else None
        return Sample(columns, self._resamples, seed, clusters)

    def _baseline(self, labels: Mapping[str, str], rows: Integers) -> Group:
        """Automated runs: mean final performance, and effort."""
        columns: dict[str, Column] = {"performance": self._facts.performance[rows]}
        columns |= self._effort_columns(rows)
        sample = self._sample(columns, "baseline", labels, rows)
        return Group(
            group=labels,
            sessions=len(rows),
            baseline=True,
            first=_AUTOMATED,
            final=sample.estimate("performance", absent=absent_utility(self._facts, rows)),
            overall=_AUTOMATED,
            gain_abs=_AUTOMATED,
            gain_rel=_AUTOMATED,
            drops=tuple(
                [
                    Drop(tau=tau, abs=_AUTOMATED, rel=_AUTOMATED, sessions=0, stopped=0)
                    for tau in self._taus
                ]
            ),
            curve=(),
            effort=self._effort(sample, rows),
            counts=self._counts(rows, published=False),
            completion=self._completion(rows),
            reference=_ITSELF,
            process=dict.fromkeys(PROCESS_MEASURES, _AUTOMATED),
            bounds=self._bounds({"final": self._facts.performance[rows]}, rows)
            if self._formal
            else {},
        )

    def _collaboration(
        self,
        labels: Mapping[str, str],
        rows: Integers,
        values: Values,
        cut: int | None,
        reference: Estimate,
    ) -> Group:
        """Sessions with a human: all numbers under the convention."""
        formal = self._formal
        absent = absent_utility(self._facts, rows) if formal or cut is not None else TOO_FEW
        columns: dict[str, Column] = {
            name: partial(column.__getitem__, rows)
            for name, column in (
                ("first", values.first),
                ("final", values.final),
                ("overall", values.overall),
                ("gain", values.gain),
            )
        }
        columns |= drop_columns(values, rows, formal=formal)
        walk, reached = round_columns(self._facts, values, rows, None if formal else cut or 0)
        columns |= walk | self._effort_columns(rows)
        columns |= {
            f"process {name}": partial(self._whole, self._columns.process[name], rows)
            for name in PROCESS_MEASURES
        }
        sample = self._sample(columns, "group", labels, rows)
        valued = int(values.valued[rows].sum())
        posed = int((values.valued & self._columns.output)[rows].sum())
        unscored = absent
        if valued:
            unscored = _NO_FIRST if posed else _NO_OUTPUT
            if 0 < posed < valued:
                unscored = f"{_NO_FIRST}, or the session lacks an output"
        return Group(
            group=labels,
            sessions=len(rows),
            baseline=False,
            first=sample.estimate("first", absent=unscored),
            final=sample.estimate("final", absent=absent),
            overall=sample.estimate("overall", absent=absent),
            gain_abs=sample.estimate("gain", absent=unscored),
            gain_rel=sample.estimate(
                "gain",
                "first",
                formula=ratio,
                absent=unscored,
                undefined="the utility at the first update, to which it relates, is 0",
            ),
            drops=drops_of(
                self._facts,
                values,
                rows,
                sample,
                rated=self._facts.is_rated,
                absent=absent,
                formal=formal,
            ),
            curve=self._curve(sample, rows, reached),
            effort=self._effort(sample, rows),
            counts=self._counts(rows, published=not formal),
            completion=self._completion(rows),
            reference=reference,
            max_step=cut,
            process={
                name: sample.estimate(f"process {name}", absent=_NO_PROCESS)
                for name in PROCESS_MEASURES
            },
            bounds=self._bounds(
                {
                    "first": values.first[rows],
                    "final": values.final[rows],
                    "overall": values.overall[rows],
                },
                rows,
            )
            if formal
            else {},
            variance=variance_components(values.overall[rows], self._columns.problems(rows))
            if formal
            else None,
        )

    def _bounds(self, columns: Mapping[str, Floats], rows: Integers) -> dict[str, Bounds]:
        """What means could be, if enough of their values failed to be measured.

        Args:
            columns: the values of the group's sessions, by name; not a number if one is missing.
            rows: the sessions.
        """
        evaluated = self._columns.evaluated[rows]
        found = {}
        for name, column in columns.items():
            asked = evaluated & self._columns.output[rows] if name == "first" else evaluated
            values = column[asked]
            missing = int(np.isnan(values).sum())
            if missing > MOST_MISSING * len(values):
                total = float(np.nansum(values))
                found[name] = Bounds(
                    low=total / len(values),
                    high=(total + missing) / len(values),
                    missing=missing,
                    sessions=len(values),
                )
        return found

    def _reference(self, shared: Mapping[str, str]) -> Estimate:
        """Mean final performance of the automated runs whose labels do not contradict a row's."""
        columns = self._columns
        which = columns.baseline.copy()
        for name, value in shared.items():
            coded = columns.labels[name]
            which &= coded.flags(value.__eq__) | (coded.codes < 0)
        rows = np.flatnonzero(which)
        column: dict[str, Column] = {"performance": self._facts.performance[rows]}
        sample = self._sample(column, "reference", shared, rows)
        return sample.estimate("performance", absent=_NO_BASELINE)

    # --- effort ----------------------------------------------------------------------------------

    def _curve(self, sample: Sample, rows: Integers, reached: list[int]) -> tuple[CurvePoint, ...]:
        if self._axis == "rounds":
            return round_curve(sample, reached)
        kept = np.zeros(len(self._columns), np.bool_)
        kept[rows] = ~(self._columns.lost[rows] > 0)
        return effort_curve(self._facts.take(kept), self._axis, unit=UNITS[self._axis])

    def _measures(self, rows: Integers) -> list[str]:
        """The measures at the end of a session, but those that a report has under another name."""
        known = self._columns.measures.counts(rows)
        return sorted({name for names in known for name in names} - _ELSEWHERE)

    def _effort_columns(self, rows: Integers) -> dict[str, Column]:
        """Tokens and other effort per session.

        Under ``paper``, sessions without agent tokens are left out of both means, and a missing human
        count is 0. Under ``formal`` a missing count is missing, and the ratio of means is taken over
        the sessions that have both.
        """
        agent = self._whole(self._columns.agent_tokens, rows)
        human = self._whole(self._columns.human_tokens, rows)
        if not self._formal:
            human = np.where(np.isnan(agent), np.nan, np.nan_to_num(human, nan=0.0))
        both = ~np.isnan(agent) & ~np.isnan(human)
        columns: dict[str, Column] = {
            "agent_tokens": agent,
            "human_tokens": human,
            "agent of both": np.where(both, agent, np.nan),
            "human of both": np.where(both, human, np.nan),
            "all_rounds": self._whole(self._facts.rounds.astype(np.float64), rows),
        }
        for name in self._measures(rows):
            columns[f"effort {name}"] = partial(self._whole, self._columns.effort[name], rows)
        columns[_DEFERRED] = partial(self._whole, self._facts.deferred, rows)
        return columns

    def _whole(self, column: Floats, rows: Integers) -> Floats:
        """The values of some sessions; those of sessions of which events were lost are missing."""
        found: Floats = np.where(self._columns.lost[rows] > 0, np.nan, column[rows])
        return found

    def _effort(self, sample: Sample, rows: Integers) -> Effort:
        unknown = "no session has a token count"
        measures = {
            _NAMES.get(name, name): sample.estimate(
                f"effort {name}", absent="the measure does not apply"
            )
            for name in self._measures(rows)
        }
        if "deferrals" in measures:
            measures[_DEFERRED] = sample.estimate(_DEFERRED, absent=_UNRATED)
        return Effort(
            agent_tokens=sample.estimate("agent_tokens", absent=unknown),
            human_tokens=sample.estimate("human_tokens", absent=unknown),
            ratio=sample.estimate(
                "agent of both",
                "human of both",
                formula=ratio,
                absent="no session has token counts of both sides",
                undefined="the humans generated no tokens",
            ),
            all_rounds=sample.estimate("all_rounds", absent=_NO_WHOLE),
            measures=measures,
        )

    # --- counts ----------------------------------------------------------------------------------

    def _counts(self, rows: Integers, *, published: bool) -> Counts:
        columns, facts, tallies = self._columns, self._facts, self._tallies
        reasons = np.bincount(facts.missing[rows], minlength=len(MISSING)).tolist()
        whole = rows[~columns.baseline[rows]]
        faults = columns.faults.counts(rows)
        return Counts(
            total_rounds=int(facts.rounds[rows].sum()),
            stale_points=int(tallies.stale[rows].sum()),
            missing_ratings=int(tallies.missing[rows].sum()),
            pending_ratings=int(tallies.pending[rows].sum()),
            incomplete_sessions=int((columns.lost[rows] > 0).sum()),
            lost_events=int(np.nansum(columns.lost[rows])),
            coarse_sessions=int((columns.coarse[rows] > 0).sum()),
            coarse_versions=int(np.nansum(columns.coarse[rows])),
            estimated_tokens=int(columns.estimated[rows].sum()),
            unvalued_sessions=sum(reasons[1:]) - (reasons[3] if published else 0),
            unevaluated_sessions=reasons[1],
            failed_sessions=reasons[3],
            undecided_sessions=reasons[4],
            unscored_first=0 if published else int(tallies.unscored[whole].sum()),
            without_output=0 if published else int((~columns.output)[whole].sum()),
            result_only=0 if published else int(facts.result_only[whole].sum()),
            unrated_sessions=int((~facts.is_rated[whole]).sum()),
            broken_baselines=int((columns.baseline[rows] & tallies.broken[rows]).sum()),
            closing_rounds=int((facts.rounds[rows] - facts.counted[rows]).sum()),
            silent_sessions=int(
                (tallies.silent[rows] if published else facts.rounds[rows] == 0).sum()
            ),
            open_sessions=int(tallies.open[rows].sum()),
            faulty_sessions=sum(
                n for found, n in faults.items() if any(count for _, count in found)
            ),
            faults={
                kind: sum(n * dict(found).get(kind, 0) for found, n in faults.items())
                for kind in sorted({kind for found in faults for kind, _ in found})
            },
        )

    @cached_property
    def _tallies(self) -> _Tallies:
        rounds, facts = self._columns.rounds, self._facts
        return _Tallies(
            stale=facts.sum(rounds.stale),
            missing=facts.sum((rounds.rating == 0) & ~rounds.pending),
            pending=facts.sum(rounds.pending),
            unscored=facts.valued & facts.flag_at(rounds.stale, facts.update_at),
            broken=self._columns.state.flags(BROKEN_OFF.__contains__),
            open=self._columns.state.flags("open".__eq__),
            silent=is_silent(facts),
        )

    def _completion(self, rows: Integers) -> SessionOutcomes:
        """How the sessions of a group ended.

        Shares are of all sessions, with Wilson intervals. Survival and hazard are of sessions with a
        round that counts; open sessions, and those that ended otherwise, are censored.
        """
        facts = self._facts
        states = self._columns.state.counts(rows)
        names = [name for name in OUTCOMES if name in states] + sorted(states.keys() - {*OUTCOMES})
        left = facts.left[rows]
        lengths = {
            (k, gone): count
            for gone in (False, True)
            for k, count in _tally(facts.counted[rows[left == gone]]).items()
        }
        satisfied = self._columns.state.flags("finished".__eq__)[rows] & ~left
        runs, last = facts.stalls(rows)
        hazard = hazards(_tally(runs), _tally(last)) if facts.is_rated[rows].any() else ()
        return SessionOutcomes(
            outcomes={name: _share(states[name], len(rows)) for name in names},
            survival=survival_of_counts(lengths, finished=_tally(facts.counted[rows[satisfied]])),
            hazard=hazard,
        )

    # --- sessions --------------------------------------------------------------------------------

    def _listed(
        self, labels: Mapping[str, str], rows: Integers, values: Values | None
    ) -> list[SessionScore]:
        if not self._scores:
            return []
        columns, facts = self._columns, self._facts
        scores = [
            SessionScore(
                session=columns.session[row],
                group=labels,
                baseline=values is None,
                all_rounds=int(facts.rounds[row]),
                first=None if values is None else known(values.first[row]),
                final=None if values is None else known(values.final[row]),
                overall=None if values is None else known(values.overall[row]),
                performance=known(facts.performance[row]),
                agent_tokens=whole(columns.agent_tokens[row]),
                human_tokens=whole(columns.human_tokens[row]),
            )
            for row in rows.tolist()
        ]
        return sorted(scores, key=lambda score: score.session)

    def _buckets(self) -> tuple[Buckets, ...]:
        """Buckets per model, and per any other label grouped by, over all collaborating agents."""
        columns = self._columns
        labels = [name for name in self._labels if name != "agent"]
        labels = labels if "model" in labels else ["model", *labels]
        ratios = token_ratios(columns.agent_tokens, columns.human_tokens, self._convention)
        return tuple(
            [
                make_buckets(
                    mine,
                    ratios[rows],
                    self._facts.performance[rows],
                    self._resamples,
                    sample_seed(self._seed, "buckets", mine),
                )
                for mine, rows in columns.grouped(np.flatnonzero(~columns.baseline), labels)
            ]
        )


def absent_utility(facts: Facts, rows: Integers) -> str:
    """Why no session of a group has a utility."""
    known: dict[str, int] = {}
    for code, count in _tally(facts.missing[rows]).items():
        why = MISSING[code] or NO_ROUND  # the others are automated runs that broke off
        if why == UNDECIDED:
            why = undecided(choices_of(facts.columns, rows)) or why
        known[why] = known.get(why, 0) + count
    if len(known) == 1:
        return next(iter(known))
    return "; ".join(f"{quantity(count, 'session')}: {why}" for why, count in sorted(known.items()))


def choices_of(columns: Columns, rows: Integers) -> tuple[str, ...]:
    """The scorers to choose from, over some sessions in which none is chosen."""
    return tuple(sorted({name for some in columns.candidates.counts(rows) for name in some}))


def drop_columns(values: Values, rows: Integers, *, formal: bool) -> dict[str, Column]:
    """The stop utilities of a group, and the reference that they are compared with.

    Under ``formal``, the mean of the reference includes only sessions with a stop utility. The
    published analysis compares with the mean of all sessions.
    """
    columns: dict[str, Column] = {}
    for tau, stops in values.stops.items():
        stop, reference = stops[rows], values.reference[rows]
        columns[f"stop {tau}"] = stop
        columns[f"reference {tau}"] = (
            np.where(np.isnan(stop), np.nan, reference) if formal else reference
        )
    return columns


def drops_of(
    facts: Facts,
    values: Values,
    rows: Integers,
    sample: Sample,
    *,
    rated: Flags,
    absent: str,
    formal: bool,
) -> tuple[Drop, ...]:
    """D@τ of a group.

    Args:
        facts: the facts of all sessions.
        values: the values of all sessions.
        rows: the sessions of the group.
        sample: holds ``drop_columns``.
        rated: which of all sessions have a rating.
        absent: why no session of the group has a utility, if none has one.
        formal: the convention.
    """
    valued = rows[values.valued[rows]]
    unrated = ~rated[valued]
    only = facts.result_only[valued]
    drops = []
    for tau, stops in values.stops.items():
        stopped = int((values.reached[tau][valued] > 0).sum())
        without = np.isnan(stops[valued]) if formal else np.zeros(len(valued), np.bool_)
        names = f"stop {tau}", f"reference {tau}"
        if not len(valued):
            why = absent
        elif unrated.all():
            none = Estimate(reason=_UNRATED)
            drops.append(
                Drop(tau=tau, abs=none, rel=none, sessions=0, stopped=0, unrated=len(valued))
            )
            continue
        elif formal and only.all():
            why = _RESULTS
        else:
            why = _EARLY if formal else f"no session has a round left at τ = {tau}"
        drops.append(
            Drop(
                tau=tau,
                abs=sample.estimate(*names, formula=difference, absent=why),
                rel=sample.estimate(
                    *names,
                    formula=change,
                    absent=why,
                    undefined="the final utility to which it relates is 0",
                ),
                sessions=sample.count(names[0]),
                stopped=stopped,
                unrated=int((without & unrated).sum()),
                cut_short=int((without & ~unrated & ~only).sum()),
            )
        )
    return tuple(drops)


class _Tallies(NamedTuple):
    """Counts of rounds, and flags, by session."""

    stale: Integers
    missing: Integers
    pending: Integers
    unscored: Flags
    broken: Flags
    open: Flags
    silent: Flags


def _tally(numbers: Integers) -> dict[int, int]:
    """How often each number occurs."""
    counts = np.bincount(numbers).tolist()
    return {number: count for number, count in enumerate(counts) if count}


def _share(count: int, sessions: int) -> Share:
    low, high = wilson(count, sessions)
    return Share(count=count, share=count / sessions, low=low, high=high)
