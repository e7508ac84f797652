"""Loads the columns of a report: from logs, files of trajectories, or a directory of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import msgspec

from ..engine.errors import InvalidInput, LogNotFound
from ..engine.log.contract import EventLog, Store
from ..engine.log.open import open_log
from ..engine.log.process import cores
from ..engine.logger import get_logger
from ..engine.records import TRACE, Record
from ..engine.scorers.choice import preferred
from ..scoring.columns.log import Shared, folded
from ..scoring.columns.rows import Folded, rows_of, trajectory_of
from ..scoring.columns.table import Columns, ColumnsBuilder
from ..scoring.trajectory.files import is_trajectory_file, read_trajectories
from ..scoring.trajectory.options import Options
from ..scoring.trajectory.points import Trajectory

__all__ = (
    "SOURCE",
    "check_scorers",
    "directory_of",
    "is_file",
    "judges_of",
    "load",
    "sharing",
)

SOURCE = "log"
"""The label that distinguishes several sources: the name of the file without its suffix."""

_SQLITE = b"SQLite format 3\0"


def load(
    sources: Sequence[str],
    options: Options,
    *,
    workers: int | None = None,
    on_ended: Callable[[str], None] | None = None,
) -> Columns:
    """The columns of all sessions of all sources, in order.

    A session that several sources hold alike, since a log was named twice, say, counts once.

    Args:
        sources: logs, files of trajectories, or a directory of tables.
        options: how to score.
        workers: processes that fold a large log, at most; None for one for each processor.
        on_ended: called with the reason if one of them ended too early; None for a line in the
            program's own log.

    Raises:
        InvalidInput: a source is neither a log nor a file of trajectories, or the log has no
            measurements of a scorer that the options name; or two sources hold different sessions
            of one id.
        LogError: a log cannot be read.
    """
    directory = directory_of(sources)
    if directory is not None:
        from ..scoring.columns.parquet import read_tables

        return read_tables(directory, options)
    found = ColumnsBuilder()
    if len(sources) == 1:
        _read(sources[0], options, sharing(sources[0], workers, on_ended), found.add)
        return found.columns()
    known: dict[str, tuple[str, Trajectory]] = {}
    for source in sources:
        here: list[Folded] = []
        _read(source, options, sharing(source, workers, on_ended), here.append)
        for rows in here:
            session, item = rows.session.session, trajectory_of(rows)
            first, before = known.get(session, (source, None))
            if before is None:
                found.add(_labelled(rows, source))
            elif before != item:
                raise InvalidInput(
                    f"{first} and {source} hold different sessions {session!r}: "
                    "report on each by itself"
                )
        known |= {rows.session.session: (source, trajectory_of(rows)) for rows in here}
    return found.columns()


def judges_of(sources: Sequence[str]) -> list[str]:
    """The judges that rated rounds in some logs: ``human``, or ``name@version`` of a scorer.

    Raises:
        InvalidInput: a source is a file of trajectories, which does not say who rated.
        LogError: a log cannot be read.
    """
    found: set[str] = set()
    for source in sources:
        if is_file(source) or directory_of([source]) is not None:
            raise InvalidInput(
                f"{source} holds scored sessions, which do not say who rated: name logs"
            )
        found |= anyio.run(_judges, source)
    return sorted(found)


async def _judges(source: str) -> set[str]:
    found: set[str] = set()

    def look(records: Sequence[Record]) -> None:
        found.update(record.stream for record in records if record.kind == "ProgressRated")

    async with _existing_log(source) as log:
        await log.scan(look)
    return {"human" if stream == TRACE else stream for stream in found}


def directory_of(sources: Sequence[str]) -> Path | None:
    """The directory of tables, if it is the only source; None for any other sources.

    Raises:
        InvalidInput: there are other sources as well.
    """
    directories = [source for source in sources if "://" not in source and Path(source).is_dir()]
    if not directories:
        return None
    from ..scoring.columns.parquet import is_tables  # it loads all that reads and writes tables

    found = [source for source in directories if is_tables(source)]
    if not found:
        return None
    if len(sources) > 1:
        raise InvalidInput(f"{found[0]} is a directory of tables: report on it by itself")
    return Path(found[0])


def is_file(source: str) -> bool:
    """Whether a source is a file of trajectories, and not a log."""
    if "://" in source or Path(source).is_dir():
        return False
    try:
        if Path(source).stat().st_size == 0:
            raise InvalidInput(f"{source} is empty: neither a log nor a file of trajectories")
        with open(source, "rb") as file:
            if file.read(len(_SQLITE)) == _SQLITE:
                return False
        if is_trajectory_file(source):
            return True
    except FileNotFoundError as error:
        raise LogNotFound(f"no such file: {source}") from error
    except OSError as error:
        raise InvalidInput(f"cannot read {source}: {error.strerror or error}") from error
    raise InvalidInput(
        f"{source} is neither a log nor a file of trajectories, whose first line would begin like "
        '{"session": "s1", "rounds": [...'
    )


def _read(source: str, options: Options, shared: Shared, take: Callable[[Folded], object]) -> None:
    """Hands over the rows of all sessions of a file or a log."""
    if is_file(source):
        for trajectory in read_trajectories(source):
            take(rows_of(trajectory))
        return

    async def main() -> None:
        async with _existing_log(source) as log:
            await check_scorers(log, options)
            async for rows in folded(log, options, shared=shared):
                take(rows)

    anyio.run(main)


def sharing(
    source: str,
    workers: int | None = None,
    on_ended: Callable[[str], None] | None = None,
) -> Shared:
    """How a log is shared among processes, one of which that ends too early is said to have.

    Args:
        source: path or URL of the log.
        workers: processes that score it, at most; None for one for each processor.
        on_ended: see ``load``.
    """
    return Shared(url=source, processes=workers or cores(), on_ended=on_ended or _log_ended)


def _log_ended(how: str) -> None:
    get_logger("report").warning(
        "a process that read the log has ended: its part is read again", why=how
    )


def _existing_log(where: str) -> Store:
    """The log at a path or URL, which has to exist.

    Raises:
        InvalidInput: a URL that names no store, a directory, or a log in memory.
    """
    if not where:
        raise InvalidInput("the name of the log is empty")
    if "://" not in where and Path(where).is_dir():
        raise InvalidInput(f"{where} is a directory; name a file for the log")
    if where.startswith("memory:"):
        raise InvalidInput(f"{where} exists only in the program that made it; name a log in a file")
    return open_log(where, create=False)


async def check_scorers(log: EventLog, options: Options) -> None:
    """Checks that the log has measurements of the scorers that the options name."""
    wanted = {} if options.utility is None else {"UtilityScored": ("utility", options.utility)}
    if options.judge not in ("auto", "human", "none"):
        wanted["ProgressRated"] = ("ratings", options.judge)
    if not wanted:
        return
    found: set[tuple[str, str]] = set()
    await log.scan(
        lambda some: found.update((one.kind, one.stream) for one in some if one.role == "scorer")
    )
    for kind, (what, name) in wanted.items():
        streams = sorted({stream for measured, stream in found if measured == kind})
        if preferred(streams, name) is None:
            where, known = log.url.removeprefix("sqlite:///"), ", ".join(streams) or "none"
            raise InvalidInput(f"{where} has no {what} by {name!r}; scorers there: {known}")


def _labelled(rows: Folded, source: str) -> Folded:
    labels = {**rows.session.labels, SOURCE: Path(source).stem}
    return Folded(msgspec.structs.replace(rows.session, labels=labels), rows.rounds)
