"""What a directory of tables holds: its files, and up to where in the log they go.

Everything that counts is named by ``manifest.json``, which is replaced in one step after the files
that it names are on the disk. Whatever else lies there is left over from a program that was killed.

    manifest.json
    sessions/convention=handoff/scored_by=auto/rated_by=auto/part-1.parquet
    rounds/convention=handoff/scored_by=auto/rated_by=auto/scorer=travel/version=1/part-1.parquet
    records/part-1.parquet

Within a path, values are quoted as in URLs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, Literal
from urllib.parse import quote

import msgspec

from ...engine.errors import InvalidInput
from ...engine.log.exchange.output_file import sync_directory
from ...engine.rounds import Rounds
from ..metrics.results import DEFINITIONS
from ..trajectory.options import Options
from ..trajectory.scorer_choice import split_stream

__all__ = (
    "MANIFEST",
    "RECORDS",
    "Manifest",
    "Part",
    "View",
    "folder_of",
    "is_tables",
    "load_manifest",
    "part_files",
    "save_manifest",
    "take_directory",
    "view_of",
)

MANIFEST: Final = "manifest.json"
_FORMAT: Final = 1
_LOCK: Final = ".lock"
_KEPT_FOLDERS: Final = ("sessions", "rounds", "records")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a table.

    Attributes:
        path: within the directory.
        rows: how many it holds.
        sessions: how many sessions they are of.
        first: the least key of a session in it.
        last: the greatest.
    """

    path: str
    rows: int
    sessions: int
    first: int
    last: int


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The closed sessions of a log: scored in one way, or their records.

    Attributes:
        convention: how rounds are counted; ``records`` for the table of records, which are not
            scored.
        utility: whose utility counts, as ``Options.utility``; ``auto`` for None.
        judge: whose ratings count, as ``Options.judge``.
        definitions: version of the definitions of all numbers by which it was written.
        columns: a digest of the columns of its tables.
        position: of the log, up to which closed sessions are in it.
        parts: its files.
    """

    convention: Rounds | Literal["records"]
    utility: str = ""
    judge: str = ""
    definitions: int = DEFINITIONS
    columns: str = ""
    position: int = 0
    parts: tuple[Part, ...] = ()

    def same_as(self, other: View) -> bool:
        """Whether it is the same way of scoring."""
        return (self.convention, self.utility, self.judge) == (
            other.convention,
            other.utility,
            other.judge,
        )

    def table(self, name: str) -> list[Part]:
        """The files of one table."""
        return [part for part in self.parts if part.path.startswith(f"{name}/")]


RECORDS: Final = View(convention="records")
"""The table of records."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a directory of tables holds.

    Attributes:
        format: of the directory.
        log: a digest by which the log is known again.
        number: of the last file that was written.
        views: one per way of scoring.
    """

    format: int = _FORMAT
    log: str = ""
    number: int = 0
    views: tuple[View, ...] = ()

    def find(self, wanted: View) -> View | None:
        """The view of a way of scoring, or of the records, if there is one."""
        return next((view for view in self.views if view.same_as(wanted)), None)

    def including(self, views: Sequence[View], *, number: int | None = None) -> Manifest:
        """The manifest with these views in the place of those that it had of them."""
        others = [one for one in self.views if not any(map(one.same_as, views))]
        number = self.number if number is None else number
        return msgspec.structs.replace(self, number=number, views=(*others, *views))


def view_of(options: Options) -> View:
    """The way of scoring that options ask for, without any file yet."""
    return View(convention=options.rounds, utility=options.utility or "auto", judge=options.judge)


def folder_of(view: View, table: str, scorer: str | None = None) -> str:
    """The folder of a table within the directory, by how it is scored.

    Args:
        view: the way of scoring.
        table: its name.
        scorer: of the utilities in it, ``name@version``, for a table of rounds; None where nobody
            measured utility.
    """
    if table == "records":
        return table
    keys = {"convention": view.convention, "scored_by": view.utility, "rated_by": view.judge}
    if table == "rounds":
        keys["scorer"], keys["version"] = (
            ("none", "none") if scorer is None else split_stream(scorer)
        )
    return "/".join([table, *(f"{key}={_quoted(value)}" for key, value in keys.items())])


def _quoted(value: str) -> str:
    """A value as a part of a path: what file systems or Hive partitions may not have is quoted."""
    return quote(value, safe="@ +") or "%00"


def is_tables(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a directory of tables."""
    return os.path.isfile(os.path.join(path, MANIFEST))


def load_manifest(directory: Path) -> Manifest:
    """The manifest of a directory; an empty one where there is none.

    Raises:
        InvalidInput: it cannot be read, or is of a newer Duolog.
    """
    file = directory / MANIFEST
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return Manifest()
    except OSError as error:
        raise InvalidInput(f"cannot read {file}: {error.strerror or error}") from error
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{file} is no manifest of tables: {error}") from error
    if found.format > _FORMAT:
        raise InvalidInput(f"{directory} was written by a newer Duolog: upgrade to read it")
    return found


def save_manifest(directory: Path, manifest: Manifest) -> None:
    """Replaces the manifest in one step, on the disk when this returns."""
    data = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    temporary = directory / f".{MANIFEST}"
    with open(temporary, "wb") as file:
        file.write(data + b"\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, directory / MANIFEST)
    sync_directory(directory)


def take_directory(directory: Path) -> BinaryIO:
    """Makes a directory for tables where there is none, and keeps other programs from writing it.

    Returns:
        What is to be closed in the end. The system closes it where this program ends otherwise.

    Raises:
        InvalidInput: another program is writing it, or it holds something else than tables.
    """
    try:
        if directory.exists() and not _is_ours(directory):
            raise InvalidInput(
                f"{directory} holds something else than tables: name another directory"
            )
        directory.mkdir(parents=True, exist_ok=True)
        file = (directory / _LOCK).open("wb")
    except OSError as error:
        raise InvalidInput(f"cannot write {directory}: {error.strerror or error}") from error
    try:
        _lock(file, directory)
    except BaseException:
        file.close()
        raise
    return file


def _is_ours(directory: Path) -> bool:
    """Whether a directory is empty, or tables were begun there."""
    return directory.is_dir() and ((directory / _LOCK).exists() or not any(directory.iterdir()))


def _lock(file: BinaryIO, directory: Path) -> None:
    try:
        import fcntl
    except ModuleNotFoundError:  # a system without locks on files
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InvalidInput(f"another program is writing the tables in {directory}") from error


def part_files(directory: Path) -> Iterator[str]:
    """The files of tables that lie in a directory, whether a manifest names them or not."""
    for table in _KEPT_FOLDERS:
        for path in sorted((directory / table).rglob("*")):
            if path.is_file() and path.name.lstrip(".").startswith("part-"):
                yield path.relative_to(directory).as_posix()
