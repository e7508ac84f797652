"""``duolog acp``: records what people do with a coding agent in their editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .. import options
from ..arguments import example
from ..output import say
from ..root import app

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("acp_command",)


@app.command(
    "acp",
    short_help="Records a coding agent that an editor uses.",
    context_settings={"allow_interspersed_args": False},
    epilog=example(
        "duolog acp --log coding.db -- claude-agent-acp",
        "duolog acp --log ~/coding.db --track-edits -- gemini --experimental-acp",
        note="In the editor's settings, use this command as the one that starts the agent.",
    ),
)
def acp_command(
    agent: Annotated[
        list[str],
        typer.Argument(metavar="AGENT", help="Command that starts the agent; put -- before it."),
    ],
    log: options.LogToWrite,
    track_edits: Annotated[
        bool,
        typer.Option(
            "--track-edits",
            help="Look at the files that the agent edited when the next prompt comes, and record "
            "how much of its edits was kept.",
        ),
    ] = False,
    redact: options.Redact = None,
    recorder: Annotated[bool, typer.Option("--recorder", hidden=True)] = False,
) -> int:
    """Stands between an editor and a coding agent that speak the Agent Client Protocol, passes
    everything unchanged, and records it. Ends when the agent ends, with its exit code.
    """
    if recorder:
        _record(log, agent, redact, track_edits=track_edits)
        return 0
    from ...engine.redacting import DEFAULT, redaction_of
    from ...experiments.plan import check_log
    from ...interop.acp.process import end_like, run_proxy

    check_log(log)
    redaction_of(redact or DEFAULT)  # before the agent is started
    return end_like(run_proxy(agent, _recorder(log, agent, redact, track_edits=track_edits)))


def _recorder(
    log: str, agent: Sequence[str], redact: str | None, *, track_edits: bool
) -> list[str]:
    """The command that starts the recorder: this program, in a separate process."""
    import sys

    from ..diagnostics import current_level

    given = ["--log-level", current_level(), *(["--track-edits"] if track_edits else [])]
    given += [] if redact is None else ["--redact", redact]
    start = [sys.executable, "-P", "-m", "duolog", "acp", "--recorder", "--log", log]
    return [*start, *given, "--", *agent]


def _record(log: str, agent: Sequence[str], redact: str | None, *, track_edits: bool) -> None:
    """Records what the proxy sends; what ends the proxy ends this by the end of its input."""
    import sys

    from ...engine.errors import DuologError
    from ...engine.redacting import DEFAULT, OFF, redaction_of
    from ...interop.acp.recorder import record_copies
    from ...scoring.scorers.feedback import FeedbackUtility
    from ...telemetry.sync import open_sync

    name = redact or DEFAULT
    try:
        hook = redaction_of(name)
        with open_sync(log, on_full="block", redact=hook) as opened:
            if track_edits:
                opened.watch(scorers=[FeedbackUtility()])
            record_copies(
                sys.stdin.buffer.read, opened, agent, retention=track_edits, clean=name != OFF
            )
    except DuologError as error:
        say(f"duolog acp: the session is not recorded: {error}")
        raise typer.Exit(2) from error
