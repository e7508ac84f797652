"""Process measures in a report: the names of their columns, and their tables in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rich.text import Text

from ...metrics import Estimate, Group
from .columns import TableCell, TableColumn, TableHeading, TableLine, draw, width_of
from .wording import Rows, number, span

__all__ = (
    "PROCESS_GROUPS",
    "PROCESS_NOTE",
    "ProcessColumn",
    "ProcessHeading",
    "has_process",
    "process_sessions",
    "process_tables",
    "process_value",
)


class ProcessColumn(NamedTuple):
    """A column: its name, and the field of ``Process`` that it averages."""

    name: str
    field: str


class ProcessHeading(NamedTuple):
    """Columns under one title."""

    title: str
    columns: Sequence[ProcessColumn]


PROCESS_GROUPS: Final = (
    ProcessHeading(
        "Initiatives",
        (
            ProcessColumn("Agent", "agent_initiatives"),
            ProcessColumn("Human", "human_initiatives"),
            ProcessColumn("Entropy", "initiative_entropy"),
        ),
    ),
    ProcessHeading(
        "Confirmations",
        (
            ProcessColumn("Asked", "confirmations_asked"),
            ProcessColumn("Answered", "confirmations_answered"),
        ),
    ),
    ProcessHeading(
        "Approvals", (ProcessColumn("Given", "approved"), ProcessColumn("Denied", "denied"))
    ),
    ProcessHeading(
        "Human messages",
        (ProcessColumn("Halts", "halts"), ProcessColumn("Interruptions", "interruptions")),
    ),
    ProcessHeading(
        "Load", (ProcessColumn("Peak", "peak_reading"), ProcessColumn("Hesitation", "hesitation"))
    ),
    ProcessHeading(
        "Confusion",
        (ProcessColumn("Clarify", "clarifications"), ProcessColumn("Reworked", "reworked_lines")),
    ),
    ProcessHeading("Sensemaking", (ProcessColumn("Inquiries", "inquiries"),)),
    ProcessHeading(
        "Loops", (ProcessColumn("Runs", "loops"), ProcessColumn("Acts", "looping_acts"))
    ),
)

PROCESS_NOTE: Final = (
    "Process: means per session. Initiatives: messages that propose, state or ask something "
    "concrete; entropy: 1 if all take the initiative equally often, 0 if one of them never does. "
    "Halts: messages that ask the agent to stop; interruptions: messages during an action of the "
    "agent. Load: the most words that waited to be read at one act of the human, and seconds that "
    "neither reading nor typing explains. Confusion: messages that ask what was meant, lines put back "
    "or taken back. Sensemaking: questions and actions of the human. Loops: runs in which an agent "
    "repeats itself, and acts in them"
)
"""What the columns mean; without a full stop."""


def has_process(groups: Sequence[Group]) -> bool:
    """Whether any process measure is known of any group."""
    return any(one.value is not None for group in groups for one in group.process.values())


def process_sessions(group: Group) -> int:
    """N: how many sessions of a group have process measures."""
    return max((estimate.sessions for estimate in group.process.values()), default=0)


def process_value(group: Group, column: ProcessColumn) -> Estimate:
    """A measure of a group; absent where the group has none."""
    return group.process.get(column.field, Estimate())


def process_tables(
    rows: Rows, names: TableHeading, lines: Sequence[TableLine], width: int
) -> Iterator[Text]:
    """The measures as tables, one below the other: as few as the width allows.

    Args:
        rows: the rows of the report.
        names: the column with the names of the rows.
        lines: the lines of each table.
        width: characters of the terminal.
    """
    sessions = [TableCell(f"{process_sessions(group):,}") for group in rows.groups]
    first = [names, TableHeading("", [TableColumn("N", sessions)])]
    table = first
    for part in PROCESS_GROUPS:
        heading = TableHeading(part.title, [_column(rows, column) for column in part.columns])
        if table is not first and width_of([*table, heading], 2) > width:
            yield draw(table, lines, 2, rule="─")
            table = first
        table = [*table, heading]
    yield draw(table, lines, 2, rule="─")


def _column(rows: Rows, column: ProcessColumn) -> TableColumn:
    estimates = [process_value(group, column) for group in rows.groups]
    return TableColumn(
        column.name, [TableCell(number(one.value, 2), span(one)) for one in estimates]
    )
