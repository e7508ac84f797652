"""``duolog watch``: follows a log on the whole screen."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ...engine.errors import InvalidInput, MissingExtra
from .. import options
from ..arguments import example, one_of
from ..lookup import existing_log, find_session, name_of
from ..root import app
from ..runtime import run

__all__ = ("watch_command",)


@app.command(
    "watch",
    short_help="Follows a log on the screen, and goes back in it.",
    epilog=example(
        "duolog watch telemetry.db",
        "duolog watch telemetry.db --select conversation-42 --effort tokens_read",
        "duolog watch demo.db agent=two-stage tau --sort utility",
        note="Another process may be writing the log. Needs the extra duolog[tui].",
    ),
)
def watch_command(
    log: options.LogToRead,
    filters: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILTER", help="List only sessions that meet these; see duolog sessions --help."
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Sort the list, as duolog sessions does.",
            show_default="the newest first",
        ),
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(
            metavar="SESSION",
            help="Id of the session to show first; its beginning is enough.",
            show_default="the newest",
        ),
    ] = None,
    effort: Annotated[
        str, typer.Option(metavar="MEASURE", help="Measure of effort that the list shows.")
    ] = "seconds",
    rounds: options.CountRounds = "handoff",
    utility: options.Utility = None,
    full: Annotated[
        bool, typer.Option("--full", help="Show full messages and outputs, without truncation.")
    ] = False,
) -> None:
    """Shows the sessions of a log, and one as it grows; goes back to how they were at any event."""
    from ...scoring.index.order import parse_order
    from ...scoring.index.query import join_query, parse_query
    from ...scoring.index.select import check_labels
    from ...scoring.trajectory.effort import MEASURES
    from ...scoring.trajectory.options import Options

    query = parse_query(filters or ())
    order = None if sort is None else parse_order(sort)
    [measure] = one_of(effort, "--effort", MEASURES)[:1]

    async def main() -> None:
        async with existing_log(log) as opened:
            begin = None if select is None else (await find_session(opened, select)).session
            await check_labels(opened, query, order)
            options = Options(rounds=rounds, utility=utility)
            if utility is not None:
                from ...experiments.sources import check_scorers

                await check_scorers(opened, options)
            _check_screen()
            from ...engine.log.sqlite.file import parse
            from ..watch.app import watch_log
            from ..watch.state import WatchedLog

            watched = WatchedLog(
                opened,
                options,
                session=begin,
                full=full,
                file=parse(opened.url).path,
            )
            watched.selection.search(join_query(filters or ()))
            watched.selection.sort(sort)
            await watch_log(watched, name_of(opened), measure)

    run(main)


def _check_screen() -> None:
    """Looks whether there is a screen, and what draws on it.

    Raises:
        InvalidInput: there is no terminal.
        MissingExtra: Textual is not installed.
    """
    try:
        import textual as _  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "textual":
            raise
        raise MissingExtra("tui", "watching a log") from error
    if not (sys.stdin.isatty() and sys.stderr.isatty()):  # Textual draws on the standard error
        raise InvalidInput(
            "duolog watch draws on a terminal, and there is none here; duolog sessions, show and "
            "replay print what a log holds"
        )
