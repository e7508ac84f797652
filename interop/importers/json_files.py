"""Files of JSON: one value, an array, or a value on each line; given piece by piece."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec

from ...engine.budget import Budget, is_inside
from ...engine.errors import InvalidInput, malformed
from .json_sniff import shape_of
from .json_stream import elements_of

__all__ = (
    "AT_ONCE",
    "PIECE",
    "Piece",
    "check_held",
    "decode",
    "decoder_of",
    "files_in",
    "lines_of",
    "load",
    "pieces_of",
    "read_bytes",
    "size_of",
)

_T = TypeVar("_T")
AT_ONCE: Final = 1 << 24
"""Bytes of a document that may be in memory as a whole."""
PIECE: Final = Budget()
"""Limits for a piece of a file that is in memory as a whole."""
_BOM: Final = b"\xef\xbb\xbf"
_HELD: Final = 1 << 20


class Piece(NamedTuple):
    """A value in a file.

    Attributes:
        where: its place, in words.
        number: the number of the line, or its place in the array, from 1; 1 if it is the whole
            file.
        data: its JSON, not looked at yet.
    """

    where: str
    number: int
    data: bytes | msgspec.Raw


def read_bytes(path: Path) -> bytes:
    """The whole of a file.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(PIECE.size + 1)
        PIECE.check_size(len(data))
        return data.removeprefix(_BOM)
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error
    except InvalidInput:
        raise InvalidInput(f"{path} is longer than {PIECE.size:,} bytes") from None


def lines_of(path: Path, *, growing: bool = False, upto: int | None = None) -> Iterator[Piece]:
    """The lines of a file that are not blank.

    Args:
        path: the path of the file.
        growing: another program is still writing it: a last line without an end is left out.
        upto: number of bytes that lines may end in; None for all. Pass it to see the same lines
            each time when a growing file is read more than once.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            end = 0
            for number, line in enumerate(PIECE.lines(file), start=1):
                end += len(line)
                if (growing and not line.endswith(b"\n")) or (upto is not None and end > upto):
                    return
                if number == 1:
                    line = line.removeprefix(_BOM)
                if line.strip():
                    yield Piece(f"{path}, line {number}", number, line)
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error


def pieces_of(path: Path) -> Iterator[Piece]:
    """The values in a file: its lines, the elements of its array, or the one value that it is.

    Lines are read one by one, and long arrays one element at a time; a file that is one object is
    in memory while it is read.

    Raises:
        InvalidInput: it cannot be read, or is not JSON as a whole; in a long array, raised only
            when reading reaches the error.
    """
    shape = shape_of(path)
    if shape is not None and shape.form == "lines":
        yield from lines_of(path)
        return
    if shape is None or shape.form == "object":
        yield Piece(str(path), 1, read_bytes(path))
        return
    for number, raw in enumerate(_elements(path), start=1):
        yield Piece(f"{path}, element {number}", number, raw)


def _elements(path: Path) -> Iterator[bytes | msgspec.Raw]:
    """The elements of an array: decoded at once if it is short, which takes far less time."""
    if size_of(path) <= AT_ONCE:
        data = read_bytes(path)
        if PIECE.holds(data):
            return iter(load(data, list[msgspec.Raw], str(path)))
    return (data for _, data in elements_of(path))


def files_in(directory: Path, pattern: str, *, within: Path | None = None) -> list[Path]:
    """The files in a directory whose names match, sorted. A link is followed only to a place inside.

    Args:
        directory: that is searched.
        pattern: of names, as ``Path.glob`` takes it.
        within: the directory that links may not leave; None for the same one.
    """
    around = within or directory
    found = sorted(directory.glob(pattern))
    return [path for path in found if path.is_file() and is_inside(path, around)]


def check_held(count: int, path: Path) -> None:
    """Checks how many pieces of a file are in memory at once: each becomes an object, however short it is.

    Raises:
        InvalidInput: there are more than 1,048,576.
    """
    if count > _HELD:
        raise InvalidInput(
            f"{path} has more than {_HELD:,} messages, events or traces that have to be in memory at "
            "once; split it into several files"
        )


def size_of(path: Path) -> int:
    """Bytes in a file.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        return path.stat().st_size
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error


def decode(data: bytes | msgspec.Raw, type: type[_T]) -> _T:
    """A value of a type out of JSON, as Python's own encoder writes it too: ``NaN`` and the like
    become null, and half of a surrogate pair a replacement character.

    Raises:
        InvalidInput: it is not such a value, or has too many in it; says why.
    """
    PIECE.check_json(data)
    try:
        return msgspec.json.decode(data, type=type)
    except msgspec.ValidationError as error:
        raise InvalidInput(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        try:
            return msgspec.json.decode(_repaired(bytes(data)), type=type)
        except msgspec.ValidationError as other:
            raise InvalidInput(str(other)) from other
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise InvalidInput(malformed(error)) from error


def decoder_of(type: type[_T]) -> Callable[[bytes | msgspec.Raw], _T]:
    """The same for one type, and quicker, for what is called with every line of a file."""
    at_once = msgspec.json.Decoder(type).decode

    def decode_one(data: bytes | msgspec.Raw) -> _T:
        PIECE.check_json(data)
        try:
            return at_once(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return decode(data, type)

    return decode_one


def load(data: bytes | msgspec.Raw, type: type[_T], where: str) -> _T:
    """Like ``decode``, with the place in errors.

    Raises:
        InvalidInput: it is not such a value.
    """
    try:
        return decode(data, type)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error


def _repaired(data: bytes) -> bytes:
    value = json.loads(data.decode(), parse_constant=lambda _: None)
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
