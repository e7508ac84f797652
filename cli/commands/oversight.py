"""``duolog oversight``: how people approve, interrupt and correct agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .. import options
from ..arguments import FILTERS, example
from ..lookup import existing_log
from ..output import say
from ..root import app
from ..runtime import run

if TYPE_CHECKING:
    from ...scoring.index.query import SessionQuery
    from ..reporting import Form

__all__ = ("oversight_command",)


@app.command(
    "oversight",
    short_help="Prints how people approve, interrupt and correct agents.",
    epilog=example(
        "duolog oversight telemetry.db",
        "duolog oversight telemetry.db task=support --group-by release --json",
        "duolog oversight telemetry.db --follow",
        note=f"docs/measures.md gives the formula and source of each number.\n\n{FILTERS}",
    ),
)
def oversight_command(
    log: options.LogToRead,
    filters: options.Filters = None,
    group_by: Annotated[
        str, typer.Option(metavar="LABEL", help="Label to group sessions by.")
    ] = "agent",
    follow: Annotated[
        bool, typer.Option("--follow", help="Print the numbers again as the log grows.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Prints interruptions, approvals, autonomous stretches, pushback and attended time of a log.

    A number that the log does not say is shown as –, and is null in JSON.
    """
    from ...scoring.index.query import parse_query
    from ...scoring.report import oversight_document
    from ..reporting import oversight_of, print_document

    query = parse_query(filters or ())
    form: Form = "json" if as_json else "text"
    if follow:
        run(lambda: _follow(log, group_by, query, form))
        return
    found = oversight_of([log], group_by, query)
    if found.groups or as_json:
        print_document(oversight_document(found), form)
    else:
        say(f"{log} has no session that meets this")


async def _follow(log: str, by: str, query: SessionQuery, form: Form) -> None:
    """Prints the numbers whenever they have changed, at most every two seconds, until Ctrl+C."""
    from ...scoring.oversight import follow_oversight
    from ...scoring.report import oversight_document
    from ..reporting import print_document

    async with existing_log(log) as opened:
        async for found in follow_oversight(opened, by=by, admits=query.admits):
            print_document(oversight_document(found), form)
