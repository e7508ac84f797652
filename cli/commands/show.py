"""``duolog show``: one session as a conversation, round by round."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options
from ..arguments import example
from ..lookup import existing_log, find_session
from ..output import print_json
from ..root import app
from ..runtime import run

__all__ = ("show_command",)


@app.command(
    "show",
    short_help="Shows one session as a conversation, round by round.",
    epilog=example(
        "duolog show demo.db travel-3-two-stage",
        "duolog show demo.db travel-3-two-stage --rounds human-turn --json",
        note="The beginning of a session's id is enough if it is unique.",
    ),
)
def show_command(
    log: options.LogToRead,
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="Id of the session; its beginning is enough.")
    ],
    rounds: options.CountRounds = "handoff",
    utility: options.Utility = None,
    full: Annotated[
        bool, typer.Option("--full", help="Show full messages and outputs, without truncation.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all rounds with their records as JSON.")
    ] = False,
) -> None:
    """Shows a session as a transcript, with utility, progress and effort of each round.

    Above the rounds are the outcome and the process measures: who took the initiative, and how often
    there were confirmations, approvals, halts and interruptions; what strained the human; and whether
    the agent repeated itself.
    """
    from ...scoring.trajectory.options import Options
    from ..text.transcript import load_transcript, transcript_data

    async def main() -> None:
        async with existing_log(log) as opened:
            summary = await find_session(opened, session)
            options = Options(rounds=rounds, utility=utility)
            if utility is not None:
                from ...experiments.sources import check_scorers

                await check_scorers(opened, options)
            transcript = await load_transcript(opened, summary, options)
        if as_json:
            print_json(transcript_data(transcript))
            return
        from ..text.terminal import screen
        from ..text.transcript_view import print_transcript

        print_transcript(screen(), transcript, full=full)

    run(main)
