"""The comparison at the top of a report page: up to five agents on one task, with a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from ...engine.errors import InvalidInput
from ...engine.log.summary import FORGOTTEN
from ...engine.text import quantity, suggestion
from ..columns.table import Columns, Flags, columns_of
from ..comparison.pairs import OUTCOME, SIGNIFICANCE, Comparison, Difference, compare
from ..metrics import Convention, EffortAxis, Estimate, Group, Numbers
from ..trajectory.points import Trajectory
from .document import (
    ABSENT,
    COUNT,
    NUMBER,
    P_VALUE,
    SIGNED,
    Axis,
    Cell,
    Document,
    Dot,
    Figure,
    Line,
    Panel,
    Point,
    Rule,
    Section,
    Table,
    Words,
    column,
    counts,
    estimate,
    estimates,
    heading,
    noted,
    number,
)
from .drawings import Panels, axis_ticks
from .summary import by_rules_alone, make_report, report_document

__all__ = (
    "FEWEST_DRAWN",
    "MOST_AGENTS",
    "MOST_TASKS",
    "Compared",
    "Picked",
    "compare_agents",
    "of_task",
    "tasks_of",
)

MOST_AGENTS: Final = 5
"""Agents that are compared at once: more colours cannot be told apart."""

_CHARACTER: Final = 0.016  # width of a character, as a share of a plot
_NUMBERS: Final = 0.36  # width of the numbers of a row, as a share of a plot
MOST_TASKS: Final = 12
"""Tasks that one page holds."""

FEWEST_DRAWN: Final = 5
"""Sessions that a row must have to be drawn on a page."""

_FEWER_WORDS: Final[Mapping[str, tuple[str, float, int]]] = {
    "first": ("makes a first draft that is better by", 1.0, 3),
    "seconds": ("takes fewer minutes of the human's time, by", 60.0, 1),
    "drop@2": ("loses less if the human leaves after two unproductive rounds, by", 1.0, 3),
    "agent_tokens": ("generates fewer tokens, by", 1.0, 0),
}
"""What separates two agents that utility does not: words, unit and decimals."""

_MORE_IS_BETTER: Final = frozenset({"first", "drop@2"})
_SEPARATING: Final = 2  # differences that the verdict names


class Picked(msgspec.Struct, frozen=True, kw_only=True):
    """The task and the agents of a comparison, and the other tasks and agents.

    Attributes:
        task: the task; None if sessions are not told apart by tasks.
        agents: those compared, most sessions first.
        tasks: the sessions of each task, most first.
        others: the sessions of each agent of the task, those compared included.
    """

    task: str | None
    agents: tuple[str, ...]
    tasks: Mapping[str, int]
    others: Mapping[str, int]


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The agents of one task, compared.

    Attributes:
        picked: what is compared.
        report: the report on these sessions.
        pairs: the agents in pairs; empty if there are no two, or if they cannot be paired.
        reason: why they cannot be paired; empty if they can.
    """

    picked: Picked
    report: Numbers
    pairs: tuple[Comparison, ...] = ()
    reason: str = ""

    def document(
        self,
        *,
        marks: Mapping[str, int] | None = None,
        links: Mapping[str, str] = {},
        commands: Mapping[str, str] = {},
        weak: bool = False,
    ) -> Document:
        """The document: the verdict, the curve, the report's tables, the other figures, the sessions.

        Args:
            marks: the places of agents among the colours and shapes; by their sessions if not given.
            links: by session, the address that shows it.
            commands: by session, the command that shows it.
            weak: with the drop even if all ratings are those of the rule judge.
        """
        places = marks_of(self.picked.agents, marks or {})
        panels = Panels(self.report, marks=places, fewest=FEWEST_DRAWN)
        found = report_document(
            self.report,
            links=links,
            commands=commands,
            weak=weak,
            marks=places,
            fewest=FEWEST_DRAWN,
        )
        lead = _Lead(self, panels, weak=weak)
        figures = [one for one in found.sections if one.title == "Figures"]
        tables = [one for one in found.sections if one not in figures and not one.only_page]
        curve = [Section(title="Figures", figures=one.figures[:1]) for one in figures]
        rest = [msgspec.structs.replace(one, figures=one.figures[1:]) for one in figures]
        lists = [one for one in found.sections if one.only_page]
        return msgspec.structs.replace(
            found,
            title=f"Compare: {self.picked.task}" if self.picked.task else found.title,
            verdict=lead.headline,
            sections=[*lead.sections(), *curve, *tables, *rest, *lists],
        )


