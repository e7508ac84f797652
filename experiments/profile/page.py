"""The page of a profile: what kind of collaborator it is, what to do, and what both rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...engine.text import quantity
from ...scoring.comparison.simulators import Audit
from ...scoring.metrics.results import Numbers
from ...scoring.report import audit_document, report_document
from ...scoring.report.document import (
    COUNT,
    MEAN,
    NUMBER,
    SHARE,
    SIGNED,
    Cell,
    Column,
    Document,
    Format,
    Note,
    Section,
    column,
    counts,
    estimate,
    number,
    percent,
    table_of,
    texts,
)
from ...scoring.report.drawings import curve_name
from .advice import ALONE, AUTOMATED, Recommendation, Rule
from .diagnosis import KINDS, Diagnosis, Finding
from .playing import Profile

__all__ = ("CANNOT", "looked_at", "profile_document")

_MINUTES: Final = Format(places=2, signed=True)
_SURE: Final = ((0.95, "sure"), (0.8, "fairly sure"), (0.0, "not sure"))
_CLOSE: Final = 0.8

CANNOT: Final = (
    "A profile cannot know how people work with this model: its users are simulated. It cannot know other tasks, other "
    "languages or longer work than the suite's, nor how the model does with another prompt or at another time."
)
"""The limits that every page states."""

_SHOWN: Final = ("Utility, gain and drop", "Process")
"""Sections of the report that a profile shows."""

_OPTIONS: Final[Mapping[str, str]] = {
    AUTOMATED: "Automate the work: let it work from the request alone",
    ALONE: "Leave the work to the human alone",
}


def profile_document(
    found: Profile,
    numbers: Numbers | None = None,
    *,
    fidelity: Audit | None = None,
    links: Mapping[str, str] = {},
    commands: Mapping[str, str] = {},
) -> Document:
    """The document of a profile.

    Args:
        found: the profile.
        numbers: the report on the same sessions, by agent; None to leave its tables out.
        fidelity: the distance of its simulated users from real people; None if not measured.
        links: by session, the place within the page that shows it.
        commands: by session, the command that shows it.
    """
    verdict = [*_verdict(found), *_faithful(fidelity)]
    sections = [Section(title="Verdict", named=True, notes=verdict)]
    if diagnosed := _diagnosed(found):
        sections.append(_diagnoses(diagnosed))
        sections.append(_sessions(diagnosed, links, commands))
    if found.recommendation is not None:
        sections.append(_choices(found.recommendation))
    if found.sensitivity:
        sections.append(_sensitivity(found, fidelity))
    if found.halves:
        sections.append(_halves(found))
    if fidelity is not None:
        audited = audit_document(fidelity)
        sections += [*audited.sections, Section(notes=audited.notes)]
    if numbers is not None:
        sections += _report(numbers)
    return Document(
        title=f"Profile of {found.subject}",
        about=f"{found.suite} · {', '.join(found.tasks)}",
        size=f"{quantity(found.played, 'session')}, digest {found.digest[:12]}",
        sections=[one for one in sections if one.tables or one.notes or one.figures],
        notes=list(_notes(found)),
        data=found,
        rows=[
            {
                "subject": found.subject,
                "scaffold": scaffold,
                "kind": one.kind,
                "certainty": one.certainty,
                "sessions": one.sessions,
                "problems": one.problems,
                **{finding.limit.sign: finding.sign.value for finding in one.findings},
            }
            for scaffold, one in found.diagnoses.items()
        ],
    )


def _report(numbers: Numbers) -> Iterator[Section]:
    """Parts of the report on the same sessions: the curve, utility and drops, effort, process."""
    found = report_document(numbers)
    curves = [one for one in found.figures if one.name == curve_name(numbers.axis)]
    if curves:
        yield Section(title="Utility against effort", figures=curves)
    for section in found.sections:
        if section.title in _SHOWN and section.tables:
            yield Section(
                title=section.title, named=True, tables=section.tables, notes=section.notes[-1:]
            )


def looked_at(found: Profile) -> tuple[str, ...]:
    """The sessions that the page names as evidence."""
    return tuple(
        dict.fromkeys(
            session
            for diagnosis in found.diagnoses.values()
            for finding in _evidence(diagnosis)
            for session in finding.sessions
        )
    )


def _verdict(found: Profile) -> Iterator[Note]:
    if not found.played:
        yield Note(
            text="No session of the suite was scored: there is nothing to say.", warning=True
        )
        return
    if found.failed:
        yield Note(
            text=f"{found.failed:,} of {quantity(found.played, 'session')} failed. Their utility counts, but they do "
            "not show what kind of collaborator it is. duolog show says why a session failed.",
            warning=True,
        )
    diagnosed = _diagnosed(found)
    if lacking := [name for name in found.diagnoses if name not in diagnosed]:
        yield Note(
            text=f"Nothing is known of it with {', '.join(lacking)}: no session with a score that did not fail.",
            warning=True,
        )
    for kind in dict.fromkeys(one.kind for one in diagnosed.values()):
        alike = {name: one for name, one in diagnosed.items() if one.kind == kind}
        where = ", ".join(alike)
        least = min(one.certainty for one in alike.values())
        yield Note(
            text=f"With {where} it {KINDS[kind]} ({kind}; {_sure(least)}, {percent(least)} of resamples)."
        )
        for name, one in alike.items():
            if evidence := [_said(finding) for finding in _evidence(one)]:
                yield Note(text=f"Evidence with {name}: {'; '.join(evidence)}.")
    advice = found.recommendation
    if advice is None:
        return
    first = advice.choices[0]
    what = _OPTIONS.get(first.name, f"Work with it as {first.name}")
    yield Note(
        text=f"{what}: utility {number(first.utility.value)} for {number(first.minutes.value, 1)} minutes of "
        f"the human ({_sure(advice.certainty)}: the best choice in {percent(advice.certainty)} of resamples)."
    )
    if len(advice.choices) > 1:
        second = advice.choices[1]
        span = SIGNED.span(advice.margin.low, advice.margin.high)
        margin = f"{SIGNED.text(advice.margin.value)}{f' ({span})' if span else ''}"
        yield Note(
            text=f"The next choice is {second.name}: utility {number(second.utility.value)} for "
            f"{number(second.minutes.value, 1)} minutes; the difference is worth {margin} at "
            f"{advice.price:g} a minute."
        )
        if advice.certainty < _CLOSE:
            yield Note(
                text=f"{first.name} and {second.name} are not told apart: play more problems before you choose.",
                warning=True,
            )
    yield from map(_rule, advice.rules)


def _diagnosed(found: Profile) -> Mapping[str, Diagnosis]:
    """The diagnoses that rest on any session."""
    return {name: one for name, one in found.diagnoses.items() if one.sessions}


def _rule(rule: Rule) -> Note:
    """A rule with what its replay gave, or why it was not replayed."""
    found = rule.replayed
    if found is None:
        return Note(text=f"{rule.text} Not replayed: it changes what the agent does.")
    utility, minutes, net = (
        f"{form.text(one.value)}{f' ({span})' if (span := form.span(one.low, one.high)) else ''}"
        for one, form in ((found.utility, SIGNED), (found.minutes, _MINUTES), (found.net, SIGNED))
    )
    said = (
        f"Replayed on {quantity(found.sessions, 'session')} with {', '.join(rule.scaffolds)}: it ends {found.stopped:,} "
        f"early; utility {utility}, minutes {minutes}, net {net}."
    )
    return Note(text=f"{rule.text if rule.recommended else f'Not recommended: {rule.text}'} {said}")


def _sure(certainty: float) -> str:
    return next(word for least, word in _SURE if certainty >= least)


def _evidence(one: Diagnosis) -> list[Finding]:
    """The flaws that hold, or else what speaks for the kind."""
    if one.flaws:
        return list(one.flaws)
    return [finding for finding in one.findings if finding.kind == one.kind and finding.holds]


def _said(finding: Finding) -> str:
    if not _beyond(finding):  # a plateau by its rounds, and not by its turns
        return "utility stays as it is in most rounds, and the first output is hardly made better"
    value, least = finding.sign.value, finding.limit.least
    shown = [
        percent(one) if finding.limit.percent else number(one, _places(finding))
        for one in (value, least)
    ]
    return f"{shown[0]} {finding.limit.words} (limit {shown[1]})"


def _beyond(finding: Finding) -> bool:
    value = finding.sign.value
    return value is not None and value >= finding.limit.least


def _places(finding: Finding) -> int:
    return 0 if finding.limit.least >= 10 else 3


def _diagnoses(found: Mapping[str, Diagnosis]) -> Section:
    columns: list[Column] = []
    ones = list(found.values())
    names = [limit.kind for limit in ones[0].findings] if ones[0].findings else []
    for kind in names:
        cells = []
        for one in ones:
            finding = next((each for each in one.findings if each.kind == kind), None)
            cells.append(Cell() if finding is None else _sign(finding))
        columns.append(column("gain" if kind == "sustained" else kind, cells))
    return Section(
        title="Kind of collaborator",
        named=True,
        tables=[
            table_of(
                texts("Scaffold", list(found)),
                texts("Kind", [one.kind for one in ones]),
                column("Sure", [Cell(value=one.certainty, format=SHARE) for one in ones]),
                counts("Sessions", [one.sessions for one in ones]),
                counts("Problems", [one.problems for one in ones]),
                *columns,
            )
        ],
        notes=[
            Note(
                text="Sure: share of resamples of the problems that give the same kind. Each sign is a mean over "
                "sessions with its 95 % interval; * beyond its limit. Limits: "
                + "; ".join(
                    f"{'gain' if one.kind == 'sustained' else one.kind}, "
                    f"{percent(one.limit.least) if one.limit.percent else f'{one.limit.least:g}'} "
                    f"{one.limit.words}"
                    for one in ones[0].findings
                )
                + "."
            )
        ],
    )


def _sign(finding: Finding) -> Cell:
    form = SHARE if finding.limit.percent else Format(places=_places(finding))
    if finding.limit.least >= 10:
        form = COUNT
    return estimate(finding.sign, form, marked=finding.holds and _beyond(finding))


def _sessions(
    found: Mapping[str, Diagnosis], links: Mapping[str, str], commands: Mapping[str, str]
) -> Section:
    rows = [
        (scaffold, finding, session)
        for scaffold, one in found.items()
        for finding in _evidence(one)
        for session in finding.sessions
    ]
    if not rows:
        return Section()
    sessions = [
        Cell(
            value=session,
            link=links.get(session, ""),
            below="" if session in links else commands.get(session, ""),
        )
        for _, _, session in rows
    ]
    table = table_of(
        texts("Scaffold", [scaffold for scaffold, _, _ in rows]),
        texts("Shows", [finding.kind for _, finding, _ in rows]),
        column("Session", sessions, left=True),
    )
    return Section(title="Sessions to look at", named=True, tables=[table])


def _choices(found: Recommendation) -> Section:
    ones = found.choices
    return Section(
        title="Ways to get the work done",
        named=True,
        tables=[
            table_of(
                texts("Choice", [one.name for one in ones]),
                column("Utility", [estimate(one.utility) for one in ones]),
                column("Minutes", [estimate(one.minutes, MEAN) for one in ones]),
                column("Net", [estimate(one.net) for one in ones]),
                column("Best", [Cell(value=one.wins, format=SHARE) for one in ones]),
            )
        ],
        notes=[
            Note(
                text=f"Net: final utility less {found.price:g} for each minute of the human. Best: share of resamples "
                "of the problems in which it is the best choice."
            )
        ],
    )


def _faithful(found: Audit | None) -> Iterator[Note]:
    """A sentence on how far the users are from people."""
    if found is not None:
        said = [f"{one.simulated} {number(one.index.value)}" for one in found.personas]
        yield Note(
            text=f"All numbers rest on simulated users. Fidelity to {quantity(found.people, 'session')} of people, "
            f"1 if nothing tells them apart: {', '.join(said)}."
        )


def _sensitivity(found: Profile, fidelity: Audit | None) -> Section:
    ones = found.sensitivity
    indices = {} if fidelity is None else {one.simulated: one.index for one in fidelity.personas}
    held = [
        next(
            (index for name, index in indices.items() if name.partition(" on ")[0] == one.user),
            None,
        )
        for one in ones
    ]
    compared = (
        [column("Fidelity", [Cell() if one is None else estimate(one) for one in held])]
        if indices
        else []
    )
    return Section(
        title="Other people",
        named=True,
        tables=[
            table_of(
                texts("Scaffold", [one.scaffold for one in ones]),
                texts("User", [one.user for one in ones]),
                column("Final utility", [estimate(one.difference, SIGNED) for one in ones]),
                *compared,
            )
        ],
        notes=[
            Note(
                text="Final utility with this user less that with a proactive one, on the same problems."
            )
        ],
    )


def _halves(found: Profile) -> Section:
    names = list(found.halves)
    return Section(
        title="Public and secret half",
        named=True,
        tables=[
            table_of(
                texts("Half", names),
                column(
                    "Final utility",
                    [
                        estimate(found.halves[name], SIGNED if name == "difference" else NUMBER)
                        for name in names
                    ],
                ),
            )
        ],
        notes=[
            Note(
                text="A model that knows the public problems does better on them than on the secret ones."
            )
        ],
    )


def _notes(found: Profile) -> Iterator[Note]:
    if found.played < found.planned:
        yield Note(
            text=f"{found.played:,} of {quantity(found.planned, 'session')} of the suite were scored: the rest is "
            "still to be played, or could not be measured.",
            warning=True,
        )
    if not found.published:
        yield Note(
            text=f"This is not {found.suite} as it was published: its tasks or problems have changed here. Compare "
            "only profiles of one digest.",
            warning=True,
        )
    yield Note(
        text=f"Intervals and certainty: {found.resamples:,} resamples of the problems, seed {found.seed}."
    )
    yield Note(text=CANNOT)
