"""The document of a report: the paper's table, effort, process measures, how sessions ended, figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import msgspec
import numpy as np

from ...engine.scorers.choice import split_stream
from ...engine.text import quantity
from ..columns.table import Columns
from ..comparison.sensitivity import (
    Sensitivity,
    change_warnings,
    robustness,
    sensitivity,
)
from ..metrics import (
    Convention,
    Counts,
    EffortAxis,
    Estimate,
    Group,
    Numbers,
    SessionScore,
    aggregate,
)
from ..metrics.results import DropOrder, DropSign
from ..metrics.values import Facts
from ..scorers.progress import RULE_JUDGE
from ..trajectory.labels import STAMPS
from ..trajectory.points import Trajectory
from .document import (
    ABSENT,
    COUNT,
    MEAN,
    NUMBER,
    SHARE,
    Cell,
    Column,
    Document,
    Format,
    Heading,
    Section,
    Table,
    column,
    counts,
    estimate,
    estimates,
    heading,
    noted,
    number,
    numbers,
    percent,
)
from .drawings import Panels, report_figures
from .export import group_estimates, outcomes_of, report_data, report_rows
from .rows import Rows, rows_of

__all__ = ("LISTED", "by_rules_alone", "completeness", "make_report", "report_document")

_SPENT: Final = (
    ("Minutes", "seconds", 60.0, MEAN),
    ("Tokens read", "tokens_read", 1.0, COUNT),
    ("Tokens written", "tokens_written", 1.0, COUNT),
)
"""The effort of the human in the table: title, measure, unit and form."""

_UNMEASURED: Final = "the sessions have no such measure"
_NAMED: Final = 6  # groups that a sentence names
_MOST_TASKS: Final = 5  # that a report of several tasks has a table of
_MOST_ROWS: Final = 8  # of such a table

_Held = TypeVar("_Held", DropSign, DropOrder)

LISTED = 2000
"""Sessions in the lists of a page at most: a page of more would be slow to open."""

_PROCESS: Final[Mapping[str, Mapping[str, str]]] = {
    "Initiatives": {
        "Agent": "agent_initiatives",
        "Human": "human_initiatives",
        "Entropy": "initiative_entropy",
    },
    "Confirmations": {"Asked": "confirmations_asked"},
    "Approvals": {"Given": "approved", "Denied": "denied"},
    "Human messages": {"Halts": "halts", "Interruptions": "interruptions"},
    "Load": {"Peak": "peak_reading", "Hesitation": "hesitation"},
    "Confusion": {"Reworked": "reworked_lines"},
    "Sensemaking": {"Inquiries": "inquiries"},
    "Loops": {"Runs": "loops", "Acts": "looping_acts"},
}
"""The fields of ``Process`` by heading and column, but those that rest on ``turns.WEAK``."""

_PROCESS_NOTE: Final = (
    "Process: means per session. Initiatives: messages that inform or ask; "
    "entropy: 1 if all take the initiative equally often, 0 if one of them never does. "
    "Halts: messages that ask the agent to stop; interruptions: messages during an action of the "
    "agent. Load: the most words that waited to be read at one act of the human, and seconds that "
    "neither reading nor typing explains. Confusion: lines put back "
    "or taken back. Sensemaking: questions and actions of the human. Loops: runs in which an agent "
    "repeats itself, and acts in them."
)
_COMPLETION_NOTE: Final = (
    "How sessions ended: finished, the human was satisfied; abandoned or tolerance, the human left or "
    "was stopped; ended, the session is over and the reason is unknown. Shares of all sessions, with 95 % "
    "Wilson intervals."
)
_HAZARD_NOTE: Final = (
    "Hazard: the share of rounds in which the human left, by the number of unproductive rounds in a row "
    "by then; a round without a rating leaves that number as it is."
)


def make_report(
    sessions: Columns | Iterable[Trajectory],
    *,
    convention: Convention = "formal",
    taus: Sequence[int] = (1, 2, 3),
    group_by: Sequence[str] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    scores: bool = True,
    axis: EffortAxis = "rounds",
) -> Numbers:
    """The numbers of some sessions, with a warning if the order of agents depends on a threshold.

    Forks have to be left out before: they would count their beginning twice. The arguments are those
    of ``aggregate``.

    Raises:
        InvalidInput: a tolerance or a label is not valid.
    """
    facts = Facts(sessions)
    with ThreadPoolExecutor(1) as pool:  # two processors are of use if there are very many sessions
        formal = convention == "formal"
        readings = pool.submit(_readings, facts, taus) if formal else None
        report = aggregate(
            facts,
            convention=convention,
            taus=taus,
            group_by=group_by,
            bootstrap=bootstrap,
            seed=seed,
            scores=scores,
            axis=axis,
        )
        pooled = report.warnings + tuple(_pooled(facts.columns))
        report = msgspec.structs.replace(report, simulators=simulators_of(facts.columns))
        if readings is None:
            return msgspec.structs.replace(report, warnings=pooled)
        found = readings.result()
    return msgspec.structs.replace(
        report,
        warnings=pooled + change_warnings(found.changes),
        robustness=robustness(found),
    )


def _pooled(columns: Columns) -> Iterator[str]:
    """Sentences on sessions of several experiments, or of unlike users of one name, in one report."""
    design, simulator = STAMPS
    held = columns.labels.get(design)
    if held is not None:
        kinds = held.counts(np.arange(len(columns)))
        if len(kinds) > 1:
            which = ", ".join(f"{name}: {quantity(n, 'session')}" for name, n in kinds.items())
            yield f"sessions of {len(kinds)} experiments of different design are pooled ({which})"
    users, stamps = columns.labels.get("user"), columns.labels.get(simulator)
    if users is None or stamps is None:
        return
    ways: dict[str, dict[str, int]] = {}
    for group, rows in columns.grouped(np.flatnonzero(users.codes >= 0), ["user", "task"]):
        found, user = stamps.counts(rows), group["user"]
        if len(found) > len(ways.get(user, {})):
            ways[user] = found
    for user, found in ways.items():
        if len(found) > 1:
            yield (
                f"the user {user} was simulated in {len(found)} ways ({', '.join(found)}): differences between "
                "sessions may come from the persona, its prompts or its model"
            )


def simulators_of(columns: Columns) -> Mapping[str, tuple[str, ...]]:
    """The stamps of the simulated users, by user as reports call it, in order."""
    users, stamps = columns.labels.get("user"), columns.labels.get(STAMPS[1])
    if users is None or stamps is None:
        return {}
    found = {
        user: tuple(sorted(stamps.counts(np.flatnonzero(users.codes == code))))
        for code, user in enumerate(users.values)
    }
    return {user: found[user] for user in sorted(found) if found[user]}


def _readings(facts: Facts, taus: Sequence[int]) -> Sensitivity:
    """The drop under each threshold and reading of a missing rating, for the ratings that count."""
    return sensitivity({"": facts}, taus=taus)


def report_document(
    report: Numbers,
    *,
    whole: bool = True,
    links: Mapping[str, str] = {},
    commands: Mapping[str, str] = {},
    labels: Sequence[str] | None = None,
    weak: bool = False,
    marks: Mapping[str, int] = {},
    fewest: int = 1,
) -> Document:
    """The document of a report. With several agents on several tasks, it has one table of each task.

    Args:
        report: the report.
        whole: with figures and lists of sessions, which take time if there are very many.
        links: by session, the address that shows it.
        commands: by session, the command that shows it, for sessions without an address.
        labels: those that distinguish series in the figures; see ``Panels``.
        weak: with the drop even if all ratings are those of the rule judge, which finds few unproductive rounds.
        marks: the places of agents among the colours and shapes of a page; see ``Panels``.
        fewest: sessions that a row must have to be drawn.
    """
    rows = rows_of(report)
    panels = Panels(report, labels, marks=marks, fewest=fewest)
    people = sum(group.sessions for group in report.groups if not group.baseline)
    automated = sum(group.sessions for group in report.groups if group.baseline)
    size = quantity(people, "session")
    if automated:
        size += f", {quantity(automated, 'automated run')}"
    if "task" in rows.sections:
        sections = [*_tasks(report, rows, panels, weak=weak)]
        warnings = _shortened(report.warnings)
    else:
        sections = [*_Tables(report, rows, panels, weak=weak).sections()]
        warnings = report.warnings
    if whole:
        figures = report_figures(report, panels)
        left = noted(*_not_drawn(panels, rows, fewest))
        if figures or left:
            sections.append(Section(title="Figures", figures=figures, notes=left))
        sections += _sessions(report, rows, links, commands)
    notes = [*completeness(report), *(_provenance(report) if rows.groups else ())]
    return Document(
        title="Collaborative effort scaling",
        about=" · ".join(f"{name} {value}" for name, value in rows.shared.items()),
        size=f"{size}, convention {report.convention}",
        sections=sections,
        notes=[
            *noted(*notes),
            *noted(*(f"{w[0].upper()}{w[1:]}." for w in warnings), warning=True),
            *noted(*_weak_ratings(report, weak=weak), warning=True),
        ],
        data=report_data(report),
        rows=report_rows(report),
    )


def _tasks(report: Numbers, every: Rows, panels: Panels, *, weak: bool) -> Iterator[Section]:
    """The table of each task, those with most sessions first; the other tasks and rows are named."""
    people: dict[str, list[Group]] = {}
    for group in report.groups:
        if not group.baseline:
            people.setdefault(group.group.get("task", ""), []).append(group)
    sizes = {task: sum(group.sessions for group in found) for task, found in people.items()}
    ordered = sorted(sizes, key=lambda task: (-sizes[task], task))
    for task in ordered[:_MOST_TASKS]:
        largest = sorted(people[task], key=lambda group: -group.sessions)
        kept, rest = largest[:_MOST_ROWS], largest[_MOST_ROWS:]
        automated = [
            group
            for group in report.groups
            if group.baseline and group.group.get("task", "") == task
        ]
        part = msgspec.structs.replace(report, groups=(*kept, *automated), scores=())
        rows = rows_of(part)
        about = [value for name, value in rows.shared.items() if name not in every.shared]
        about = [value for value in about if value != task]
        notes = [*_absences(part.groups, rows), *_bounds(part.groups, rows)]
        if rest:
            names = [rows.name(group) for group in rest]
            notes.append(f"Not shown, with fewer sessions: {_named(names)}.")
        yield Section(
            title=task or "no task",
            about=" · ".join([*about, quantity(sizes[task], "session")]),
            named=True,
            tables=(_Tables(part, rows, panels, weak=weak).utility(),),
            notes=noted(*notes),
        )
    left = [f"{task or 'no task'} ({quantity(sizes[task], 'session')})" for task in ordered]
    if left := left[_MOST_TASKS:]:
        yield Section(notes=noted(f"Other tasks: {_named(left)}."))
    said = _Tables(report, every, panels, weak=weak).about()
    yield Section(
        notes=noted(said, "Effort, process and ends of sessions of one task: --only-task NAME.")
    )


def _named(names: Sequence[str]) -> str:
    """Some names in a sentence, the first ones of many."""
    found = [*dict.fromkeys(names)]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"{', '.join(found[:_NAMED])}{more}"


def _shortened(warnings: Sequence[str]) -> Sequence[str]:
    """The first warnings of many, and how many follow."""
    if len(warnings) <= _NAMED // 2:
        return warnings
    more = len(warnings) - _NAMED // 2
    return (
        *warnings[: _NAMED // 2],
        f"{quantity(more, 'warning')} more: see each task with --only-task",
    )


def _not_drawn(panels: Panels, rows: Rows, fewest: int) -> Iterator[str]:
    """Which rows are left out of the figures."""
    if panels.left_out:
        names = [f"{rows.name(one)} ({one.sessions:,})" for one in panels.left_out]
        yield f"Left out of the plots, with fewer than {fewest} sessions: {_named(names)}."


class _Tables:
    """Makes the sections of a report; all tables have the same rows."""

    def __init__(self, report: Numbers, rows: Rows, panels: Panels, *, weak: bool) -> None:
        self._report = report
        self._rows = rows
        self._panels = panels
        linked = 0 < len(report.scores) <= LISTED
        self._labels = [self._label(name, linked) for name in (*rows.sections, rows.label)]
        # Without ratings the drop is missing, whatever the tolerance.
        self._dropped = _has_drop(report) and (weak or not by_rules_alone(report.judges))

    def sections(self) -> Iterator[Section]:
        groups = self._rows.groups
        if not groups:
            yield Section(notes=noted("There are no sessions to report on."))
            return
        absences = _absences(self._report.groups, self._rows)
        every = self._report.groups
        notes = [
            *absences,
            *_bounds(every, self._rows),
            *_variances(every, self._rows),
            *(_robust(self._report, self._rows) if self._dropped else ()),
            self.about(),
        ]
        tables = [self.utility()]
        if any(
            one.value is not None
            for group in groups
            for one in (
                group.effort.agent_tokens,
                group.effort.human_tokens,
                *group.effort.measures.values(),
            )
        ):
            tables.append(self._effort())
        yield Section(
            title="Utility, gain and drop",
            tables=tables,
            notes=noted(*notes),
        )
        if any(one.value is not None for group in groups for one in group.process.values()):
            yield Section(title="Process", tables=(self._process(),), notes=noted(_PROCESS_NOTE))
        if any(group.completion.outcomes for group in groups):
            tables, notes = [self._completion()], [_COMPLETION_NOTE]
            if any(row.left for group in groups for row in group.completion.hazard):
                tables.append(self._hazard())
                notes.append(_HAZARD_NOTE)
            yield Section(
                title="How sessions ended",
                tables=tables,
                notes=noted(*notes),
            )

    def _label(self, name: str, linked: bool) -> Column:
        rows, last = self._rows, name == self._rows.label
        return column(
            name.capitalize(),
            [
                Cell(
                    value=rows.name(group) if last else group.group.get(name, ""),
                    link=f"#g{place}" if last and linked else "",
                )
                for place, group in enumerate(rows.groups)
            ],
            left=True,
        )

    def _table(self, headings: Sequence[Heading], repeated: int = 0) -> Table:
        series = [
            None if group.baseline else self._panels.place(group.group)
            for group in self._rows.groups
        ]
        return Table(
            labels=self._labels, headings=headings, repeated=repeated, series=tuple(series)
        )

    def _column(
        self,
        title: str,
        of: Callable[[Group], Estimate],
        form: Format = NUMBER,
        *,
        name: str = "",
    ) -> Column:
        return estimates(title, map(of, self._rows.groups), form, name=name)

    def _pair(
        self, name: str, of: Callable[[Group], tuple[Estimate, Estimate]]
    ) -> tuple[Column, Column]:
        pairs = [of(group) for group in self._rows.groups]
        return (
            estimates("abs.", [one for one, _ in pairs], name=f"{name} abs."),
            column(
                "rel.",
                [estimate(two, SHARE) for _, two in pairs],
                name=f"{name} rel.",
                joined=True,
            ),
        )

    def _size(self) -> Column:
        return counts("N", [group.sessions for group in self._rows.groups])

    def utility(self) -> Table:
        """The paper's table."""
        groups = self._rows.groups
        size = [self._size()]
        if any(group.baseline or group.reference.value is not None for group in groups):
            size.append(
                self._column(
                    "Baseline",
                    lambda group: group.final if group.baseline else group.reference,
                    name="Automated baseline",
                )
            )

        def final(group: Group) -> Estimate:
            return Estimate(reason=group.overall.reason) if group.baseline else group.final

        headings = [
            heading("", *size),
            heading(
                "Utility",
                self._column("First", lambda group: group.first, name="First update"),
                self._column("Final", final, name="Final step"),
                self._column("Overall", lambda group: group.overall),
            ),
            heading("Gain", *self._pair("Gain", lambda group: (group.gain_abs, group.gain_rel))),
        ]
        for place, tau in enumerate(self._report.taus if self._dropped else ()):

            def drop(group: Group, place: int = place) -> tuple[Estimate, Estimate]:
                return group.drops[place].abs, group.drops[place].rel

            headings.append(
                heading(f"Drop τ = {tau}", *self._pair(f"Drop@{tau}", drop), splits=place == 0)
            )
        return self._table(headings)

    def _effort(self) -> Table:
        columns = (
            self._column("All rounds", lambda group: group.effort.all_rounds, _ROUNDS),
            *self._spent(),
        )
        generated = (
            self._column("Agent tokens", lambda group: group.effort.agent_tokens, COUNT),
            self._column("Human tokens", lambda group: group.effort.human_tokens, COUNT),
            self._column("Ratio", lambda group: group.effort.ratio, MEAN),
        )
        headings = [
            heading("Effort per session", *columns),
            heading("Generated", *generated),
        ]
        groups = self._rows.groups
        if any(group.counts.faulty_sessions for group in groups):
            faults = [
                Cell(value=found, format=COUNT, shown=f"{found:,}{where if found else ''}")
                for group in groups
                for found in [sum(group.counts.faults.values())]
                for where in [f" in {group.counts.faulty_sessions:,} of {group.sessions:,}"]
            ]
            headings.append(heading("Simulated user", column("Faults", faults)))
        return self._table(headings)

    def _spent(self) -> Iterator[Column]:
        """The cost of a session to the human, in their own units, as far as it was measured."""
        for title, name, unit, form in _SPENT:

            def of(group: Group, name: str = name, unit: float = unit) -> Estimate:
                found = group.effort.measures.get(name, Estimate(reason=_UNMEASURED))
                ends = (found.value, found.low, found.high)
                value, low, high = (None if end is None else end / unit for end in ends)
                return msgspec.structs.replace(found, value=value, low=low, high=high)

            if any(of(group).value is not None for group in self._rows.groups):
                yield self._column(title, of, form)

    def _process(self) -> Table:
        sessions = [
            max((one.sessions for one in group.process.values()), default=0)
            for group in self._rows.groups
        ]

        def of(field: str) -> Callable[[Group], Estimate]:
            return lambda group: group.process.get(field, Estimate())

        headings = [
            heading(
                title,
                *[
                    self._column(name, of(field), MEAN, name=f"{title}: {name.lower()}")
                    for name, field in fields.items()
                ],
            )
            for title, fields in _PROCESS.items()
        ]
        return self._table([heading("", counts("N", sessions)), *headings], repeated=1)

    def _completion(self) -> Table:
        groups = self._rows.groups

        def cell(group: Group, name: str) -> Cell:
            share = group.completion.outcomes.get(name)
            if share is None:
                return Cell(value=0, format=COUNT)
            shown = f"{share.count:,} ({percent(share.share)})"
            return Cell(
                value=share.share, low=share.low, high=share.high, format=SHARE, shown=shown
            )

        columns = [
            column(name.capitalize(), [cell(group, name) for group in groups])
            for name in outcomes_of(groups)
        ]
        return self._table(
            [
                heading("", self._size()),
                heading("How sessions ended", *columns),
            ],
            repeated=1,
        )

    def _hazard(self) -> Table:
        groups = self._rows.groups
        longest = max(row.stalled for group in groups for row in group.completion.hazard)

        def cell(group: Group, stalled: int) -> Cell:
            for row in group.completion.hazard:
                if row.stalled == stalled:
                    return Cell(value=row.hazard, low=row.low, high=row.high, format=SHARE)
            return Cell()

        columns = [
            column(
                str(stalled),
                [cell(group, stalled) for group in groups],
                name=f"Hazard after {stalled}",
            )
            for stalled in range(longest + 1)
        ]
        return self._table([heading("Hazard by unproductive rounds", *columns)])

    def about(self) -> str:
        """How the numbers were computed."""
        report = self._report
        about = f"Convention {report.convention}"
        if any(
            one.low is not None and one.low != one.high
            for group in report.groups
            for _, one in group_estimates(group)
        ):
            about += (
                f"; with each number its {100 * report.level:g} % bootstrap interval over sessions "
                f"({report.resamples:,} resamples, seed {report.seed})"
            )
        about += ". Gain: the best utility less that at the first update"
        if report.taus and self._dropped:
            about += (
                ". Drop at τ: what is lost if the human leaves after τ unproductive rounds in a row"
            )
        return about + "."


