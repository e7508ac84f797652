"""The documents of the analyses other than the report's table, each built from its results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from ...engine.text import quantity
from ..comparison.agreement import Agreement, Pair, ReviewAgreement
from ..comparison.pairs import Comparison, Difference
from ..comparison.power import Power
from ..comparison.sensitivity import Sensitivity, SensitivityRow
from ..comparison.simulators import Audit, BehaviourGap, PersonaAudit
from ..metrics.counterfactual import CounterfactualReport
from ..metrics.forks import Fork, ForkReport
from ..metrics.results import Estimate
from ..oversight import OversightReport, Quantiles
from .document import (
    ABSENT,
    COUNT,
    MEAN,
    P_VALUE,
    SIGNED,
    Cell,
    Column,
    Document,
    Format,
    Heading,
    Note,
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
    table_of,
    texts,
)
from .drawings import forest
from .export import flat_row
from .rows import compared_format, compared_title

__all__ = (
    "agreement_document",
    "audit_document",
    "comparison_document",
    "counterfactual_document",
    "fork_document",
    "forks_document",
    "oversight_document",
    "power_document",
    "sensitivity_document",
)


_NO_DROPS: Final = (
    "Drops are not compared, since only the rule judge rated. Compare them anyway: --judge rule-judge, or "
    "--outcome drop@2."
)


def comparison_document(comparisons: Sequence[Comparison], *, drops: bool = True) -> Document:
    """Agents in pairs: a table per pair and group, and the differences drawn.

    Args:
        comparisons: what was compared.
        drops: with the drops that are not declared outcomes.
    """
    shown = [
        one
        if drops
        else msgspec.structs.replace(
            one,
            differences=tuple(
                [
                    each
                    for each in one.differences
                    if each.outcome or not each.quantity.startswith("drop@")
                ]
            ),
        )
        for one in comparisons
    ]
    legend = (
        "Difference: the second agent less the first on the same problem, mean and 95 % interval over problems "
        "(from 10 pairs BCa bootstrap, from 6 the exact sign-flip test; below 6 none exists). p: sign-flip "
        "test; Holm: adjusted over the agent pairs and outcomes of one task. Secondary quantities are not "
        "tested. d: effect size, mean over standard deviation of the differences."
    )
    drawn = forest(shown)
    sections = [_pair(one) for one in shown]
    if drawn is not None:
        sections.append(Section(title="Differences", figures=(drawn,)))
    return Document(
        title="Agents in pairs",
        sections=sections,
        notes=(
            *noted(legend),
            *noted(*(() if drops else (_NO_DROPS,)), warning=True),
        ),
        data=comparisons,
        rows=[
            {"agent_first": one.first, "agent_second": one.second, **one.group} | flat_row(each)
            for one in comparisons
            for each in one.differences
        ],
    )


def _pair(one: Comparison) -> Section:
    found = one.differences
    about = f"{quantity(one.pairs, one.pair_by)} played by both"
    if left := [f"{count} of {name}" for name, count in one.unpaired.items() if count]:
        about += f"; without a counterpart: {', '.join(left)}"
    if left := [f"{count} of {name}" for name, count in one.unknown.items()]:
        about += f"; {one.pair_by} not known: {', '.join(left)}"

    def value(each: Difference, mean: float | None) -> Cell:
        return Cell(value=mean, format=compared_format(each.quantity))

    outcomes = [each for each in found if each.outcome]
    secondary = [each for each in found if not each.outcome]
    reasons = {each.difference.reason for each in found if each.difference.reason}
    few = [
        f"{compared_title(each.quantity)}: {_listed(each)}" for each in outcomes if each.differences
    ]

    def table(title: str, some: Sequence[Difference], *more: Column) -> Table:
        return table_of(
            texts(title, [compared_title(each.quantity) for each in some]),
            counts("Pairs", [each.pairs for each in some]),
            heading(
                "Mean",
                column(one.first, [value(each, each.first) for each in some]),
                column(one.second, [value(each, each.second) for each in some]),
            ),
            column(
                "Difference",
                [
                    estimate(each.difference, compared_format(each.quantity, signed=True))
                    for each in some
                ],
            ),
            *more,
            numbers("d", [each.effect for each in some], MEAN),
        )

    return Section(
        title=f"{one.second} against {one.first}",
        about=" · ".join([*one.group.values(), about]),
        named=True,
        tables=(
            table(
                "Outcome",
                outcomes,
                numbers("p", [each.p for each in outcomes], P_VALUE),
                numbers("Holm", [each.adjusted for each in outcomes], P_VALUE),
            ),
            table("Secondary", secondary),
        ),
        notes=noted(
            *(f"Differences, too few for an interval: {text}." for text in few),
            *(f"{ABSENT} {reason}" for reason in sorted(reasons)),
        ),
    )


def _listed(each: Difference) -> str:
    """The differences, as text."""
    shown = compared_format(each.quantity, signed=True)
    return ", ".join(shown.text(value) for value in each.differences)


def power_document(found: Sequence[Power]) -> Document:
    """The problems needed to tell each two agents apart, and the difference detectable so far."""
    legend = (
        "SD between: standard deviation of the true difference from problem to problem; SD within: of one session of "
        "each agent on the same problem. Detectable: the difference that the problems of the log find with 80 % "
        "power, two-sided at 5 %. The observed difference plays no part."
    )
    return Document(
        title="Problems needed",
        sections=[_powered(one) for one in found],
        notes=noted(legend),
        data=found,
        rows=[flat_row(one) for one in found],
    )


def _powered(one: Power) -> Section:
    about = (
        f"{compared_title(one.outcome)}, {quantity(one.problems, 'problem')}, "
        f"{quantity(one.sessions, 'session')}"
    )
    notes = [f"{ABSENT} {one.reason}"] if one.reason else []
    if one.detectable is None and not one.reason:
        notes.append(f"{ABSENT} below 6 problems nothing is significant at 5 %")
    if one.between is None and not one.reason:
        notes.append(
            "No problem was played repeatedly by both, so that the variance within problems is not known: run "
            "with --repeats 3 to learn how much repeats help."
        )
    spreads = [
        ("SD of differences", one.spread),
        ("SD between", one.between),
        ("SD within", one.within),
    ]
    known = [(name, math.sqrt(value)) for name, value in spreads if value is not None]
    return Section(
        title=f"{one.second} against {one.first}",
        about=" · ".join([*one.group.values(), about]),
        named=True,
        tables=(
            table_of(
                texts("At hand", [*[name for name, _ in known], "Detectable"]),
                numbers("Value", [*[value for _, value in known], one.detectable]),
            ),
            table_of(
                texts("Repeats", [str(each.repeats) for each in one.needed]),
                counts(f"Problems for {one.effect:g}", [each.problems for each in one.needed]),
                counts(
                    "Sessions of each agent", [each.problems * each.repeats for each in one.needed]
                ),
            ),
        )
        if one.needed
        else (),
        notes=noted(*notes),
    )


def sensitivity_document(found: Sensitivity) -> Document:
    """The drop under each choice, columns per τ, and choices that change the order of agents."""
    taus = sorted({row.tau for row in found.rows})
    varying = [
        name
        for name in dict.fromkeys(name for row in found.rows for name in row.group)
        if len({row.group.get(name) for row in found.rows}) > 1
    ]
    by_choice: dict[tuple[str, int, str, str], dict[int, SensitivityRow]] = {}
    for row in found.rows:
        key = (
            row.judge,
            row.least,
            row.missing,
            " · ".join(row.group[name] for name in varying if name in row.group),
        )
        by_choice.setdefault(key, {})[row.tau] = row
    keys, rows = list(by_choice), list(by_choice.values())
    table = table_of(
        texts("Judge", [key[0] for key in keys]),
        counts("Unproductive below", [key[1] for key in keys]),
        texts("Missing is", [key[2] for key in keys]),
        texts("Group", [key[3] for key in keys]),
        *[
            heading(
                f"Drop τ = {tau}",
                column(
                    "abs.",
                    [Cell(value=row[tau].drop.value) for row in rows],
                    name=f"Drop@{tau} abs.",
                ),
                column(
                    "stopped",
                    [Cell(value=row[tau].stopped, format=COUNT) for row in rows],
                    name=f"Drop@{tau} stopped",
                ),
            )
            for tau in taus
        ],
        repeated=3,
    )
    changes = [
        f"The order of {one.first} and {one.second} at τ = {one.tau} depends on the choice: {one.first} "
        f"loses less in {one.above}, more in {one.below} of them."
        for one in found.changes
    ]
    same = "The order of agents is the same under all choices."
    return Document(
        title="Drop by what counts as unproductive",
        sections=(Section(tables=(table,)),),
        notes=noted(*changes, warning=True) or noted(same),
        data=found,
        rows=[flat_row(row) for row in found.rows],
    )


def agreement_document(found: Agreement, reviews: ReviewAgreement | None = None) -> Document:
    """How far judges and reviewers agree, and a confusion table for each two of them.

    Args:
        found: the agreement of judges, and of reviewers who rated rounds.
        reviews: the agreement of reviewers; None if nobody reviewed.
    """
    title = "Agreement of judges"
    if not found.pairs:
        notes = noted("No round was rated by two judges.")
    else:
        notes = noted(_overall(found, "judge", "round"))
    sections = [_judges(pair) for pair in found.pairs]
    rows = [flat_row(pair) for pair in found.pairs]
    data: object = found
    if reviews is not None:
        data = {"judges": found, "reviewers": reviews}
        title = "Agreement of judges and reviewers"
        if reviews.ratings.pairs:
            notes += noted(f"Reviews: {_overall(reviews.ratings, 'reviewer', 'rated subject')}")
        else:
            notes += noted("No session, round or record was rated by two reviewers.")
        sections += [_judges(pair, "rated subject") for pair in reviews.ratings.pairs]
        rows += [{"of": "rating", **flat_row(pair)} for pair in reviews.ratings.pairs]
        compared = {tag: one for tag, one in reviews.tags.items() if one.pairs}
        if compared:
            sections.append(_tags(compared))
        rows += [
            {"of": f"tag {tag}", **flat_row(pair)}
            for tag, one in compared.items()
            for pair in one.pairs
        ]
    return Document(title=title, sections=sections, notes=notes, data=data, rows=rows)


def _overall(found: Agreement, who: str, what: str) -> str:
    return (
        f"Krippendorff's α (interval scale) over {quantity(len(found.judges), who)}: "
        f"{_spread(found.alpha)}, {quantity(found.rounds, what)} of "
        f"{quantity(found.sessions, 'session')}."
    )


def _judges(pair: Pair, what: str = "round") -> Section:
    about = f"weighted κ {_spread(pair.kappa)}"
    if pair.kappa.value is None:
        about = f"no κ: {pair.kappa.reason}"
    ratings = range(1, 6)
    return Section(
        title=f"{pair.first} (rows) and {pair.second} (columns)",
        about=f"{about}; {percent(pair.equal)} equal of {quantity(pair.rounds, what)}",
        named=True,
        tables=(
            table_of(
                texts("", [str(rating) for rating in ratings], left=False),
                *[
                    counts(str(rating), [row[rating - 1] for row in pair.confusion])
                    for rating in ratings
                ],
            ),
        ),
    )


def _tags(found: Mapping[str, Agreement]) -> Section:
    """A line for each two reviewers and tag, with the sessions that both reviewed."""
    pairs = [(tag, pair) for tag, one in found.items() for pair in one.pairs]
    return Section(
        title="Tags of sessions",
        about="a reviewer who has not added a tag is taken to say that it does not apply",
        named=True,
        tables=(
            table_of(
                texts("tag", [tag for tag, _ in pairs]),
                texts("first", [pair.first for _, pair in pairs]),
                texts("second", [pair.second for _, pair in pairs]),
                counts("sessions", [pair.rounds for _, pair in pairs]),
                counts("both", [pair.confusion[1][1] for _, pair in pairs]),
                counts("only first", [pair.confusion[1][0] for _, pair in pairs]),
                counts("only second", [pair.confusion[0][1] for _, pair in pairs]),
                counts("neither", [pair.confusion[0][0] for _, pair in pairs]),
                texts("κ", [_spread(pair.kappa) for _, pair in pairs]),
            ),
        ),
    )


def _spread(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return number(found.value)
    return f"{number(found.value)} ({number(found.low)} to {number(found.high)})"


_EFFORT: Final = {
    "rounds": "Rounds led by the human",
    "acts": "Acts of the human",
    "tokens_written": "Tokens written by the human",
    "tokens_read": "Tokens to be read by the human",
    "deferrals": "Deferrals",
    "seconds": "Seconds of the human",
    "agent_tokens": "Tokens generated by the agent",
    "human_tokens": "Tokens generated by the human",
}
"""The measures of effort that forks are compared by."""


def fork_document(fork: Fork, *, at_round: int | None = None) -> Document:
    """How one fork ended, and its comparison with its origin.

    Args:
        fork: the fork.
        at_round: the round at which it was made, if that was given.
    """
    at = at_round or fork.round
    where = "" if at is None else f"at round {at}, "
    rows: list[tuple[str, float | None, float | None, int]] = [
        ("Rounds", fork.rounds_then, fork.rounds_now, 0),
        ("Final utility", fork.then, fork.now, 3),
        *[
            (title, fork.effort_then.get(name), fork.effort_now.get(name), 0)
            for name, title in _EFFORT.items()
        ],
    ]

    def cells(pick: int) -> list[Cell]:
        return [Cell(value=row[1 + pick], format=Format(places=row[3])) for row in rows]

    changes = [
        Cell(
            value=None if then is None or now is None else now - then,
            format=Format(places=places, signed=True),
        )
        for _, then, now, places in rows
    ]
    table = table_of(
        texts("", [row[0] for row in rows]),
        column("Then", cells(0)),
        column("Now", cells(1)),
        column("Change", changes),
    )
    reason = fork.reason
    return Document(
        title=fork.session,
        about=f"from {fork.origin} {where}after version {fork.version}: {fork.state}",
        sections=(
            Section(title=_change(fork.played_then, fork.played_now), named=True, tables=(table,)),
        ),
        notes=() if reason is None else (Note(text=f"No difference in utility: {reason}."),),
        data=fork,
        rows=[flat_row(fork)],
    )


def forks_document(report: ForkReport) -> Document:
    """The mean results by who took over from whom, and then each fork."""
    if not report.forks:
        return Document(title="Forks", notes=noted("There are no forks."), data=report, rows=())
    groups, forks = report.groups, report.forks
    tables = []
    if groups:
        tables.append(
            table_of(
                texts("Who took over", [_change(g.played_then, g.played_now) for g in groups]),
                counts("Forks", [one.forks for one in groups]),
                heading(
                    "Final utility",
                    estimates("Then", [one.then for one in groups]),
                    estimates("Now", [one.now for one in groups]),
                    estimates("Change", [one.difference for one in groups], SIGNED),
                ),
                numbers(
                    "Rounds",
                    [one.rounds.value for one in groups],
                    Format(places=1, signed=True),
                ),
            )
        )
    tables.append(
        table_of(
            texts("Fork", [fork.session for fork in forks]),
            counts("At round", [fork.round for fork in forks]),
            heading(
                "Final utility",
                numbers("Before", [fork.before for fork in forks]),
                numbers("Then", [fork.then for fork in forks]),
                numbers("Now", [fork.now for fork in forks]),
                numbers("Change", [fork.difference for fork in forks], SIGNED),
            ),
        )
    )
    reasons = [fork.reason for fork in forks if fork.reason is not None]
    notes = []
    if reasons:
        lost = quantity(len(reasons), "fork")
        notes.append(Note(text=f"{lost} without a difference: {'; '.join(sorted({*reasons}))}."))
    return Document(
        title="Forks, and what really happened",
        sections=(Section(tables=tables),),
        notes=tuple(notes),
        data=report,
        rows=[flat_row(fork) for fork in forks],
    )


def _change(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """The takeover in words: the labels that changed, or all labels if none did."""
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    if not names:
        return f"the same ({', '.join(now.values())})"
    return ", ".join(f"{then.get(name, '?')} → {now.get(name, '?')}" for name in names)


def counterfactual_document(report: CounterfactualReport) -> Document:
    """The drop against continuations: a row per group and tolerance, and the sessions left out."""
    drops = report.drops

    names = list(dict.fromkeys(name for drop in drops for name in drop.group))
    labels = [
        texts(name.capitalize(), [drop.group.get(name, ABSENT) for drop in drops]) for name in names
    ]

    def deviations(title: str, variances: Sequence[float | None]) -> Column:
        return numbers(title, [None if one is None else math.sqrt(one) for one in variances])

    table = table_of(
        labels[0] if labels else texts("Group", ["all" for _ in drops]),
        *labels[1:],
        counts("τ", [drop.tau for drop in drops]),
        heading(
            "Sessions",
            counts("All", [drop.sessions for drop in drops]),
            counts("Stopped", [drop.reached for drop in drops]),
        ),
        heading(
            "D@τ",
            estimates("Real", [drop.real for drop in drops]),
            estimates("Observed", [drop.observed for drop in drops]),
            estimates("Difference", [drop.difference for drop in drops]),
        ),
        heading(
            "Standard deviation",
            deviations("Within", [drop.within for drop in drops]),
            deviations("Between", [drop.between for drop in drops]),
        ),
    )
    notes = [
        (
            "Real: utility at the stop less the mean final utility of continuations from there, with fresh "
            "seeds. Observed: less the final utility of the session itself. A session that is not stopped "
            "counts 0 in both. Within: between continuations of a session; between: between the sessions that "
            "were stopped, beyond that."
        )
    ]
    if lost := sum(drop.without_utility for drop in drops):
        notes.append(f"Continuations without a final utility: {lost}.")
    reasons: Counter[str] = Counter()
    for drop in drops:
        for reason, count in drop.left_out.items():
            reasons[f"τ = {drop.tau}, {reason}"] += count
    notes += [f"Sessions left out ({reason}): {count}." for reason, count in reasons.items()]
    return Document(
        title="The drop against continuations without the stop",
        sections=(Section(tables=(table,)),),
        notes=noted(*notes),
        data=report,
        rows=[flat_row(drop) for drop in drops],
    )


_BEHAVIOUR: Final = {
    "turn_length": "turn length, words",
    "question_rate": "turns that ask, share",
    "vagueness": "vague turns, share",
    "edits": "edits, versions",
    "ratings": "ratings, points",
    "survival": "survival, rounds",
}


def audit_document(found: Audit) -> Document:
    """How far simulated people are from real ones: a table per persona."""
    notes = []
    if found.left_out:
        left = quantity(found.left_out, "session")
        notes.append(f"Left out of the people: {left} with a simulated human.")
    notes.append(
        "W1: Wasserstein distance, in the unit of the row; KS: Kolmogorov-Smirnov distance, 0 to 1. "
        f"With them {100 * found.level:g} % bootstrap intervals over sessions ({found.resamples:,} "
        f"resamples, seed {found.seed}). Chance: what 95 % of random divisions of the same sessions "
        "stay below; a distance within it cannot be told from 0. * beyond it."
    )
    return Document(
        title="Simulated people against real ones",
        sections=[_fidelity(found), *map(_persona, found.personas)],
        notes=noted(*notes),
        data=found,
        rows=[
            {"persona": one.simulated, "task": one.task, "index": one.index.value} | flat_row(gap)
            for one in (*found.personas, *found.tasks)
            for gap in one.measures
        ],
    )


def _fidelity(found: Audit) -> Section:
    """The index of each persona, on all tasks and on each."""
    ones = [
        row
        for persona in found.personas
        for row in (persona, *[one for one in found.tasks if one.simulated == persona.simulated])
    ]
    notes = [
        (
            "Index: 1 less the mean KS over the measures below; 1 if nothing tells the simulated users from "
            "people. Within chance: measures with a distance that random divisions of the same sessions reach."
        )
    ]
    if any(not one.same_task for one in ones):
        notes.append("* no person worked on this task: compared with people on other tasks.")
    return Section(
        title="Fidelity",
        named=True,
        tables=(
            table_of(
                texts("User", [one.simulated for one in ones]),
                texts("Task", [one.task or "all" for one in ones]),
                counts("Sessions", [one.sessions for one in ones]),
                counts("People", [one.people for one in ones]),
                column("Index", [estimate(one.index, marked=not one.same_task) for one in ones]),
                texts("Within chance", ["{} of {}".format(*one.within_chance) for one in ones]),
            ),
        ),
        notes=noted(*notes),
    )


def _persona(one: PersonaAudit) -> Section:
    gaps = one.measures

    def distances(kind: str) -> Heading:
        pairs = [
            (gap.wasserstein, gap.chance_wasserstein) if kind == "W1" else (gap.ks, gap.chance_ks)
            for gap in gaps
        ]
        cells = [
            estimate(
                found,
                MEAN,
                marked=found.value is not None and chance is not None and found.value > chance,
            )
            for found, chance in pairs
        ]
        return heading(
            kind,
            column("distance", cells, name=kind),
            Column(
                title="chance",
                name=f"{kind} by chance",
                cells=[Cell(value=chance, format=MEAN) for _, chance in pairs],
            ),
        )

    means: dict[str, list[Estimate]] = {
        "simulated": [gap.simulated for gap in gaps],
        "people": [gap.people for gap in gaps],
        "difference": [gap.difference for gap in gaps],
    }
    return Section(
        title=one.simulated,
        about=f"{quantity(one.sessions, 'session')}, {one.people:,} of people",
        named=True,
        tables=(
            table_of(
                texts("", [_BEHAVIOUR[gap.measure] for gap in gaps]),
                Heading(
                    title="Mean",
                    columns=[estimates(title, values, MEAN) for title, values in means.items()],
                ),
                distances("W1"),
                distances("KS"),
            ),
        ),
        notes=[_without(one, gap) for gap in gaps if gap.reason],
    )


def _without(one: PersonaAudit, gap: BehaviourGap) -> Note:
    return Note(text=f"{ABSENT} {one.simulated}, {_BEHAVIOUR[gap.measure]}: {gap.reason}")


def oversight_document(found: OversightReport) -> Document:
    """How people approve, interrupt and correct agents, by group; docs/measures.md has the formulas."""
    groups = list(found.groups.values())

    def named() -> Column:
        values = [f"{name or ABSENT} ({one.sessions:,})" for name, one in found.groups.items()]
        return texts(f"{found.by} (sessions)", values)

    def share(title: str, values: Sequence[float | None]) -> Column:
        return numbers(title, values, MEAN)

    turns = table_of(
        named(),
        counts("Agent turns", [one.agent_turns for one in groups]),
        heading(
            "By agent turn",
            share("Interruptions", [one.interruptions_by_turn for one in groups]),
            share("Corrections", [one.corrections_by_turn for one in groups]),
            share("Failures reported", [one.failures_by_turn for one in groups]),
            share("Pushback", [one.pushback_by_turn for one in groups]),
        ),
        heading(
            "Questions of the agent",
            counts("All", [one.questions for one in groups]),
            share("By interruption", [one.questions_by_interruption for one in groups]),
        ),
    )
    alone = table_of(
        named(),
        _quantiles("Acts on its own", [one.stretch_acts for one in groups]),
        _quantiles("Seconds on its own", [one.stretch_seconds for one in groups]),
        heading(
            "Attended",
            numbers("Minutes", [_minutes(one.attended) for one in groups], Format(places=1)),
            counts("Persons", [one.persons for one in groups]),
            counts("No person named", [one.unattributed for one in groups]),
        ),
    )
    asked = [one.approvals for one in groups]
    decided = table_of(
        named(),
        counts("Asked", [one.asked for one in asked]),
        heading(
            "By persons",
            counts("Approved", [one.approved_by_person for one in asked]),
            counts("Rejected", [one.rejected_by_person for one in asked]),
        ),
        heading(
            "Decided by",
            counts("Rules", [one.by_rule for one in asked]),
            counts("Settings", [one.by_setting for one in asked]),
            counts("Unknown", [one.by_unknown for one in asked]),
        ),
        counts("Expired", [one.expired for one in asked]),
        counts("Open", [one.unanswered for one in asked]),
        texts("Never asked", [f"{one.never_asked:,} of {one.actions:,}" for one in asked]),
    )
    speed = table_of(
        named(),
        column(
            "Approve everything",
            [
                Cell(
                    value=one.approve_everything,
                    shown=f"{percent(one.approve_everything)} of {one.decided:,}",
                )
                for one in groups
            ],
        ),
        _quantiles("Seconds to decide", [one.latency for one in groups]),
        numbers(
            "Trend, seconds a decision",
            [one.latency_trend for one in groups],
            Format(places=2, signed=True),
        ),
    )
    notes = noted(
        "Approve everything: the share of the sessions in which a person decided. Trend: below 0, people "
        f"decide ever faster. {ABSENT}: the log does not say."
    )
    if incomplete := sum(one.incomplete for one in groups):
        text = f"{quantity(incomplete, 'session')} with events that could not be recorded left out."
        notes += noted(text)
    return Document(
        title="Oversight",
        sections=(
            Section(title="Turns", tables=(turns, alone)),
            Section(title="Approvals", tables=(decided, speed)),
        )
        if groups
        else (),
        notes=notes if groups else noted("No session meets this."),
        data=found,
        rows=[{found.by: name, **flat_row(one)} for name, one in found.groups.items()],
    )


def _quantiles(title: str, found: Sequence[Quantiles | None]) -> Heading:
    def part(name: str, take: Callable[[Quantiles], float]) -> Column:
        return numbers(
            name, [None if one is None else take(one) for one in found], Format(places=1)
        )

    return heading(
        title,
        part("p50", lambda one: one.p50),
        part("p90", lambda one: one.p90),
        part("p99", lambda one: one.p99),
    )


def _minutes(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 60
