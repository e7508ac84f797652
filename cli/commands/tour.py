"""``duolog tour``: walks through one session: rounds, utility, effort, a stop, a fork."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..arguments import example
from ..lookup import log_at
from ..root import app
from ..runtime import run

if TYPE_CHECKING:
    from ..tour.session import TourSession

__all__ = ("tour_command",)


@app.command(
    "tour",
    short_help="Walks through one session, page by page; begin here.",
    epilog=example(
        "duolog tour",
        "duolog tour --log tour.db",
        note="Press Enter for the next page, q to quit. Without a terminal, all pages are printed. No network is needed.",
    ),
)
def tour_command(
    log: Annotated[
        str | None,
        typer.Option(
            metavar="LOG",
            help="Path or URL of the log; created if it does not exist.",
            show_default="a log in memory",
        ),
    ] = None,
) -> None:
    """Walks through one session that is simulated on the spot, and explains what Duolog measures.

    Rounds, utility, effort, the moment at which the human would give up, the advice that the agent
    could have had, and how the session continues from there with another agent.
    """

    async def main() -> TourSession:
        from ..tour.session import record_session

        async with log_at(log or "memory://", create=True) as opened:
            return await record_session(opened)

    session = run(main)
    from ..text.terminal import screen
    from ..tour.pages import pages
    from ..tour.walk import walk

    walk(screen(), pages(session, log))