_ROUNDS: Final = Format(places=1)


def _sessions(
    report: Numbers, rows: Rows, links: Mapping[str, str], commands: Mapping[str, str]
) -> Iterator[Section]:
    """A list of sessions for each group, with ids ``g0`` and so on; its rows have ids ``s0`` and so on."""
    scores = report.scores
    if not scores:
        return
    if len(scores) > LISTED:
        note = f"{quantity(len(scores), 'session')} are too many to list on this page."
        yield Section(title="Sessions", notes=noted(note), only_page=True)
        return
    groups = [(rows.place(group), group) for group in rows.groups]
    groups += [
        (", ".join([*group.group.values(), "automated"]), group)
        for group in report.groups
        if group not in rows.groups
    ]

    def name(score: SessionScore) -> Cell:
        link = links.get(score.session, "")
        return Cell(
            value=score.session,
            link=link,
            below="" if link else commands.get(score.session, ""),
        )

    tables = []
    for place, (title, group) in enumerate(groups):
        mine = [
            (at, score)
            for at, score in enumerate(scores)
            if score.group == group.group and score.baseline == group.baseline
        ]
        found = [score for _, score in mine]
        columns = [
            counts("All rounds", [one.all_rounds for one in found]),
            numbers("First", [one.first for one in found]),
            numbers("Final", [one.final for one in found]),
            numbers("Overall", [one.overall for one in found]),
            counts("Agent tokens", [one.agent_tokens for one in found]),
            counts("Human tokens", [one.human_tokens for one in found]),
        ]
        tables.append(
            Table(
                title=f"{title} ({len(mine):,})",
                labels=(column("Session", [name(one) for one in found], left=True),),
                headings=[heading("", *columns)],
                anchor=f"g{place}",
                anchors=[f"s{at}" for at, _ in mine],
                folded=True,
            )
        )
    yield Section(title="Sessions", tables=tables, only_page=True)


