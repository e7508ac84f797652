"""Exports a log into a directory of tables or a file of trajectories, once or for as long as it grows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

import typer

from ..engine.errors import InvalidInput
from ..engine.log.contract import EventLog
from ..engine.text import quantity
from ..experiments.sources import check_scorers, sharing
from ..scoring.columns.exporter import TablesWritten, export_tables
from ..scoring.columns.log import folded
from ..scoring.columns.rows import trajectory_of
from ..scoring.report.tidy import tidy_rows, write_csv, write_parquet
from ..scoring.trajectory.files import encode_trajectory
from ..scoring.trajectory.options import Options
from .lookup import existing_log, find_session
from .output import say
from .runtime import run
from .text.progress import RecordProgress

__all__ = (
    "TableFile",
    "TrajectoryForm",
    "export_directory",
    "export_trajectories",
)


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


TrajectoryForm: TypeAlias = Literal["trajectories", "rounds", "sessions"]
"""A line per session as ``duolog report`` reads it; a row per round; a row per session."""

TableFile: TypeAlias = Literal["csv", "parquet"]
"""The file format of a table."""


async def export_trajectories(
    log: EventLog,
    file: BinaryIO,
    names: Sequence[str] | None,
    form: TrajectoryForm,
    *,
    source: str,
    options: Options,
    to: TableFile = "csv",
) -> str:
    """Writes all sessions, or those of these names; gives how much, in words.

    Args:
        log: their log.
        file: where they are written.
        names: of sessions; None for all.
        form: what is written of each.
        source: path or URL of the log, by which other processes open it.
        options: how to score.
        to: what a table is written as.

    Raises:
        InvalidInput: a name that no session has, or a scorer that measured nothing in the log.
        MissingExtra: a Parquet file is asked for, and pyarrow is not installed.
    """
    await check_scorers(log, options)
    wanted = None
    if names is not None:
        wanted = {(await find_session(log, name)).session for name in names}
    sessions = [one async for one in folded(log, options, sessions=wanted, shared=sharing(source))]
    found = [trajectory_of(one) for one in sessions]
    if form == "trajectories":
        file.writelines(encode_trajectory(item) + b"\n" for item in found)
        return quantity(len(found), "trajectory", "trajectories")
    by_id = {one.session.session: one.session for one in sessions}
    seeds = {name: row.seed for name, row in by_id.items()}
    rows = tidy_rows(found, form, seeds=seeds, reviews=by_id)
    if not rows:
        raise InvalidInput("nothing to write: the log holds no session with contents")
    (write_csv if to == "csv" else write_parquet)(rows, file)
    return quantity(len(rows), "row")
