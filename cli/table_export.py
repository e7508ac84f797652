"""Exports a log into a directory of tables, once or for as long as it grows."""

from __future__ import annotations

from pathlib import Path

import typer

from ..engine.text import quantity
from ..experiments.sources import check_scorers
from ..scoring.columns.exporter import TablesWritten, export_tables
from ..scoring.trajectory.options import Options
from .lookup import existing_log
from .output import say
from .runtime import run
from .text.progress import RecordProgress

__all__ = ("export_directory",)


def export_directory(
    source: str, directory: Path, options: Options, *, records: bool, follow: bool
) -> None:
    """Writes closed sessions into a directory, and says how many.

    Raises:
        InvalidInput: the directory holds something else, or a scorer measured nothing in the log.
        MissingExtra: pyarrow is not installed.
        LogError: the log cannot be read.
    """

    async def main() -> TablesWritten:
        async with existing_log(source) as log:
            await check_scorers(log, options)
            total = log.statistics().position
            if follow:
                say(f"{directory} follows {source} (end it with Ctrl+C)")
            with RecordProgress("exporting", None if follow else total) as progress:
                return await export_tables(
                    log, directory, options, records=records, follow=follow, progress=progress
                )

    written = run(main)
    typer.echo(
        f"{quantity(written.sessions, 'closed session')} written, up to position "
        f"{written.position:,}, in {directory}"
    )
    if written.forgotten:
        typer.echo(f"{quantity(written.forgotten, 'session')} forgotten there, too")
