"""Erases sessions in a log and in its copies; apart from the commands, whose help loads none of this."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ..engine.errors import DuologError
from ..engine.log.contract import Cache, EventLog
from ..engine.models.traffic.cache import CachedReplies
from ..scoring.columns.exporter import export_tables
from ..scoring.index.erasure import erase, sessions_to_erase
from ..scoring.trajectory.options import Options
from ..telemetry.spill import Spill, SpillFiles, tallies_near
from .lookup import existing_log
from .text.progress import RecordProgress

__all__ = ("ErasedEverywhere", "ErasedFrom", "erase_everywhere")


class ErasedFrom(msgspec.Struct, frozen=True, kw_only=True):
    """The sessions erased in a copy or in tables; ``failed`` says why there are none."""

    where: str
    sessions: int = 0
    compacted: bool = True
    failed: str = ""


class ErasedEverywhere(msgspec.Struct, frozen=True, kw_only=True):
    """The erased sessions, and the places.

    Attributes:
        sessions: ids of all that was erased, forks included.
        forks: how many of them are forks that were not named.
        compacted: whether nothing is left in the log's files.
        held_up: why something may be.
        caches: caches and spill files that were erased from, too.
        copies: copies of the log that were erased from, too.
        tables: exported tables that were erased from, too.
        not_reached: places that may hold copies and that no command can reach.
    """

    sessions: tuple[str, ...] = ()
    forks: int = 0
    compacted: bool = True
    held_up: str = ""
    caches: tuple[str, ...] = ()
    copies: tuple[ErasedFrom, ...] = ()
    tables: tuple[ErasedFrom, ...] = ()
    not_reached: tuple[str, ...] = ()


async def erase_everywhere(
    log: str,
    names: Sequence[str],
    cache: Path | None,
    copies: Sequence[str],
    tables: Sequence[Path],
    spills: Sequence[Path] = (),
) -> ErasedEverywhere:
    """Erases sessions in a log, and in other places that hold copies of them.

    Args:
        log: path or URL.
        names: ids of the sessions.
        cache: directory with replies of models.
        copies: paths or URLs of copies of the log.
        tables: directories with exported tables.
        spills: further directories with spill files of the log, in addition to the usual one.
    """
    async with existing_log(log) as opened:
        caches: list[Cache] = []
        for place in dict.fromkeys((None, *spills)):
            spilled = SpillFiles(Spill(directory=place), opened.url, None)
            if spilled.exist():
                caches.append(spilled)
        tallies = tallies_near(opened.url, None)
        if tallies is not None and tallies.exist():
            caches.append(tallies)
        if cache is not None:
            caches.append(await CachedReplies.read(opened, cache))
        with RecordProgress("erasing", len(names)) as progress:
            done = await erase(opened, names, caches=caches, progress=progress)
        erased = (*done.sessions, *done.forks)
        exported = [await _erase_tables(opened, directory) for directory in tables]
    return ErasedEverywhere(
        sessions=erased,
        forks=len(done.forks),
        compacted=done.compacted,
        held_up=done.held_up,
        caches=done.caches,
        copies=tuple([await _erase_copy(copy, erased) for copy in copies]),
        tables=tuple(exported),
        not_reached=_not_reached(copies, tables, spills),
    )


async def _erase_copy(where: str, names: Sequence[str]) -> ErasedFrom:
    try:
        async with existing_log(where) as copy:
            held = set(await sessions_to_erase(copy))
            done = await erase(copy, [name for name in names if name in held])
    except DuologError as error:
        return ErasedFrom(where=where, compacted=False, failed=str(error))
    return ErasedFrom(where=where, sessions=len(done.sessions), compacted=done.compacted)


async def _erase_tables(log: EventLog, directory: Path) -> ErasedFrom:
    try:
        written = await export_tables(log, directory, Options())
    except DuologError as error:
        return ErasedFrom(where=str(directory), compacted=False, failed=str(error))
    return ErasedFrom(where=str(directory), sessions=written.forgotten)


def _not_reached(
    copies: Sequence[str], tables: Sequence[Path], spills: Sequence[Path]
) -> tuple[str, ...]:
    found = ["backups and exported files", "spill files on other machines", "exported spans"]
    if not spills:
        found.append("spill files in a directory of your own (name it with --spill)")
    if not copies:
        found.append("copies of the log (name them with --copy)")
    if not tables:
        found.append("exported tables (name them with --tables)")
    return tuple(found)
