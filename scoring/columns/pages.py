"""The headers of the pages of a Parquet file, read before anything of a page is.

A footer says what a column becomes in memory, and each page says so again. A reader of Parquet trusts
the pages: one of a hundred bytes can have it take two gigabytes. So a file whose pages say more than
its footer is refused.

Headers are Thrift structs in the compact protocol: see ``parquet.thrift`` of Apache Parquet.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol, TypeAlias

from ...engine.errors import InvalidInput, TooLarge

__all__ = ("Chunk", "check_pages")

_PAGES: Final = 1 << 20  # of a file
_DEEPEST: Final = 8  # structs in each other
_DICTIONARY: Final = 2  # the type of a page
_PADDED: Final = (
    100  # bytes after a chunk that a reader may also read, since old writers miscounted
)


class Chunk(NamedTuple):
    """A column in a group of rows, as the footer has it.

    Attributes:
        name: of the column.
        start: where its first page begins.
        end: where its last page ends.
        values: how many its pages hold.
        size: bytes of its pages, decompressed.
    """

    name: str
    start: int
    end: int
    values: int
    size: int


class _Bytes(Protocol):
    def __getitem__(self, at: int, /) -> int: ...
    def __len__(self) -> int: ...


_Struct: TypeAlias = "dict[int, int | _Struct]"
"""The numbers and structs in a struct, by the number of the field."""


def check_pages(file: _Bytes, chunks: list[Chunk]) -> None:
    """Checks that the pages of a file hold no more than its footer says.

    Raises:
        InvalidInput: they do, or the header of a page cannot be read.
        TooLarge: there are too many pages.
    """
    left = _PAGES
    for chunk in chunks:
        at, values, size = chunk.start, 0, 0
        while values < chunk.values and at < min(chunk.end + _PADDED, len(file)):
            left -= 1
            if left < 0:
                raise TooLarge(f"it has more than {_PAGES:,} pages; at most that many are read")
            try:
                header, at = _struct(file, at, 0)
            except (IndexError, ValueError):
                raise InvalidInput(f"a page of the column {chunk.name} lacks a header") from None
            size += _number(header, 2)
            count = sum(_number(header.get(field), 1) for field in (5, 8))
            values += count
            entries = _number(header.get(7), 1) if _number(header, 1) == _DICTIONARY else 0
            at += _number(header, 3)
            if values > chunk.values or max(size, entries) > chunk.size:
                raise InvalidInput(
                    f"a page of the column {chunk.name} holds more than the footer says"
                )


def _number(struct: int | _Struct | None, field: int) -> int:
    found = struct.get(field, 0) if isinstance(struct, dict) else 0
    number = found if isinstance(found, int) else 0
    if number < 0:
        raise InvalidInput("the header of a page has a size below zero")
    return number


def _struct(file: _Bytes, at: int, depth: int) -> tuple[_Struct, int]:
    """A struct, and the position after it."""
    if depth > _DEEPEST:
        raise ValueError
    found: _Struct = {}
    field = 0
    while head := file[at]:
        at += 1
        if head >> 4:
            field += head >> 4
        else:
            number, at = _varint(file, at)
            field = number >> 1
        found[field], at = _value(file, at, head & 15, depth)
    return found, at + 1


def _value(file: _Bytes, at: int, kind: int, depth: int) -> tuple[int | _Struct, int]:
    """A value by its type, and the position after it."""
    if kind in (1, 2):  # true, false
        return int(kind == 1), at
    if kind == 3:
        return file[at], at + 1
    if kind in (4, 5, 6):
        number, at = _varint(file, at)
        return (number >> 1) ^ -(number & 1), at
    if kind == 7:
        return 0, at + 8
    if kind == 8:
        size, at = _varint(file, at)
        return 0, at + size
    if kind == 12:
        return _struct(file, at, depth + 1)
    raise ValueError  # headers of pages hold neither lists nor maps


def _varint(file: _Bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = file[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
        if shift > 63:
            raise ValueError
