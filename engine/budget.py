"""The size limit of one input: a single limit for everything that comes from outside.

A limit on bytes is not enough: 15 kB of gzip hold 8 million empty spans, and each becomes an object.
So every interface counts the objects of an input before it builds anything from it. The counting
takes constant memory, and it stops at the limit.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias, TypeVar, final

import msgspec

from .errors import InvalidInput, TooLarge, malformed

__all__ = ("MESSAGE", "Budget", "Fields", "is_inside", "too_deep")

Fields: TypeAlias = Mapping[int, "Fields"]
"""The fields of a protobuf message that are messages, by number, with their own fields."""

_T = TypeVar("_T")
_MIB: Final = 2**20
_PART: Final = 1 << 16  # bytes that are decompressed at once
_SMALL: Final = 4 * _MIB  # bytes to which any input may expand, whatever its size
_EITHER: Final = 32 + zlib.MAX_WBITS  # gzip or zlib, as the data says
_VALUES = re.compile(rb'[,\[{]|"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_QUOTE: Final = 34
_FIXED: Final = {1: 8, 5: 4}  # bytes of a number, by wire type
_SQUARE = bytes.maketrans(b"{}", b"[]")
_OTHERS = bytes(set(range(256)) - set(b"[]{}"))
_SYSTEM: Final = (Path("/proc"), Path("/sys"))  # files there are not data, and some never end


@final
class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one input.

    Attributes:
        size: bytes in memory at once, after decompression.
        ratio: bytes after decompression for each byte before it. Inputs of less than 4 MiB after
            decompression are exempt.
        objects: values: elements of lists, members of objects, fields of messages.
        depth: levels of lists and objects.
        seconds: for it to arrive, if it comes over a network.
    """

    size: int = 256 * _MIB
    ratio: int = 200
    objects: int = 4 * _MIB
    depth: int = 100
    seconds: float = 20.0

    def check_size(self, size: int) -> None:
        """Checks a number of bytes.

        Raises:
            TooLarge: it is.
        """
        if size > self.size:
            raise TooLarge(f"it has {size:,} bytes; at most {self.size:,} are read")

    def check_inflated(self, before: int, after: int) -> None:
        """Checks the size of decompressed data, as an archive states it or while it is read.

        Args:
            before: bytes before decompression.
            after: bytes after decompression.

        Raises:
            TooLarge: the data expands too much.
        """
        if after > max(_SMALL, before * self.ratio):
            raise TooLarge(
                f"{before:,} compressed bytes become {after:,} or more; "
                f"at most {self.ratio} for each byte are read"
            )

    def check_json(self, data: bytes | str | msgspec.Raw) -> None:
        """Checks the size and the number of values of JSON before it is decoded.

        Raises:
            TooLarge: it is too large, or has too many values.
        """
        self.check_size(len(data))
        if not self.holds(data):
            raise TooLarge(f"it has more than {self.objects:,} values")

    def decoded(self, data: bytes, decode: Callable[[bytes], _T]) -> _T:
        """JSON that comes from outside, decoded.

        Args:
            data: as it came.
            decode: the method ``decode`` of a decoder of msgspec.

        Raises:
            TooLarge: it is too large, has too many values, or nests too deeply to be decoded.
            InvalidInput: it is not JSON of this form; says why.
        """
        self.check_json(data)
        try:
            return decode(data)
        except RecursionError as error:
            raise TooLarge(malformed(error)) from None
        except (msgspec.MsgspecError, ValueError) as error:
            raise InvalidInput(malformed(error)) from None

    def holds(self, data: bytes | str | msgspec.Raw) -> bool:
        """Whether JSON has no more values than this."""
        if len(data) <= self.objects:  # each value has a byte at least
            return True
        written = data.encode(errors="replace") if isinstance(data, str) else bytes(data)
        return not _has_more_values(written, self.objects)

    def check_protobuf(self, data: bytes, fields: Fields) -> None:
        """Checks the size, depth and number of fields of a protobuf message before it is parsed.

        A message that is damaged passes, since its parser says better what is wrong.

        Args:
            data: the message.
            fields: which of its fields are messages.

        Raises:
            TooLarge: it is too large, nests too deeply, or has too many fields.
        """
        self.check_size(len(data))
        if len(data) <= self.objects:  # each field has two bytes at least
            return
        left = self.objects
        at, end, around = 0, len(data), list[tuple[int, Fields]]()
        try:
            while True:
                if at >= end:
                    if not around:
                        return
                    end, fields = around.pop()
                    continue
                key, at = _varint(data, at)
                left -= 1
                if left < 0:
                    raise TooLarge(f"it has more than {self.objects:,} values")
                kind = key & 7
                if kind == 2:
                    size, at = _varint(data, at)
                    inner = fields.get(key >> 3)
                    if inner is None:
                        at += size
                    elif len(around) >= self.depth:
                        raise TooLarge(f"it nests deeper than {self.depth} levels")
                    else:
                        around.append((end, fields))
                        end, fields = min(at + size, end), inner
                elif kind == 0:
                    _, at = _varint(data, at)
                else:
                    at += _FIXED.get(kind, 0)
        except IndexError:
            return

    def lines(self, file: BinaryIO) -> Iterator[bytes]:
        """The lines of a file, each with its end.

        Raises:
            TooLarge: a line is too long.
        """
        most = self.size + 1
        while line := file.readline(most):
            if len(line) == most and not line.endswith(b"\n"):
                raise TooLarge(f"a line has more than {self.size:,} bytes")
            yield line

    def inflated(self, data: bytes) -> bytes:
        """Decompresses data: gzip or zlib, in one member or several.

        Raises:
            TooLarge: the data expands too much.
            InvalidInput: the data is damaged or truncated.
        """
        parts: list[bytes] = []
        size = 0
        most = min(self.size, max(_SMALL, len(data) * self.ratio))
        member = zlib.decompressobj(_EITHER)
        try:
            # Part by part: the rest after a member is copied, and there may be very many members.
            for begin in range(0, len(data), _PART):
                left = data[begin : begin + _PART]
                while left:
                    if member.eof:
                        member = zlib.decompressobj(_EITHER)
                    parts.append(member.decompress(left, most + 1 - size))
                    size += len(parts[-1])
                    if size > most:
                        self.check_size(size)
                        self.check_inflated(len(data), size)
                    left = member.unused_data
        except zlib.error as error:
            raise InvalidInput(f"it does not decompress: {error}") from None
        if data and not member.eof:
            raise InvalidInput("it is cut off: it does not decompress to its end")
        return b"".join(parts)


