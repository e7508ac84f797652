"""The importer for a directory of files, in one format or in several."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, final

import msgspec

from ...engine import codec
from ...engine.errors import InvalidInput, MissingExtra
from ...engine.events import SessionOpened
from ...engine.records import TRACE
from .json_sniff import Shape
from .protocol import Diagnostic, Foreign, Found, Importer, Reading
from .registry import ENDINGS, entries_of, installed_importers, recognise

__all__ = ("DirectoryImporter", "Source", "sources_in")


@final
class SessionNames:
    """Goes over the sources of one import in order.

    A session that occurs again with the same events, or with more of them, keeps its name, and
    continues at its last event. One with other events is another session: it gets the name of its
    file behind its own.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Path, array[int]]] = {}

    def told_apart(self, source: Path, found: Iterable[Found]) -> Iterator[Found]:
        """The contents of a source, with the names that its sessions have in this import."""
        renamed: dict[str, str] = {}
        waiting: list[Foreign] = []  # of a session that may be one that is known
        for one in found:
            if isinstance(one, Diagnostic):
                yield one
                continue
            opens = isinstance(one.draft.event, SessionOpened)
            if opens:
                yield from waiting
                waiting = []
                renamed.pop(one.session, None)
            known = self._seen.get(one.session)
            if known is None:
                known = self._seen[one.session] = (source, array("q"))
            first, marks = known
            if first == source:
                self._note(one, marks)
                yield one
            elif one.session in renamed:
                yield _under(one, renamed)
            elif _differs(one, sum(other.stream == TRACE for other in waiting), marks):
                name = f"{one.session}-{source.stem}"
                renamed[one.session] = name
                what = f"another session is called {one.session!r} in {first}: this is {name!r}"
                yield Diagnostic("difference", what, str(source), name)
                yield from (_under(other, renamed) for other in (*waiting, one))
                waiting = []
            else:
                waiting.append(one)
        yield from waiting

    def _note(self, one: Foreign, marks: array[int]) -> None:
        if one.stream == TRACE:
            marks.append(_mark(one))


def _differs(one: Foreign, place: int, marks: array[int]) -> bool:
    """Whether an event is another one than the session has there; openings may grow."""
    if one.stream != TRACE or not place or place >= len(marks):
        return False
    return marks[place] != _mark(one)


def _mark(one: Foreign) -> int:
    draft = one.draft
    return hash((draft.actor, draft.role, draft.time, codec.encode_body(draft.event)))


def _under(one: Foreign, names: dict[str, str]) -> Foreign:
    """The event of a session under its other name, which its forks name as well."""
    event = one.draft.event
    if isinstance(event, SessionOpened):
        origin = event.forked_from
        if origin is not None and origin.session in names:
            origin = msgspec.structs.replace(origin, session=names[origin.session])
            event = msgspec.structs.replace(event, forked_from=origin)
            one = one._replace(draft=msgspec.structs.replace(one.draft, event=event))
    return one._replace(session=names[one.session])


# --- the importer for a directory of files, in one format or in several ---------------------------


_NAME: Final = "files of several formats"


class Source(NamedTuple):
    """A file, or a directory that is one source, and what reads it."""

    path: Path
    importer: Importer


@final
class DirectoryImporter:
    """Reads all that a directory holds, in the order of the names.

    Args:
        importer: reads each file; None to recognise each by itself.
    """

    about = "a directory of files, each recognised by itself"

    def __init__(self, importer: Importer | None = None) -> None:
        self._importer = importer
        self._formats: set[str] = set()

    @property
    def each(self) -> Importer | None:
        """The importer of all files; None if each is recognised by itself."""
        return self._importer

    @property
    def name(self) -> str:
        """The format, if it is one; of all files that were read, if they are recognised."""
        if self._importer is not None:
            return self._importer.name
        return next(iter(self._formats)) if len(self._formats) == 1 else _NAME

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a directory holds a file that is recognised."""
        found = sources_in(source, self._importer) if source.is_dir() else ()
        return any(isinstance(one, Source) for one in found)

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads one source after the other. One that cannot be read is a problem; an unrecognised
        file is reported and left out.

        Raises:
            InvalidInput: there is nothing in it to read.
        """
        some = False
        names = SessionNames()
        for found in sources_in(source, self._importer):
            if isinstance(found, Diagnostic):
                yield found
                continue
            some = True
            try:
                self._formats.add(found.importer.name)
                read = found.importer.read(found.path, reading)
                yield from names.told_apart(found.path, read)
            except (InvalidInput, MissingExtra) as error:
                yield Diagnostic("problem", str(error), str(found.path))
        if not some:
            raise InvalidInput(f"{source} holds nothing that can be imported")


def sources_in(
    directory: Path,
    importer: Importer | None = None,
    recogniser: Callable[[Path], Importer | None] | None = None,
) -> Iterator[Source | Diagnostic]:
    """The sources below a directory, by name.

    Args:
        directory: that is searched, with all below it that is not hidden.
        importer: takes every file whose name ends as those of conversations do; None to ask which
            importer recognises a file, or a directory as a whole.
        recogniser: the function to ask; None for all that are installed.
    """
    if importer is None and recogniser is None:
        recogniser = partial(recognise, importers=installed_importers())
    return _below(directory, importer, recogniser, set(), directory)


def _below(
    directory: Path,
    importer: Importer | None,
    recogniser: Callable[[Path], Importer | None] | None,
    seen: set[Path],
    root: Path,
) -> Iterator[Source | Diagnostic]:
    try:
        paths = entries_of(directory, seen, root)
    except OSError as error:
        yield Diagnostic("problem", f"cannot be read: {error.strerror or error}", str(directory))
        return
    for path in paths:
        if path.is_dir() and importer is not None:
            yield from _below(path, importer, recogniser, seen, root)
        elif importer is not None:
            if path.suffix in ENDINGS:
                yield Source(path, importer)
        elif recogniser is not None:
            yield from _recognised(path, recogniser, seen, root)


def _recognised(
    path: Path, recogniser: Callable[[Path], Importer | None], seen: set[Path], root: Path
) -> Iterator[Source | Diagnostic]:
    try:
        found = recogniser(path)
    except InvalidInput as error:
        yield Diagnostic("problem", str(error), str(path))
        return
    if found is not None:
        yield Source(path, found)
    elif path.is_dir():
        yield from _below(path, None, recogniser, seen, root)
    elif path.suffix in ENDINGS:
        yield Diagnostic("difference", "left out a file in an unknown format", str(path))
