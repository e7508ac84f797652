"""The importer for a directory of files, each of its own format, or all of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, final

from ...engine.errors import InvalidInput, MissingExtra
from .json_sniff import Shape
from .protocol import Found, Importer, Reading, Remark
from .registry import ENDINGS, entries_of, installed_importers, recognise
from .repeats import SessionNames

__all__ = ("DirectoryImporter", "Source", "sources_in")

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

    def __init__(self, importer: Importer | None = None) -> None:
        self._importer = importer
        self._formats: set[str] = set()

    @property
    def each(self) -> Importer | None:
        """What reads each file; None where each is recognised by itself."""
        return self._importer

    @property
    def name(self) -> str:
        """The format, if it is one; of all files that were read, where they are recognised."""
        if self._importer is not None:
            return self._importer.name
        return next(iter(self._formats)) if len(self._formats) == 1 else _NAME

    @property
    def about(self) -> str:
        """In a few words."""
        return "a directory of files, each recognised by itself"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a directory holds a file that is recognised."""
        found = sources_in(source, self._importer) if source.is_dir() else ()
        return any(isinstance(one, Source) for one in found)

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads one source after the other. One that cannot be read is a problem; a file that nobody
        recognises is remarked on and left out.

        Raises:
            InvalidInput: there is nothing in it to read.
        """
        some = False
        names = SessionNames()
        for found in sources_in(source, self._importer):
            if isinstance(found, Remark):
                yield found
                continue
            some = True
            try:
                self._formats.add(found.importer.name)
                read = found.importer.read(found.path, reading)
                yield from names.told_apart(found.path, read)
            except (InvalidInput, MissingExtra) as error:
                yield Remark("problem", str(error), str(found.path))
        if not some:
            raise InvalidInput(f"{source} holds nothing that can be imported")


def sources_in(
    directory: Path,
    importer: Importer | None = None,
    recogniser: Callable[[Path], Importer | None] | None = None,
) -> Iterator[Source | Remark]:
    """The sources below a directory, by name.

    Args:
        directory: that is searched, with all below it that is not hidden.
        importer: takes every file whose name ends as those of conversations do; None to ask which
            importer recognises a file, or a directory as a whole.
        recogniser: who is asked; None for all that are installed.
    """
    if importer is None and recogniser is None:
        recogniser = partial(recognise, importers=installed_importers())
    return _below(directory, importer, recogniser, set())


def _below(
    directory: Path,
    importer: Importer | None,
    recogniser: Callable[[Path], Importer | None] | None,
    seen: set[Path],
) -> Iterator[Source | Remark]:
    try:
        paths = entries_of(directory, seen)
    except OSError as error:
        yield Remark("problem", f"cannot be read: {error.strerror or error}", str(directory))
        return
    for path in paths:
        if path.is_dir() and importer is not None:
            yield from _below(path, importer, recogniser, seen)
        elif importer is not None:
            if path.suffix in ENDINGS:
                yield Source(path, importer)
        elif recogniser is not None:
            yield from _recognised(path, recogniser, seen)


def _recognised(
    path: Path, recogniser: Callable[[Path], Importer | None], seen: set[Path]
) -> Iterator[Source | Remark]:
    try:
        found = recogniser(path)
    except InvalidInput as error:
        yield Remark("problem", str(error), str(path))
        return
    if found is not None:
        yield Source(path, found)
    elif path.is_dir():
        yield from _below(path, None, recogniser, seen)
    elif path.suffix in ENDINGS:
        yield Remark("difference", "a file of no format that is known, left out", str(path))
