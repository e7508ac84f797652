"""Loads the trajectories of a report: from logs, scored in one pass, or from files of trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from ..engine.errors import InvalidInput, LogNotFound
from ..engine.log.contract import EventLog
from ..engine.records import TRACE, Record
from ..scoring.live import score_sessions
from ..scoring.parts import Shared
from ..scoring.trajectory.files import is_trajectory_file, read_trajectories
from ..scoring.trajectory.options import Options
from ..scoring.trajectory.points import Trajectory
from ..scoring.trajectory.scorer_choice import preferred
from .lookup import existing_log, name_of, one_named
from .output import say
from .runtime import collect_rarely, cores, run

__all__ = (
    "SOURCE",
    "check_scorers",
    "directory_of",
    "is_file",
    "judges_of",
    "load",
    "one_session",
    "sharing",
)

SOURCE = "log"
"""The label that distinguishes several sources: the name of the file without its suffix."""

_SQLITE = b"SQLite format 3\0"


def load(
    sources: Sequence[str], options: Options, *, workers: int | None = None
) -> list[Trajectory]:
    """The trajectories of all sessions of all sources, in order.

    A session that several sources hold alike, since a log was named twice, say, counts once.

    Args:
        sources: logs, or files of trajectories.
        options: how to score.
        workers: processes that score a large log, at most; None for one for each processor.

    Raises:
        InvalidInput: a source is neither a log nor a file of trajectories, or the log has no
            measurements of a scorer that the options name; or two sources hold different sessions
            of one id.
        LogError: a log cannot be read.
    """
    collect_rarely()
    found: list[Trajectory] = []
    known: dict[str, tuple[str, Trajectory]] = {}
    for source in sources:
        here = (
            list(read_trajectories(source))
            if is_file(source)
            else _from_log(source, options, workers)
        )
        for item in here:
            first, before = known.get(item.session, (source, None))
            if before is None:
                found.append(_labelled(item, source) if len(sources) > 1 else item)
            elif before != item:
                raise InvalidInput(
                    f"{first} and {source} hold different sessions {item.session!r}: "
                    "report on each by itself"
                )
        known |= {item.session: (source, item) for item in here}
    return found


def one_session(trajectories: Sequence[Trajectory], name: str) -> Trajectory:
    """The trajectory of the session with this id, or of the only one whose id begins with it.

    Raises:
        InvalidInput: there is none, or there are several.
    """
    ids = [item.session for item in trajectories]
    return trajectories[ids.index(one_named(name, ids, "the report"))]


def judges_of(sources: Sequence[str]) -> list[str]:
    """Who rated rounds in some logs: ``human`` for people, or ``name@version`` of a scorer.

    Raises:
        InvalidInput: a source is a file of trajectories, which does not say who rated.
        LogError: a log cannot be read.
    """
    found: set[str] = set()
    for source in sources:
        if is_file(source):
            raise InvalidInput(
                f"{source} holds trajectories, which do not say who rated: name logs"
            )
        found |= run(partial(_judges, source))
    return sorted(found)


async def _judges(source: str) -> set[str]:
    found: set[str] = set()

    def look(records: Sequence[Record]) -> None:
        found.update(record.stream for record in records if record.kind == "ProgressRated")

    async with existing_log(source) as log:
        await log.scan(look)
    return {"human" if stream == TRACE else stream for stream in found}


def directory_of(sources: Sequence[str]) -> Path | None:
    """The directory of tables that is the only source; None where the sources are something else.

    Raises:
        InvalidInput: there are others beside it.
    """
    directories = [source for source in sources if "://" not in source and Path(source).is_dir()]
    if not directories:
        return None
    from ..scoring.tables.layout import is_tables  # it loads all that writes and folds tables

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
        raise LogNotFound(f"there is no file {source}") from error
    except OSError as error:
        raise InvalidInput(f"cannot read {source}: {error.strerror or error}") from error
    raise InvalidInput(
        f"{source} is neither a log nor a file of trajectories, whose first line would begin like "
        '{"session": "s1", "rounds": [...'
    )


def _from_log(source: str, options: Options, workers: int | None) -> list[Trajectory]:
    async def main() -> list[Trajectory]:
        async with existing_log(source) as log:
            await check_scorers(log, options)
            found = score_sessions(log, options, process=True, shared=sharing(source, workers))
            return [trajectory async for trajectory in found]

    return run(main)


def sharing(source: str, workers: int | None = None) -> Shared:
    """How a log is shared among processes, one of which that ends too early is said to have.

    Args:
        source: path or URL of the log.
        workers: processes that score it, at most; None for one for each processor.
    """
    return Shared(url=source, processes=workers or cores(), on_ended=_say_ended)


def _say_ended(how: str) -> None:
    say(f"a process that read the log with this one has ended ({how}): its part is read again")


async def check_scorers(log: EventLog, options: Options) -> None:
    """Checks that the log has measurements of the scorers that the options name."""
    wanted = [options.utility] if options.utility is not None else []
    if options.judge not in ("auto", "human", "none"):
        wanted.append(options.judge)
    if not wanted:
        return
    streams: set[str] = set()
    await log.scan(lambda some: streams.update(one.stream for one in some if one.role == "scorer"))
    for name in wanted:
        if preferred(streams, name) is None:
            known = ", ".join(sorted(streams)) or "none"
            raise InvalidInput(f"{name_of(log)} has no measurements by {name!r}; by: {known}")


def _labelled(item: Trajectory, source: str) -> Trajectory:
    return msgspec.structs.replace(item, group={**item.group, SOURCE: Path(source).stem})
