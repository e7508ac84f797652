"""Goes through a document of JSON without holding it: the elements of an array, the members of an
object, as bytes of the file. It looks only at brackets and quotation marks, so it yields unchecked
pieces of the file: decoding them shows whether they are JSON. Memory holds one element, and some of
the file beyond it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeVar, final

import msgspec

from ...engine.budget import Budget
from ...engine.errors import InvalidInput

__all__ = ("Member", "elements_of", "lines_at", "members_of", "places_of", "read_at")

_T = TypeVar("_T")
_CHUNK: Final = 1 << 18
_PIECE: Final = Budget()
_MEMBERS: Final = 1 << 18  # that one object may have
_BOM: Final = b"\xef\xbb\xbf"
_SPACE = re.compile(rb"[ \t\r\n]*")
_SCALAR = re.compile(rb"[^\s,\]}:\"\[{]*")
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_MARK = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]|"', re.DOTALL)
_OPENING: Final = frozenset(b"{[")
_QUOTE: Final = 34


class Member(NamedTuple):
    """A value in a document.

    Attributes:
        offset: its first byte in the file.
        size: in bytes.
    """

    offset: int
    size: int


def elements_of(path: Path, offset: int = 0) -> Iterator[tuple[Member, bytes]]:
    """The elements of an array, one after the other, and the place of each.

    Args:
        path: the path of the file.
        offset: the offset of the array.

    Raises:
        InvalidInput: the file cannot be read, or is cut off, or there is no array.
    """
    yield from _elements(path, offset, _Scanner.value)


def places_of(path: Path, offset: int = 0) -> Iterator[Member]:
    """The places of the elements of an array, however long they are; as ``elements_of``."""
    yield from _elements(path, offset, _Scanner.skip)


def lines_at(path: Path) -> Iterator[tuple[Member, bytes]]:
    """The lines of a file that are not blank, and the place of each.

    Raises:
        InvalidInput: it cannot be read.
    """
    offset = 0
    with _opened(path) as file:
        for line in _PIECE.lines(file):
            if line.strip():
                yield Member(offset, len(line)), line.removeprefix(_BOM)
            offset += len(line)


def members_of(path: Path, of: Member | None = None) -> dict[str, Member]:
    """The places of the members of an object, by name; the last of a name.

    Args:
        path: the path of the file.
        of: the object; None for the whole document.

    Raises:
        InvalidInput: the file cannot be read, or is cut off, or is not an object.
    """
    found: dict[str, Member] = {}
    with _opened(path) as file:
        scanner = _Scanner(file, path, 0 if of is None else of.offset)
        scanner.expect(b"{")
        if scanner.next() == b"}":
            scanner.expect(b"}")
        else:
            while True:
                name = scanner.name()
                scanner.expect(b":")
                found[name] = scanner.skip()
                if len(found) > _MEMBERS:
                    raise InvalidInput(f"{path}: an object has more than {_MEMBERS:,} members")
                if scanner.next() != b",":
                    break
                scanner.expect(b",")
            scanner.expect(b"}")
        if of is None:
            scanner.end()
    return found


def read_at(path: Path, member: Member) -> bytes:
    """A value of a document.

    Raises:
        InvalidInput: the file cannot be read.
    """
    with _opened(path) as file:
        file.seek(member.offset)
        return file.read(member.size)


def _elements(path: Path, offset: int, take: Callable[[_Scanner], _T]) -> Iterator[_T]:
    with _opened(path) as file:
        scanner = _Scanner(file, path, offset)
        scanner.expect(b"[")
        if scanner.next() == b"]":
            scanner.expect(b"]")
        else:
            while True:
                yield take(scanner)
                if scanner.next() != b",":
                    break
                scanner.expect(b",")
            scanner.expect(b"]")
        if not offset:
            scanner.end()


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error


@final
class _Scanner:
    """Goes over a document from a place on.

    Args:
        file: the file of the document.
        path: the path of the file, for errors.
        offset: where to begin.
    """

    def __init__(self, file: BinaryIO, path: Path, offset: int) -> None:
        self._file = file
        self._path = path
        self._buffer = bytearray()
        self._base = offset  # offset of the buffer in the file
        self._at = 0  # in the buffer
        file.seek(offset)
        if not offset:
            self._fill()
            self._at = len(_BOM) if self._buffer.startswith(_BOM) else 0

    def next(self) -> bytes:
        """The next character that is not a space; empty at the end."""
        while True:
            space = _SPACE.match(self._buffer, self._at)
            self._at = self._at if space is None else space.end()
            if self._at < len(self._buffer):
                return bytes(self._buffer[self._at : self._at + 1])
            if not self._fill():
                return b""

    def expect(self, character: bytes) -> None:
        """Goes over a character.

        Raises:
            InvalidInput: there is another one, or none.
        """
        found = self.next()
        if found != character:
            self._fail(f"{character.decode()!r} has to stand", found)
        self._at += 1

    def end(self) -> None:
        """Checks that nothing follows.

        Raises:
            InvalidInput: something does.
        """
        found = self.next()
        if found:
            self._fail("the document has to end", found)

    def name(self) -> str:
        """Goes over the name of a member.

        Raises:
            InvalidInput: there is none.
        """
        _, data = self.value()
        try:
            return msgspec.json.decode(data, type=str)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            self._fail("a name has to stand", data[:1])
            raise

    def value(self) -> tuple[Member, bytes]:
        """Goes over a value, and gives it.

        Raises:
            InvalidInput: there is none, or the file ends in it.
        """
        self.next()
        self._release()
        start = self._at
        member = self._pass(keep=True)
        return member, bytes(self._buffer[start : start + member.size])

    def skip(self) -> Member:
        """Goes over a value, of any size; raises as ``value`` does."""
        self.next()
        return self._pass(keep=False)

    def _pass(self, *, keep: bool) -> Member:
        first = self.next()
        begin = self._base + self._at
        if first and first[0] in _OPENING:
            self._nested(keep=keep)
        elif first == b'"':
            self._whole(_TEXT)
        else:
            self._whole(_SCALAR)
        size = self._base + self._at - begin
        if not size:
            self._fail("a value has to stand", first)
        return Member(begin, size)

    def _nested(self, *, keep: bool) -> None:
        """Goes over an object or array."""
        depth, at = 0, self._at
        size = _CHUNK
        brackets, most = 0, 2 * _PIECE.objects
        while True:
            begun = at
            for mark in _MARK.finditer(self._buffer, at):
                character = self._buffer[mark.start()]
                if character == _QUOTE:
                    if mark.end() == mark.start() + 1:
                        at = mark.start()
                        break  # a text that continues past the buffer
                    continue
                depth += 1 if character in _OPENING else -1
                if not depth:
                    self._at = mark.end()
                    return
                brackets += 1
            else:
                at = len(self._buffer)
            stuck = at == begun
            if not keep:
                self._at, at = at, 0
                self._release()
            if keep and brackets > most:
                raise InvalidInput(f"{self._path}: a piece has more than {most // 2:,} values")
            if not self._fill(size, keep=keep):
                self._fail("the document is cut off", b"")
            # Reads more at a time while one text continues, so that it takes linear time.
            size = size * 2 if stuck else _CHUNK

    def _whole(self, form: re.Pattern[bytes]) -> None:
        """Goes over a text or a number, which may continue past the buffer."""
        size = _CHUNK
        while True:
            found = form.match(self._buffer, self._at)
            end = None if found is None else found.end()
            if end is not None and (end < len(self._buffer) or form is _TEXT):
                self._at = end
                return
            if not self._fill(size, keep=True):
                if end is None:
                    self._fail("the document is cut off", b"")
                else:
                    self._at = end
                return
            size *= 2

    def _release(self) -> None:
        """Drops the part of the buffer that was read."""
        del self._buffer[: self._at]
        self._base += self._at
        self._at = 0

    def _fill(self, size: int = _CHUNK, *, keep: bool = False) -> bool:
        """Reads on; False at the end of the file.

        Raises:
            InvalidInput: it cannot be read, or what is to be kept is too long.
        """
        if keep and len(self._buffer) > _PIECE.size:
            raise InvalidInput(f"{self._path}: a piece has more than {_PIECE.size:,} bytes")
        try:
            more = self._file.read(size)
        except OSError as error:
            raise InvalidInput(f"cannot read {self._path}: {error.strerror or error}") from error
        self._buffer += more
        return bool(more)

    def _fail(self, what: str, found: bytes) -> None:
        place = f"{self._path}, byte {self._base + self._at + 1}"
        there = f", not {found.decode('utf-8', 'replace')!r}" if found else ", and the file ends"
        raise InvalidInput(f"{place}: {what}{there}")