def tasks_of(sessions: Columns) -> dict[str, int]:
    """The tasks of some sessions with how many of them each has, most first; empty if none is named."""
    return _counted(sessions, "task", ~_erased(sessions))


def of_task(sessions: Columns, task: str) -> Columns:
    """The sessions of one task.

    Raises:
        InvalidInput: there are none.
    """
    if (found := sessions.labels.get("task")) is None or task not in found.values:
        known = tasks_of(sessions)
        there = (
            f"; choose from {', '.join(known)}" if known else ": sessions do not name their task"
        )
        raise InvalidInput(f"no session of task {task!r}{suggestion(task, known) or there}")
    return sessions.take(np.flatnonzero(found.flags(task.__eq__)))


def marks_of(agents: Sequence[str], marks: Mapping[str, int]) -> dict[str, int]:
    """A place among the colours and shapes for each agent: its own, or one that is free."""
    own = {name: marks[name] for name in agents if marks.get(name, MOST_AGENTS) < MOST_AGENTS}
    free = [place for place in range(MOST_AGENTS) if place not in own.values()]
    others = [name for name in agents if name not in own]
    return own | dict(zip(others, free, strict=False))


def compare_agents(
    source: Columns | Iterable[Trajectory],
    *,
    task: str | None = None,
    agents: Sequence[str] = (),
    taus: Sequence[int] = (1, 2, 3),
    convention: Convention = "formal",
    group_by: Sequence[str] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    axis: EffortAxis = "rounds",
) -> Compared:
    """Compares the agents of one task.

    Args:
        source: the sessions, without forks of each other.
        task: the task; the one with most sessions if not given.
        agents: the agents, of which the first five count; those with most sessions if not given.
        taus: tolerances.
        convention: the convention of the report; agents are compared in pairs by ``formal`` only.
        group_by: labels to group by, the usual ones if not given.
        bootstrap: resamples for the intervals.
        seed: the seed of the resampling.
        axis: the effort that the curves have as their axis.

    Raises:
        InvalidInput: no session is of that task or of one of the agents.
    """
    every = columns_of(source)
    tasks = tasks_of(every)
    by_task = group_by is None or "task" in group_by
    chosen = (task or next(iter(tasks), None)) if by_task else None
    sessions = every if chosen is None else of_task(every, chosen)
    there = _counted(sessions, "agent", ~_erased(sessions) & ~sessions.baseline)
    for name in agents:
        if name not in there:
            known = suggestion(name, there) or f"; choose from {', '.join(there)}"
            raise InvalidInput(f"no session of agent {name!r}{known}")
    wanted = tuple(agents or there)[:MOST_AGENTS]
    if len(there) > len(wanted):
        kept = sessions.labels["agent"].flags(set(wanted).__contains__) | sessions.baseline
        sessions = sessions.take(np.flatnonzero(kept))
    report = make_report(
        sessions,
        convention=convention,
        taus=taus,
        group_by=group_by,
        bootstrap=bootstrap,
        seed=seed,
        axis=axis,
    )
    picked = Picked(task=chosen, agents=wanted, tasks=tasks, others=there)
    if len(wanted) < 2 or convention != "formal" or "agent" not in report.group_by:
        return Compared(picked=picked, report=report)
    try:
        pairs = compare(
            _paired(sessions, report.group_by),
            sorted(wanted),
            taus=taus,
            bootstrap=bootstrap,
            seed=seed,
        )
    except InvalidInput as error:
        return Compared(picked=picked, report=report, reason=str(error))
    return Compared(picked=picked, report=report, pairs=pairs)