def _absences(groups: Sequence[Group], rows: Rows) -> Iterator[str]:
    """A sentence per reason why numbers are absent, with the rows that it concerns."""
    found: dict[str, dict[str, None]] = {}
    for group in groups:
        if group.baseline:
            continue
        for path, one in group_estimates(group):
            if one.reason is not None and path[0] in ("utility", "gain", "drop"):
                found.setdefault(one.reason, {})[rows.place(group)] = None
    for reason, places in found.items():
        yield f"{ABSENT} {', '.join(places)}: {reason}."


def _robust(report: Numbers, rows: Rows) -> Iterator[str]:
    """Whether sign and order of the drop hang on a convention."""
    found = report.robustness
    if found is None or not found.signs:
        return

    def group(one: DropSign) -> str:
        return rows.place_of(one.group) or "all"

    def agents(one: DropOrder) -> str:
        return rows.place_of({**one.group, "agent": f"{one.first} and {one.second}"})

    sentences = []
    for tau in report.taus:
        signs = [one for one in found.signs if one.tau == tau]
        orders = [one for one in found.orders if one.tau == tau]
        if signs:
            text = f"τ = {tau}: the sign {_held(signs, group)}"
            if orders:
                text += f"; the order {_held(orders, agents)}"
            sentences.append(f"{text}.")
    yield (
        f"The drop under {found.readings} readings of the ratings (threshold 2, 3 or 4; a missing rating is "
        f"productive or unproductive). {' '.join(sentences)}"
    )


