"""Formats numbers and labels alike in every form of a report that is made for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ....engine.text import quantity
from ...metrics import Counts, Estimate, Group, Report
from .data import estimates

__all__ = (
    "ABSENT",
    "RATIO_TITLE",
    "ROUNDS_TITLE",
    "Rows",
    "absences",
    "compared_places",
    "compared_title",
    "completeness",
    "count",
    "has_intervals",
    "number",
    "percent",
    "provenance",
    "rows_of",
    "span",
)

ABSENT = "–"
"""Shown for an absent number."""


def number(value: float | None, places: int = 3, *, zero: bool = True) -> str:
    """A number with ``places`` decimals; ``zero``: with a 0 before the point. Never -0.000."""
    if value is None:
        return ABSENT
    text = f"{value:.{places}f}"
    if not text.strip("-0."):
        text = text.removeprefix("-")
    if not zero and places:
        text = text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text
    return text


def percent(value: float | None) -> str:
    """A share as a percentage with one decimal."""
    return ABSENT if value is None else f"{number(100 * value, 1)}%"


def count(value: float | None) -> str:
    """A mean count, rounded, with separators between thousands."""
    return ABSENT if value is None else f"{value:,.0f}"


def has_intervals(report: Report) -> bool:
    """Whether any number of a report is shown with an interval."""
    return any(span(estimate) for group in report.groups for _, estimate in estimates(group))


def span(estimate: Estimate, places: int = 2) -> str:
    """An interval, e.g. ``.61–.68``; empty if there is none, or if its width is 0."""
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return ""
    low = number(estimate.low, places, zero=False)
    high = number(estimate.high, places, zero=False)
    return f"{low}, {high}" if "-" in low + high else f"{low}{ABSENT}{high}"


def compared_title(name: str) -> str:
    """The title of a quantity in which agents are compared: ``drop@2`` is ``drop τ = 2``."""
    return name.replace("drop@", "drop τ = ").replace("_", " ")


def compared_places(name: str, usual: int = 3) -> int:
    """The decimals with which a quantity is shown in which agents are compared."""
    return {"all_rounds": 1, "agent_tokens": 0, "seconds": 0}.get(name, usual)


ROUNDS_TITLE = "All rounds"
"""Title of the mean number of rounds per session; ``rounds`` is the effort: those a human led."""

RATIO_TITLE = "Ratio"
"""Title of the ratio of mean agent tokens to mean human tokens."""


class Rows:
    """The groups of a report as rows of a table, in sections.

    Attributes:
        label: the label whose values name the rows.
        sections: the labels whose values name the sections.
        shared: labels that all sessions share, with their values.
        groups: the groups that get a row, section by section.
    """

    def __init__(self, report: Report) -> None:
        rows = [group for group in report.groups if not group.baseline]
        rows += [
            group
            for group in report.groups
            if group.baseline and not any(_beside(group, row) for row in rows if not row.baseline)
        ]
        values = {name: {group.group.get(name) for group in rows} for name in report.group_by}
        varying = [name for name in report.group_by if len(values[name]) > 1]
        self.label = "agent" if "agent" in varying or not varying else varying[-1]
        self.sections = [name for name in varying if name != self.label]
        self.shared: Mapping[str, str] = {
            name: value
            for name in report.group_by
            if name != self.label and name not in varying
            for value in values[name]
            if value is not None
        }
        self.groups = sorted(rows, key=self._key)

    def _key(self, group: Group) -> tuple[str, ...]:
        return tuple(group.group.get(name, "") for name in (*self.sections, self.label))

    def name(self, group: Group) -> str:
        """The name of a row."""
        return group.group.get(self.label) or ("all" if not group.group else ABSENT)

    def section(self, group: Group) -> str:
        """The name of the section of a row; empty without sections."""
        named = [(name, group.group.get(name)) for name in self.sections]
        return " · ".join(f"{name} {value}" if value else f"no {name}" for name, value in named)


def rows_of(report: Report) -> Rows:
    """The rows of a report's table: one per group of collaborating sessions.

    Automated runs are shown in a column of their own. They get a row only if no row of
    collaborating sessions matches them.
    """
    return Rows(report)


def _beside(baseline: Group, row: Group) -> bool:
    names = (set(baseline.group) & set(row.group)) - {"agent", "user"}
    return all(baseline.group[name] == row.group[name] for name in names)


def absences(groups: Sequence[Group], rows: Rows) -> Iterator[str]:
    """A sentence per reason why numbers are absent, with the rows that it concerns."""
    found: dict[str, dict[str, None]] = {}
    for group in groups:
        if group.baseline:
            continue
        where = " · ".join(part for part in (rows.section(group), rows.name(group)) if part)
        for path, estimate in estimates(group):
            if estimate.reason is not None and path[0] in ("utility", "gain", "drop"):
                found.setdefault(estimate.reason, {})[where] = None
    for reason, places in found.items():
        yield f"{ABSENT} {', '.join(places)}: {reason}."


def completeness(report: Report) -> Iterator[str]:
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
        yield "No round has a progress rating, so nobody knows when a human would leave."
    elif missing:
        have = "has" if missing == 1 else "have"
        yield f"{missing:,} of {quantity(rounds, 'round')} {have} no progress rating."
    if pending := sum(one.pending_ratings for one in counts):
        yield f"{quantity(pending, 'rating')} {_be(pending)} pending."
    if estimated := sum(one.estimated_tokens for one in counts):
        yield f"Tokens of {quantity(estimated, 'session')} are estimated from texts."
    yield from _without_utility(counts, published=report.convention == "paper")
    yield from _without_drop(groups)
    if broken := sum(group.counts.broken_baselines for group in groups):
        yield f"{quantity(broken, 'automated run')} broke off, and {_be(broken)} in no mean."
    if running := sum(one.open_sessions for one in counts):
        yield f"{quantity(running, 'session')} {_be(running)} still open."
    if faulty := sum(one.faulty_sessions for one in counts):
        yield f"Simulated users were at fault in {quantity(faulty, 'session')} ({_faults(counts)})."


def provenance(report: Report) -> Iterator[str]:
    """Sentences on where the numbers come from, and on what hangs on a convention."""
    if report.judges:
        yield f"Ratings by {', '.join(report.judges)}."
    yield f"Definitions of version {report.definitions}."
    for warning in report.warnings:
        yield f"{warning[0].upper()}{warning[1:]}."


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
    others = sum(one.unvalued_sessions for one in counts) - unevaluated - unscored
    first = sum(one.unscored_first for one in counts)
    for number, one, several in (
        (
            unevaluated,
            "was not evaluated, since no utility scorer ran,",
            "were not evaluated, since no utility scorer ran,",
        ),
        (unscored, "has no score of its output", "have no score of their output"),
        (others, "has no round that counts", "have no round that counts"),
    ):
        if number:
            why = one if number == 1 else several
            yield f"{quantity(number, 'session')} {why} and {_be(number)} in no mean of utility."
    if first:
        have = "has" if first == 1 else "have"
        yield (
            f"{quantity(first, 'session')} {have} no score of the first update, and {_be(first)} in no "
            "mean of first and gain."
        )
    if results := sum(one.result_only for one in counts):
        yield (
            f"Of {quantity(results, 'session')} only the result was measured, and no output before it: "
            "first, gain, drop and curve leave them out."
        )


def _without_drop(groups: Sequence[Group]) -> Iterator[str]:
    """The sessions that are left out of the drop, by τ, where others are not."""
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