def _paired(sessions: Columns, labels: Sequence[str]) -> Columns:
    """The sessions of people, with the labels that the report goes by."""
    found = sessions.take(np.flatnonzero(~sessions.baseline))
    kept = {name: one for name, one in found.labels.items() if name in labels}
    return msgspec.structs.replace(found, labels=kept)


def _erased(sessions: Columns) -> Flags:
    return sessions.state.flags(FORGOTTEN.__eq__)


def _counted(sessions: Columns, label: str, kept: Flags) -> dict[str, int]:
    """The values of a label among some sessions, the most frequent first."""
    coded = sessions.labels.get(label)
    found = {} if coded is None else coded.counts(np.flatnonzero(kept))
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


class _Lead:
    """The verdict: the leading agent, and its paired differences from the others."""

    def __init__(self, compared: Compared, panels: Panels, *, weak: bool) -> None:
        self._dropped = weak or not by_rules_alone(compared.report.judges)
        self._panels = panels
        self._reason = compared.reason
        self._alone = len(compared.picked.agents) < 2
        groups = [group for group in compared.report.groups if not group.baseline]
        by_rest: dict[tuple[tuple[str, str], ...], list[Group]] = {}
        for group in groups:
            by_rest.setdefault(_rest(group.group), []).append(group)

        def size(rest: tuple[tuple[str, str], ...]) -> tuple[int, int]:
            pairs = sum(one.pairs for one in compared.pairs if _rest(one.group) == rest)
            return pairs, sum(group.sessions for group in by_rest[rest])

        ordered = sorted(by_rest, key=size, reverse=True)
        self._where = ordered[0] if ordered else ()
        self._elsewhere = len(ordered) - 1
        mine = by_rest.get(self._where, [])
        self.ranked = sorted(
            (group for group in mine if group.overall.value is not None),
            key=lambda group: -(group.overall.value or 0.0),
        )
        self._unmeasured = [group for group in mine if group.overall.value is None]
        self._found = {
            (one.first, one.second): one
            for one in compared.pairs
            if _rest(one.group) == self._where
        }
        self.headline, self._text = self._said()

    def _against(self, other: Group, quantity: str = OUTCOME) -> Difference | None:
        """How another agent differs from the one that leads; None if no problem was played by both."""
        names = _agent(self.ranked[0]), _agent(other)
        turned = names not in self._found
        one = self._found.get(names[::-1] if turned else names)
        if one is None or not one.pairs:
            return None
        found = next((each for each in one.differences if each.quantity == quantity), None)
        if found is None or not turned:
            return found
        return msgspec.structs.replace(found, difference=_negated(found.difference))

    def _said(self) -> tuple[str, str]:
        """The verdict and what follows it."""
        if not self.ranked:
            return (
                "Nothing measured the utility of these sessions.",
                "No agent can be called better. Measure it afterwards: duolog score LOG.",
            )
        first, *others = self.ranked
        leader = _agent(first)
        if not others:
            text = f"{leader}: overall utility {NUMBER.text(first.overall.value)}."
            return text, "There is no other agent to compare it with." if self._alone else ""
        found = {_agent(other): self._against(other) for other in others}
        if not any(found.values()):
            why = self._reason or "no problem was played by two agents"
            return f"{leader} has the highest mean, which is no comparison.", f"{_whole(why)}."
        beaten = [name for name, one in found.items() if _worse(one)]
        near = [name for name, one in found.items() if one is not None and name not in beaten]
        apart = [name for name, one in found.items() if one is None]
        pairs = min(one.pairs for one in found.values() if one is not None)
        if not near:
            every = (
                "the best of these agents"
                if len(others) > 1
                else f"better than {others_of(beaten)}"
            )
            headline = f"{leader} is {every}."
        else:
            headline = (
                f"{leader} leads, but {quantity(pairs, 'problem')} "
                f"{'is' if pairs == 1 else 'are'} too few to place it above {others_of(near)}."
            )
        sentences = []
        if near and (one := found[near[0]]) is not None:
            span = _to(*_turned(one.difference))
            about = f"{f'95 % interval {span}, ' if span else ''}p = {P_VALUE.text(one.adjusted)}"
            by = number(-(one.difference.value or 0.0))
            sentences.append(
                f"Its overall utility is {by} higher than that of {near[0]} ({about})."
            )
        if near and beaten:
            sentences.append(f"It is better than {others_of(beaten)}.")
        if near and (more := self._separated(others, near[0])):
            sentences.append(f"What separates the two: {more}.")
        if apart:
            sentences.append(f"No problem was played both by it and by {others_of(apart)}.")
        return headline, " ".join(sentences)

    def _separated(self, others: Sequence[Group], name: str) -> str:
        """In what else the one that leads and another differ, by intervals."""
        [other] = [group for group in others if _agent(group) == name]
        said = []
        for quantity_name, (words, unit, places) in _FEWER_WORDS.items():
            found = self._against(other, quantity_name)
            if quantity_name.startswith("drop@") and not self._dropped:
                continue
            if found is None or found.difference.low is None or found.difference.high is None:
                continue
            low, high, value = (
                found.difference.low,
                found.difference.high,
                found.difference.value or 0.0,
            )
            if low <= 0 <= high:
                continue
            theirs = (value > 0) == (quantity_name in _MORE_IS_BETTER)
            who = name if theirs else _agent(self.ranked[0])
            said.append(f"{who} {words} {number(abs(value) / unit, places)}")
        return "; ".join(said[:_SEPARATING])

    def sections(self) -> list[Section]:
        """The sections before the report's own."""
        notes = [self._text] if self._text else []
        if self._unmeasured:
            names = others_of([_agent(group) for group in self._unmeasured])
            notes.append(f"Not measured: {names}.")
        if self._where and self._elsewhere:
            here = ", ".join(value for _, value in self._where)
            more = quantity(self._elsewhere, "other combination")
            notes.append(f"This is for {here}; the tables below have {more} of user and model.")
        if len(self.ranked) < 2:
            return [Section(notes=noted(*notes))]
        figures = [self._means()]
        if any(self._against(group) for group in self.ranked[1:]):
            figures.append(self._differences())
        return [
            Section(notes=noted(*notes), figures=figures),
            Section(tables=(self._table(),)),
        ]

    def _table(self) -> Table:
        first, *others = self.ranked
        found = [None, *[self._against(other) for other in others]]
        none = Cell(reason="the agent that the others are compared with")

        def cells(of: str, places: bool = False) -> list[Cell]:
            rows = []
            for each in found:
                value = None if each is None else getattr(each, of)
                rows.append(Cell(value=value, format=COUNT if places else P_VALUE))
            return [none, *rows[1:]]

        return Table(
            labels=(column("Agent", [Cell(value=_agent(one)) for one in self.ranked], left=True),),
            headings=(
                heading(
                    "",
                    counts("N", [one.sessions for one in self.ranked]),
                    estimates("Overall utility", [one.overall for one in self.ranked]),
                ),
                heading(
                    f"Against {_agent(first)} on the same problem",
                    column("Problems", cells("pairs", places=True)),
                    column(
                        "Difference",
                        [none]
                        + [
                            Cell(reason="no problem was played by both")
                            if each is None
                            else estimate(each.difference, SIGNED)
                            for each in found[1:]
                        ],
                    ),
                    column("p (Holm)", cells("adjusted")),
                ),
            ),
            series=[self._panels.place(one.group) for one in self.ranked],
        )

    def _means(self) -> Figure:
        reference = self.ranked[0].reference.value
        return _forest(
            "overall",
            "Overall utility",
            "Mean and 95 % interval. Dashed: the agent alone."
            if reference is not None
            else "Mean and 95 % interval.",
            [(_agent(one), self._panels.place(one.group), one.overall) for one in self.ranked],
            self._panels,
            rule=reference,
            automated=True,
        )

    def _differences(self) -> Figure:
        leader = _agent(self.ranked[0])
        rows = [
            (_agent(one), self._panels.place(one.group), found.difference)
            for one in self.ranked[1:]
            if (found := self._against(one)) is not None
        ]
        return _forest(
            "paired",
            "Difference on the same problem",
            f"Left of 0: worse than {leader}. Mean and 95 % interval over problems.",
            rows,
            self._panels,
            rule=0.0,
        )