def _held(found: Sequence[_Held], name: Callable[[_Held], str]) -> str:
    """In which of some cases something is the same under all readings."""
    failing = [name(one) for one in found if not one.holds]
    if not failing:
        return "holds" if len(found) == 1 else f"holds for all {len(found)} of them"
    listed = ", ".join(failing[:_NAMED])
    if len(failing) > _NAMED:
        listed += f" and {len(failing) - _NAMED} more"
    return f"does not hold for {listed}"


def _variances(groups: Sequence[Group], rows: Rows) -> Iterator[str]:
    """How much overall utility varies from problem to problem, and from repeat to repeat."""
    for group in groups:
        found = group.variance
        if found is None:
            continue
        between = "unknown" if found.between is None else number(found.between, 4)
        yield (
            f"Variance of overall utility, {rows.place(group)}: {between} between problems, "
            f"{number(found.within, 4)} within them ({quantity(found.sessions, 'session')} on "
            f"{quantity(found.problems, 'problem')}). Intervals are over problems."
        )


def _bounds(groups: Sequence[Group], rows: Rows) -> Iterator[str]:
    """A sentence per row of which so much failed to be measured that means are uncertain by it."""
    for group in groups:
        if not group.bounds:
            continue
        worst = max(one.missing for one in group.bounds.values())
        of = next(one.sessions for one in group.bounds.values() if one.missing == worst)
        spans = ", ".join(
            f"{name} {number(one.low)} to {number(one.high)}" for name, one in group.bounds.items()
        )
        yield (
            f"{rows.place(group)}: {worst:,} of {quantity(of, 'session')} could not be measured. With all of "
            f"them at 0 or all at 1: {spans}."
        )


