"""Follows files that grow, or a directory of them: what another program writes, as it writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, final

import anyio
import anyio.to_thread
import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import Origin, SessionOpened
from ...engine.log.contract import EventLog
from ...engine.plugins import PluginCall
from .directory import Source, sources_in
from .json_sniff import Shape
from .labels import LabelledImporter, Labels
from .protocol import Diagnostic, Foreign, Found, Importer, Reading
from .registry import installed_importers, recognise
from .run import import_foreign

__all__ = ("follow_foreign",)


@final
class LineImporter:
    """Reads what another importer reads, with a session that was parted under the name of its last
    line.

    Args:
        importer: reads the source.
    """

    def __init__(self, importer: Importer) -> None:
        self._importer = importer
        self._cuts: dict[str, list[int]] = {}
        self._lines: dict[str, str] = {}  # the session that a line belongs to

    @property
    def name(self) -> str:
        """The format."""
        return self._importer.name

    @property
    def about(self) -> str:
        """In a few words."""
        return self._importer.about

    def part(self, parted: Mapping[str, int]) -> None:
        """From now on, these sessions continue on their next line.

        Args:
            parted: by session or line, the last version that it shares with the continuation.
        """
        for name, version in parted.items():
            session = self._lines.get(name, name)
            self._cuts.setdefault(session, []).append(version)
            self._lines[_line(session, len(self._cuts[session]))] = session

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a source looks like the format."""
        return self._importer.recognises(source, shape)

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads a source.

        Raises:
            InvalidInput: it cannot be read.
        """
        left_out = False
        for one in self._importer.read(source, reading):
            if not isinstance(one, Foreign):
                yield one
                continue
            event = one.draft.event
            if isinstance(event, SessionOpened):
                # The branches of a session that has lines are those lines.
                left_out = event.forked_from is not None and event.forked_from.session in self._cuts
            if not left_out:
                yield self._in_line(one)

    def _in_line(self, one: Foreign) -> Foreign:
        cuts = self._cuts.get(one.session)
        if cuts is None:
            return one
        name = _line(one.session, len(cuts))
        event = one.draft.event
        if not isinstance(event, SessionOpened):
            return one._replace(session=name)
        origin = Origin(session=_line(one.session, len(cuts) - 1), version=cuts[-1])
        opened = msgspec.structs.replace(event, forked_from=origin)
        return one._replace(session=name, draft=msgspec.structs.replace(one.draft, event=opened))


def _line(session: str, cuts: int) -> str:
    return f"{session}-line-{cuts + 1}" if cuts else session


# --- follows files that grow, or a directory of them ----------------------------------------------


_EVERY: Final = 0.5


async def follow_foreign(
    log: EventLog,
    source: Path,
    importer: Importer | None,
    *,
    reading: Reading | None = None,
    labels: Labels | None = None,
    every: float = _EVERY,
    on_import: Callable[[Path, int, tuple[Diagnostic, ...]], None] | None = None,
) -> None:
    """Imports the present contents, and then every addition, until it is cancelled.

    A file is read again as a whole when it has changed, and only what is new is recorded; so this
    is for current sessions, not for files of gigabytes. If a person takes back recorded turns,
    these stay, and the continuation is a fork of the session, called ``SESSION-line-2``.

    Args:
        log: an open log.
        source: a file, or a directory whose files may come and grow.
        importer: reads them; None to recognise each file of a directory by itself.
        reading: how. It is always taken for something that grows.
        labels: the labels of all sessions.
        every: seconds between two looks at the files.
        on_import: called after an import that recorded something, or that met a problem: with the
            file, the number of records, and what a person should know; of each problem once.

    Raises:
        InvalidInput: the source is not there, or is a file and there is no importer.
        LogUnavailable: the log cannot be written.
    """
    place = anyio.Path(source)
    if not await place.exists():
        raise InvalidInput(f"cannot read {source}: No such file or directory")
    if importer is None and not await place.is_dir():
        raise InvalidInput(f"{source} has an unknown format; name one")
    reading = msgspec.structs.replace(reading or Reading(), growing=True)
    files = _Files(source, importer)
    lines: dict[Path, LineImporter] = {}
    told: set[Diagnostic] = set()
    while True:
        for path, found in await anyio.to_thread.run_sync(files.changed):
            if path not in lines:
                whole = found if labels is None else LabelledImporter(found, labels)
                lines[path] = LineImporter(whole)
            reader = lines[path]
            records, problems = await _take(log, path, reader, reading)
            new = tuple(one for one in problems if one not in told)
            told.update(new)
            if records or new:
                _call(on_import, path, records, new)
        await anyio.sleep(every)


async def _take(
    log: EventLog, path: Path, reader: LineImporter, reading: Reading
) -> tuple[int, tuple[Diagnostic, ...]]:
    """The number of records from a file, and its problems."""
    records = 0
    while True:
        try:
            taken = await import_foreign(
                log, path, reader, reading=reading, keep_going=True, look_first=False
            )
        except InvalidInput as error:
            return records, (Diagnostic("problem", str(error), str(path)),)
        records += taken.records
        if not taken.parted:
            return records, tuple(one for one in taken.diagnostics if one.kind == "problem")
        reader.part(taken.parted)


@final
class _Files:
    """The files that are followed, and how they were at the last look."""

    def __init__(self, source: Path, importer: Importer | None) -> None:
        self._source = source
        self._importer = importer
        self._installed: list[Importer] | None = None
        self._seen: dict[Path, tuple[int, int]] = {}
        self._formats: dict[Path, tuple[tuple[int, int] | None, Importer | None]] = {}

    def changed(self) -> list[Source]:
        """Those that have changed since the last look."""
        changed: list[Source] = []
        for one in self._sources():
            now = _stamp(one.path)
            if now is None:
                continue  # it went away between two looks; imported records stay
            if self._seen.get(one.path) != now:
                self._seen[one.path] = now
                changed.append(one)
        return changed

    def _sources(self) -> Iterator[Source]:
        source, importer = self._source, self._importer
        if source.is_dir() and (importer is None or not importer.recognises(source, None)):
            found = sources_in(source, importer, self._recognised)
            yield from (one for one in found if isinstance(one, Source))
        elif importer is not None:
            yield Source(source, importer)

    def _recognised(self, path: Path) -> Importer | None:
        """The format of a file, which is looked for again only if it is not known and the file
        has changed.
        """
        known, found = self._formats.get(path, (None, None))
        now = None if path.is_dir() else _stamp(path)
        if found is not None or (now is not None and now == known):
            return found
        if self._installed is None:
            self._installed = installed_importers()
        try:
            found = recognise(path, self._installed)
        finally:
            self._formats[path] = now, found
        return found


def _stamp(path: Path) -> tuple[int, int] | None:
    """Size and time of a file; None if it is gone."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


def _call(
    on_import: Callable[[Path, int, tuple[Diagnostic, ...]], None] | None,
    path: Path,
    records: int,
    problems: tuple[Diagnostic, ...],
) -> None:
    if on_import is not None:
        with PluginCall("on_import"):
            on_import(path, records, problems)
