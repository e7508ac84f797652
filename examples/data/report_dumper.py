"""A bad example: an agent that answers everything with its whole report, and explains nothing.

It is the agent of the case study on data analysis in section 2.1 of the paper. It puts up its
queries with all that each has found, in its own order, asks nothing, and says to whoever asks that it is all in the
report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from ...engine.session.decisions import NOTHING, Act, Decision, Finish, Say, Submit
from ...engine.session.view import View
from ..kit.views import nudged, owes_reply
from .analysis import SHEETS, query_for, sheet_of
from .knowledge import Known, Memory
from .report import say_claim

__all__ = ("REPORT_DUMPER", "ReportDumper")

REPORT_DUMPER: Final = "report-dumper"
"""Its name among the agents of the task."""

_DONE: Final = "The full report is up, with all queries and findings."
_AGAIN: Final = "All of that is in the report."


@final
class ReportDumper:
    """The policy of the agent; one for each session."""

    def __init__(self) -> None:
        self._memory = Memory()

    async def decide(self, view: View) -> Decision:
        """Lists the tables, queries all of them, and puts the report up; then refers to it."""
        known = self._memory.recall(view)
        if view.in_flight:
            return NOTHING
        if known.names is None:
            return Decision((Act("Schema"),))
        queries = [query_for(sheet, known.rulings) for sheet in SHEETS]
        missing = [sql for sql in queries if sql not in known.findings.rows]
        if missing:
            return Decision(tuple(Act("Query", {"sql": sql}) for sql in missing))
        if view.own_snapshot is None:
            return Decision((Submit("\n".join(_dump(known))), Say(_DONE)))
        if owes_reply(view):
            return Decision((Say(_AGAIN),))
        return Decision((Finish("the report is there"),)) if nudged(view) else NOTHING


def _dump(known: Known) -> Iterator[str]:
    """Query by query, what it found."""
    claims = known.claims()
    for sheet in SHEETS:
        yield f"Method: {query_for(sheet, known.rulings)}"
        yield from (
            say_claim(claim) for topic, claim in claims.items() if sheet_of(topic.kind) == sheet
        )