def _has_drop(report: Numbers) -> bool:
    return any(drop.abs.value is not None for group in report.groups for drop in group.drops)


def by_rules_alone(judges: Iterable[str]) -> bool:
    """Whether only the rule judge rated, given the judges whose ratings count."""
    return {split_stream(name)[0] for name in judges} == {RULE_JUDGE}


def _weak_ratings(report: Numbers, *, weak: bool) -> Iterator[str]:
    """What to know about a drop that goes by the rule judge."""
    if not _has_drop(report):
        return
    alone = by_rules_alone(report.judges)
    if alone and not weak:
        yield (
            "The drop is not shown, since only the rule judge rated. It finds few of the rounds that users rate as "
            "unproductive (docs/labels.md). Score the log by labels-judge or model-judge, or show it anyway: "
            "--judge rule-judge."
        )
    elif alone:
        yield (
            "The drop goes by the rule judge alone, which finds few of the rounds that users rate as "
            "unproductive. Compare it with ratings of users or of a model: --agreement."
        )
    elif any(split_stream(name)[0] == RULE_JUDGE for name in report.judges):
        yield (
            "Some ratings are those of the rule judge, which finds few of the rounds that users rate as "
            "unproductive. --judge chooses whose ratings count."
        )


def completeness(report: Numbers) -> Iterator[str]:
    """Sentences that say what is missing from the data of a report; none if nothing is."""
    groups = report.groups
    counts = [group.counts for group in groups if not group.baseline]
    rounds = sum(one.total_rounds for one in counts)
    stale = sum(one.stale_points for one in counts)
    missing = sum(one.missing_ratings for one in counts)
    if report.forgotten:
        yield f"{quantity(report.forgotten, 'forgotten session')} {_be(report.forgotten)} left out."
    if stale:
        of = f"{stale:,} of {quantity(rounds, 'round')}"
        yield f"{of} {_be(stale)} stale: the output changed, and its score is missing."
    if rounds and missing == rounds:
        yield "No round has a progress rating, so it is unknown when a human would leave."
    elif missing:
        have = "has" if missing == 1 else "have"
        yield f"{missing:,} of {quantity(rounds, 'round')} {have} no progress rating."
    if pending := sum(one.pending_ratings for one in counts):
        yield f"{quantity(pending, 'rating')} {_be(pending)} pending."
    yield from _about_effort(counts)
    if many := sum(group.counts.undecided_sessions for group in groups):
        yield (
            f"In {quantity(many, 'session')} several scorers measured utility, and none is chosen: choose one "
            f"with --utility ({', '.join(report.candidates)})."
        )
    yield from _without_utility(counts, published=report.convention == "paper")
    yield from _without_drop(groups)
    if broken := sum(group.counts.broken_baselines for group in groups):
        yield f"{quantity(broken, 'automated run')} broke off, and {_be(broken)} in no mean."
    if running := sum(one.open_sessions for one in counts):
        yield f"{quantity(running, 'session')} {_be(running)} still open."
    if faulty := sum(one.faulty_sessions for one in counts):
        yield f"Simulated users were at fault in {quantity(faulty, 'session')} ({_faults(counts)})."


