"""Which groups of a report get a row, how rows and sections are named, and how quantities are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from ..columns.table import TAG
from ..metrics import Group, Numbers
from .document import ABSENT, Format

__all__ = ("Rows", "compared_format", "compared_title", "rows_of")


@final
class Rows:
    """The groups of a report as rows of a table, in sections.

    Attributes:
        label: the label whose values name the rows.
        sections: the labels whose values name the sections.
        shared: labels that all sessions share, with their values.
        groups: the groups that get a row, section by section.
    """

    def __init__(self, report: Numbers) -> None:
        rows = [group for group in report.groups if not group.baseline]
        rows += [
            group
            for group in report.groups
            if group.baseline and not any(_matches(group, row) for row in rows if not row.baseline)
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
        if not group.group and self.label == TAG and len(self.groups) > 1:
            return "no tag"
        return group.group.get(self.label) or ("all" if not group.group else ABSENT)

    def place(self, group: Group) -> str:
        """The section and the name of a row."""
        return " · ".join(
            [*[group.group.get(name, "") for name in self.sections], self.name(group)]
        )

    def place_of(self, labels: Mapping[str, str]) -> str:
        """The values by which these labels are told apart from those of other rows."""
        names = [name for name in (*self.sections, self.label) if name in labels]
        return " · ".join([labels[name] for name in names])


def rows_of(report: Numbers) -> Rows:
    """The rows of a report's table: one per group of collaborating sessions.

    Automated runs have a separate column. They get a row only if no row of collaborating sessions
    matches them.
    """
    return Rows(report)


def _matches(baseline: Group, row: Group) -> bool:
    names = (set(baseline.group) & set(row.group)) - {"agent", "user"}
    return all(baseline.group[name] == row.group[name] for name in names)


def compared_title(name: str) -> str:
    """The title of a quantity in which agents are compared: ``drop@2`` is ``drop τ = 2``."""
    return name.replace("drop@", "drop τ = ").replace("_", " ")


def compared_format(name: str, *, signed: bool = False) -> Format:
    """How a quantity is shown in which agents are compared."""
    return Format(
        places={"all_rounds": 1, "agent_tokens": 0, "seconds": 0}.get(name, 3), signed=signed
    )