MESSAGE: Final = Budget(size=64 * _MIB, objects=1 << 20)
"""The limits of one message of another program: an agent, a harness, an endpoint."""


def too_deep(body: bytes, levels: int) -> bool:
    """Whether JSON nests deeper than a number of levels of lists and objects.

    The work is linear in the size, and none if there are few brackets. Nothing recurses.

    Args:
        body: valid JSON.
        levels: that it may have.
    """
    if body.count(b"{") + body.count(b"[") <= levels:
        return False
    left = _STRINGS.sub(b"", body).translate(_SQUARE, _OTHERS)
    for _ in range(levels):  # each pass removes the innermost level
        if not left:
            return False
        left = left.replace(b"[]", b"")
    return bool(left)


def is_inside(path: Path, directory: Path) -> bool:
    """Whether a file or directory lies in a directory, after all links are followed.

    What the system shows as files, as in ``/proc``, lies in no directory.
    """
    try:
        path.stat()  # from Python 3.13 on, to resolve a link that leads to itself is not an error
    except FileNotFoundError:
        pass
    except OSError:
        return False
    try:
        real, around = path.resolve(), directory.resolve()
    except (OSError, RuntimeError):  # a link that leads to itself
        return False
    return real.is_relative_to(around) and not any(map(real.is_relative_to, _SYSTEM))


def _has_more_values(data: bytes, most: int) -> bool:
    """Whether JSON has more values than that; text is not counted."""
    if data.count(b",") + data.count(b"{") + data.count(b"[") <= most:
        return False
    texts = values = 0
    for found in _VALUES.finditer(data):
        if data[found.start()] == _QUOTE:
            texts += 1
        else:
            values += 1
        if values > most or texts > 2 * most:
            return True
    return False


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A whole number of protobuf, and the place after it."""
    byte = data[at]
    at += 1
    if byte < 128:
        return byte, at
    number, shift = byte & 127, 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128 or shift > 63:
            return number, at
        shift += 7