def _about_effort(counts: Sequence[Counts]) -> Iterator[str]:
    """Sentences that say whose effort is missing, coarse or estimated."""
    if lost := sum(one.incomplete_sessions for one in counts):
        events = quantity(sum(one.lost_events for one in counts), "event")
        yield (
            f"{events} of {quantity(lost, 'session')} could not be recorded, so that "
            f"{'it is' if lost == 1 else 'they are'} in no mean of rounds, effort, process measures, curves and D@τ."
        )
    if coarse := sum(one.coarse_sessions for one in counts):
        versions = quantity(sum(one.coarse_versions for one in counts), "version")
        yield (
            f"{versions} of the output in {quantity(coarse, 'session')} took too long to compare, so that changed "
            "stretches count whole in tokens read and written."
        )
    if estimated := sum(one.estimated_tokens for one in counts):
        yield f"Tokens of {quantity(estimated, 'session')} are estimated from texts."


def _provenance(report: Numbers) -> Iterator[str]:
    """Sentences on the origin of the numbers."""
    if report.scorers:
        yield f"Utility by {', '.join(report.scorers)}."
    if report.judges:
        yield f"Ratings by {', '.join(report.judges)}."
    if report.simulators:
        stamps = [f"{user} {' or '.join(held)}" for user, held in report.simulators.items()]
        yield f"Simulated users: {_named(stamps)}."
    yield f"Definitions of version {report.definitions}."


