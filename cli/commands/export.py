"""``duolog export``: a log as text, for other programs and for moving house."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

import typer

from ..app import app
from ..common import choices, example, existing_log, find_session, run, say, written

if TYPE_CHECKING:
    from ...engine.log.contract import EventLog

__all__ = ("export_command",)

_PIPE = "-"


@app.command(
    "export",
    short_help="Writes a log as JSON Lines.",
    epilog=example(
        "duolog export demo.db --output demo.jsonl",
        "duolog export demo.db --sessions travel-3-two-stage,travel-4-two-stage | less",
    ),
)
def export_command(
    log: Annotated[str, typer.Argument(metavar="LOG", help="Path or URL of the log.")],
    form: Annotated[
        Literal["jsonl"], typer.Option("--format", help="JSON Lines: a record on each line.")
    ] = "jsonl",
    sessions: Annotated[
        str | None,
        typer.Option(metavar="SESSIONS", help="Only these, separated by commas."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write; the standard output if not given."),
    ] = None,
) -> None:
    """Writes a log, or some of its sessions, as JSON Lines; import brings them back exactly.

    A file appears when it is complete, and replaces the one that was there.
    """
    names = None if sessions is None else choices(sessions, "--sessions")
    to_pipe = output is None or str(output) == _PIPE

    async def main() -> int:
        async with existing_log(log) as opened:
            if output is None or to_pipe:
                sys.stdout.flush()
                return await _export(opened, sys.stdout.buffer, names)
            with written(output) as file:
                return await _export(opened, file, names)

    count = run(main)
    if not to_pipe:
        say(f"wrote {count} records to {output}")


async def _export(log: EventLog, file: BinaryIO, names: list[str] | None) -> int:
    from ...engine.log.jsonl_export import export_jsonl
    from ..text.progress import Counting

    if names is None:
        found = None
        total = sum([summary.events async for summary in log.sessions()])
    else:
        summaries = [await find_session(log, name) for name in names]
        found = [summary.session for summary in summaries]
        total = sum(summary.events for summary in summaries)
    with Counting("exporting", total) as progress:
        return await export_jsonl(log, file, sessions=found, progress=progress)