def _forest(
    name: str,
    title: str,
    note: str,
    rows: Sequence[tuple[str, int | None, Estimate]],
    panels: Panels,
    *,
    rule: float | None,
    automated: bool = False,
) -> Figure:
    """Means with their intervals, a row for each agent."""
    edges = [
        edge for _, _, one in rows for edge in (one.low, one.value, one.high) if edge is not None
    ]
    edges += [rule] if rule is not None else []
    margin = 0.08 * (max(edges) - min(edges)) or 0.05
    first, high = min(edges) - margin, max(edges) + margin
    longest = max((len(who) for who, _, _ in rows), default=0)
    # There is room for names at the left and for numbers at the right.
    low, right = (
        first - min(_CHARACTER * longest, 0.4) * (high - first),
        high + _NUMBERS * (high - first),
    )
    drawn = [(len(rows) - 1 - at, *row) for at, row in enumerate(rows)]
    return Figure(
        name=name,
        title=title,
        note=note,
        x=Axis(title=title, low=low, high=right, ticks=axis_ticks(first, high, 5)),
        y=Axis(title="", low=-0.5, high=len(rows) - 0.2),
        series=panels.series,
        panels=(
            Panel(
                title="",
                lines=[
                    Line(points=(Point(x=one.low, y=y), Point(x=one.high, y=y)), series=series)
                    for y, _, series, one in drawn
                    if one.low is not None and one.high is not None
                ],
                dots=[
                    Dot(
                        x=one.value,
                        y=y,
                        series=series,
                        mark="mean",
                        values={"mean": one.value, "from": one.low, "to": one.high},
                    )
                    for y, _, series, one in drawn
                    if one.value is not None
                ],
                rules=()
                if rule is None
                else (Rule(x=(rule, rule), y=(-0.5, len(rows) - 0.2), automated=automated),),
                words=[
                    words
                    for y, who, _, one in drawn
                    for words in (
                        Words(x=low, y=y, text=who, left=True),
                        Words(x=high, y=y, text=_numbers(one), left=True),
                    )
                ],
            ),
        ),
        height=0.28 * len(rows),
    )