def _without_utility(counts: Sequence[Counts], *, published: bool) -> Iterator[str]:
    unevaluated = sum(one.unevaluated_sessions for one in counts)
    unscored = sum(one.failed_sessions for one in counts)
    if published and unscored:
        have, count = ("has", "counts") if unscored == 1 else ("have", "count")
        yield (
            f"{quantity(unscored, 'session')} {have} no score of the output, and {count} as 0, as in the "
            "published analysis."
        )
        unscored = 0
    undecided = sum(one.undecided_sessions for one in counts)
    others = sum(one.unvalued_sessions for one in counts) - unevaluated - unscored - undecided
    first = sum(one.unscored_first for one in counts)
    for left_out, one, several in (
        (
            unevaluated,
            "was not evaluated, since no utility scorer ran,",
            "were not evaluated, since no utility scorer ran,",
        ),
        (unscored, "has no score of its output", "have no score of their output"),
        (others, "has no round that counts", "have no round that counts"),
    ):
        if left_out:
            why = one if left_out == 1 else several
            be = _be(left_out)
            yield f"{quantity(left_out, 'session')} {why} and {be} in no mean of utility."
    if first:
        have = "has" if first == 1 else "have"
        yield (
            f"{quantity(first, 'session')} {have} no score of the first update, and {_be(first)} in no "
            "mean of first and gain."
        )
    if without := sum(one.without_output for one in counts):
        have = "has" if without == 1 else "have"
        yield (
            f"{quantity(without, 'session')} {have} no shared output, and {_be(without)} in no mean of first "
            "and gain."
        )
    if results := sum(one.result_only for one in counts):
        yield (
            f"Of {quantity(results, 'session')} only the result was measured, and nothing before it: "
            "drop and curve leave them out."
        )


def _without_drop(groups: Sequence[Group]) -> Iterator[str]:
    """The sessions left out of the drop, by τ, if any others are included."""
    for index, drop in enumerate(groups[0].drops if groups else ()):
        drops = [group.drops[index] for group in groups if not group.baseline]
        unrated = sum(one.unrated for one in drops if one.abs.value is not None)
        early = sum(one.cut_short for one in drops)
        reasons = [
            *([f"{quantity(unrated, 'session')} without ratings"] if unrated else []),
            *(
                [f"{quantity(early, 'session')} whose human left before τ could be reached"]
                if early
                else []
            ),
        ]
        if reasons:
            yield f"The drop at τ = {drop.tau} leaves out {' and '.join(reasons)}."


def _be(number: int) -> str:
    return "is" if number == 1 else "are"


def _faults(counts: Sequence[Counts]) -> str:
    """The kinds of faults with their counts, the most frequent first."""
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one.faults)
    return ", ".join(f"{kind}: {number:,}" for kind, number in total.most_common())