def _numbers(one: Estimate) -> str:
    """A mean with its interval, in a row."""
    if one.value is None:
        return ABSENT
    return "  ".join(part for part in (number(one.value), _to(one.low, one.high)) if part)


def _to(low: float | None, high: float | None) -> str:
    """An interval in words; empty if there is none."""
    return "" if low is None or high is None else f"{number(low)} to {number(high)}"


def others_of(names: Sequence[str]) -> str:
    """Names in a sentence."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _agent(group: Group) -> str:
    return group.group.get("agent", "")


def _rest(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in labels.items() if name != "agent"))


def _worse(one: Difference | None) -> bool:
    """Whether another agent is worse than the one that leads, as far as the test allows to say so."""
    return (
        one is not None
        and one.adjusted is not None
        and one.adjusted < SIGNIFICANCE
        and (one.difference.value or 0.0) < 0
    )


def _negated(found: Estimate) -> Estimate:
    low, high = _turned(found)
    value = None if found.value is None else -found.value
    return msgspec.structs.replace(found, value=value, low=low, high=high)


def _turned(found: Estimate) -> tuple[float | None, float | None]:
    """The ends of an interval of the difference the other way round."""
    low, high = (None if end is None else -end for end in (found.high, found.low))
    return low, high


def _whole(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
